//! Tests recorded publishers with a driver in heap memory and virtual time, and without an archive. The simulator has
//! tests with archives.

use std::sync::{Arc, Mutex};

use aeron_agent::NanoClock;
use aeron_client::DriverTimeout;

use super::super::context::ArchiveClientContext;
use super::decision::Decision;
use super::geometry::StreamGeometry;
use super::*;
use crate::catalog::RecordingDescriptor;
use crate::tests::driver::TestDriver;

const TIMEOUT_NS: i64 = 1_000_000_000;

/// A publisher, its driver, its clients, and the texts of the errors that were reported to its listener.
struct Fixture {
    driver: Arc<TestDriver>,
    publisher: RecordedPublisher,
    clients: Arc<Mutex<Vec<Aeron>>>,
    errors: Arc<Mutex<Vec<String>>>,
}

struct Recorder(Arc<Mutex<Vec<String>>>);

impl RecordedPublisherListener for Recorder {
    fn on_error(&mut self, error: &RecordedPublisherError) {
        self.0.lock().unwrap().push(error.to_string());
    }
}

impl Fixture {
    fn new() -> Self {
        let driver = TestDriver::new();
        let clients = Arc::new(Mutex::new(Vec::new()));
        let (connected, connecting) = (Arc::clone(&clients), Arc::clone(&driver));
        Self::with_connector(driver, clients, move || {
            let client = connecting.connect();
            connected.lock().unwrap().push(client.clone());
            Ok(Some(client))
        })
    }

    fn with_connector(
        driver: Arc<TestDriver>,
        clients: Arc<Mutex<Vec<Aeron>>>,
        connector: impl FnMut() -> aeron_client::Result<Option<Aeron>> + Send + 'static,
    ) -> Self {
        let archive = ArchiveClientContext {
            message_timeout_ns: TIMEOUT_NS.unsigned_abs(),
            nano_clock: driver.nano_clock() as Arc<dyn NanoClock>,
            ..ArchiveClientContext::new("aeron:ipc", "aeron:ipc")
        };
        let mut context = RecordedPublisherContext::new(archive, "aeron:ipc", 1001);
        let errors = Arc::new(Mutex::new(Vec::new()));
        context.listener = Some(Box::new(Recorder(Arc::clone(&errors))));
        let publisher = RecordedPublisher::new(Box::new(connector), context).unwrap();
        Self {
            driver,
            publisher,
            clients,
            errors,
        }
    }

    /// Polls for this long, in steps of a millisecond.
    fn poll_for_ns(&mut self, duration_ns: i64) {
        let end_ns = self.driver.now_ns() + duration_ns;
        while self.driver.now_ns() < end_ns {
            self.driver.advance_ns(1_000_000);
            self.publisher.poll();
        }
    }

    fn clients(&self) -> Vec<Aeron> {
        self.clients.lock().unwrap().clone()
    }

    fn errors(&self) -> Vec<String> {
        self.errors.lock().unwrap().clone()
    }
}

#[test]
fn publishers_are_send_and_a_status_is_send_and_sync() {
    fn assert_send<T: Send>() {}
    fn assert_sync<T: Sync>() {}
    assert_send::<RecordedPublisher>();
    assert_send::<RecordedPublisherStatus>();
    assert_sync::<RecordedPublisherStatus>();
}

#[test]
fn nothing_is_connected_before_the_first_call() {
    let mut fixture = Fixture::new();
    assert!(fixture.clients().is_empty());
    fixture.publisher.poll();
    assert_eq!(fixture.clients().len(), 1);
}

#[test]
fn no_message_is_accepted_before_the_recording_is_known() {
    let mut fixture = Fixture::new();
    for _ in 0..3 {
        let refusal = fixture.publisher.offer(b"hello").unwrap_err();
        assert!(matches!(
            refusal,
            RecordedOfferError::Append(AppendError::NotConnected)
        ));
        let messages = [b"hello"];
        assert!(fixture.publisher.offer_batch(&messages[..], 0).is_err());
        fixture.driver.advance_ns(STEP_INTERVAL_NS);
    }
    let status = fixture.publisher.status();
    assert_eq!(status.unrecorded().messages, 0);
    assert_eq!((status.position(), status.recording_id()), (None, None));
    assert!(!status.is_recording());
}

#[test]
fn a_missing_archive_is_reported_after_each_timeout_and_the_publisher_continues() {
    let mut fixture = Fixture::new();
    fixture.poll_for_ns(5 * TIMEOUT_NS / 2);
    let errors = fixture.errors();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(errors[0].starts_with("no connection to the archive on "));
    assert!(fixture.publisher.status().failure().is_none());
}

