//! [`TestDriver`]: a driver in heap memory and virtual time that supports exclusive publications and counters.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use aeron_agent::{CachedEpochClock, CachedNanoClock, EpochClock, NanoClock};
use aeron_client::{Aeron, Context, ErrorCode, LogSource, SharedBuffer};
use aeron_memory::broadcast::BroadcastTransmitter;
use aeron_memory::cnc::{CncFile, CncLengths, DriverIdentity};
use aeron_memory::counters::{AtomicCounter, CountersManager, NewCounter};
use aeron_memory::log::buffers::log_length;
use aeron_memory::log::{LogBuffers, LogDescription, LogType};
use aeron_memory::ring::RingConsumer;
use aeron_protocol::command::{AddCounter, AddPublication, Command};
use aeron_protocol::event::{self, Event, NO_COUNTER_ID};
use aeron_protocol::uri::{ChannelUri, InitialPosition, key};

/// A publication without a session id in its channel gets this session id plus the number of earlier publications.
pub const FIRST_SESSION_ID: i32 = -1000;
/// Stream id of publications that the driver refuses.
pub const REFUSED_STREAM_ID: i32 = 666;
/// Streams with lower stream ids have no subscriber.
pub const FIRST_CONNECTED_STREAM_ID: i32 = 100;

/// A driver for tests.
pub struct TestDriver {
    cnc: CncFile,
    epoch_clock: Arc<CachedEpochClock>,
    nano_clock: Arc<CachedNanoClock>,
    logs: HeapLogs,
    state: Mutex<State>,
}

struct State {
    commands: RingConsumer<SharedBuffer>,
    events: BroadcastTransmitter<SharedBuffer>,
    counters: CountersManager<SharedBuffer>,
    publications: Vec<DriverPublication>,
    /// Whether subscriptions are added. Their images never arrive.
    serves_subscriptions: bool,
}

/// The driver's state of a publication.
#[derive(Clone)]
pub struct DriverPublication {
    pub channel: String,
    pub log: LogBuffers<SharedBuffer>,
    /// Whether the client closed the publication by a revocation; `None` while the publication is open.
    pub revoked: Option<bool>,
    registration_id: i64,
}

#[derive(Clone, Default)]
struct HeapLogs(Arc<Mutex<HashMap<Vec<u8>, SharedBuffer>>>);

impl LogSource for HeapLogs {
    fn open(&self, name: &[u8]) -> aeron_client::Result<LogBuffers<SharedBuffer>> {
        let memory = self.0.lock().unwrap()[name].clone();
        Ok(LogBuffers::attach(&memory).unwrap())
    }
}

impl TestDriver {
    pub fn new() -> Arc<Self> {
        let lengths = CncLengths {
            counters_values: CncLengths::MIN_COUNTERS_VALUES,
            ..CncLengths::default()
        };
        let identity = DriverIdentity {
            client_liveness_timeout_ns: i64::MAX,
            start_timestamp_ms: 1,
            pid: 1,
        };
        let memory = SharedBuffer::heap(lengths.file_length().unwrap());
        let cnc = CncFile::format(memory, &lengths, &identity).unwrap();
        let (metadata, values) = (
            cnc.counters_metadata().clone(),
            cnc.counters_values().clone(),
        );
        let state = State {
            commands: RingConsumer::new(cnc.to_driver().clone()),
            events: BroadcastTransmitter::new(cnc.to_clients().clone()).unwrap(),
            counters: CountersManager::new(metadata, values, 1000).unwrap(),
            publications: Vec::new(),
            serves_subscriptions: false,
        };
        let driver = Self {
            epoch_clock: Arc::new(CachedEpochClock::new(1_000_000)),
            nano_clock: Arc::new(CachedNanoClock::new(5)),
            logs: HeapLogs::default(),
            state: Mutex::new(state),
            cnc,
        };
        driver.step();
        driver.cnc.publish();
        Arc::new(driver)
    }

    /// Returns a client that runs the driver while it waits.
    pub fn connect(self: &Arc<Self>) -> Aeron {
        let driver = Arc::clone(self);
        let context = Context {
            nano_clock: Arc::clone(&self.nano_clock) as _,
            epoch_clock: Arc::clone(&self.epoch_clock) as _,
            use_conductor_agent_invoker: true,
            driver_invoker: Some(Arc::new(move || driver.step())),
            ..Context::default()
        };
        Aeron::attach(context, &self.cnc, Box::new(self.logs.clone())).unwrap()
    }

    /// Adds subscriptions from now on. Otherwise their commands get no reply.
    pub fn serve_subscriptions(&self) {
        self.state().serves_subscriptions = true;
    }

    pub fn nano_clock(&self) -> Arc<CachedNanoClock> {
        Arc::clone(&self.nano_clock)
    }

    pub fn now_ns(&self) -> i64 {
        self.nano_clock.nano_time()
    }

    pub fn advance_ns(&self, by_ns: i64) {
        self.nano_clock.advance(by_ns);
    }

