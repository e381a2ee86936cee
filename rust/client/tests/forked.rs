//! Tests that objects of the parent process send and close nothing in a forked child. This test is alone in its
//! process, because it marks the process as a forked child.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aeron_client::{Aeron, Context, Error, Subscription, mark_forked_child};
use aeron_memory::broadcast::BroadcastTransmitter;
use aeron_memory::cnc::{CncFile, CncLengths, DriverIdentity};
use aeron_memory::directory::cnc_file;
use aeron_protocol::event::{Event, SubscriptionReady};

#[test]
fn in_a_forked_child_the_client_of_the_parent_is_dead_and_a_new_client_works() {
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
    let turns = Arc::new(AtomicUsize::new(0));
    let connect = || {
        let turns = Arc::clone(&turns);
        Aeron::connect(Context {
            aeron_dir: directory.path().to_owned(),
            use_conductor_agent_invoker: true,
            driver_turn: Some(Arc::new(move || turns.fetch_add(1, Ordering::Relaxed))),
            ..Context::default()
        })
        .unwrap()
    };
    let aeron = connect();
    let mut pending = aeron.async_add_publication("aeron:ipc", 1).unwrap();
    let id = pending.correlation_id();
    assert!(aeron.is_command_active(id));
    let subscription = add_network_subscription(&aeron, &cnc);
    let poll = || subscription.poll(|_| {}, 1).unwrap();
    assert_eq!((poll(), poll()), (0, 0));
    assert_eq!(turns.load(Ordering::Relaxed), 1);
    let sent = cnc.to_driver().producer_position();

    mark_forked_child();
    assert!(matches!(
        aeron.async_add_publication("aeron:ipc", 1),
        Err(Error::Forked)
    ));
    assert!(matches!(pending.poll(), Err(Error::Forked)));
    assert!(!aeron.is_command_active(id));
    assert_eq!(aeron.do_work(), 0);
    assert_eq!(poll(), 0);
    assert_eq!(turns.load(Ordering::Relaxed), 1);
    aeron.add_close_handler(Arc::new(|| panic!("called in the forked child")));
    aeron.close();
    assert_eq!(aeron.run_handlers(Duration::ZERO), 0);
    drop((subscription, aeron));
    assert_eq!(cnc.to_driver().producer_position(), sent);

    let own = connect();
    let _pending = own.async_add_publication("aeron:ipc", 1).unwrap();
    assert!(cnc.to_driver().producer_position() > sent);
}

/// Adds a subscription. This function writes the driver's response itself.
fn add_network_subscription(aeron: &Aeron, cnc: &CncFile) -> Subscription {
    let channel = "aeron:udp?endpoint=localhost:40123";
    let mut pending = aeron.async_add_subscription(channel, 1).unwrap();
    let ready = Event::SubscriptionReady(SubscriptionReady {
        correlation_id: pending.correlation_id(),
        channel_status_indicator_id: -1,
    });
    let mut body = vec![0; ready.encoded_length()];
    ready.encode(&mut body).unwrap();
    let mut events = BroadcastTransmitter::new(cnc.to_clients().clone()).unwrap();
    events.transmit(ready.type_id(), &body).unwrap();
    aeron.do_work();
    pending.poll().unwrap().unwrap()
}
