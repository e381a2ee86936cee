//! Clients that continue with another driver after they have lost their driver.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aeron_memory::log::AppendError;
use aeron_protocol::event::{self, Event};

use super::{Log, text};
use crate::aeron::Aeron;
use crate::context::Context;
use crate::error::{DriverTimeout, Error, Result};
use crate::lock::lock;
use crate::publication::{ClaimAborted, ExclusivePublication, OfferError, Publication};
use crate::reconnect::{
    DriverFinder, DriverScout, FoundDriver, LostDriver, LostStreamKind, Reconnect, ReconnectReport,
};
use crate::subscription::Subscription;
use crate::testing::{FIRST_SESSION_ID, FakeDriver, LIVENESS_TIMEOUT_MS, REFUSED_CHANNEL};

const CHANNEL: &str = "aeron:ipc";
const STREAM: i32 = 10;

/// The directory of the drivers of a test: at most one runs at a time.
#[derive(Clone)]
struct Directory {
    current: Arc<Mutex<Arc<FakeDriver>>>,
    /// Whether the process of the driver has ended.
    has_ended: Arc<Mutex<bool>>,
    refusal: Arc<Mutex<Option<Error>>>,
    scout: Arc<Mutex<DriverScout>>,
}

impl DriverFinder for Directory {
    fn find(&mut self, lost: &LostDriver) -> Result<Option<FoundDriver>> {
        if let Some(error) = lock(&self.refusal).clone() {
            return Err(error);
        }
        let driver = self.driver();
        let is_running = !*lock(&self.has_ended);
        let is_next = lock(&self.scout).is_next(lost, &driver.cnc, is_running);
        Ok(is_next.then(|| driver.found()))
    }

    fn has_driver_ended(&mut self) -> bool {
        *lock(&self.has_ended)
    }
}

impl Directory {
    fn new() -> Self {
        Self {
            current: Arc::new(Mutex::new(FakeDriver::new())),
            has_ended: Arc::default(),
            refusal: Arc::default(),
            scout: Arc::default(),
        }
    }

    fn driver(&self) -> Arc<FakeDriver> {
        Arc::clone(&lock(&self.current))
    }

    /// Kills the driver. Clients notice that at once.
    fn kill(&self) {
        self.driver().kill();
        *lock(&self.has_ended) = true;
    }

    fn restart(&self) {
        let next = self.driver().successor();
        *lock(&self.current) = next;
        *lock(&self.has_ended) = false;
    }

    fn connect(&self, configure: impl FnOnce(&mut Context)) -> Aeron {
        let (driver, directory) = (self.driver(), self.clone());
        let mut context = Context {
            epoch_clock: Arc::clone(&driver.epoch_clock) as _,
            nano_clock: Arc::clone(&driver.nano_clock) as _,
            use_conductor_agent_invoker: true,
            driver_invoker: Some(Arc::new(move || directory.driver().step())),
            error_handler: Arc::new(|_| {}),
            reconnect: Some(Reconnect::default()),
            ..Context::default()
        };
        configure(&mut context);
        Aeron::attach_with_finder(context, driver.found(), Box::new(self.clone())).unwrap()
    }

    fn run_ms(&self, aeron: &Aeron, duration_ms: usize) {
        for _ in 0..duration_ms {
            self.driver().step();
            aeron.do_work();
        }
    }
}

/// A client that reconnects, with the calls of its handlers and its reports.
struct Client {
    directory: Directory,
    aeron: Aeron,
    log: Log,
    reports: Arc<Mutex<Vec<ReconnectReport>>>,
}

impl Client {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(configure: impl FnOnce(&mut Context)) -> Self {
        let (directory, log) = (Directory::new(), Log::default());
        let reports: Arc<Mutex<Vec<ReconnectReport>>> = Arc::default();
        let aeron = directory.connect(|context| {
            log.attach(context);
            context.available_counter_handler = None;
            context.unavailable_counter_handler = None;
            let lost = log.clone();
            context.disconnect_handler =
                Some(Arc::new(move |cause| lost.add(format!("lost: {cause}"))));
            let (again, reports) = (log.clone(), Arc::clone(&reports));
            context.reconnect_handler = Some(Arc::new(move |report| {
                again.add("connected again");
                lock(&reports).push(report.clone());
            }));
            configure(context);
        });
        Self {
            directory,
            aeron,
            log,
            reports,
        }
    }

