//! What belongs to a parent process sends and closes nothing in a forked child. Alone in its process, because it marks it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aeron_client::{Aeron, Context, Error, mark_forked_child};
use aeron_memory::cnc::{CncFile, CncLengths, DriverIdentity};
use aeron_memory::directory::cnc_file;

#[test]
fn in_a_forked_child_the_parents_client_is_dead_and_a_new_one_works() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let lengths = CncLengths {
        counters_values: CncLengths::MIN_COUNTERS_VALUES,
        ..CncLengths::default()
    };
    let identity = DriverIdentity {
        client_liveness_timeout_ns: 10_000_000_000,
        start_timestamp_ms: 1,
        pid: 1,
    };
    let cnc = CncFile::create(&cnc_file(directory.path()), &lengths, &identity).unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    cnc.to_driver()
        .set_consumer_heartbeat_ms(now.as_millis() as i64);
    cnc.publish();
    let connect = || {
        Aeron::connect(Context {
            aeron_dir: directory.path().to_owned(),
            use_conductor_agent_invoker: true,
            ..Context::default()
        })
        .unwrap()
    };
    let aeron = connect();
    let id = aeron.async_add_publication("aeron:ipc", 1).unwrap();
    assert!(aeron.is_command_active(id));
    let sent = cnc.to_driver().producer_position();

    mark_forked_child();
    assert!(matches!(
        aeron.async_add_publication("aeron:ipc", 1),
        Err(Error::Forked)
    ));
    assert!(matches!(aeron.find_publication(id), Err(Error::Forked)));
    assert!(!aeron.is_command_active(id));
    assert_eq!(aeron.do_work(), 0);
    aeron.add_close_handler(std::sync::Arc::new(|| panic!("not in the child")));
    aeron.close();
    assert_eq!(aeron.run_handlers(Duration::ZERO), 0);
    drop(aeron);
    assert_eq!(cnc.to_driver().producer_position(), sent);

    let own = connect();
    assert!(own.async_add_publication("aeron:ipc", 1).is_ok());
    assert!(cnc.to_driver().producer_position() > sent);
}
