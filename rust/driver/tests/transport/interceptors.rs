//! Tests of interceptors that lose datagrams deliberately. The variables that configure them are the
//! variables that test suites of other projects set.

use aeron_driver::config::{Context, Sources};
use aeron_driver::media::interceptors::intercept;
use aeron_driver::media::transport::Socket;
use aeron_driver::media::udp::UdpNetwork;

use super::support::{FULL, MTU, payloads, receiver, sender};

const PAD: u16 = 0;
const DATA: u16 = 1;
const NAK: u16 = 2;
const STATUS_MESSAGE: u16 = 3;
const SETUP: u16 = 5;
const EXTENSION: u16 = 0xFFFF;
const TERM_ID: i32 = 77;
const LOSS: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS";
const FIXED_LOSS: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS";
const MULTI_GAP_LOSS: &str = "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MULTI_GAP_LOSS_ARGS";

/// Returns a context with these incoming interceptors. `arguments` are variables and their values.
fn context(names: &str, arguments: &[(&str, &str)]) -> Context {
    let mut sources = Sources::default();
    let mut define = |name: &str, value: &str| sources.define(&format!("{name}={value}")).unwrap();
    define("AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS", names);
    for (name, value) in arguments {
        define(name, value);
    }
    let mut context = Context::default();
    assert_eq!(context.apply(&sources), [""; 0]);
    context.validate().unwrap();
    context
}

/// The sockets of a sender and of a receiver, both with interceptors.
struct Pair {
    from: Box<dyn Socket>,
    to: Box<dyn Socket>,
}

impl Pair {
    fn new(context: &Context) -> Self {
        let (pair, warnings) = Self::with_warnings(context);
        assert_eq!(warnings, [""; 0]);
        pair
    }

    fn with_warnings(context: &Context) -> (Self, Vec<String>) {
        let network = Box::new(UdpNetwork::new(FULL, MTU));
        let (mut network, warnings) = intercept(network, context);
        let to = network.open(&receiver("127.0.0.1:0")).unwrap();
        let spec = sender("127.0.0.1:0", to.local_address());
        let from = network.open(&spec).unwrap();
        (Pair { from, to }, warnings)
    }

    /// Returns the indexes of the datagrams that arrive.
    fn survivors(&mut self, datagrams: &[Vec<u8>]) -> Vec<usize> {
        // No interceptor in these tests loses the frame type of the mark. If the mark arrives without the datagram that
        // was sent before it, that datagram is lost.
        let mark = frame(EXTENSION, TERM_ID, 0, 32, 0);
        let mut survivors = Vec::new();
        for (number, datagram) in datagrams.iter().enumerate() {
            self.from.send(None, datagram).unwrap();
            self.from.send(None, &mark).unwrap();
            let mut arrived = Vec::new();
            while arrived.last() != Some(&mark) {
                arrived.extend(payloads(self.to.as_mut(), 1));
            }
            arrived.pop();
            assert!(arrived.iter().all(|one| one == datagram) && arrived.len() <= 1);
            survivors.extend(arrived.first().map(|_| number));
        }
        survivors
    }

    /// Returns the number of lost datagrams.
    fn lost(&mut self, datagrams: &[Vec<u8>]) -> usize {
        datagrams.len() - self.survivors(datagrams).len()
    }
}

fn frame(
    frame_type: u16,
    term_id: i32,
    term_offset: i32,
    length: usize,
    session_id: i32,
) -> Vec<u8> {
    let mut bytes = vec![0; length];
    bytes[..4].copy_from_slice(&(length as i32).to_le_bytes());
    bytes[6..8].copy_from_slice(&frame_type.to_le_bytes());
    bytes[8..12].copy_from_slice(&term_offset.to_le_bytes());
    bytes[12..16].copy_from_slice(&session_id.to_le_bytes());
    bytes[20..24].copy_from_slice(&term_id.to_le_bytes());
    bytes
}

fn data(term_offset: i32, length: usize) -> Vec<u8> {
    frame(DATA, TERM_ID, term_offset, length, 1)
}

/// Returns `count` contiguous datagrams of 1024 bytes.
fn stream(count: i32) -> Vec<Vec<u8>> {
    (0..count).map(|i| data(1024 * i, 1024)).collect()
}

