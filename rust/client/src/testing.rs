//! A driver for tests, in heap memory and virtual time. Each step takes one millisecond. The driver responds like a
//! real driver, and does nothing else unless the test requests it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use aeron_agent::{CachedEpochClock, CachedNanoClock, EpochClock};
use aeron_memory::broadcast::BroadcastTransmitter;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::cnc::{CncFile, CncLengths, DriverIdentity};
use aeron_memory::counters::keys::{decode_heartbeat_key, heartbeat_key, heartbeat_label};
use aeron_memory::counters::{AtomicCounter, CountersManager, NewCounter, system, types};
use aeron_memory::log::buffers::log_length;
use aeron_memory::log::{LogBuffers, LogDescription, LogType};
use aeron_memory::ring::RingConsumer;
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{AddPublication, ClientKeepalive, Command};
use aeron_protocol::event::{self, Event, NO_COUNTER_ID};

use crate::aeron::Aeron;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::log_source::{LogSource, MappedLogs};
use crate::reconnect::FoundDriver;

/// Client liveness timeout of the driver, in milliseconds.
pub(crate) const LIVENESS_TIMEOUT_MS: i64 = 10_000;
/// Term length of the driver's logs, in bytes.
pub(crate) const TERM_LENGTH: usize = 64 * 1024;
/// Initial term id of the driver's streams.
pub(crate) const INITIAL_TERM_ID: i32 = 7;
/// Session id of the first publication; later publications get the following ids.
pub(crate) const FIRST_SESSION_ID: i32 = 1000;
/// A channel that the driver refuses.
pub(crate) const REFUSED_CHANNEL: &str = "aeron:refused";
/// A channel whose endpoint the driver is closing. See [`FakeDriver::keep_closing`].
pub(crate) const CLOSING_CHANNEL: &str = "aeron:closing";

/// A driver for tests.
pub(crate) struct FakeDriver {
    pub(crate) cnc: CncFile,
    pub(crate) epoch_clock: Arc<CachedEpochClock>,
    pub(crate) nano_clock: Arc<CachedNanoClock>,
    logs: HeapLogs,
    state: Mutex<State>,
}

struct State {
    commands: RingConsumer<SharedBuffer>,
    events: BroadcastTransmitter<SharedBuffer>,
    counters: CountersManager<SharedBuffer>,
    publications: Vec<FakePublication>,
    subscriptions: Vec<FakeSubscription>,
    /// Type ids and bodies of the received commands, in order.
    sent: Vec<(i32, Vec<u8>)>,
    /// Start position of new publications.
    start_position: i64,
    /// Position at which subscriptions join; `None` for the end of the stream.
    join_position: Option<i64>,
    /// Whether new clients search for logs in files. There are no such files.
    hides_logs: bool,
    /// Number of commands on the closing channel that are still to be refused.
    closing_refusals: usize,
    is_mute: bool,
    is_dead: bool,
}

/// A publication of the driver.
#[derive(Clone)]
pub(crate) struct FakePublication {
    pub(crate) registration_id: i64,
    pub(crate) stream_id: i32,
    pub(crate) session_id: i32,
    pub(crate) limit: AtomicCounter<SharedBuffer>,
    pub(crate) log: LogBuffers<SharedBuffer>,
    is_exclusive: bool,
}

#[derive(Clone, Copy)]
struct FakeSubscription {
    registration_id: i64,
    stream_id: i32,
}

/// Logs in heap memory, by name.
#[derive(Clone, Default)]
struct HeapLogs(Arc<Mutex<HashMap<String, SharedBuffer>>>);

impl LogSource for HeapLogs {
    fn open(&self, name: &[u8]) -> Result<LogBuffers<SharedBuffer>> {
        let name = String::from_utf8_lossy(name).into_owned();
        let memory = lock(&self.0).get(&name).cloned();
        let memory = memory.ok_or_else(|| Error::InvalidArgument(format!("no log {name}")))?;
        LogBuffers::attach(&memory).map_err(|error| Error::InvalidArgument(error.to_string()))
    }
}

impl FakeDriver {
    pub(crate) fn new() -> Arc<Self> {
        let epoch_clock = Arc::new(CachedEpochClock::new(1_000_000));
        Self::start(epoch_clock, Arc::new(CachedNanoClock::new(5)), 1)
    }

    /// Returns the driver that is started after this one. Both have the same clocks.
    pub(crate) fn successor(&self) -> Arc<Self> {
        let start_timestamp_ms = self.cnc.identity().start_timestamp_ms + 1;
        let epoch_clock = Arc::clone(&self.epoch_clock);
        Self::start(
            epoch_clock,
            Arc::clone(&self.nano_clock),
            start_timestamp_ms,
        )
    }

