//! [`TestDriver`]: a driver without files, threads and real clocks, together with its clients.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use aeron_agent::{CachedEpochClock, CachedNanoClock};
use aeron_driver::Context;
use aeron_driver::driver_core::{DriverCore, DriverEnvironment};
use aeron_driver::log_storage::{HeapLogs, LogId};
use aeron_driver::media::interceptors::intercept;
use aeron_driver::socket_buffers::SocketBufferLengths;
use aeron_memory::broadcast::BroadcastReceiver;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::cnc::{Cnc, CncLengths, DriverIdentity};
use aeron_memory::counters::system::SystemCounter;
use aeron_memory::counters::{AtomicCounter, CounterRecord, types};
use aeron_memory::error_log;
use aeron_memory::log::{ConcurrentAppender, LogBuffers, LogDescription};
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{
    AddCounter, AddPublication, AddSubscription, Command, RemovePublication, RemoveSubscription,
};
use aeron_protocol::event::{AvailableImage, Event, PublicationReady};

use crate::conductor::machine::{TestInterfaces, TestNames, TestNetwork};

pub const STREAM: i32 = 1001;
pub const TERM: i64 = 64 * 1024;
pub const WINDOW: i64 = TERM / 2;
pub const CLIENT: i64 = 1;

/// Time from one timer tick of the driver to the next.
pub const TICK: Duration = Duration::from_millis(100);
/// Step in which [`TestDriver::advance`] advances the time. The driver's timer runs in the first step after its
/// interval of 90 ms, so a tick takes two steps.
const STEP: Duration = Duration::from_millis(50);
const PLENTY: u64 = 1 << 40;

/// An event of the driver.
#[derive(Clone, Debug)]
pub struct Heard {
    type_id: i32,
    body: Vec<u8>,
}

impl Heard {
    pub fn event(&self) -> Event<'_> {
        Event::decode(self.type_id, &self.body).expect("the driver sends valid events")
    }

    /// Returns the length of the message in bytes.
    pub fn length(&self) -> usize {
        self.body.len()
    }
}

/// Returns the names of the events, in order.
pub fn names(heard: &[Heard]) -> Vec<String> {
    let name = |heard: &Heard| {
        let text = format!("{:?}", heard.event());
        text.split('(').next().unwrap_or_default().to_owned()
    };
    heard.iter().map(name).collect()
}

pub struct TestDriver {
    core: DriverCore,
    pub network: TestNetwork,
    pub names: TestNames,
    pub loss_report: SharedBuffer,
    pub cnc: Cnc<SharedBuffer>,
    pub logs: HeapLogs,
    events: BroadcastReceiver<SharedBuffer>,
    nano_clock: Arc<CachedNanoClock>,
    epoch_clock: Arc<CachedEpochClock>,
    now: Duration,
    next_id: i64,
    /// Clients that live: the test updates their heartbeats as the time advances.
    pub living: Vec<i64>,
    /// Time by which the wall clock was set, in milliseconds.
    pub wall_offset_ms: i64,
    /// All announced images, including those that have ended.
    images: Vec<Image>,
}

/// The client's view of a publication.
#[derive(Clone, Debug)]
pub struct Publication {
    pub correlation_id: i64,
    pub registration_id: i64,
    pub session_id: i32,
    pub limit: AtomicCounter<SharedBuffer>,
    pub log: LogBuffers<SharedBuffer>,
}

impl Publication {
    pub fn offer(&self, length: usize) -> i64 {
        let appender = ConcurrentAppender::new(self.log.clone());
        appender
            .offer(self.limit.get(), &vec![7; length])
            .expect("there is room")
    }

    /// Offers a message. Ignores back pressure and the end of a term.
    pub fn try_offer(&self, length: usize) {
        let appender = ConcurrentAppender::new(self.log.clone());
        // At the end of a term, padding is appended instead of the message.
        let _ = appender.offer(self.limit.get(), &vec![7; length]);
    }

    /// Offers these bytes. Returns whether they were appended.
    pub fn offer_bytes(&self, message: &[u8]) -> bool {
        let appender = ConcurrentAppender::new(self.log.clone());
        appender.offer(self.limit.get(), message).is_ok()
    }

    /// Claims a message that is never committed.
    pub fn claim(&self, length: usize) {
        let appender = ConcurrentAppender::new(self.log.clone());
        std::mem::forget(appender.try_claim(self.limit.get(), length).unwrap());
    }