#[test]
fn a_missing_driver_is_reported_and_the_next_attempt_follows_after_a_pause() {
    let driver = TestDriver::new();
    let attempts = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&attempts);
    let mut fixture = Fixture::with_connector(driver, Arc::default(), move || {
        *counted.lock().unwrap() += 1;
        let missing = DriverTimeout::NoCncFile("/aeron/cnc.dat".into());
        Err(aeron_client::Error::DriverTimeout(missing))
    });
    fixture.poll_for_ns(TIMEOUT_NS);
    // Attempts follow after pauses of 1, 2, 4, ... 256 ms. Each attempt takes a step of 1 ms.
    assert_eq!(*attempts.lock().unwrap(), 10);
    let errors = fixture.errors();
    assert_eq!(errors.len(), 10);
    assert_eq!(errors[0], "CnC file not created: /aeron/cnc.dat");
    assert!(fixture.publisher.status().failure().is_none());
}

#[test]
fn invalid_client_settings_fail_the_publisher_once() {
    let driver = TestDriver::new();
    let mut fixture = Fixture::with_connector(driver, Arc::default(), || {
        let reason = "keepalive_interval_ns is too long".to_owned();
        Err(aeron_client::Error::Configuration(reason))
    });
    fixture.poll_for_ns(TIMEOUT_NS);
    let status = fixture.publisher.status();
    let failure = status.failure().unwrap().to_string();
    assert_eq!(failure, "keepalive_interval_ns is too long");
    assert_eq!(fixture.errors(), [failure.as_str()]);
    let refusal = fixture.publisher.offer(b"hello").unwrap_err();
    assert_eq!(refusal.to_string(), failure);
    assert_eq!(fixture.publisher.poll(), 0);
}

#[test]
fn a_closed_client_is_replaced_by_a_new_client() {
    let mut fixture = Fixture::new();
    fixture.publisher.poll();
    fixture.clients()[0].close();
    fixture.poll_for_ns(10_000_000);
    let clients = fixture.clients();
    assert_eq!(clients.len(), 2);
    assert!(!clients[1].is_closed());
    let errors = fixture.errors();
    assert!(
        errors.contains(&"Aeron client is closed".to_owned()),
        "{errors:?}"
    );
}

#[test]
fn closing_the_publisher_closes_its_client_and_later_offers_are_refused() {
    let mut fixture = Fixture::new();
    fixture.publisher.poll();
    let unrecorded = fixture.publisher.close();
    assert_eq!((unrecorded.messages, unrecorded.bytes), (0, 0));
    assert!(fixture.clients()[0].is_closed());
    assert!(fixture.publisher.status().is_closed());
    let refusal = fixture.publisher.offer(b"hello").unwrap_err();
    assert!(matches!(
        refusal,
        RecordedOfferError::Append(AppendError::Closed)
    ));
    fixture.poll_for_ns(TIMEOUT_NS);
    assert_eq!(fixture.clients().len(), 1);
}

/// Returns the descriptor of a stopped recording of the publisher.
fn stopped_at(stop_position: i64) -> RecordingDescriptor {
    RecordingDescriptor {
        control_session_id: 0,
        correlation_id: 0,
        recording_id: 7,
        start_timestamp_ms: 0,
        stop_timestamp_ms: 1,
        start_position: 0,
        stop_position,
        initial_term_id: 5,
        segment_length: 64 * 1024,
        term_length: 64 * 1024,
        mtu_length: 1408,
        session_id: 11,
        stream_id: 1001,
        stripped_channel: "".into(),
        original_channel: "".into(),
        source_identity: "".into(),
    }
}

/// After a kill, an archive may cut frames that it has recorded. They are sent again if their message is still kept.
#[test]
fn a_recording_may_have_lost_fragments_of_a_message_that_the_publisher_still_keeps() {
    let mut fixture = Fixture::new();
    let publisher = &mut fixture.publisher;
    let geometry = StreamGeometry::of_recording(&stopped_at(0)).unwrap();
    for length in [10, 5000] {
        let place = geometry
            .place(publisher.kept.end_position(), length)
            .unwrap();
        publisher.kept.push(&vec![1; length], place, true);
    }
    // The first message, and two fragments of the second message.
    let (first_end, fragment) = (64, 1408);
    publisher.kept.drop_recorded(first_end + 2 * fragment);
    let known = KnownRecording {
        id: 7,
        geometry,
        sessions: vec![11],
        is_ours: true,
    };
    let situation = publisher.situation();
    let decide = |stop_position| situation.decide(&stopped_at(stop_position), 1001, Some(&known));

    for kept_fragments in 0..=2 {
        let decision = decide(first_end + kept_fragments * fragment);
        assert_eq!(decision.unwrap(), Decision::Extend(geometry));
    }
    assert_eq!(
        decide(0).unwrap_err().to_string(),
        "recording 7 ends at position 0, although it was recorded up to position 64"
    );
}