    fn run_ms(&self, duration_ms: usize) {
        self.directory.run_ms(&self.aeron, duration_ms);
    }

    fn subscribe(&self) -> Subscription {
        self.aeron.add_subscription(CHANNEL, STREAM).unwrap()
    }

    fn publish(&self) -> ExclusivePublication {
        let publication = self.aeron.add_exclusive_publication(CHANNEL, STREAM);
        let publication = publication.unwrap();
        self.run_ms(2);
        publication
    }

    fn lose_driver(&self) {
        self.directory.kill();
        self.run_ms(20);
        assert!(!self.aeron.has_driver() && !self.aeron.is_closed());
    }

    fn reconnect(&self) {
        self.directory.restart();
        for _ in 0..1_000 {
            self.run_ms(1);
            if self.aeron.has_driver() {
                break;
            }
        }
        // Long enough that the next loss is no reason to wait for longer.
        self.run_ms(250);
        assert!(self.aeron.has_driver());
    }

    fn report(&self) -> ReconnectReport {
        lock(&self.reports).last().cloned().expect("a report")
    }
}

fn received(subscription: &Subscription) -> Vec<String> {
    let mut messages = Vec::new();
    let add = |fragment: crate::fragment::Fragment<'_>| {
        messages.push(String::from_utf8_lossy(&fragment.to_vec()).into_owned());
    };
    subscription.poll(add, 100).unwrap();
    messages
}

#[test]
fn a_publication_is_not_connected_without_a_driver_and_the_same_object_sends_to_the_next() {
    let client = Client::new();
    let subscription = client.subscribe();
    let exclusive = client.publish();
    let shared: Publication = client.aeron.add_publication(CHANNEL, STREAM).unwrap();
    client.run_ms(2);
    assert_eq!(exclusive.offer(b"one"), Ok(64));
    assert_eq!(shared.offer(b"two"), Ok(64));
    client.lose_driver();
    let not_connected = AppendError::NotConnected;
    assert_eq!(
        exclusive.offer(b"x"),
        Err(OfferError::Append(not_connected))
    );
    assert_eq!(shared.offer(b"x"), Err(not_connected));
    assert!(!exclusive.is_closed() && !exclusive.is_connected());
    assert_eq!((exclusive.position(), exclusive.generation()), (Ok(64), 0));
    client.reconnect();
    assert_eq!((exclusive.position(), exclusive.generation()), (Ok(0), 1));
    assert_eq!(exclusive.offer(b"three"), Ok(64));
    assert_eq!(shared.offer(b"four"), Ok(64));
    assert_eq!(received(&subscription), ["one", "two"]);
    client.run_ms(2);
    let mut messages = received(&subscription);
    messages.sort();
    assert_eq!(messages, ["four", "three"]);
    assert_eq!(exclusive.refused().not_connected, 1);
}

#[test]
fn images_of_the_lost_driver_end_before_images_of_the_next_become_available() {
    let client = Client::new();
    let subscription = client.subscribe();
    let publication = client.publish();
    publication.offer(b"old").unwrap();
    client.log.take();
    client.lose_driver();
    assert_eq!(
        client.log.take(),
        ["lost: the process 1 of the MediaDriver has ended"]
    );
    assert_eq!(subscription.image_count(), 1);
    client.reconnect();
    publication.offer(b"new").unwrap();
    assert_eq!(client.log.take(), ["connected again"]);
    assert_eq!(received(&subscription), ["old"]);
    assert_eq!(received(&subscription), [""; 0]);
    client.run_ms(1);
    let session = FIRST_SESSION_ID;
    assert_eq!(
        client.log.take(),
        [
            format!("unavailable {session} at 64"),
            format!("available {session}")
        ]
    );
    assert_eq!(received(&subscription), ["new"]);
}