/// 04-188: the part about the transport.
#[test]
fn loss_drops_only_the_frame_types_in_its_mask() {
    let frames: Vec<Vec<u8>> = [PAD, DATA, NAK, STATUS_MESSAGE, SETUP, EXTENSION]
        .into_iter()
        .map(|frame_type| frame(frame_type, TERM_ID, 64, 64, 1))
        .chain([vec![1, 2, 3]])
        .collect();
    for (mask, survivors) in [
        ("2", vec![0, 2, 3, 4, 5, 6]),
        ("0x2", vec![0, 2, 3, 4, 5, 6]),
        ("8", vec![0, 1, 2, 4, 5, 6]),
        ("F", vec![4, 5, 6]),
        ("0xf", vec![4, 5, 6]),
        ("ffffffffffffffff", vec![5, 6]),
    ] {
        let arguments = format!("rate=1.0|seed=5|recv-msg-mask={mask}");
        let mut pair = Pair::new(&context("loss", &[(LOSS, &arguments)]));
        assert_eq!(pair.survivors(&frames), survivors, "{mask}");
    }
}

#[test]
fn loss_has_the_configured_rate_and_is_the_same_for_the_same_seed() {
    let frames = stream(1000);
    let survivors =
        |arguments: &str| Pair::new(&context("loss", &[(LOSS, arguments)])).survivors(&frames);
    let first = survivors("rate=0.2|recv-msg-mask=0x2|seed=42");
    assert!((750..850).contains(&first.len()), "{}", first.len());
    assert_eq!(first, survivors("rate=0.2|recv-msg-mask=0x2|seed=42"));
    assert_ne!(first, survivors("rate=0.2|recv-msg-mask=0x2|seed=43"));
    assert_eq!(survivors("rate=7|recv-msg-mask=2"), [0_usize; 0]);
}

#[test]
fn missing_arguments_cause_no_loss_and_no_warning() {
    for (name, variable, texts) in [
        (
            "loss",
            LOSS,
            &["", "rate=1.0", "rate=1.0|seed=3", "recv-msg-mask=f"][..],
        ),
        ("fixed-loss", FIXED_LOSS, &["", "term-id=77|term-offset=0"]),
        (
            "multi-gap-loss",
            MULTI_GAP_LOSS,
            &["", "term-id=77|gap-radix=64|gap-length=8"],
        ),
    ] {
        for text in texts {
            assert_eq!(
                Pair::new(&context(name, &[(variable, text)])).lost(&stream(8)),
                0,
                "{text}"
            );
        }
    }
}

#[test]
fn invalid_arguments_cause_no_loss_and_a_warning() {
    for (name, variable, text) in [
        ("loss", LOSS, "rate=much|recv-msg-mask=f"),
        ("loss", LOSS, "rate=1|recv-msg-mask=xyz"),
        ("loss", LOSS, "rate=1|recv-msg-mask=f|seed=-1"),
        ("loss", LOSS, "rat=1|recv-msg-mask=f"),
        ("loss", LOSS, "everything"),
        (
            "fixed-loss",
            FIXED_LOSS,
            "term-id=77|term-offset=-1|length=64",
        ),
        (
            "multi-gap-loss",
            MULTI_GAP_LOSS,
            "term-id=x|gap-radix=64|gap-length=8|total-gaps=2",
        ),
    ] {
        let (mut pair, warnings) = Pair::with_warnings(&context(name, &[(variable, text)]));
        assert_eq!(pair.lost(&stream(8)), 0);
        assert_eq!(
            warnings,
            [format!(
                "WARNING: {variable}={text} is invalid, nothing is lost"
            )]
        );
    }
}

/// 04-189: the part about the transport, with the same losses as in the C driver.
#[test]
fn fixed_loss_drops_once_for_each_stream_all_frames_up_to_the_end_of_the_range() {
    let arguments = format!("term-id={TERM_ID}|term-offset=2048|length=1025");
    let mut pair = Pair::new(&context("fixed-loss", &[(FIXED_LOSS, &arguments)]));
    assert_eq!(pair.survivors(&stream(6)), [4, 5]);
    assert_eq!(pair.lost(&stream(6)), 0, "retransmits are not lost");
    let other_session = |offset| frame(DATA, TERM_ID, offset, 1024, 2);
    assert_eq!(
        pair.lost(&[1024, 2048, 3072, 4096].map(other_session)),
        3,
        "the loss begins with the first frame of the session"
    );
    let other_term = frame(DATA, TERM_ID + 1, 2048, 1024, 3);
    let pad = frame(PAD, TERM_ID, 2048, 32, 3);
    let setup = frame(SETUP, TERM_ID, 2048, 40, 3);
    assert_eq!(pair.lost(&[other_term, pad, setup, vec![0; 7]]), 0);
    let behind = frame(DATA, TERM_ID, 3073, 1024, 3);
    assert_eq!(pair.lost(&[behind]), 0);
}