    pub fn is_connected(&self) -> bool {
        self.log.metadata().is_connected()
    }
}

/// The client's view of an image.
#[derive(Clone, Debug)]
pub struct Image {
    pub correlation_id: i64,
    pub session_id: i32,
    pub subscription_id: i64,
    pub position: AtomicCounter<SharedBuffer>,
}

impl TestDriver {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// Creates a driver with terms of 64 KiB and a tick every 100 ms, with the changes of `configure`.
    pub fn with(configure: impl FnOnce(&mut Context)) -> Self {
        let mut context = Context {
            dir: "/aeron".into(),
            ipc_term_buffer_length: TERM as usize,
            term_buffer_length: TERM as usize,
            timer_interval_ns: 90_000_000,
            low_file_store_warning_threshold: 0,
            ..Context::default()
        };
        configure(&mut context);
        context
            .validate()
            .expect("the test's configuration is valid");
        let context = Arc::new(context);
        let now = Duration::from_secs(1_000);
        let (lengths, identity) = (
            CncLengths {
                counters_values: context.counters_values_buffer_length,
                ..CncLengths::default()
            },
            DriverIdentity {
                client_liveness_timeout_ns: context.client_liveness_timeout_ns,
                start_timestamp_ms: now.as_millis() as i64,
                pid: 1,
            },
        );
        let memory = SharedBuffer::heap(lengths.file_length().unwrap());
        let cnc = Cnc::format(memory, &lengths, &identity).unwrap();
        let nano_clock = Arc::new(CachedNanoClock::new(now.as_nanos() as i64));
        let epoch_clock = Arc::new(CachedEpochClock::new(now.as_millis() as i64));
        let logs = HeapLogs::new(PLENTY);
        let network = TestNetwork::new();
        let names = TestNames::default();
        let (intercepted, warnings) = intercept(Box::new(network.clone()), &context);
        assert!(warnings.is_empty(), "{warnings:?}");
        let environment = DriverEnvironment {
            logs: Box::new(logs.clone()),
            network: intercepted,
            names: Box::new({
                let names = names.clone();
                move |_| Ok(Box::new(names))
            }),
            interfaces: Box::new(TestInterfaces),
            nano_clock: nano_clock.clone(),
            epoch_clock: epoch_clock.clone(),
            epoch_nanos: Arc::new(|| 0),
            system_socket_buffers: SocketBufferLengths {
                send: 212_992,
                receive: 212_992,
            },
            seed: 42,
        };
        let loss_report = SharedBuffer::heap(context.loss_report_buffer_length);
        let core = DriverCore::new(&context, &cnc, loss_report.clone(), environment).unwrap();
        cnc.to_driver().next_correlation_id();
        TestDriver {
            core,
            network,
            names,
            loss_report,
            events: BroadcastReceiver::new(cnc.to_clients().clone()).unwrap(),
            cnc,
            logs,
            nano_clock,
            epoch_clock,
            now,
            next_id: 1_000,
            living: vec![CLIENT],
            wall_offset_ms: 0,
            images: Vec::new(),
        }
    }