#[test]
fn an_open_claim_is_aborted_with_its_driver() {
    let client = Client::new();
    let subscription = client.subscribe();
    let publication = client.publish();
    let (claim, other) = (publication.try_claim(3), publication.try_claim(3));
    let claim = claim.unwrap();
    claim.put(0, b"old");
    client.lose_driver();
    assert_eq!(claim.commit(), Err(ClaimAborted));
    client.reconnect();
    assert_eq!(other.unwrap().commit(), Err(ClaimAborted));
    assert_eq!(publication.offer(b"new"), Ok(64));
    assert_eq!(received(&subscription), [""; 0]);
    client.run_ms(1);
    assert_eq!(received(&subscription), ["new"]);
}

#[test]
fn a_counter_keeps_its_value_and_the_next_driver_gets_it() {
    let client = Client::new();
    let counter = client.aeron.add_counter(1001, b"key", "label").unwrap();
    let fixed = client.aeron.add_static_counter(1002, b"", "static", 77);
    let fixed = fixed.unwrap();
    counter.set(5);
    fixed.set(8);
    client.lose_driver();
    assert_eq!(
        (counter.get(), counter.fetch_add(2), fixed.get()),
        (5, 5, 8)
    );
    client.reconnect();
    assert_eq!((counter.get(), fixed.get()), (7, 8));
    let reader = client.aeron.counters_reader();
    let record = reader.record(counter.id()).unwrap();
    assert_eq!((record.type_id, record.value), (1001, 7));
    assert_eq!(
        (&record.key[..3], record.label.as_str()),
        (&b"key"[..], "label")
    );
    assert_eq!(reader.find_by_registration(1002, 77), Some(fixed.id()));
    counter.set(9);
    assert_eq!(reader.value(counter.id()), Some(9));
    assert_eq!(counter.registration_id(), counter.correlation_id());
}

#[test]
fn resources_are_added_to_the_next_driver_in_the_order_of_the_application() {
    let client = Client::new();
    let manual = "aeron:udp?control-mode=manual";
    let publication = client.aeron.add_publication(manual, 1).unwrap();
    let subscription = client.aeron.add_subscription(manual, 2).unwrap();
    let first = publication
        .add_destination("aeron:udp?endpoint=a:1")
        .unwrap();
    publication
        .add_destination("aeron:udp?endpoint=b:2")
        .unwrap();
    publication
        .add_destination("aeron:udp?endpoint=c:3")
        .unwrap();
    publication
        .remove_destination("aeron:udp?endpoint=b:2")
        .unwrap();
    subscription
        .add_destination("aeron:udp?endpoint=d:4")
        .unwrap();
    let counter = client.aeron.add_counter(1001, b"", "counter").unwrap();
    let exclusive = client.aeron.add_exclusive_publication(CHANNEL, 3).unwrap();
    let before: Vec<_> = client.directory.driver().sent();
    client.lose_driver();
    client.reconnect();
    let after = client.directory.driver().sent();
    // ADD_PUBLICATION, two ADD_DESTINATION, ADD_SUBSCRIPTION, ADD_RCV_DESTINATION, ADD_COUNTER,
    // ADD_EXCLUSIVE_PUBLICATION
    let order = |types: &[i32]| types.iter().position(|id| *id == 0x09).is_some();
    assert!(order(&before) && order(&after));
    let count = |types: &[i32], id| types.iter().filter(|found| **found == id).count();
    for id in [0x01, 0x03, 0x04, 0x09, 0x0C] {
        assert_eq!(count(&after, id), 1, "command {id:#x} in {after:?}");
    }
    let destinations = client.directory.driver().bodies(0x07);
    let channels: Vec<_> = destinations
        .iter()
        .map(|body| String::from_utf8_lossy(body).into_owned())
        .collect();
    assert!(channels[0].contains("a:1") && channels[1].contains("c:3"));
    assert_eq!(channels.len(), 2);
    let place = |id| after.iter().position(|found| *found == id).unwrap();
    assert!(place(0x01) < place(0x04) && place(0x04) < place(0x09) && place(0x09) < place(0x03));
    // The id that the application got still names the destination.
    publication.remove_destination_by_id(first).unwrap();
    drop((publication, subscription, counter, exclusive));
}

