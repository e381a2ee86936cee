//! Tests of drivers with a name resolver other than the system's.

use std::net::UdpSocket;
use std::path::Path;
use std::time::{Duration, Instant};

use aeron_driver::names::NameSupplier;
use aeron_driver::{Context, MediaDriver, StartError, ThreadingMode};
use aeron_memory::broadcast::BroadcastReceiver;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::cnc::{CncFile, Reader};
use aeron_memory::counters::{CounterRecord, CountersReader, types};
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{AddPublication, Command};
use aeron_protocol::event::Event;
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

struct Driver {
    driver: MediaDriver,
    cnc: CncFile,
    counters: CountersReader<SharedBuffer>,
    _dir: TempDir,
}

fn temporary_dir() -> TempDir {
    let shared_memory = Path::new("/dev/shm");
    let base = if shared_memory.exists() {
        shared_memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    tempfile::Builder::new()
        .prefix("aeron-names-test-")
        .tempdir_in(base)
        .unwrap()
}

fn launch(configure: impl FnOnce(&mut Context)) -> Result<Driver, StartError> {
    let dir = temporary_dir();
    let mut context = Context {
        dir: dir.path().join("aeron"),
        threading_mode: ThreadingMode::Invoker,
        ..Context::default()
    };
    configure(&mut context);
    let cnc_file = context.dir.join("cnc.dat");
    let driver = MediaDriver::launch_with_main_loop(context)?;
    let cnc = CncFile::map(&cnc_file, Reader::Client).unwrap().unwrap();
    let (metadata, values) = (
        cnc.counters_metadata().clone(),
        cnc.counters_values().clone(),
    );
    Ok(Driver {
        driver,
        cnc,
        counters: CountersReader::new(metadata, values).unwrap(),
        _dir: dir,
    })
}

impl Driver {
    /// Returns the error response to the command that adds a publication; `None` if the publication was added.
    fn refusal(&mut self, channel: &str) -> Option<ErrorCode> {
        let mut events = BroadcastReceiver::new(self.cnc.to_clients().clone()).unwrap();
        let correlation_id = self.cnc.to_driver().next_correlation_id();
        let command = Command::AddPublication(AddPublication {
            client_id: 1,
            correlation_id,
            stream_id: 1001,
            channel: channel.as_bytes(),
        });
        let mut body = vec![0; command.encoded_length()];
        command.encode(&mut body).unwrap();
        self.cnc
            .to_driver()
            .write(command.type_id(), &body)
            .unwrap();
        let deadline = Instant::now() + PATIENCE;
        let mut answer = None;
        while answer.is_none() {
            assert!(Instant::now() < deadline);
            self.driver.do_work();
            let on_event = |type_id, body: &[u8]| match Event::decode(type_id, body).unwrap() {
                Event::PublicationReady(ready) if ready.correlation_id == correlation_id => {
                    answer = Some(None)
                }
                Event::Error(error) if error.offending_command_correlation_id == correlation_id => {
                    answer = Some(Some(error.error_code))
                }
                _ => {}
            };
            events.receive(on_event).unwrap();
        }
        answer.flatten()
    }

    fn of_type(&self, type_id: i32) -> Vec<CounterRecord> {
        self.counters
            .records()
            .filter(|record| record.type_id == type_id)
            .collect()
    }

    fn labels(&self, type_id: i32) -> Vec<String> {
        self.of_type(type_id)
            .into_iter()
            .map(|record| record.label)
            .collect()
    }

    fn value(&self, type_id: i32) -> i64 {
        self.of_type(type_id)[0].value
    }
}

fn gossiping(name: &str, interface: &str, neighbors: &str) -> Driver {
    launch(|context| {
        context.name_resolver_supplier = "driver".into();
        context.resolver_name = name.into();
        context.resolver_interface = interface.into();
        context.resolver_bootstrap_neighbor = neighbors.into();
        context.resolver_self_resolution_interval_ns = 20_000_000;
    })
    .unwrap()
}

fn port_in(label: &str) -> u16 {
    label.rsplit(':').next().unwrap().parse().unwrap()
}

#[test]
fn suppliers_have_short_names_and_the_names_of_the_c_drivers_functions() {
    for (name, function, supplier) in [
        (
            "default",
            "aeron_default_name_resolver_supplier",
            NameSupplier::System,
        ),
        (
            "csv_table",
            "aeron_csv_table_name_resolver_supplier",
            NameSupplier::CsvTable,
        ),
        (
            "driver",
            "aeron_driver_name_resolver_supplier",
            NameSupplier::Gossip,
        ),
    ] {
        assert_eq!(NameSupplier::from_name(name), Some(supplier));
        assert_eq!(NameSupplier::from_name(function), Some(supplier));
    }
    assert_eq!(NameSupplier::from_name("nonsense"), None);
}

#[test]
fn every_row_of_the_table_has_a_counter() {
    let driver = launch(|context| {
        context.name_resolver_supplier = "csv_table".into();
        context.name_resolver_init_args = "one,localhost,127.0.0.2|short,row|two,a,b".into();
    })
    .unwrap();
    let labels = [
        "NameEntry{name='one', initialResolutionHost='localhost', reResolutionHost='127.0.0.2'}",
        "NameEntry{name='two', initialResolutionHost='a', reResolutionHost='b'}",
    ];
    assert_eq!(driver.labels(types::NAME_ENTRY), labels);
    let row = &driver.of_type(types::NAME_ENTRY)[0];
    assert_eq!(row.key[..8], *b"\x03\0\0\0one\0");
    assert_eq!(driver.value(types::NAME_ENTRY), 0);
}

#[test]
fn drivers_exchange_their_names_over_the_network() {
    let mut alpha = gossiping("alpha", "localhost:0", "");
    let bound = alpha.labels(types::RESOLVER_NEIGHBORS);
    assert!(
        bound[0].starts_with("Resolver neighbors: bound 127.0.0.1:"),
        "{bound:?}"
    );
    let port = port_in(&bound[0]);
    let cache = alpha.labels(types::RESOLVER_CACHE_ENTRIES);
    assert_eq!(cache, ["Resolver cache entries: name=alpha"]);
    let mut bravo = gossiping(
        "bravo",
        "127.0.0.0:0/8",
        &format!("localhost:{port},nowhere"),
    );
    let labels = [
        format!("Bootstrap neighbor: name=localhost:{port} resolved=127.0.0.1:{port}"),
        "Bootstrap neighbor: name=nowhere resolved=".into(),
    ];
    assert_eq!(bravo.labels(types::BOOTSTRAP_NEIGHBOR), labels);
    assert_eq!(
        bravo.of_type(types::BOOTSTRAP_NEIGHBOR)[1].key[..4],
        [1, 0, 0, 0]
    );
    let deadline = Instant::now() + PATIENCE;
    while bravo.value(types::BOOTSTRAP_NEIGHBOR) == 0 {
        assert!(Instant::now() < deadline);
        alpha.driver.do_work();
        bravo.driver.do_work();
        std::thread::sleep(Duration::from_millis(1));
    }
    for driver in [&alpha, &bravo] {
        assert_eq!(driver.value(types::RESOLVER_NEIGHBORS), 1);
        assert_eq!(driver.value(types::RESOLVER_CACHE_ENTRIES), 1);
    }
    let channel = |host: &str| format!("aeron:udp?endpoint={host}:40123|term-length=64k");
    for known in ["alpha", "bravo"] {
        assert_eq!(bravo.refusal(&channel(known)), None, "{known}");
    }
    let unheard = bravo.refusal(&channel("charlie.invalid"));
    assert_eq!(unheard, Some(ErrorCode::UnknownHost));
}

/// 04-201: two resolvers on one machine use the same port of different addresses of the loopback network.
#[test]
#[cfg(target_os = "linux")]
fn a_resolver_binds_a_loopback_address_that_no_interface_has() {
    let alpha = gossiping("alpha", "127.0.0.1:0", "");
    let port = port_in(&alpha.labels(types::RESOLVER_NEIGHBORS)[0]);
    let bravo = gossiping("bravo", &format!("127.0.0.2:{port}"), "");
    let bound = bravo.labels(types::RESOLVER_NEIGHBORS);
    let expected = format!("Resolver neighbors: bound 127.0.0.2:{port}");
    assert!(bound[0].starts_with(&expected), "{bound:?}");
}

#[test]
fn a_name_resolver_that_cannot_be_created_prevents_the_start() {
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let interface = taken.local_addr().unwrap().to_string();
    let many = vec!["localhost:1"; 21].join(",");
    let attempts: [(&str, &str, &str, &str); 5] = [
        ("driver", "", "", "needs AERON_DRIVER_RESOLVER_INTERFACE"),
        ("driver", &interface, "", "(98) Address already in use"),
        (
            "driver",
            "198.51.100.1:1",
            "",
            "failed to bind name resolver to 198.51.100.1:1",
        ),
        (
            "driver",
            "localhost:0",
            &many,
            "21 bootstrap neighbors exceed the limit of 20",
        ),
        (
            "csv_table",
            "",
            "",
            "No CSV configuration, please specify: AERON_NAME_RESOLVER_INIT_ARGS",
        ),
    ];
    for (supplier, interface, neighbors, words) in attempts {
        let result = launch(|context| {
            context.name_resolver_supplier = supplier.into();
            context.resolver_name = "alpha".into();
            context.resolver_interface = interface.into();
            context.resolver_bootstrap_neighbor = neighbors.into();
        });
        let error = result.err().expect(words).to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
}
