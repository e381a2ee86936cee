//! Tests of the check of socket buffer lengths, which a driver makes before it starts.

use aeron_driver::config::Context;
use aeron_driver::socket_buffers::SocketBufferProbe;
use aeron_driver::{MediaDriver, StartError};

fn refusal(change: impl FnOnce(&mut Context)) -> String {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut context = Context {
        dir: dir.path().join("driver"),
        ..Context::default()
    };
    change(&mut context);
    let dir = context.dir.clone();
    let error = MediaDriver::launch(context).expect_err("should be refused");
    assert!(!dir.exists(), "a refused driver creates no directory");
    assert!(matches!(error, StartError::Configuration(_)));
    error.to_string()
}

/// 04-9
#[test]
fn datagrams_and_windows_that_do_not_fit_into_the_buffers_prevent_the_start() {
    let text = refusal(|context| {
        context.mtu_length = 65_504;
        context.socket_sndbuf = 16_384;
    });
    assert_eq!(text.lines().next(), Some("(22) Invalid argument"));
    assert!(
        text.contains("MTU greater than socket SO_SNDBUF, "),
        "{text}"
    );
    assert!(
        text.contains(": mtuLength=65504, SO_SNDBUF=32768"),
        "{text}"
    );
    let text = refusal(|context| context.initial_window_length = 1 << 20);
    assert!(
        text.contains("Window length greater than socket SO_RCVBUF, "),
        "{text}"
    );
    assert!(
        text.contains(": windowLength=1048576, SO_RCVBUF=262144"),
        "{text}"
    );
}

#[test]
fn a_buffer_that_the_system_does_not_grant_causes_a_warning() {
    let mut context = Context::default();
    assert_eq!(
        SocketBufferProbe::new(&context)
            .unwrap()
            .short_buffers(&context),
        []
    );
    context.socket_rcvbuf = 1 << 30;
    let probe = SocketBufferProbe::new(&context).unwrap();
    let warnings: Vec<String> = probe
        .short_buffers(&context)
        .iter()
        .map(ToString::to_string)
        .collect();
    let expected = format!(
        "WARNING: Could not get desired SO_RCVBUF, adjust OS buffer to match AERON_SOCKET_SO_RCVBUF: attempted=1073741824, actual={}",
        probe.granted.receive
    );
    assert_eq!(warnings, [expected]);
    probe.check(&context).unwrap();
}
