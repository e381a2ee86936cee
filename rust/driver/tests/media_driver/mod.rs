//! Tests of complete media drivers, with real files, sockets and threads.

mod directories;
mod network_turns;
mod rig;

use std::fs;
use std::os::unix::fs::MetadataExt;

use aeron_agent::{EpochClock, SystemEpochClock};
use aeron_driver::{Context, MediaDriver, ThreadingMode};
use aeron_memory::cnc::CncFile;
use aeron_memory::counters::system::SystemCounter;
use aeron_memory::counters::types;
use aeron_memory::log::{ConcurrentAppender, LogBuffers};
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{AddPublication, AddSubscription, Command};
use aeron_protocol::event::Event;
use tempfile::TempDir;

use rig::{Client, Place, await_true, exchange_datagrams, exchange_messages, publication};

/// Returns the labels of the counters without the driver's own counters and the heartbeat counters.
fn client_counters(place: &Place) -> Vec<String> {
    let cnc = place.cnc();
    let records = cnc
        .counters()
        .records()
        .filter(|record| ![types::SYSTEM, types::CLIENT_HEARTBEAT].contains(&record.type_id));
    records.map(|record| record.label).collect()
}

fn system(cnc: &CncFile, counter: SystemCounter) -> i64 {
    cnc.counters().value(counter.id()).unwrap()
}

/// The threading modes in which the driver starts threads.
const THREADED: [ThreadingMode; 3] = [
    ThreadingMode::Dedicated,
    ThreadingMode::SharedNetwork,
    ThreadingMode::Shared,
];

#[test]
fn datagrams_are_exchanged_in_every_threading_mode() {
    for mode in THREADED {
        let place = Place::new();
        let mut driver = MediaDriver::launch(place.context(mode)).unwrap();
        exchange_datagrams(&place, || {});
        let images = place.dir().join("images");
        assert_eq!(fs::read_dir(&images).unwrap().count(), 1);
        driver.close().unwrap();
        assert_eq!(fs::read_dir(&images).unwrap().count(), 0);
    }
}

/// 05-14: the texts contain the reasons of a real operating system.
#[test]
fn the_error_for_a_refused_socket_contains_the_address_and_the_systems_reason() {
    let place = Place::new();
    let _driver = place.launch();
    let mut client = Client::connect(&place);
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    let refused = [
        (
            "control=198.51.100.7:0|control-mode=dynamic".to_owned(),
            "(99) ",
            "failed to bind(",
        ),
        (
            format!("control={taken}|control-mode=dynamic"),
            "(98) ",
            "failed to bind(",
        ),
        (
            "endpoint=255.255.255.255:22006".to_owned(),
            "(13) ",
            "failed to connect to address: 255.255.255.255:22006",
        ),
    ];
    for (index, (parameters, number, words)) in refused.iter().enumerate() {
        client.send(Command::AddPublication(AddPublication {
            client_id: 1,
            correlation_id: 100 + index as i64,
            stream_id: 1001,
            channel: format!("aeron:udp?{parameters}").as_bytes(),
        }));
        let (code, text) = client.await_event(
            || {},
            |event| match event {
                Event::Error(error) => Some((
                    error.error_code,
                    String::from_utf8_lossy(error.error_message).into_owned(),
                )),
                _ => None,
            },
        );
        assert_eq!(code, ErrorCode::GenericError, "{text}");
        assert!(text.starts_with(number) && text.contains(words), "{text}");
    }
    assert_eq!(client_counters(&place), [""; 0]);
}

#[test]
fn messages_are_exchanged_in_every_threading_mode() {
    for mode in THREADED {
        let place = Place::new();
        let mut driver = MediaDriver::launch(place.context(mode)).unwrap();
        exchange_messages(&place, || {});
        driver.close().unwrap();
    }
}

