//! The text of an exposition, for the files of drivers that the tests write.

use aeron_memory::SharedBuffer;
use aeron_memory::cnc::{Cnc, CncLengths, DriverIdentity};
use aeron_memory::counters::keys::{
    heartbeat_key, heartbeat_label, heartbeat_label_suffix, stream_key, stream_label,
    subscriber_position_label,
};
use aeron_memory::counters::{AtomicCounter, CountersManager, NewCounter, types};
use aeron_memory::directory;
use aeron_metrics::{CustomMetrics, DriverSource, Exposition, ExpositionOptions};
use proptest::prelude::*;
use tempfile::TempDir;

const CHANNEL: &str = "aeron:ipc?alias=a";
const NOW_MS: i64 = 1_000_000;
const LABELS: &str = r#"driver="d",channel="aeron:ipc",stream_id="1001""#;

type Counter = AtomicCounter<SharedBuffer>;

/// A driver that only has counters.
struct Driver {
    directory: TempDir,
    cnc: Cnc<SharedBuffer>,
    counters: CountersManager<SharedBuffer>,
    next_id: i64,
}

impl Driver {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (cnc, counters) = create(&directory, 1);
        Self {
            directory,
            cnc,
            counters,
            next_id: 1000,
        }
    }

    /// Replaces the file, as a new driver does.
    fn restart(&mut self) {
        std::fs::remove_file(directory::cnc_file(self.directory.path())).unwrap();
        (self.cnc, self.counters) = create(&self.directory, 2);
    }

    fn source(&self) -> DriverSource {
        DriverSource::new("d".to_owned(), self.directory.path().to_owned())
    }

    fn exposition(&self, options: ExpositionOptions) -> Exposition {
        Exposition::new(vec![self.source()], Vec::new(), options)
    }

    fn id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    fn add(&mut self, new: &NewCounter<'_>) -> Counter {
        self.counters.allocate(new, NOW_MS).unwrap()
    }

    /// Adds a counter of a stream. A position of a subscriber has a joined position of 4096.
    fn add_stream_counter(
        &mut self,
        type_id: i32,
        id: i64,
        stream_id: i32,
        owner_id: i64,
    ) -> Counter {
        let (key, label) = match type_id {
            types::SUBSCRIBER_POSITION => (
                stream_key(self.id(), 7, stream_id, CHANNEL),
                subscriber_position_label(id, 7, stream_id, CHANNEL, 4096),
            ),
            _ => (
                stream_key(id, 7, stream_id, CHANNEL),
                stream_label("pub-pos (concurrent)", id, 7, stream_id, CHANNEL),
            ),
        };
        let registration_id = match type_id {
            types::SUBSCRIBER_POSITION => self.id(),
            _ => id,
        };
        self.add(&NewCounter {
            type_id,
            key: &key,
            label: label.as_bytes(),
            registration_id,
            owner_id,
            reference_id: id,
            value: 0,
        })
    }

    fn add_publication(&mut self, stream_id: i32) -> Counter {
        let id = self.id();
        self.add_stream_counter(types::PUBLISHER_POSITION, id, stream_id, -1)
    }

    fn add_heartbeat(&mut self, client_id: i64) -> Counter {
        self.add(&NewCounter {
            type_id: types::CLIENT_HEARTBEAT,
            key: &heartbeat_key(client_id),
            label: heartbeat_label(client_id).as_bytes(),
            registration_id: client_id,
            owner_id: client_id,
            reference_id: -1,
            value: NOW_MS,
        })
    }
}

fn create(
    directory: &TempDir,
    start_timestamp_ms: i64,
) -> (Cnc<SharedBuffer>, CountersManager<SharedBuffer>) {
    let lengths = CncLengths {
        counters_values: 1024 * 1024,
        ..CncLengths::default()
    };
    let identity = DriverIdentity {
        client_liveness_timeout_ns: 10_000_000_000,
        start_timestamp_ms,
        pid: 1,
    };
    let path = directory::cnc_file(directory.path());
    let cnc = Cnc::create(&path, &lengths, &identity).unwrap();
    cnc.to_driver().set_consumer_heartbeat_ms(NOW_MS);
    cnc.publish();
    let (metadata, values) = (
        cnc.counters_metadata().clone(),
        cnc.counters_values().clone(),
    );
    (cnc, CountersManager::new(metadata, values, 0).unwrap())
}