    fn start(
        epoch_clock: Arc<CachedEpochClock>,
        nano_clock: Arc<CachedNanoClock>,
        start_timestamp_ms: i64,
    ) -> Arc<Self> {
        let lengths = CncLengths {
            counters_values: CncLengths::MIN_COUNTERS_VALUES,
            ..CncLengths::default()
        };
        let identity = DriverIdentity {
            client_liveness_timeout_ns: LIVENESS_TIMEOUT_MS * 1_000_000,
            start_timestamp_ms,
            pid: 1,
        };
        let memory = SharedBuffer::heap(lengths.file_length().expect("valid lengths"));
        let cnc = CncFile::format(memory, &lengths, &identity).expect("valid lengths");
        let mut counters = CountersManager::new(
            cnc.counters_metadata().clone(),
            cnc.counters_values().clone(),
            1000,
        )
        .expect("valid sections");
        allocate_system_counters(&mut counters);
        let state = State {
            commands: RingConsumer::new(cnc.to_driver().clone()),
            events: BroadcastTransmitter::new(cnc.to_clients().clone()).expect("valid section"),
            counters,
            publications: Vec::new(),
            subscriptions: Vec::new(),
            sent: Vec::new(),
            start_position: 0,
            join_position: None,
            hides_logs: false,
            closing_refusals: 0,
            is_mute: false,
            is_dead: false,
        };
        cnc.to_driver().next_correlation_id();
        let driver = Self {
            epoch_clock,
            nano_clock,
            logs: HeapLogs::default(),
            state: Mutex::new(state),
            cnc,
        };
        driver
            .cnc
            .to_driver()
            .set_consumer_heartbeat_ms(driver.now_ms());
        driver.cnc.publish();
        Arc::new(driver)
    }

    /// Connects a client in invoker mode. Whenever the client waits, it runs a step of the driver.
    pub(crate) fn connect(self: &Arc<Self>, configure: impl FnOnce(&mut Context)) -> Aeron {
        self.try_connect(configure).expect("connects")
    }

    pub(crate) fn try_connect(
        self: &Arc<Self>,
        configure: impl FnOnce(&mut Context),
    ) -> Result<Aeron> {
        let driver = Arc::clone(self);
        let mut context = Context {
            epoch_clock: Arc::clone(&self.epoch_clock) as _,
            nano_clock: Arc::clone(&self.nano_clock) as _,
            use_conductor_agent_invoker: true,
            driver_invoker: Some(Arc::new(move || driver.step())),
            error_handler: Arc::new(|_| {}),
            ..Context::default()
        };
        configure(&mut context);
        Aeron::attach(context, &self.cnc, self.logs())
    }

    fn logs(&self) -> Box<dyn LogSource> {
        match lock(&self.state).hides_logs {
            true => Box::new(MappedLogs { pre_touch: false }),
            false => Box::new(self.logs.clone()),
        }
    }