/// 04-4
#[test]
fn a_driver_in_invoker_mode_works_only_when_its_caller_calls_do_work() {
    let place = Place::new();
    let refused = MediaDriver::launch(place.context(ThreadingMode::Invoker)).unwrap_err();
    assert!(
        refused
            .to_string()
            .starts_with("(22) Invalid argument\nINVOKER"),
        "{refused}"
    );
    assert!(!place.dir().exists());
    let mut driver =
        MediaDriver::launch_with_main_loop(place.context(ThreadingMode::Invoker)).unwrap();
    exchange_messages(&place, || {
        driver.do_work();
    });
    driver.close().unwrap();
    assert_eq!(driver.do_work(), 0);
}

/// 01-2, 01-3, 01-8, 01-9, 01-10, 01-11, 04-17
#[test]
fn a_new_driver_creates_its_files() {
    let place = Place::new();
    let before_ms = SystemEpochClock.time_ms();
    let driver = place.launch();
    assert_eq!(
        place.names(),
        [
            "aeron-driver.lock",
            "cnc.dat",
            "images",
            "loss-report.dat",
            "publications"
        ]
    );
    let cnc_file = fs::metadata(place.dir().join("cnc.dat")).unwrap();
    assert_eq!(cnc_file.len(), 48_238_592);
    assert!(
        cnc_file.blocks() * 512 >= cnc_file.len(),
        "the file system has allocated all blocks of the file"
    );
    let loss_report = fs::metadata(place.dir().join("loss-report.dat")).unwrap();
    assert_eq!(
        (loss_report.len(), loss_report.blocks() * 512),
        (1 << 20, 1 << 20)
    );
    let cnc = place.cnc();
    assert_eq!(cnc.version().0, 512);
    assert_eq!(cnc.identity().pid, i64::from(std::process::id()));
    assert!(cnc.identity().start_timestamp_ms >= before_ms);
    assert_eq!(cnc.identity().client_liveness_timeout_ns, 10_000_000_000);
    drop(driver);
}

/// 04-18, 04-19, 04-23, 01-12, 01-21, 01-42
#[test]
fn a_new_driver_shows_its_version_lengths_and_settings() {
    let place = Place::new();
    let _driver = MediaDriver::launch(Context {
        resolver_name: "me".into(),
        sender_cycle_threshold_ns: 5_000_000_000,
        ..place.context(ThreadingMode::SharedNetwork)
    })
    .unwrap();
    let cnc = place.cnc();
    assert_eq!(cnc.to_driver().next_correlation_id(), 1);
    assert_eq!(system(&cnc, SystemCounter::Version), 78_850);
    assert_eq!(system(&cnc, SystemCounter::ControlProtocolVersion), 65_536);
    assert_eq!(cnc.counters().control_protocol_version(), 65_536);
    assert_eq!(
        system(&cnc, SystemCounter::BytesMapped),
        48_238_592 + (1 << 20)
    );
    let label = |id| cnc.counters().label(id).unwrap();
    assert!(
        label(15).starts_with("Errors: version=1.52.2 commit="),
        "{}",
        label(15)
    );
    assert_eq!(label(25), "Resolution changes: driverName=me");
    assert_eq!(
        label(26),
        "Conductor max cycle time doing its work in ns: SHARED_NETWORK"
    );
    assert_eq!(
        label(27),
        "Conductor work cycle exceeded threshold count: threshold=100ms SHARED_NETWORK"
    );
    assert_eq!(
        label(29),
        "Sender work cycle exceeded threshold count: threshold=5s SHARED_NETWORK"
    );
    assert_eq!(
        label(30),
        "Receiver max cycle time doing its work in ns: SHARED_NETWORK"
    );
    assert_eq!(label(32), "NameResolver max time in ns");
    assert_eq!(
        label(33),
        "NameResolver exceeded threshold count: threshold=5s"
    );
}