/// Returns the value of a line.
fn value<'a>(text: &'a str, series: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '))
}

fn position(text: &str) -> Option<&str> {
    value(
        text,
        &format!("aeron_publisher_position_bytes_total{{{LABELS}}}"),
    )
}

#[test]
fn sessions_of_a_stream_are_one_series_and_a_session_that_ends_takes_nothing_away() {
    let mut driver = Driver::new();
    let (first, second) = (driver.add_publication(1001), driver.add_publication(1001));
    let mut exposition = driver.exposition(ExpositionOptions::default());
    first.set(100);
    second.set(1000);
    assert_eq!(position(&exposition.render(NOW_MS)), Some("1100"));
    first.set(150);
    second.set(2000);
    let text = exposition.render(NOW_MS);
    assert_eq!(position(&text), Some("2150"));
    assert_eq!(
        value(&text, &format!("aeron_publications{{{LABELS}}}")),
        Some("2")
    );
    driver.counters.free(second.id(), NOW_MS).unwrap();
    first.set(160);
    let text = exposition.render(NOW_MS);
    assert_eq!(position(&text), Some("2160"));
    assert_eq!(
        value(&text, &format!("aeron_publications{{{LABELS}}}")),
        Some("1")
    );
    driver.counters.free(first.id(), NOW_MS).unwrap();
    assert_eq!(position(&exposition.render(NOW_MS)), None);
}

#[test]
fn a_session_that_appears_later_adds_all_that_it_has_sent() {
    let mut driver = Driver::new();
    let first = driver.add_publication(1001);
    let mut exposition = driver.exposition(ExpositionOptions::default());
    first.set(100);
    assert_eq!(position(&exposition.render(NOW_MS)), Some("100"));
    let second = driver.add_publication(1001);
    second.set(5000);
    assert_eq!(position(&exposition.render(NOW_MS)), Some("5100"));
    driver.counters.free(second.id(), NOW_MS).unwrap();
    driver.add_publication(1001).set(7);
    assert_eq!(position(&exposition.render(NOW_MS)), Some("5107"));
}

#[test]
fn a_publication_that_begins_at_a_position_adds_only_what_is_new() {
    let mut driver = Driver::new();
    let begun = |driver: &mut Driver| {
        let id = driver.id();
        let channel = "aeron:ipc?init-term-id=1|term-id=2|term-offset=0|term-length=64k";
        let key = stream_key(id, 7, 1001, channel);
        driver.add(&NewCounter {
            type_id: types::PUBLISHER_POSITION,
            key: &key,
            label: stream_label("pub-pos (exclusive)", id, 7, 1001, channel).as_bytes(),
            registration_id: id,
            owner_id: -1,
            reference_id: -1,
            value: 65_536,
        })
    };
    driver.add_publication(1001).set(100);
    let mut exposition = driver.exposition(ExpositionOptions::default());
    exposition.render(NOW_MS);
    let second = begun(&mut driver);
    assert_eq!(position(&exposition.render(NOW_MS)), Some("100"));
    second.set(65_600);
    assert_eq!(position(&exposition.render(NOW_MS)), Some("164"));
}

#[test]
fn a_subscriber_and_its_image_add_what_has_arrived_since_the_subscriber_joined() {
    let mut driver = Driver::new();
    let mut exposition = driver.exposition(ExpositionOptions::default());
    let of = |name: &str| format!("aeron_{name}_bytes_total{{{LABELS}}}");
    for expected in ["904", "908"] {
        let image = driver.id();
        let subscriber = driver.add_stream_counter(types::SUBSCRIBER_POSITION, image, 1001, -1);
        let received = driver.add_stream_counter(types::RECEIVER_POSITION, image, 1001, -1);
        // The first joins at 4096, and so does the second.
        let value_of = if expected == "904" { 5000 } else { 4100 };
        subscriber.set(value_of);
        received.set(value_of);
        let text = exposition.render(NOW_MS);
        assert_eq!(value(&text, &of("subscriber_position")), Some(expected));
        assert_eq!(value(&text, &of("receiver_position")), Some(expected));
    }
}