#[test]
fn fixed_loss_drops_heartbeats_and_data() {
    let arguments = format!("term-id={TERM_ID}|term-offset=0|length=4096");
    let mut pair = Pair::new(&context("fixed-loss", &[(FIXED_LOSS, &arguments)]));
    let mut heartbeat = data(1024, 32);
    heartbeat[..4].fill(0);
    let datagrams = [
        data(0, 1024),
        heartbeat.clone(),
        heartbeat,
        data(1024, 1024),
    ];
    assert_eq!(pair.survivors(&datagrams), [2]);
}

/// After the first loss, only a frame that directly follows the lost bytes is lost. Frames before them or after a gap
/// arrive.
#[test]
fn fixed_loss_drops_only_frames_that_directly_follow_the_lost_bytes() {
    let arguments = format!("term-id={TERM_ID}|term-offset=0|length=8192");
    let mut pair = Pair::new(&context("fixed-loss", &[(FIXED_LOSS, &arguments)]));
    let datagrams = [
        data(4096, 1024),
        data(1024, 1024),
        data(6144, 1024),
        data(5120, 1024),
        data(4096, 1024),
    ];
    assert_eq!(pair.survivors(&datagrams), [1, 2, 4]);
}

/// 04-190: the part about the transport.
#[test]
fn multi_gap_loss_drops_the_configured_gaps() {
    // The radix is rounded up to 4096.
    let arguments = format!("term-id={TERM_ID}|gap-radix=4000|gap-length=1024|total-gaps=3");
    let mut pair = Pair::new(&context("multi-gap-loss", &[(MULTI_GAP_LOSS, &arguments)]));
    let datagrams = stream(24);
    let survivors = pair.survivors(&datagrams);
    let lost: Vec<usize> = (0..24).filter(|i| !survivors.contains(i)).collect();
    assert_eq!(lost, [4, 8, 12]);
    assert_eq!(pair.lost(&datagrams), 0, "retransmits are not lost");
}

#[test]
fn multi_gap_loss_drops_every_datagram_that_overlaps_a_gap() {
    let arguments = format!("term-id={TERM_ID}|gap-radix=4096|gap-length=64|total-gaps=100");
    let mut pair = Pair::new(&context("multi-gap-loss", &[(MULTI_GAP_LOSS, &arguments)]));
    let datagrams = [
        data(0, 4096),
        data(4096 - 32, 64),
        data(4096 + 32, 32),
        data(4096 + 64, 32),
        data(8192 - 32, 32),
        data(3 * 4096, 32),
    ];
    assert_eq!(pair.survivors(&datagrams), [0, 3, 4]);
}

/// The second interceptor does not see the datagrams that the first one drops. So the order decides whether the third
/// datagram arrives.
#[test]
fn interceptors_are_applied_in_the_order_of_the_list() {
    let fixed = format!("term-id={TERM_ID}|term-offset=0|length=8192");
    let gaps = format!("term-id={TERM_ID}|gap-radix=4096|gap-length=1024|total-gaps=1");
    let arguments = [
        (FIXED_LOSS, fixed.as_str()),
        (MULTI_GAP_LOSS, gaps.as_str()),
    ];
    let datagrams = [4096, 5120, 4096, 4096].map(|offset| data(offset, 1024));
    for (names, survivors) in [
        ("fixed-loss,multi-gap-loss", vec![3]),
        ("multi-gap-loss,fixed-loss", vec![2, 3]),
    ] {
        let mut pair = Pair::new(&context(names, &arguments));
        assert_eq!(pair.survivors(&datagrams), survivors, "{names}");
    }
}

#[test]
fn all_interceptors_are_applied_to_every_socket() {
    let fixed = format!("term-id={TERM_ID}|term-offset=0|length=1024");
    let names = "fixed-loss,loss";
    let context = context(
        names,
        &[(FIXED_LOSS, &fixed), (LOSS, "rate=1|recv-msg-mask=8")],
    );
    let mut pair = Pair::new(&context);
    let status_message = frame(STATUS_MESSAGE, TERM_ID, 0, 36, 1);
    assert_eq!(
        pair.survivors(&[data(0, 1024), status_message.clone(), data(0, 1024)]),
        [2]
    );
    let control = pair.from.local_address();
    pair.to.send(Some(control), &status_message).unwrap();
    pair.to
        .send(Some(control), &frame(NAK, TERM_ID, 0, 28, 1))
        .unwrap();
    assert_eq!(payloads(pair.from.as_mut(), 1)[0].len(), 28);
}