#[test]
fn a_client_that_its_driver_has_timed_out_continues_with_the_same_driver() {
    let client = Client::new();
    let subscription = client.subscribe();
    let publication = client.publish();
    publication.offer(b"unread").unwrap();
    client.log.take();
    let client_id = client.aeron.client_id();
    client
        .directory
        .driver()
        .transmit(&Event::ClientTimeout(event::ClientTimeout { client_id }));
    client.run_ms(300);
    // The driver overwrites the logs of a client that it has forgotten: what was not read is not handed out.
    let log = client.log.take();
    assert_eq!(
        log[..2],
        [
            format!("lost: client {client_id} was timed out by the media driver"),
            format!("unavailable {FIRST_SESSION_ID} at 0"),
        ]
    );
    assert!(log.contains(&"connected again".to_owned()), "{log:?}");
    assert_ne!(client.aeron.client_id(), client_id);
    assert!(publication.offer(b"new").is_ok());
    client.run_ms(2);
    assert_eq!(received(&subscription), ["new"]);
    let report = client.report();
    assert_eq!(report.streams[0].possibly_lost_bytes, None);
}

#[test]
fn a_driver_that_goes_on_delivers_nothing_twice() {
    let client = Client::new();
    let subscription = client.subscribe();
    // A publication of another client, with a log that the driver keeps.
    let stream = client.directory.driver().add_foreign_publication(STREAM);
    let appender = aeron_memory::log::ConcurrentAppender::new(stream.log.clone());
    client.run_ms(2);
    for message in ["m0", "m1"] {
        appender.offer(i64::MAX, message.as_bytes()).unwrap();
    }
    assert_eq!(received(&subscription), ["m0", "m1"]);
    let client_id = client.aeron.client_id();
    let timeout = Event::ClientTimeout(event::ClientTimeout { client_id });
    client.directory.driver().join_at(0);
    client.directory.driver().transmit(&timeout);
    client.run_ms(300);
    appender.offer(i64::MAX, b"m2").unwrap();
    assert_eq!(received(&subscription), ["m2"]);
}

#[test]
fn a_client_that_was_paused_for_too_long_continues() {
    let client = Client::new();
    let publication = client.publish();
    let subscription = client.subscribe();
    client
        .directory
        .driver()
        .advance_ms(LIVENESS_TIMEOUT_MS + 1);
    client.directory.driver().step();
    client.run_ms(400);
    assert!(
        client
            .log
            .take()
            .iter()
            .any(|line| line.starts_with("lost: client conductor"))
    );
    assert!(publication.offer(b"on").is_ok());
    client.run_ms(2);
    assert_eq!(received(&subscription), ["on"]);
}

#[test]
fn a_driver_that_was_only_paused_is_found_again() {
    let client = Client::new();
    let subscription = client.subscribe();
    let publication = client.publish();
    publication.offer(b"unread").unwrap();
    let driver = client.directory.driver();
    for _ in 0..11_000 {
        driver.advance_ms(1);
        client.aeron.do_work();
    }
    assert!(!client.aeron.has_driver());
    let log = client.log.take();
    assert!(
        log.last()
            .unwrap()
            .starts_with("lost: MediaDriver keepalive: age=")
    );
    client.run_ms(300);
    assert!(client.aeron.has_driver());
    // A driver that goes on overwrites its logs.
    assert_eq!(received(&subscription), [""; 0]);
    assert!(publication.offer(b"new").is_ok());
}

#[test]
fn commands_without_a_driver_wait_for_the_next_driver() {
    let client = Client::new();
    client.lose_driver();
    let mut publication = client
        .aeron
        .async_add_exclusive_publication(CHANNEL, STREAM)
        .unwrap();
    let mut subscription = client
        .aeron
        .async_add_subscription(CHANNEL, STREAM)
        .unwrap();
    client.run_ms(50);
    assert!(publication.poll().unwrap().is_none() && subscription.poll().unwrap().is_none());
    client.reconnect();
    let (publication, subscription) = (publication.wait().unwrap(), subscription.wait().unwrap());
    client.run_ms(2);
    assert!(publication.offer(b"on").is_ok());
    assert_eq!(received(&subscription), ["on"]);
}