#[test]
fn a_reused_counter_id_is_another_counter() {
    let mut driver = Driver::new();
    let (first, second) = (driver.add_publication(1001), driver.add_publication(1001));
    let mut exposition = driver.exposition(ExpositionOptions::default());
    first.set(100);
    second.set(100);
    assert_eq!(position(&exposition.render(NOW_MS)), Some("200"));
    driver.counters.free(second.id(), NOW_MS).unwrap();
    let other = driver.add_publication(1002);
    assert_eq!(other.id(), second.id());
    other.set(7);
    let text = exposition.render(NOW_MS);
    assert_eq!(position(&text), Some("200"));
    let series =
        r#"aeron_publisher_position_bytes_total{driver="d",channel="aeron:ipc",stream_id="1002"}"#;
    assert_eq!(value(&text, series), Some("7"));
}

#[test]
fn a_new_driver_in_the_directory_is_read() {
    let mut driver = Driver::new();
    let first = driver.add_publication(1001);
    let mut exposition = driver.exposition(ExpositionOptions::default());
    first.set(100);
    exposition.render(NOW_MS);
    driver.restart();
    driver.add_publication(1001);
    let second = driver.add_publication(1001);
    second.set(30);
    assert_eq!(position(&exposition.render(NOW_MS)), Some("130"));
    second.set(40);
    assert_eq!(position(&exposition.render(NOW_MS)), Some("140"));
}

#[test]
fn counters_of_a_dead_driver_are_not_shown() {
    let mut driver = Driver::new();
    driver.add_publication(1001).set(100);
    let mut exposition = driver.exposition(ExpositionOptions::default());
    assert_eq!(
        value(&exposition.render(NOW_MS), "aeron_driver_up{driver=\"d\"}"),
        Some("1")
    );
    let text = exposition.render(NOW_MS + 10_001);
    assert_eq!(value(&text, "aeron_driver_up{driver=\"d\"}"), Some("0"));
    assert_eq!(position(&text), None);
    // A process that was stopped goes on.
    driver.add_publication(1002).set(3);
    driver
        .cnc
        .to_driver()
        .set_consumer_heartbeat_ms(NOW_MS + 10_001);
    let text = exposition.render(NOW_MS + 10_001);
    assert_eq!(position(&text), Some("100"));
    drop(driver);
    let text = exposition.render(NOW_MS + 10_001);
    assert_eq!(value(&text, "aeron_driver_up{driver=\"d\"}"), Some("0"));
    assert_eq!(position(&text), None);
}

#[test]
fn a_file_that_was_cut_is_no_driver() {
    let mut driver = Driver::new();
    driver.add_publication(1001).set(100);
    let mut exposition = driver.exposition(ExpositionOptions::default());
    exposition.render(NOW_MS);
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(directory::cnc_file(driver.directory.path()))
        .unwrap();
    file.set_len(0).unwrap();
    let text = exposition.render(NOW_MS);
    assert_eq!(value(&text, "aeron_driver_up{driver=\"d\"}"), Some("0"));
}

#[test]
fn a_publication_without_room_names_the_client_that_holds_it_back() {
    let mut driver = Driver::new();
    let id = driver.id();
    let heartbeat = driver.add_heartbeat(5);
    let position = driver.add_stream_counter(types::PUBLISHER_POSITION, id, 1001, -1);
    let limit = driver.add_stream_counter(types::PUBLISHER_LIMIT, id, 1001, -1);
    let slow = driver.add_stream_counter(types::SUBSCRIBER_POSITION, id, 1001, 5);
    let mut exposition = driver.exposition(ExpositionOptions::default());
    position.set(4000);
    limit.set(4096);
    slow.set(1000);
    exposition.render(NOW_MS);
    let suffix = heartbeat_label_suffix("pricer", "1.52.0", "abc");
    driver
        .counters
        .reader()
        .append_to_label(heartbeat.id(), &suffix);
    let text = exposition.render(NOW_MS);
    let window = format!("aeron_publication_window_bytes{{{LABELS}}}");
    let lag = format!("aeron_subscriber_lag_bytes{{{LABELS},client=\"pricer\"}}");
    assert_eq!(value(&text, &window), Some("96"));
    assert_eq!(value(&text, &lag), Some("3000"));
    assert!(!text.contains("aeron_publications_limited{"));
    position.set(4096);
    let limited =
        format!("aeron_publications_limited{{{LABELS},by=\"subscriber\",subscriber=\"pricer\"}}");
    assert_eq!(value(&exposition.render(NOW_MS), &limited), Some("1"));
    // The subscriber has all that was sent, so the receivers hold the publishers back.
    let sender = driver.add_stream_counter(types::SENDER_POSITION, id, 1001, -1);
    let sender_limit = driver.add_stream_counter(types::SENDER_LIMIT, id, 1001, -1);
    slow.set(3000);
    sender.set(3000);
    sender_limit.set(3000);
    let limited = format!("aeron_publications_limited{{{LABELS},by=\"receivers\"}}");
    assert_eq!(value(&exposition.render(NOW_MS), &limited), Some("1"));
    sender_limit.set(3001);
    let limited = format!("aeron_publications_limited{{{LABELS},by=\"sender\"}}");
    assert_eq!(value(&exposition.render(NOW_MS), &limited), Some("1"));
}