    /// Processes all commands. Returns their number.
    pub fn step(&self) -> usize {
        let now_ms = self.epoch_clock.time_ms();
        self.cnc.to_driver().set_consumer_heartbeat_ms(now_ms);
        let mut state = self.state();
        let mut records = Vec::new();
        let read = |type_id, body: &[u8]| records.push((type_id, body.to_vec()));
        state.commands.read(usize::MAX, read).unwrap();
        for (type_id, body) in &records {
            self.execute(&mut state, &Command::decode(*type_id, body).unwrap());
        }
        records.len()
    }

    /// Returns all publications that were added, including closed publications.
    pub fn publications(&self) -> Vec<DriverPublication> {
        self.state().publications.clone()
    }

    /// Adds a counter as if another client had requested it.
    pub fn add_counter(&self, registration_id: i64, value: i64) -> AtomicCounter<SharedBuffer> {
        self.state().add_counter(registration_id, value)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn execute(&self, state: &mut State, command: &Command<'_>) {
        match command {
            Command::AddExclusivePublication(add) => self.add_publication(state, add),
            Command::RemovePublication(remove) => {
                let is_meant = |publication: &&mut DriverPublication| {
                    publication.registration_id == remove.registration_id
                };
                let publication = state.publications.iter_mut().find(is_meant).unwrap();
                publication.revoked = Some(remove.revoke);
                state.transmit(&Event::OperationSuccess(event::OperationSuccess {
                    correlation_id: remove.correlation_id,
                }));
            }
            Command::AddCounter(AddCounter { correlation_id, .. }) => {
                let counter_id = state.add_counter(*correlation_id, 0).id();
                state.transmit(&Event::CounterReady(event::CounterUpdate {
                    correlation_id: *correlation_id,
                    counter_id,
                }));
            }
            Command::AddSubscription(add) if state.serves_subscriptions => {
                state.transmit(&Event::SubscriptionReady(event::SubscriptionReady {
                    correlation_id: add.correlation_id,
                    channel_status_indicator_id: NO_COUNTER_ID,
                }));
            }
            Command::RemoveSubscription(remove) if state.serves_subscriptions => {
                state.transmit(&Event::OperationSuccess(event::OperationSuccess {
                    correlation_id: remove.correlation_id,
                }));
            }
            _ => {}
        }
    }

    fn add_publication(&self, state: &mut State, add: &AddPublication<'_>) {
        if add.stream_id == REFUSED_STREAM_ID {
            return state.transmit(&Event::Error(event::Error {
                offending_command_correlation_id: add.correlation_id,
                error_code: ErrorCode::InvalidChannel,
                error_message: b"refused by the driver",
            }));
        }
        let channel = ChannelUri::from_bytes(add.channel).unwrap();
        let number = |name| channel.int32(name).unwrap();
        let next_session_id = FIRST_SESSION_ID + state.publications.len() as i32;
        let session_id = number(key::SESSION_ID).unwrap_or(next_session_id);
        let initial = InitialPosition {
            initial_term_id: number(key::INITIAL_TERM_ID).unwrap(),
            term_id: number(key::TERM_ID).unwrap(),
            term_offset: number(key::TERM_OFFSET).unwrap(),
        };
        let log_type = LogType::ExclusivePublication;
        let mut description =
            LogDescription::new(log_type, session_id, add.stream_id, initial.initial_term_id);
        description.term_length = channel.size(key::TERM_LENGTH).unwrap().unwrap() as i32;
        description.mtu_length = channel.size(key::MTU).unwrap().unwrap() as i32;
        let length = log_length(description.term_length.into(), 4096).unwrap();
        let (memory, position) = (
            SharedBuffer::heap(length),
            initial.position(description.term_length),
        );
        let log = LogBuffers::create(&memory, &description, position).unwrap();
        let is_connected = add.stream_id >= FIRST_CONNECTED_STREAM_ID;
        log.metadata().set_is_connected(is_connected);
        let name = add.correlation_id.to_string().into_bytes();
        let limit = state.add_counter(add.correlation_id, i64::MAX);
        self.logs.0.lock().unwrap().insert(name.clone(), memory);
        state.publications.push(DriverPublication {
            channel: String::from_utf8(add.channel.to_vec()).unwrap(),
            log,
            revoked: None,
            registration_id: add.correlation_id,
        });
        state.transmit(&Event::ExclusivePublicationReady(event::PublicationReady {
            correlation_id: add.correlation_id,
            registration_id: add.correlation_id,
            session_id,
            stream_id: add.stream_id,
            publication_limit_counter_id: limit.id(),
            channel_status_indicator_id: NO_COUNTER_ID,
            log_file_name: &name,
        }));
    }
}

impl State {
    fn add_counter(&mut self, registration_id: i64, value: i64) -> AtomicCounter<SharedBuffer> {
        let new = NewCounter {
            type_id: 100,
            key: &[],
            label: &[],
            registration_id,
            owner_id: -1,
            reference_id: 0,
            value,
        };
        self.counters.allocate(&new, 0).unwrap()
    }

    fn transmit(&mut self, event: &Event<'_>) {
        let mut body = vec![0; event.encoded_length()];
        event.encode(&mut body).unwrap();
        self.events.transmit(event.type_id(), &body).unwrap();
    }
}