#[test]
fn a_command_without_a_response_is_sent_to_the_next_driver() {
    let client = Client::new();
    client.directory.driver().mute();
    let mut publication = client.aeron.async_add_publication(CHANNEL, STREAM).unwrap();
    let mut session = client.aeron.async_next_session_id(STREAM).unwrap();
    client.lose_driver();
    client.reconnect();
    assert_eq!(publication.wait().unwrap().generation(), 0);
    assert_eq!(session.wait().unwrap(), 4242);
}

#[test]
fn an_operation_never_takes_the_result_of_a_command_to_the_next_driver() {
    let client = Client::new();
    let mut first = client.aeron.async_add_publication(CHANNEL, 200).unwrap();
    // The response has come, but the application has not fetched it.
    client.run_ms(3);
    client.lose_driver();
    client.directory.restart();
    client.run_ms(200);
    let mut second = client.aeron.async_add_publication(CHANNEL, 999).unwrap();
    let mut cancelled = client.aeron.async_add_publication(CHANNEL, 300).unwrap();
    assert!(cancelled.cancel());
    assert_eq!(first.wait().unwrap().stream_id(), 200);
    assert_eq!(second.wait().unwrap().stream_id(), 999);
    client.run_ms(20);
    assert_eq!(lock(&client.reports).len(), 1);
}

#[test]
fn an_operation_of_a_lost_driver_can_be_cancelled_without_harm_to_the_restoration() {
    let client = Client::with(|context| context.driver_timeout_ms = 2_000);
    let (publication, subscription) = (client.publish(), client.subscribe());
    let mut pending: Vec<_> = (0..6)
        .map(|stream| client.aeron.async_add_publication(CHANNEL, stream).unwrap())
        .collect();
    client.run_ms(3);
    client.lose_driver();
    client.directory.restart();
    while !client.aeron.has_driver() {
        client.run_ms(1);
    }
    pending.iter_mut().for_each(|operation| {
        operation.cancel();
    });
    client.run_ms(5_000);
    assert_eq!(lock(&client.reports).len(), 1);
    assert_eq!(publication.generation(), 1);
    drop(subscription);
}

#[test]
fn the_images_of_a_second_lost_driver_wait_for_those_of_the_first() {
    let client = Client::new();
    let subscription = client.subscribe();
    let publication = client.publish();
    client.log.take();
    for message in [b"m0", b"m1"] {
        publication.offer(message).unwrap();
        client.lose_driver();
        client.reconnect();
    }
    publication.offer(b"m2").unwrap();
    let mut messages = Vec::new();
    for _ in 0..6 {
        messages.append(&mut received(&subscription));
        client.run_ms(1);
    }
    assert_eq!(messages, ["m0", "m1", "m2"]);
    let log = client.log.take();
    let ends = log.iter().filter(|line| line.starts_with("unavailable"));
    assert_eq!(ends.count(), 2, "{log:?}");
    assert!(log.last().unwrap().starts_with("available"));
    let images = client.report().streams;
    let images = images
        .iter()
        .filter(|stream| stream.kind == LostStreamKind::Image);
    assert_eq!(images.count(), 1);
}

#[test]
fn a_resource_that_is_refused_until_the_end_closes_without_another_loss() {
    for driver_timeout_ms in 200..230 {
        let client = Client::with(|context| context.driver_timeout_ms = driver_timeout_ms);
        let closing = client
            .aeron
            .add_publication(crate::testing::CLOSING_CHANNEL, 7)
            .unwrap();
        client.lose_driver();
        client.directory.restart();
        client.directory.driver().keep_closing(usize::MAX);
        client.run_ms(900);
        assert!(closing.is_closed());
        let losses = client.log.take();
        let losses = losses.iter().filter(|line| line.starts_with("lost"));
        assert_eq!(losses.count(), 1, "driver timeout {driver_timeout_ms} ms");
    }
}