#[test]
fn a_client_that_has_just_started_is_shown_with_its_name() {
    let mut driver = Driver::new();
    let id = driver.id();
    let mut exposition = driver.exposition(ExpositionOptions::default());
    exposition.render(NOW_MS);
    let heartbeat = driver.add_heartbeat(5);
    driver.add_stream_counter(types::PUBLISHER_POSITION, id, 1001, 5);
    assert_eq!(position(&exposition.render(NOW_MS)), None);
    let suffix = heartbeat_label_suffix("quotes", "1.52.0", "abc");
    driver
        .counters
        .reader()
        .append_to_label(heartbeat.id(), &suffix);
    let series = format!("aeron_publisher_position_bytes_total{{{LABELS},client=\"quotes\"}}");
    assert_eq!(value(&exposition.render(NOW_MS), &series), Some("0"));
    // Clients of other implementations may never have a name.
    let id = driver.id();
    driver.add_heartbeat(6);
    driver.add_stream_counter(types::PUBLISHER_POSITION, id, 1001, 6);
    assert_eq!(position(&exposition.render(NOW_MS)), None);
    assert_eq!(position(&exposition.render(NOW_MS)), Some("0"));
}

#[test]
fn a_subscriber_has_a_lag_as_soon_as_its_publisher_is_shown() {
    let mut driver = Driver::new();
    let mut exposition = driver.exposition(ExpositionOptions::default());
    exposition.render(NOW_MS);
    // A publisher without a name yet is held back for a pass, and its subscriber is not.
    driver.add_heartbeat(5);
    let id = driver.id();
    let published = driver.add_stream_counter(types::PUBLISHER_POSITION, id, 1001, 5);
    driver.add_stream_counter(types::SUBSCRIBER_POSITION, id, 1001, -1);
    exposition.render(NOW_MS);
    published.set(70);
    driver.add_publication(1002);
    let text = exposition.render(NOW_MS);
    let lag = format!("aeron_subscriber_lag_bytes{{{LABELS}}}");
    assert_eq!(value(&text, &lag), Some("70"));
}

#[test]
fn whole_streams_are_left_out_if_there_are_too_many_series() {
    let mut driver = Driver::new();
    let counters: Vec<_> = (0..10)
        .map(|stream| driver.add_publication(stream))
        .collect();
    let options = ExpositionOptions {
        max_series: 9,
        ..ExpositionOptions::default()
    };
    let mut exposition = driver.exposition(options);
    exposition.render(NOW_MS);
    for (stream, counter) in (0..).zip(&counters) {
        counter.set(1000 * stream);
    }
    let text = exposition.render(NOW_MS);
    // A stream has two series: its position and the number of its publications.
    assert_eq!(value(&text, "aeron_exporter_series"), Some("8"));
    assert_eq!(value(&text, "aeron_exporter_dropped_series"), Some("12"));
    for (stream, is_shown) in [(5, false), (6, true), (9, true)] {
        assert_eq!(
            text.contains(&format!("stream_id=\"{stream}\"")),
            is_shown,
            "{stream}"
        );
    }
}