/// 01-8: the part about logs. In a sparse log, only the part that publishers may write occupies space.
#[test]
fn a_log_occupies_the_bytes_that_publishers_may_write() {
    let place = Place::new();
    let _driver = place.launch();
    let mut client = Client::connect(&place);
    let add = |correlation_id, channel| {
        Command::AddExclusivePublication(AddPublication {
            client_id: 1,
            correlation_id,
            stream_id: 1001,
            channel,
        })
    };
    for (correlation_id, channel) in [(100, "aeron:ipc"), (101, "aeron:ipc?sparse=false")] {
        client.send(add(correlation_id, channel.as_bytes()));
        client.await_event(
            || {},
            |event| matches!(event, Event::ExclusivePublicationReady(_)).then_some(()),
        );
    }
    let occupied = |id| {
        let path = place.dir().join(format!("publications/{id}.logbuffer"));
        fs::metadata(path).unwrap().blocks() * 512
    };
    assert_eq!(
        occupied(100),
        8192,
        "one page of metadata and the page of the first frame"
    );
    assert_eq!(occupied(101), 200_704);
    assert_eq!(
        client
            .cnc
            .counters()
            .records()
            .filter(|record| record.type_id == types::PUBLISHER_LIMIT)
            .count(),
        2
    );
}

/// A small temporary file system. Not every operating system permits the test to create it.
struct SmallFileSystem(TempDir);

impl SmallFileSystem {
    fn mount(size: &str) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "none"])
            .arg(dir.path())
            .output();
        mount
            .is_ok_and(|output| output.status.success())
            .then(|| SmallFileSystem(dir))
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(self.0.path())
            .status();
    }
}

/// If a process writes to a mapped page for which the file system has no space, the operating system kills the process.
/// Neither a publisher nor the driver may write to such a page.
#[test]
fn on_a_full_file_system_publishers_wait_and_no_process_dies() {
    let Some(file_system) = SmallFileSystem::mount("60m") else {
        eprintln!("skipped: mounting a file system is not permitted");
        return;
    };
    let place = Place(tempfile::tempdir_in(file_system.0.path()).unwrap());
    let _driver = MediaDriver::launch(Context {
        ipc_term_buffer_length: 1 << 20,
        low_file_store_warning_threshold: 0,
        ..place.context(ThreadingMode::Dedicated)
    })
    .unwrap();
    let mut client = Client::connect(&place);
    client.send(publication(100));
    let limit_id = client.await_event(
        || {},
        |event| match event {
            Event::PublicationReady(ready) => Some(ready.publication_limit_counter_id),
            _ => None,
        },
    );
    let log = LogBuffers::open(&place.dir().join("publications/100.logbuffer"), false).unwrap();
    let (client_id, correlation_id, stream_id) = (1, 101, 1001);
    client.send(Command::AddSubscription(AddSubscription {
        client_id,
        correlation_id,
        registration_correlation_id: -1,
        stream_id,
        channel: b"aeron:ipc",
    }));
    let position_id = client.await_event(
        || {},
        |event| match event {
            Event::AvailableImage(image) => Some(image.subscriber_position_id),
            _ => None,
        },
    );
    let counter = |id| client.cnc.counters().counter(id).unwrap();
    let (limit, position) = (counter(limit_id), counter(position_id));
    await_true("a limit of half a term", || limit.get() == 1 << 19);
    let filler = place.0.path().join("filler");
    let full = fs::write(&filler, vec![1; 64 << 20]).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);

    let appender = ConcurrentAppender::new(log.clone());
    let publish_until = |what: &str, done: &dyn Fn() -> bool| {
        await_true(what, || {
            while appender.offer(limit.get(), &[1; 100_000]).is_ok() {}
            position.set(log.producer_position());
            done()
        });
    };
    publish_until("an error", &|| {
        system(&client.cnc, SystemCounter::Errors) == 1
    });
    assert!((1 << 19..1 << 20).contains(&limit.get()), "{}", limit.get());
    client.send(Command::AddExclusivePublication(AddPublication {
        client_id,
        correlation_id: 102,
        stream_id,
        channel: b"aeron:ipc",
    }));
    let code = client.await_event(
        || {},
        |event| match event {
            Event::Error(error) => Some(error.error_code),
            _ => None,
        },
    );
    assert_eq!(code, aeron_protocol::ErrorCode::StorageSpace);
    fs::remove_file(&filler).unwrap();
    publish_until("many terms", &|| log.producer_position() > 10 << 20);
}