    /// Returns the next correlation id.
    pub fn next_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id
    }

    /// Takes ids from the driver until `correlation_id` is used, like a client that sends a command with this id.
    pub fn use_ids_up_to(&mut self, correlation_id: i64) {
        if correlation_id > 0 {
            while self.cnc.to_driver().next_correlation_id() < correlation_id {}
        }
    }

    pub fn now_ms(&self) -> i64 {
        self.now.as_millis() as i64 + self.wall_offset_ms
    }

    /// Runs duty cycles without advancing the time, until there is nothing to do.
    pub fn work(&mut self) {
        // Two idle cycles in a row are needed: in the first, the conductor may have sent messages that no agent has
        // processed yet.
        while self.duty_cycle() + self.duty_cycle() > 0 {}
    }

    /// Runs a duty cycle of the conductor alone.
    pub fn conductor_cycle(&mut self) {
        let (now_ns, now_ms) = (self.now.as_nanos() as i64, self.now_ms());
        self.core.conductor.do_work(now_ns, now_ms);
    }

    /// Runs a duty cycle of the native resource agent alone.
    pub fn resource_cycle(&mut self) {
        self.core.resources.do_work();
    }

    pub fn duty_cycle(&mut self) -> usize {
        let (now_ns, now_ms) = (self.now.as_nanos() as i64, self.now_ms());
        self.nano_clock.update(now_ns);
        self.epoch_clock.update(now_ms);
        self.core.do_work(now_ns, now_ms)
    }

    /// Advances the time by a millisecond and runs a duty cycle of each agent.
    ///
    /// Calls `look` after each agent, to check what clients see.
    pub fn step_with(&mut self, mut look: impl FnMut()) {
        self.now += Duration::from_millis(1);
        let (now_ns, now_ms) = (self.now.as_nanos() as i64, self.now_ms());
        self.nano_clock.update(now_ns);
        self.epoch_clock.update(now_ms);
        self.core.sender.do_work(now_ns);
        look();
        self.core.receiver.do_work(now_ns);
        look();
        self.core.resources.do_work();
        look();
        self.core.conductor.do_work(now_ns, now_ms);
        look();
    }

    /// Advances the time in small steps, with duty cycles and the heartbeats of living clients.
    pub fn advance(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = end.min(self.now + STEP);
            for client in self.living.clone() {
                if let Some(heartbeat) = self.heartbeat(client) {
                    heartbeat.set(self.now_ms());
                }
            }
            self.work();
        }
    }

    /// Asks the conductor to end the publications, as a driver does before it closes.
    pub fn request_close(&self) {
        self.core.closing.request();
    }

    /// Advances the time by a millisecond, and then runs duty cycles until there is no work left.
    pub fn step(&mut self) {
        self.now += Duration::from_millis(1);
        if let Some(heartbeat) = self.heartbeat(CLIENT) {
            heartbeat.set(self.now_ms());
        }
        self.work();
    }

    /// Advances the time while the native resource agent is busy with a long operation.
    pub fn advance_without_resources(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += STEP;
            let (now_ns, now_ms) = (self.now.as_nanos() as i64, self.now_ms());
            self.core.sender.do_work(now_ns);
            self.core.receiver.do_work(now_ns);
            self.core.conductor.do_work(now_ns, now_ms);
        }
    }

    /// Advances the time without a duty cycle.
    pub fn stall(&mut self, time: Duration) {
        self.now += time;
    }

    pub fn heartbeat(&self, client: i64) -> Option<AtomicCounter<SharedBuffer>> {
        let id = self
            .cnc
            .counters()
            .find_by_registration(types::CLIENT_HEARTBEAT, client)?;
        self.cnc.counters().counter(id)
    }

    pub fn send_raw(&mut self, type_id: i32, body: &[u8]) {
        self.cnc
            .to_driver()
            .write(type_id, body)
            .expect("there is room for the command");
    }

    pub fn send(&mut self, command: Command<'_>) {
        let mut body = vec![0; command.encoded_length()];
        let length = command.encode(&mut body).unwrap();
        self.send_raw(command.type_id(), &body[..length]);
    }

    /// Returns the driver's events since the last call.
    pub fn hear(&mut self) -> Vec<Heard> {
        let mut heard = Vec::new();
        let mut take = |type_id, body: &[u8]| {
            heard.push(Heard {
                type_id,
                body: body.to_vec(),
            })
        };
        while self.events.receive(&mut take).expect("the test keeps up") {}
        let images = self.images(&heard);
        self.images.extend(images);
        heard
    }

    /// Sends a command. Returns the events that follow at once.
    pub fn ask(&mut self, command: Command<'_>) -> Vec<Heard> {
        self.hear();
        self.send(command);
        self.work();
        self.hear()
    }

    /// Returns the error response to a command, which must be the only event.
    pub fn ask_error(&mut self, command: Command<'_>) -> (ErrorCode, String) {
        let heard = self.ask(command);
        match heard[..] {
            [ref only] => match only.event() {
                Event::Error(error) => {
                    assert_eq!(
                        error.offending_command_correlation_id,
                        command.correlation_id()
                    );
                    (
                        error.error_code,
                        String::from_utf8_lossy(error.error_message).into_owned(),
                    )
                }
                event => panic!("{event:?} is not an error"),
            },
            _ => panic!("{:?} is not one error", names(&heard)),
        }
    }

    pub fn add_publication(&mut self, channel: &str, stream_id: i32) -> Publication {
        self.add_publication_for(CLIENT, channel, stream_id, false)
    }

    pub fn add_exclusive_publication(&mut self, channel: &str, stream_id: i32) -> Publication {
        self.add_publication_for(CLIENT, channel, stream_id, true)
    }

    pub fn add_publication_for(
        &mut self,
        client: i64,
        channel: &str,
        stream_id: i32,
        exclusive: bool,
    ) -> Publication {
        let command = self.publication_command(client, channel, stream_id, exclusive);
        let heard = self.ask(command);
        heard
            .iter()
            .find_map(|heard| self.publication_in(heard))
            .unwrap_or_else(|| {
                panic!(
                    "{channel}: {:?}",
                    heard.iter().map(Heard::event).collect::<Vec<_>>()
                )
            })
    }

    /// Returns the publication that an event announces.
    pub fn publication_in(&self, heard: &Heard) -> Option<Publication> {
        match heard.event() {
            Event::PublicationReady(ready) | Event::ExclusivePublicationReady(ready) => {
                Some(self.publication(&ready))
            }
            _ => None,
        }
    }

    pub fn publication_command<'a>(
        &mut self,
        client_id: i64,
        channel: &'a str,
        stream_id: i32,
        exclusive: bool,
    ) -> Command<'a> {
        let command = AddPublication {
            client_id,
            correlation_id: self.next_id(),
            stream_id,
            channel: channel.as_bytes(),
        };
        if exclusive {
            Command::AddExclusivePublication(command)
        } else {
            Command::AddPublication(command)
        }
    }

    pub fn publication(&self, ready: &PublicationReady<'_>) -> Publication {
        let memory = self
            .logs
            .memory(LogId::Publication(ready.registration_id))
            .expect("the log exists when it is announced");
        Publication {
            correlation_id: ready.correlation_id,
            registration_id: ready.registration_id,
            session_id: ready.session_id,
            limit: self
                .cnc
                .counters()
                .counter(ready.publication_limit_counter_id)
                .unwrap(),
            log: LogBuffers::attach(&memory).expect("the log is initialised when it is announced"),
        }
    }

    pub fn remove_publication(&mut self, publication: &Publication, revoke: bool) -> Vec<Heard> {
        let correlation_id = self.next_id();
        self.ask(Command::RemovePublication(RemovePublication {
            client_id: CLIENT,
            correlation_id,
            registration_id: publication.correlation_id,
            revoke,
        }))
    }

    /// Returns the error response to adding a publication.
    pub fn publication_error(&mut self, channel: &str, stream_id: i32) -> (ErrorCode, String) {
        let command = self.publication_command(CLIENT, channel, stream_id, false);
        self.ask_error(command)
    }

    /// Returns the error response to adding a subscription.
    pub fn subscription_error(&mut self, channel: &str, stream_id: i32) -> (ErrorCode, String) {
        let correlation_id = self.next_id();
        self.ask_error(Command::AddSubscription(AddSubscription {
            client_id: CLIENT,
            correlation_id,
            registration_correlation_id: -1,
            stream_id,
            channel: channel.as_bytes(),
        }))
    }

    /// Adds a subscription. Returns its id and the images that it has at once.
    pub fn add_subscription(&mut self, channel: &str, stream_id: i32) -> (i64, Vec<Image>) {
        self.add_subscription_for(CLIENT, channel, stream_id)
    }

    pub fn add_subscription_for(
        &mut self,
        client_id: i64,
        channel: &str,
        stream_id: i32,
    ) -> (i64, Vec<Image>) {
        let command = self.subscription_command(client_id, channel, stream_id);
        let registration_id = command.correlation_id();
        let heard = self.ask(command);
        assert!(
            names(&heard).contains(&"SubscriptionReady".to_owned()),
            "{channel}: {heard:?}"
        );
        (registration_id, self.images(&heard))
    }

    pub fn subscription_command<'a>(
        &mut self,
        client_id: i64,
        channel: &'a str,
        stream_id: i32,
    ) -> Command<'a> {
        Command::AddSubscription(AddSubscription {
            client_id,
            correlation_id: self.next_id(),
            registration_correlation_id: -1,
            stream_id,
            channel: channel.as_bytes(),
        })
    }

    pub fn remove_subscription(&mut self, registration_id: i64) -> Vec<Heard> {
        let correlation_id = self.next_id();
        self.ask(Command::RemoveSubscription(RemoveSubscription {
            client_id: CLIENT,
            correlation_id,
            registration_id,
        }))
    }

    /// Returns the images that became available in these events.
    pub fn images(&self, heard: &[Heard]) -> Vec<Image> {
        let image = |event: AvailableImage<'_>| Image {
            correlation_id: event.correlation_id,
            session_id: event.session_id,
            subscription_id: event.subscription_registration_id,
            position: self
                .cnc
                .counters()
                .counter(event.subscriber_position_id)
                .unwrap(),
        };
        heard
            .iter()
            .filter_map(|heard| match heard.event() {
                Event::AvailableImage(event) => Some(image(event)),
                _ => None,
            })
            .collect()
    }

    /// Returns the memory of a publication's log; `None` after the log was removed.
    pub fn publication_log(&self, publication: &Publication) -> Option<SharedBuffer> {
        self.logs
            .memory(LogId::Publication(publication.registration_id))
    }

    /// Returns the memory of an image's log; `None` after the log was removed.
    pub fn image_memory(&self, image: &Image) -> Option<SharedBuffer> {
        self.logs.memory(LogId::Image(image.correlation_id))
    }

    /// Returns the log of a network image.
    pub fn image_log(&self, image: &Image) -> LogBuffers<SharedBuffer> {
        let memory = self.image_memory(image);
        LogBuffers::attach(&memory.expect("the log exists while the image does"))
            .expect("the log is initialised when it is announced")
    }

    /// Returns the metadata of the log of the image with this id.
    pub fn image_description(&self, id: i64) -> LogDescription {
        let memory = self.logs.memory(LogId::Image(id)).expect("the log exists");
        let log = LogBuffers::attach(&memory).expect("the log is initialised");
        log.metadata().description()
    }

    /// Returns all images of a subscription that were announced so far.
    pub fn images_of(&mut self, subscription_id: i64) -> Vec<Image> {
        self.hear();
        let mut images = self.images.clone();
        images.retain(|image| image.subscription_id == subscription_id);
        images
    }

    pub fn add_counter(&mut self, client_id: i64) -> i64 {
        let correlation_id = self.next_id();
        self.ask(Command::AddCounter(AddCounter {
            client_id,
            correlation_id,
            type_id: 1001,
            key: b"",
            label: b"mine",
        }));
        correlation_id
    }

    pub fn system(&self, counter: SystemCounter) -> i64 {
        self.core.system_counters.get(counter).get()
    }

    /// Returns the counters of a type.
    pub fn records_of(&self, type_id: i32) -> Vec<CounterRecord> {
        let mut records: Vec<_> = self.cnc.counters().records().collect();
        records.retain(|record| record.type_id == type_id);
        records
    }

    /// Returns the value of the only counter of a type.
    pub fn value_of(&self, type_id: i32) -> i64 {
        match &self.records_of(type_id)[..] {
            [record] => record.value,
            records => panic!("{} counters of type {type_id}", records.len()),
        }
    }

    /// Returns the number of counters that can still be allocated. Some of them can be allocated only after the reuse
    /// timeout.
    pub fn unused_counters(&self) -> usize {
        let counters = self.cnc.counters();
        counters.max_counter_id() as usize + 1 - counters.records().count()
    }

    /// Returns the number of counters without the driver's own counters and the clients' heartbeat counters.
    pub fn object_counters(&self) -> usize {
        let is_object = |record: &CounterRecord| {
            ![types::SYSTEM, types::CLIENT_HEARTBEAT].contains(&record.type_id)
        };
        self.cnc.counters().records().filter(is_object).count()
    }

    /// Returns the ids of the counters of a type.
    pub fn counters_of(&self, type_id: i32) -> Vec<i32> {
        self.cnc
            .counters()
            .records()
            .filter(|record| record.type_id == type_id)
            .map(|record| record.id)
            .collect()
    }

    /// Returns the texts in the error log.
    pub fn errors(&self) -> Vec<String> {
        error_log::read(self.cnc.error_log(), 0)
            .into_iter()
            .map(|observation| observation.text)
            .collect()
    }

    pub fn is_terminated(&self) -> bool {
        self.core.is_terminated.load(Ordering::Acquire)
    }

    pub fn close(&mut self) {
        self.core.close();
    }
}