#[test]
fn a_session_has_series_of_its_own_if_the_options_say_so() {
    let mut driver = Driver::new();
    let (first, second) = (driver.add_publication(1001), driver.add_publication(1001));
    first.set(100);
    second.set(1000);
    let options = ExpositionOptions {
        is_per_session: true,
        ..ExpositionOptions::default()
    };
    let text = driver.exposition(options).render(NOW_MS);
    for (id, expected) in [(1001, "100"), (1002, "1000")] {
        let labels = format!("{LABELS},session_id=\"7\",registration_id=\"{id}\"");
        let series = format!("aeron_publisher_position_bytes_total{{{labels}}}");
        assert_eq!(value(&text, &series), Some(expected));
    }
}

#[test]
fn counters_of_applications_have_their_declared_names_or_their_labels() {
    let mut driver = Driver::new();
    for (type_id, label) in [
        (1001, "orders venue=XETR"),
        (1001, "orders venue=XPAR"),
        (1002, "mine"),
    ] {
        let registration_id = driver.id();
        driver.add(&NewCounter {
            type_id,
            key: b"",
            label: label.as_bytes(),
            registration_id,
            owner_id: -1,
            reference_id: -1,
            value: 3,
        });
    }
    let declared = "[[counter]]\ntype_id = 1001\nname = \"orders\"\nkind = \"counter\"\nlabels = { venue = { label = \"venue\" } }";
    let options = ExpositionOptions {
        custom: CustomMetrics::parse(declared).unwrap(),
        ..ExpositionOptions::default()
    };
    let text = driver.exposition(options).render(NOW_MS);
    assert_eq!(
        value(&text, r#"orders_total{driver="d",venue="XPAR"}"#),
        Some("3")
    );
    let undeclared = r#"aeron_undeclared{driver="d",type_id="1002",label="mine"}"#;
    assert_eq!(value(&text, undeclared), Some("3"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Counters come from any process.
    #[test]
    fn any_counters_have_a_text_with_one_sample_a_line(
        passes in proptest::collection::vec((any::<u16>(), proptest::collection::vec((
            prop_oneof![
                8 => prop::sample::select(vec![1, 2, 4, 5, 9, 11, 12, 100]),
                1 => prop_oneof![0..22, 100..118, 200..242, 1000..1003, any::<i32>()],
            ],
            proptest::collection::vec(any::<u8>(), 0..112),
            "(?s).{0,80}",
            (0_i64..2, -1_i64..4),
            any::<i64>(),
        ), 0..8)), 1..6),
        max_series in 0_usize..40,
        is_per_session: bool,
    ) {
        let mut driver = Driver::new();
        let options = ExpositionOptions { max_series, is_per_session, ..ExpositionOptions::default() };
        let mut exposition = driver.exposition(options);
        let mut old = Vec::new();
        for (freed, counters) in passes {
            // Some counters end with each pass, and others live on.
            let mut number = 0;
            old.retain(|id| {
                number += 1;
                let is_freed = freed >> (number % 16) & 1 == 1;
                is_freed.then(|| driver.counters.free(*id, NOW_MS).unwrap());
                !is_freed
            });
            for (type_id, key, label, (registration_id, owner_id), value) in counters {
                let reference_id = registration_id;
                let new = NewCounter { type_id, key: &key, label: label.as_bytes(), registration_id, owner_id, reference_id, value };
                old.push(driver.add(&new).id());
            }
            let text = exposition.render(NOW_MS);
            let mut names = Vec::new();
            let mut series = std::collections::HashSet::new();
            for line in text.lines() {
                if let Some(rest) = line.strip_prefix("# TYPE ") {
                    names.push(rest.split(' ').next().unwrap().to_owned());
                } else if !line.starts_with("# HELP ") {
                    let (sample, value) = line.rsplit_once(' ').unwrap();
                    prop_assert!(value.parse::<f64>().is_ok(), "{}", line);
                    prop_assert!(sample.starts_with(names.last().unwrap().as_str()), "{}", line);
                    prop_assert!(series.insert(sample.to_owned()), "twice: {}", line);
                }
            }
            let count = names.len();
            names.sort();
            names.dedup();
            prop_assert_eq!(names.len(), count);
        }
    }
}