#[test]
fn a_response_channel_names_the_subscription_in_the_next_driver() {
    let client = Client::new();
    // The next driver gives its ids in another order.
    let unused = client.aeron.add_subscription(CHANNEL, 1).unwrap();
    let responses = client
        .aeron
        .add_subscription("aeron:udp?control-mode=response|control=a:1", 2)
        .unwrap();
    drop(unused);
    let channel = format!(
        "aeron:udp?endpoint=b:2|response-correlation-id={}",
        responses.registration_id()
    );
    let requests = client.aeron.add_publication(&channel, 3).unwrap();
    let response = client
        .aeron
        .add_publication(
            "aeron:udp?control-mode=response|response-correlation-id=9999",
            4,
        )
        .unwrap();
    for _ in 0..2 {
        client.lose_driver();
        client.reconnect();
        assert!(!requests.is_closed() && requests.channel() == channel);
        let added = client.directory.driver().bodies(0x01);
        let text = String::from_utf8_lossy(&added[0]).into_owned();
        let id = responses.registration_id();
        assert!(
            text.contains(&format!("response-correlation-id={id}")),
            "{text}"
        );
    }
    // The image of the request has ended, so the response publication has no use.
    assert!(response.is_closed());
    let reports = lock(&client.reports);
    assert!(reports[0].outage < Duration::from_millis(500));
    let refusal = text::<()>(Err(reports[0].refused[0].clone()));
    assert!(refusal.contains("has ended with its driver"), "{refusal}");
}

#[test]
fn a_destination_is_added_when_the_next_driver_has_its_publication() {
    let client = Client::new();
    let manual = "aeron:udp?control-mode=manual";
    let others: Vec<_> = (0..3)
        .map(|stream| client.aeron.add_publication(manual, stream).unwrap())
        .collect();
    let publication = client.aeron.add_publication(manual, 9).unwrap();
    let subscription = client.aeron.add_subscription(manual, 9).unwrap();
    publication
        .add_destination("aeron:udp?endpoint=old:1")
        .unwrap();
    client.lose_driver();
    let channel = "aeron:udp?endpoint=new:1";
    let mut added = publication.async_add_destination(channel).unwrap();
    let mut received = subscription.async_add_destination(channel).unwrap();
    let mut removed = publication
        .async_remove_destination("aeron:udp?endpoint=old:1")
        .unwrap();
    client.directory.restart();
    for _ in 0..300 {
        client.run_ms(1);
        added.poll().unwrap();
        received.poll().unwrap();
        removed.poll().unwrap();
    }
    assert!(added.is_finished() && received.is_finished() && removed.is_finished());
    let driver = client.directory.driver();
    let ids: Vec<i64> = [0x07, 0x08, 0x0C]
        .into_iter()
        .flat_map(|type_id| driver.bodies(type_id))
        .map(|body| i64::from_ne_bytes(body[16..24].try_into().unwrap()))
        .collect();
    let (publication_id, subscription_id) = (
        publication.registration_id(),
        subscription.registration_id(),
    );
    // The old destination, the new one, the removal, and the destination of the subscription.
    assert_eq!(
        ids,
        [
            publication_id,
            publication_id,
            publication_id,
            subscription_id
        ]
    );
    drop(others);
}

#[test]
fn a_command_fails_if_no_driver_comes_within_the_driver_timeout() {
    let client = Client::with(|context| context.driver_timeout_ms = 200);
    client.lose_driver();
    let mut publication = client.aeron.async_add_publication(CHANNEL, STREAM).unwrap();
    client.run_ms(250);
    assert_eq!(
        text(publication.poll().map(|_| ())),
        "1000: no response from MediaDriver within 200ms"
    );
    assert!(!client.aeron.is_closed());
}

#[test]
fn resources_that_are_closed_without_a_driver_are_not_added_to_the_next() {
    let client = Client::new();
    let (publication, subscription) = (client.publish(), client.subscribe());
    let counter = client.aeron.add_counter(1001, b"", "counter").unwrap();
    client.lose_driver();
    publication.close();
    drop(subscription);
    counter.close();
    client.reconnect();
    assert_eq!(client.directory.driver().sent(), [0; 0]);
    assert!(publication.is_closed() && counter.is_closed());
    assert_eq!(
        publication.offer(b"x"),
        Err(OfferError::Append(AppendError::Closed))
    );
}

#[test]
fn a_resource_that_is_closed_while_the_next_driver_adds_it_is_removed_again() {
    let client = Client::new();
    let publication = client.publish();
    client.lose_driver();
    client.directory.restart();
    client.directory.driver().mute();
    client.run_ms(300);
    publication.close();
    client.directory.driver().unmute();
    client.run_ms(5);
    let sent = client.directory.driver().sent();
    // ADD_EXCLUSIVE_PUBLICATION and REMOVE_PUBLICATION
    assert_eq!(sent, [0x03, 0x02]);
}