    /// Returns what a client needs to connect to this driver.
    pub(crate) fn found(&self) -> FoundDriver {
        FoundDriver {
            cnc: self.cnc.clone(),
            logs: self.logs(),
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        self.epoch_clock.time_ms()
    }

    /// Advances the time by a millisecond and runs the driver's work.
    pub(crate) fn step(&self) -> usize {
        self.advance_ms(1);
        let mut state = lock(&self.state);
        let state = &mut *state;
        if state.is_dead {
            return 0;
        }
        self.cnc
            .to_driver()
            .set_consumer_heartbeat_ms(self.now_ms());
        if state.is_mute {
            return 0;
        }
        let mut records = Vec::new();
        state
            .commands
            .read(usize::MAX, |type_id, body| {
                records.push((type_id, body.to_vec()))
            })
            .expect("sound ring");
        for (type_id, body) in &records {
            self.execute(
                state,
                &Command::decode(*type_id, body).expect("sound command"),
            );
        }
        state.sent.append(&mut records);
        state.sent.len()
    }

    /// Runs driver and client alternately for this many milliseconds.
    pub(crate) fn run_ms(&self, aeron: &Aeron, duration_ms: usize) {
        for _ in 0..duration_ms {
            self.step();
            aeron.do_work();
        }
    }

    pub(crate) fn advance_ms(&self, by_ms: i64) {
        self.epoch_clock.advance(by_ms);
        self.nano_clock.advance(by_ms * 1_000_000);
    }

    /// Sets the start position of new publications.
    pub(crate) fn set_start_position(&self, position: i64) {
        lock(&self.state).start_position = position;
    }

    /// Lets new subscriptions join streams at this position, as if there were a slower subscriber.
    pub(crate) fn join_at(&self, position: i64) {
        lock(&self.state).join_position = Some(position);
    }

    /// Hides all logs from the clients that connect from now on.
    pub(crate) fn hide_logs(&self) {
        lock(&self.state).hides_logs = true;
    }

    /// Refuses the next `commands` commands on the closing channel as temporarily unavailable.
    pub(crate) fn keep_closing(&self, commands: usize) {
        lock(&self.state).closing_refusals = commands;
    }

    /// Fills the ring to the driver, as other clients may do. Call it while the driver is muted.
    pub(crate) fn fill_ring(&self) {
        let keepalive = Command::ClientKeepalive(ClientKeepalive {
            client_id: 0,
            correlation_id: -1,
        });
        let mut body = vec![0; keepalive.encoded_length()];
        keepalive.encode(&mut body).expect("fits");
        let ring = self.cnc.to_driver();
        while ring.write(keepalive.type_id(), &body).is_ok() {}
    }

    /// Leaves commands in the ring from now on.
    pub(crate) fn mute(&self) {
        lock(&self.state).is_mute = true;
    }

    /// Processes commands again.
    pub(crate) fn unmute(&self) {
        lock(&self.state).is_mute = false;
    }

    /// Stops all activity, including the heartbeat.
    pub(crate) fn kill(&self) {
        lock(&self.state).is_dead = true;
    }

    /// Returns the type ids of all commands so far.
    pub(crate) fn sent(&self) -> Vec<i32> {
        lock(&self.state)
            .sent
            .iter()
            .map(|(type_id, _)| *type_id)
            .collect()
    }

    /// Returns the bodies of all commands of a type so far.
    pub(crate) fn bodies(&self, type_id: i32) -> Vec<Vec<u8>> {
        let state = lock(&self.state);
        state
            .sent
            .iter()
            .filter(|(sent, _)| *sent == type_id)
            .map(|(_, body)| body.clone())
            .collect()
    }

    pub(crate) fn transmit(&self, event: &Event<'_>) {
        lock(&self.state).transmit(event);
    }

    pub(crate) fn transmit_bytes(&self, type_id: i32, body: &[u8]) {
        lock(&self.state)
            .events
            .transmit(type_id, body)
            .expect("sound event");
    }

    /// Returns the publication that was added last.
    pub(crate) fn publication(&self) -> FakePublication {
        lock(&self.state)
            .publications
            .last()
            .cloned()
            .expect("a publication")
    }

    /// Removes the limit for publishers.
    pub(crate) fn raise_limits(&self) {
        lock(&self.state)
            .publications
            .iter()
            .for_each(|publication| publication.limit.set(i64::MAX));
    }

    /// Tells all subscriptions on the publication's stream that the image of the publication is unavailable.
    pub(crate) fn lose_image(&self, publication: &FakePublication) {
        let mut state = lock(&self.state);
        let subscriptions = state.subscriptions.clone();
        for subscription in subscriptions
            .iter()
            .filter(|s| s.stream_id == publication.stream_id)
        {
            state.transmit(&Event::UnavailableImage(event::UnavailableImage {
                correlation_id: publication.registration_id,
                subscription_registration_id: subscription.registration_id,
                stream_id: publication.stream_id,
                channel: b"aeron:ipc",
            }));
        }
    }

    pub(crate) fn heartbeat_counter_id(&self, client_id: i64) -> Option<i32> {
        let counters = self.cnc.counters();
        counters.find_by_key(types::CLIENT_HEARTBEAT, |key| {
            decode_heartbeat_key(key) == client_id
        })
    }

    pub(crate) fn free_counter(&self, id: i32) {
        lock(&self.state)
            .counters
            .free(id, self.now_ms())
            .expect("allocated");
    }

    pub(crate) fn allocate_counter(&self, new: &NewCounter<'_>) -> AtomicCounter<SharedBuffer> {
        lock(&self.state)
            .counters
            .allocate(new, self.now_ms())
            .expect("room")
    }

    /// Adds a publication on the stream, as if another client had added it.
    pub(crate) fn add_foreign_publication(&self, stream_id: i32) -> FakePublication {
        let mut state = lock(&self.state);
        let registration_id = self.cnc.to_driver().next_correlation_id();
        let publication = self.make_publication(&mut state, registration_id, stream_id, true);
        self.link_all(&mut state, &publication);
        publication
    }

    fn execute(&self, state: &mut State, command: &Command<'_>) {
        let correlation_id = command.correlation_id();
        match command {
            Command::AddPublication(add) => self.add_publication(state, add, false),
            Command::AddExclusivePublication(add) => self.add_publication(state, add, true),
            Command::AddSubscription(add) => {
                if refuses(state, correlation_id, add.channel) {
                    return;
                }
                self.ensure_heartbeat(state, add.client_id);
                state.transmit(&Event::SubscriptionReady(event::SubscriptionReady {
                    correlation_id,
                    channel_status_indicator_id: NO_COUNTER_ID,
                }));
                let subscription = FakeSubscription {
                    registration_id: correlation_id,
                    stream_id: add.stream_id,
                };
                state.subscriptions.push(subscription);
                for publication in state.publications.clone() {
                    self.link(state, subscription, &publication);
                }
            }
            Command::AddCounter(add) => {
                self.ensure_heartbeat(state, add.client_id);
                let new = NewCounter {
                    type_id: add.type_id,
                    key: add.key,
                    label: add.label,
                    registration_id: correlation_id,
                    owner_id: add.client_id,
                    reference_id: 0,
                    value: 0,
                };
                let counter = state.counters.allocate(&new, self.now_ms()).expect("room");
                let update = event::CounterUpdate {
                    correlation_id,
                    counter_id: counter.id(),
                };
                state.transmit(&Event::CounterReady(update));
            }
            Command::AddStaticCounter(add) => {
                let new = NewCounter {
                    type_id: add.type_id,
                    key: add.key,
                    label: add.label,
                    registration_id: add.registration_id,
                    owner_id: -1,
                    reference_id: 0,
                    value: 0,
                };
                let found = state
                    .counters
                    .reader()
                    .find_by_registration(add.type_id, add.registration_id);
                let counter_id = found.unwrap_or_else(|| {
                    state
                        .counters
                        .allocate(&new, self.now_ms())
                        .expect("room")
                        .id()
                });
                state.transmit(&Event::StaticCounter(event::StaticCounter {
                    correlation_id,
                    counter_id,
                }));
            }
            Command::GetNextAvailableSessionId(_) => {
                state.transmit(&Event::NextAvailableSessionId(
                    event::NextAvailableSessionId {
                        correlation_id,
                        next_session_id: 4242,
                    },
                ));
            }
            Command::ClientClose(_) | Command::TerminateDriver(_) | Command::ClientKeepalive(_) => {
            }
            Command::AddDestination(add) | Command::AddRcvDestination(add)
                if refuses(state, correlation_id, add.channel) => {}
            _ => state.transmit(&Event::OperationSuccess(event::OperationSuccess {
                correlation_id,
            })),
        }
    }

    fn add_publication(&self, state: &mut State, add: &AddPublication<'_>, is_exclusive: bool) {
        if refuses(state, add.correlation_id, add.channel) {
            return;
        }
        self.ensure_heartbeat(state, add.client_id);
        let shared =
            |p: &&FakePublication| !is_exclusive && !p.is_exclusive && p.stream_id == add.stream_id;
        let existing = state.publications.iter().find(shared).cloned();
        let is_new = existing.is_none();
        let publication = existing.unwrap_or_else(|| {
            self.make_publication(state, add.correlation_id, add.stream_id, is_exclusive)
        });
        let name = publication.registration_id.to_string();
        let ready = event::PublicationReady {
            correlation_id: add.correlation_id,
            registration_id: publication.registration_id,
            session_id: publication.session_id,
            stream_id: publication.stream_id,
            publication_limit_counter_id: publication.limit.id(),
            channel_status_indicator_id: NO_COUNTER_ID,
            log_file_name: name.as_bytes(),
        };
        state.transmit(&match is_exclusive {
            true => Event::ExclusivePublicationReady(ready),
            false => Event::PublicationReady(ready),
        });
        if is_new {
            self.link_all(state, &publication);
        }
    }

    fn make_publication(
        &self,
        state: &mut State,
        registration_id: i64,
        stream_id: i32,
        is_exclusive: bool,
    ) -> FakePublication {
        let session_id = FIRST_SESSION_ID + state.publications.len() as i32;
        let log_type = LogType::ConcurrentPublication;
        let mut description = LogDescription::new(log_type, session_id, stream_id, INITIAL_TERM_ID);
        description.correlation_id = registration_id;
        description.term_length = TERM_LENGTH as i32;
        let memory = SharedBuffer::heap(log_length(TERM_LENGTH as i64, 4096).expect("valid"));
        let log = LogBuffers::create(&memory, &description, state.start_position).expect("valid");
        lock(&self.logs.0).insert(registration_id.to_string(), memory);
        let new = position_counter(
            types::PUBLISHER_LIMIT,
            registration_id,
            state.start_position,
        );
        let limit = state.counters.allocate(&new, self.now_ms()).expect("room");
        let publication = FakePublication {
            registration_id,
            stream_id,
            session_id,
            limit,
            log,
            is_exclusive,
        };
        state.publications.push(publication.clone());
        publication
    }

    fn link_all(&self, state: &mut State, publication: &FakePublication) {
        for subscription in state.subscriptions.clone() {
            self.link(state, subscription, publication);
        }
    }

    /// Connects a subscription and a publication, with a window of half a term.
    fn link(
        &self,
        state: &mut State,
        subscription: FakeSubscription,
        publication: &FakePublication,
    ) {
        if subscription.stream_id != publication.stream_id {
            return;
        }
        let join_position = state
            .join_position
            .unwrap_or_else(|| publication.log.producer_position());
        publication.log.metadata().set_is_connected(true);
        publication
            .limit
            .set(join_position + TERM_LENGTH as i64 / 2);
        let new = position_counter(
            types::SUBSCRIBER_POSITION,
            subscription.registration_id,
            join_position,
        );
        let position = state.counters.allocate(&new, self.now_ms()).expect("room");
        state.transmit(&Event::AvailableImage(event::AvailableImage {
            correlation_id: publication.registration_id,
            session_id: publication.session_id,
            stream_id: publication.stream_id,
            subscription_registration_id: subscription.registration_id,
            subscriber_position_id: position.id(),
            log_file_name: publication.registration_id.to_string().as_bytes(),
            source_identity: b"aeron:ipc",
        }));
    }

    fn ensure_heartbeat(&self, state: &mut State, client_id: i64) {
        if self.heartbeat_counter_id(client_id).is_some() {
            return;
        }
        let label = heartbeat_label(client_id);
        let new = NewCounter {
            type_id: types::CLIENT_HEARTBEAT,
            key: &heartbeat_key(client_id),
            label: label.as_bytes(),
            registration_id: client_id,
            owner_id: client_id,
            reference_id: 0,
            value: self.now_ms(),
        };
        let counter = state.counters.allocate(&new, self.now_ms()).expect("room");
        let update = event::CounterUpdate {
            correlation_id: client_id,
            counter_id: counter.id(),
        };
        state.transmit(&Event::CounterReady(update));
    }
}

impl State {
    fn transmit(&mut self, event: &Event<'_>) {
        let mut body = vec![0; event.encoded_length()];
        event.encode(&mut body).expect("fits");
        self.events.transmit(event.type_id(), &body).expect("fits");
    }
}

/// Refuses a command on one of the special channels. Returns whether it was refused.
fn refuses(state: &mut State, correlation_id: i64, channel: &[u8]) -> bool {
    let is_closing = channel == CLOSING_CHANNEL.as_bytes() && state.closing_refusals > 0;
    let error_code = if is_closing {
        state.closing_refusals -= 1;
        ErrorCode::ResourceTemporarilyUnavailable
    } else if channel == REFUSED_CHANNEL.as_bytes() {
        ErrorCode::InvalidChannel
    } else {
        return false;
    };
    state.transmit(&Event::Error(event::Error {
        offending_command_correlation_id: correlation_id,
        error_code,
        error_message: b"refused by the driver",
    }));
    true
}

fn position_counter(type_id: i32, registration_id: i64, value: i64) -> NewCounter<'static> {
    NewCounter {
        type_id,
        key: b"",
        label: b"position",
        registration_id,
        owner_id: 0,
        reference_id: 0,
        value,
    }
}

/// Allocates the system counters. One of them is the control protocol version, which clients read.
fn allocate_system_counters(counters: &mut CountersManager<SharedBuffer>) {
    let version_id = system::SystemCounter::ControlProtocolVersion.id();
    for id in 0..=version_id {
        let value = if id == version_id {
            i64::from(aeron_protocol::CONTROL_PROTOCOL_VERSION)
        } else {
            0
        };
        let new = NewCounter {
            type_id: types::SYSTEM,
            key: &id.to_le_bytes(),
            label: b"system",
            registration_id: i64::from(id),
            owner_id: -1,
            reference_id: 0,
            value,
        };
        counters.allocate(&new, 0).expect("room");
    }
}