#[test]
fn a_driver_that_refuses_a_resource_closes_only_this_resource() {
    let client = Client::with(|context| context.driver_timeout_ms = 500);
    let subscription = client.subscribe();
    let publication = client.publish();
    let closing = client
        .aeron
        .add_publication(crate::testing::CLOSING_CHANNEL, 7)
        .unwrap();
    client.lose_driver();
    client.directory.restart();
    client.directory.driver().keep_closing(usize::MAX);
    client.run_ms(900);
    assert!(client.aeron.has_driver() && closing.is_closed());
    assert!(publication.offer(b"on").is_ok() && !subscription.is_closed());
    let report = client.report();
    assert_eq!(report.refused.len(), 1);
    assert!(text::<()>(Err(report.refused[0].clone())).contains("refused by the driver"));
    assert!(text(client.aeron.add_publication(REFUSED_CHANNEL, 1).map(|_| ())).contains("refused"));
}

#[test]
fn a_refusal_that_is_temporary_delays_the_resource() {
    let client = Client::new();
    let closing = client
        .aeron
        .add_publication(crate::testing::CLOSING_CHANNEL, 7)
        .unwrap();
    client.lose_driver();
    client.directory.restart();
    client.directory.driver().keep_closing(3);
    client.run_ms(500);
    assert!(!closing.is_closed() && closing.generation() == 1);
    assert_eq!(client.report().refused.len(), 0);
}

#[test]
fn a_driver_that_refuses_the_client_closes_it_for_good() {
    let client = Client::new();
    let publication = client.publish();
    client.lose_driver();
    *lock(&client.directory.refusal) = Some(Error::Configuration("another version".to_owned()));
    client.run_ms(200);
    assert!(client.aeron.is_closed());
    assert_eq!(
        text::<()>(Err((*client.aeron.close_cause().0.unwrap()).clone())),
        "22: another version"
    );
    assert!(publication.is_closed());
    assert_eq!(client.log.take().last().unwrap(), "closed");
}

#[test]
fn a_client_gives_up_after_the_time_that_the_application_chose() {
    let reconnect = Reconnect {
        give_up_after: Some(Duration::from_secs(2)),
        ..Reconnect::default()
    };
    let client = Client::with(|context| context.reconnect = Some(reconnect));
    client.lose_driver();
    client.run_ms(1950);
    assert!(!client.aeron.is_closed());
    client.run_ms(50);
    assert!(client.aeron.is_closed());
}

#[test]
fn the_report_names_the_outage_and_each_stream_of_the_lost_driver() {
    let client = Client::new();
    let subscription = client.subscribe();
    let publication = client.publish();
    let unused = client.aeron.add_publication(CHANNEL, 77).unwrap();
    publication.offer(b"read").unwrap();
    received(&subscription);
    client.lose_driver();
    client.run_ms(480);
    client.reconnect();
    let report = client.report();
    assert_eq!(report.reconnections, 1);
    let outage_ms = report.outage.as_millis();
    assert!((480..700).contains(&outage_ms), "{outage_ms} ms");
    let process_ended = matches!(
        report.cause,
        Error::DriverTimeout(DriverTimeout::ProcessEnded { pid: 1 })
    );
    assert!(process_ended);
    let mut streams: Vec<_> = report
        .streams
        .iter()
        .map(|stream| (stream.stream_id, stream.kind, stream.position))
        .collect();
    streams.sort_by_key(|(stream_id, kind, _)| (*stream_id, *kind == LostStreamKind::Image));
    assert_eq!(
        streams,
        [
            (STREAM, LostStreamKind::ExclusivePublication, 64),
            (STREAM, LostStreamKind::Image, 64),
            (77, LostStreamKind::Publication, 0),
        ]
    );
    drop(unused);
}

#[test]
fn drivers_that_are_lost_at_once_are_looked_for_more_and_more_rarely() {
    let client = Client::new();
    let mut outages_ms = Vec::new();
    client.lose_driver();
    for _ in 0..6 {
        client.directory.restart();
        let mut outage_ms = 0;
        while !client.aeron.has_driver() {
            client.run_ms(1);
            outage_ms += 1;
        }
        outages_ms.push(outage_ms);
        client.directory.kill();
        client.run_ms(20);
    }
    assert!(
        outages_ms[0] <= 200 && outages_ms[4] > 800,
        "{outages_ms:?}"
    );
    // A driver that lives for longer is looked for at once.
    client.directory.restart();
    client.run_ms(10_000);
    client.lose_driver();
    client.reconnect();
    assert!(client.report().outage < Duration::from_millis(200));
}

#[test]
fn a_second_loss_before_all_resources_are_restored_is_one_outage() {
    let client = Client::new();
    let subscription = client.subscribe();
    let publication = client.publish();
    publication.offer(b"old").unwrap();
    client.lose_driver();
    client.directory.restart();
    client.directory.driver().mute();
    client.run_ms(300);
    client.directory.kill();
    client.run_ms(100);
    client.directory.restart();
    client.run_ms(600);
    assert_eq!(lock(&client.reports).len(), 1);
    assert_eq!(client.report().streams.len(), 2);
    assert_eq!(received(&subscription), ["old"]);
    assert!(publication.offer(b"new").is_ok());
    client.run_ms(2);
    assert_eq!(received(&subscription), ["new"]);
}

#[test]
fn an_exclusive_publication_continues_when_the_writer_of_the_lost_log_is_dropped() {
    let client = Client::new();
    let publication = client.publish();
    let mut writer = publication.writer().unwrap();
    client.lose_driver();
    client.reconnect();
    client.subscribe();
    assert_eq!(writer.offer(b"x"), Err(AppendError::NotConnected));
    let not_connected = OfferError::Append(AppendError::NotConnected);
    assert_eq!(publication.offer(b"x"), Err(not_connected));
    drop(writer);
    client.run_ms(2);
    assert_eq!(publication.offer(b"x"), Ok(64));
}

#[test]
fn a_file_without_a_known_process_needs_a_heartbeat_that_goes_on() {
    let (lost, next) = (FakeDriver::new(), FakeDriver::new().successor());
    let lost = LostDriver {
        identity: lost.cnc.identity(),
        heartbeat_ms: lost.now_ms(),
    };
    let mut scout = DriverScout::default();
    assert!(!scout.is_next(&lost, &next.cnc, false));
    assert!(
        !scout.is_next(&lost, &next.cnc, false),
        "no heartbeat since the last look"
    );
    next.step();
    assert!(scout.is_next(&lost, &next.cnc, false));
    assert!(DriverScout::default().is_next(&lost, &next.cnc, true));
    // The lost driver itself, if it was only paused.
    let paused = LostDriver {
        identity: next.cnc.identity(),
        heartbeat_ms: next.now_ms(),
    };
    assert!(!scout.is_next(&paused, &next.cnc, true));
    next.step();
    assert!(scout.is_next(&paused, &next.cnc, false));
}

#[test]
fn a_closed_client_does_not_connect_again() {
    let client = Client::new();
    client.lose_driver();
    client.aeron.close();
    client.directory.restart();
    client.run_ms(300);
    assert!(client.aeron.is_closed() && !client.aeron.has_driver());
    assert_eq!(client.directory.driver().sent(), [0; 0]);
    assert!(client.log.take().contains(&"closed".to_owned()));
}

#[test]
fn delays_outside_their_range_are_refused() {
    let check = |reconnect| text(crate::reconnect::Reconnect::validate(&reconnect));
    let reconnect = Reconnect::default();
    let refused = check(Reconnect {
        min_delay: Duration::ZERO,
        ..reconnect
    });
    assert_eq!(
        refused,
        "22: min_delay of reconnect is 0: it must be longer"
    );
    let refused = check(Reconnect {
        max_delay: Duration::from_millis(99),
        ..reconnect
    });
    assert_eq!(
        refused,
        "22: max_delay=99ms of reconnect is below min_delay=100ms"
    );
    let refused = check(Reconnect {
        give_up_after: Some(Duration::MAX),
        ..reconnect
    });
    assert!(refused.contains("exceeds the limit"), "{refused}");
}
