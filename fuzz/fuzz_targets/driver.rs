//! A driver's conductor against clients that say and write what they like: it goes on, whatever happens to the memory that it
//! shares with them. Files, threads and clocks are left out; the logs lie on the heap.
#![no_main]

mod machine;

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

use aeron_agent::CachedEpochClock;
use aeron_driver::Context;
use aeron_driver::conductor::{Conductor, ConductorParts};
use aeron_driver::diagnostics::ErrorRecorder;
use aeron_driver::log_storage::{HeapLogs, LogStorage};
use aeron_driver::queue::queue;
use aeron_driver::resources::{NativeResourceAgent, ResourceCounters, StorageLimits};
use aeron_memory::broadcast::{self, BroadcastTransmitter};
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::CountersManager;
use aeron_memory::counters::system::{SystemCounter, SystemCounters, SystemLabels};
use aeron_memory::error_log::DistinctErrorLog;
use aeron_memory::log::{ConcurrentAppender, LogBuffers};
use aeron_memory::ring::{self, ManyToOneRing, RingConsumer};
use aeron_memory::words::Words;
use aeron_protocol::command::{self, Command};
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

const KIB: usize = 1024;
const COUNTERS_VALUES_LENGTH: usize = 16 * KIB;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    seed: u64,
    steps: Vec<Step<'a>>,
}

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    AddPublication {
        client: u8,
        stream: u8,
        exclusive: bool,
        channel: Channel<'a>,
    },
    RemovePublication {
        client: u8,
        registration: u8,
        revoke: bool,
    },
    AddSubscription {
        client: u8,
        stream: u8,
        channel: Channel<'a>,
    },
    RemoveSubscription {
        client: u8,
        registration: u8,
    },
    AddCounter {
        client: u8,
        is_static: bool,
        type_id: i32,
        key: &'a [u8],
        label: &'a [u8],
    },
    RemoveCounter {
        client: u8,
        registration: u8,
    },
    RejectImage {
        client: u8,
        registration: u8,
        reason: &'a [u8],
    },
    Destination {
        client: u8,
        registration: u8,
        channel: Channel<'a>,
    },
    Keepalive {
        client: u8,
    },
    Close {
        client: u8,
    },
    AskSessionId {
        client: u8,
        stream: u8,
    },
    Record {
        type_id: i32,
        body: &'a [u8],
    },
    Publish {
        log: u8,
        limit: i64,
        length: u16,
    },
    ClaimAndDie {
        log: u8,
        length: u16,
    },
    SetCounter {
        id: u8,
        value: i64,
    },
    MoveCounter {
        id: u8,
        by: i16,
    },
    Write {
        section: Section,
        offset: u32,
        bytes: &'a [u8],
    },
    Advance {
        by_ms: u16,
    },
}

#[derive(Arbitrary, Debug)]
enum Channel<'a> {
    Ipc,
    IpcWith(&'a str),
    Any(&'a [u8]),
}

#[derive(Arbitrary, Debug)]
enum Section {
    Ring,
    Broadcast,
    CountersMetadata,
    CountersValues,
    ErrorLog,
    Log(u8),
}

fuzz_target!(|input: Input| {
    let mut driver = Driver::new(input.seed);
    for step in &input.steps {
        driver.take(step);
        driver.work();
    }
    // Whatever was written, a driver that is left alone gets rid of everything and can be closed.
    for _ in 0..32 {
        driver.advance(1_000);
        driver.work();
    }
    driver.conductor.close();
});

struct Driver {
    ring: ManyToOneRing<SharedBuffer>,
    broadcast: SharedBuffer,
    counters_metadata: SharedBuffer,
    counters_values: SharedBuffer,
    error_log: SharedBuffer,
    logs: Logs,
    conductor: Conductor,
    resources: NativeResourceAgent,
    now_ms: i64,
    correlation_id: i64,
}

impl Driver {
    fn new(seed: u64) -> Self {
        let ring_words = SharedBuffer::heap(64 * KIB + ring::TRAILER_LENGTH);
        let broadcast = SharedBuffer::heap(64 * KIB + broadcast::TRAILER_LENGTH);
        let counters_metadata = SharedBuffer::heap(4 * COUNTERS_VALUES_LENGTH);
        let counters_values = SharedBuffer::heap(COUNTERS_VALUES_LENGTH);
        let error_log = SharedBuffer::heap(64 * KIB);
        let logs = Logs::default();

        let mut counters =
            CountersManager::new(counters_metadata.clone(), counters_values.clone(), 1_000)
                .expect("the sections fit together");
        let system_counters = SystemCounters::allocate(&mut counters, &no_labels(), 0)
            .expect("there is room for the first counters");
        let counter = |of| system_counters.get(of).clone();
        let log = Arc::new(DistinctErrorLog::new(error_log.clone()));
        let errors = ErrorRecorder::new(
            log,
            counter(SystemCounter::Errors),
            Arc::new(CachedEpochClock::default()),
        );
        let (resource_commands, for_resources) =
            queue(counter(SystemCounter::NativeResourceAgentProxyFails));
        let (replies, resource_replies) = queue(counter(SystemCounter::ConductorProxyFails));
        let (sender_commands, _) = queue(counter(SystemCounter::SenderProxyFails));
        let (receiver_commands, _) = queue(counter(SystemCounter::ReceiverProxyFails));
        let resources = NativeResourceAgent::new(
            Box::new(logs.clone()),
            machine::channel_resolver(),
            (for_resources, replies),
            StorageLimits {
                perform_checks: true,
                low_space_warning: 0,
                free_limit: 1,
                dir: "/heap".into(),
            },
            ResourceCounters {
                failed_frees: counter(SystemCounter::FreeFails),
                bytes_mapped: counter(SystemCounter::BytesMapped),
            },
            errors.clone(),
        );
        let ring = ManyToOneRing::new(ring_words).expect("the length is that of a ring");
        let context = Context {
            ipc_term_buffer_length: 64 * KIB,
            dir: "/heap".into(),
            ..Context::default()
        };
        let parts = ConductorParts {
            commands: RingConsumer::new(ring.clone()),
            events: BroadcastTransmitter::new(broadcast.clone())
                .expect("the length is that of a broadcast"),
            counters,
            system_counters,
            errors,
            resource_commands,
            resource_replies,
            sender_commands,
            receiver_commands,
            is_terminated: Arc::new(AtomicBool::new(false)),
            seed,
            system_socket_buffers: Default::default(),
        };
        let conductor = Conductor::new(Arc::new(context), parts, 0);
        Self {
            ring,
            broadcast,
            counters_metadata,
            counters_values,
            error_log,
            logs,
            conductor,
            resources,
            now_ms: 0,
            correlation_id: 0,
        }
    }

    /// Enough duty cycles for a command, the log it asks for, and its answer.
    fn work(&mut self) {
        for _ in 0..3 {
            self.conductor.do_work(self.now_ms * 1_000_000, self.now_ms);
            self.resources.do_work();
        }
    }

    fn advance(&mut self, by_ms: u16) {
        self.now_ms += i64::from(by_ms);
    }

    fn take(&mut self, step: &Step<'_>) {
        match step {
            Step::Record { type_id, body } => {
                let _ = self.ring.write(*type_id, body);
            }
            Step::Publish { log, limit, length } => {
                if let Some(log) = self.logs.attach(*log) {
                    let _ =
                        ConcurrentAppender::new(log).offer(*limit, &vec![1; usize::from(*length)]);
                }
            }
            Step::ClaimAndDie { log, length } => {
                if let Some(log) = self.logs.attach(*log) {
                    let appender = ConcurrentAppender::new(log);
                    let _ = appender
                        .try_claim(i64::MAX, usize::from(*length))
                        .map(|claim| claim.detach());
                }
            }
            Step::SetCounter { id, value } => self
                .counters_values
                .store_i64_release(value_offset(*id), *value),
            Step::MoveCounter { id, by } => {
                self.counters_values
                    .fetch_add_i64(value_offset(*id), i64::from(*by) * 32);
            }
            Step::Write {
                section,
                offset,
                bytes,
            } => self.write(section, *offset, bytes),
            Step::Advance { by_ms } => self.advance(*by_ms),
            command => self.send(command),
        }
    }

    fn send(&mut self, step: &Step<'_>) {
        self.correlation_id += 1;
        let correlation_id = self.correlation_id;
        let mut text = Vec::new();
        let command = to_command(step, correlation_id, &mut text);
        let mut body = vec![0; command.encoded_length()];
        if command.encode(&mut body).is_ok() {
            let _ = self.ring.write(command.type_id(), &body);
        }
    }

    fn write(&self, section: &Section, offset: u32, bytes: &[u8]) {
        let words = match section {
            Section::Ring => Some(self.ring.words().clone()),
            Section::Broadcast => Some(self.broadcast.clone()),
            Section::CountersMetadata => Some(self.counters_metadata.clone()),
            Section::CountersValues => Some(self.counters_values.clone()),
            Section::ErrorLog => Some(self.error_log.clone()),
            Section::Log(index) => self.logs.memory(*index),
        };
        let Some(words) = words else { return };
        let offset = offset as usize % words.len();
        words.copy_in(offset, &bytes[..bytes.len().min(words.len() - offset)]);
    }
}

fn no_labels() -> SystemLabels {
    SystemLabels {
        software: String::new(),
        resolver_name: String::new(),
        threading_mode: String::new(),
        conductor_threshold: String::new(),
        sender_threshold: String::new(),
        receiver_threshold: String::new(),
        name_resolver_threshold: String::new(),
    }
}

fn value_offset(counter_id: u8) -> usize {
    usize::from(counter_id) * 128 % COUNTERS_VALUES_LENGTH
}

fn to_command<'a>(step: &Step<'a>, correlation_id: i64, channel: &'a mut Vec<u8>) -> Command<'a> {
    let id = |of: &u8| i64::from(*of);
    if let Step::AddPublication { channel: of, .. }
    | Step::AddSubscription { channel: of, .. }
    | Step::Destination { channel: of, .. } = step
    {
        *channel = of.bytes();
    }
    match step {
        Step::AddPublication {
            client,
            stream,
            exclusive,
            ..
        } => {
            let add = command::AddPublication {
                client_id: id(client),
                correlation_id,
                stream_id: i32::from(*stream % 2),
                channel,
            };
            if *exclusive {
                Command::AddExclusivePublication(add)
            } else {
                Command::AddPublication(add)
            }
        }
        Step::RemovePublication {
            client,
            registration,
            revoke,
        } => Command::RemovePublication(command::RemovePublication {
            client_id: id(client),
            correlation_id,
            registration_id: id(registration),
            revoke: *revoke,
        }),
        Step::AddSubscription { client, stream, .. } => {
            Command::AddSubscription(command::AddSubscription {
                client_id: id(client),
                correlation_id,
                registration_correlation_id: -1,
                stream_id: i32::from(*stream % 2),
                channel,
            })
        }
        Step::RemoveSubscription {
            client,
            registration,
        } => Command::RemoveSubscription(command::RemoveSubscription {
            client_id: id(client),
            correlation_id,
            registration_id: id(registration),
        }),
        Step::AddCounter {
            client,
            is_static: false,
            type_id,
            key,
            label,
        } => Command::AddCounter(command::AddCounter {
            client_id: id(client),
            correlation_id,
            type_id: *type_id,
            key,
            label,
        }),
        Step::AddCounter {
            client,
            is_static: true,
            type_id,
            key,
            label,
        } => Command::AddStaticCounter(command::AddStaticCounter {
            client_id: id(client),
            correlation_id,
            registration_id: correlation_id % 4,
            type_id: *type_id,
            key,
            label,
        }),
        Step::RemoveCounter {
            client,
            registration,
        } => Command::RemoveCounter(command::RemoveCounter {
            client_id: id(client),
            correlation_id,
            registration_id: id(registration),
        }),
        Step::RejectImage {
            client,
            registration,
            reason,
        } => Command::RejectImage(command::RejectImage {
            client_id: id(client),
            correlation_id,
            image_correlation_id: id(registration),
            position: 0,
            reason,
        }),
        Step::Destination {
            client,
            registration,
            ..
        } => Command::AddRcvDestination(command::Destination {
            client_id: id(client),
            correlation_id,
            registration_correlation_id: id(registration),
            channel,
        }),
        Step::Close { client } => Command::ClientClose(command::ClientClose {
            client_id: id(client),
            correlation_id: -1,
        }),
        Step::AskSessionId { client, stream } => {
            Command::GetNextAvailableSessionId(command::GetNextAvailableSessionId {
                client_id: id(client),
                correlation_id,
                stream_id: i32::from(*stream % 2),
            })
        }
        Step::Keepalive { client } => Command::ClientKeepalive(command::ClientKeepalive {
            client_id: id(client),
            correlation_id: 0,
        }),
        other => unreachable!("{other:?} is not a command"),
    }
}

impl Channel<'_> {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Ipc => b"aeron:ipc".to_vec(),
            Self::IpcWith(parameters) => format!("aeron:ipc?{parameters}").into_bytes(),
            Self::Any(bytes) => bytes.to_vec(),
        }
    }
}

/// Logs on the heap, which the hostile clients map too.
#[derive(Clone)]
struct Logs(Arc<Mutex<(HeapLogs, Vec<SharedBuffer>)>>);

impl Default for Logs {
    fn default() -> Self {
        Self(Arc::new(Mutex::new((
            HeapLogs::new(1024 * 1024),
            Vec::new(),
        ))))
    }
}

impl Logs {
    fn lock(&self) -> MutexGuard<'_, (HeapLogs, Vec<SharedBuffer>)> {
        self.0.lock().expect("nobody panics while holding it")
    }

    fn memory(&self, index: u8) -> Option<SharedBuffer> {
        let logs = self.lock();
        let index = usize::from(index).checked_rem(logs.1.len())?;
        Some(logs.1[index].clone())
    }

    fn attach(&self, index: u8) -> Option<LogBuffers<SharedBuffer>> {
        LogBuffers::attach(&self.memory(index)?).ok()
    }
}

impl LogStorage for Logs {
    fn usable_space(&self) -> io::Result<u64> {
        self.lock().0.usable_space()
    }

    fn create(
        &mut self,
        registration_id: i64,
        length: usize,
        sparse: bool,
    ) -> io::Result<SharedBuffer> {
        // A term may be up to a gibibyte, and the heap is not sparse.
        if length > 1024 * KIB {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut logs = self.lock();
        let memory = logs.0.create(registration_id, length, sparse)?;
        logs.1.push(memory.clone());
        Ok(memory)
    }

    fn allocate(&mut self, registration_id: i64, offset: usize, length: usize) -> io::Result<()> {
        self.lock().0.allocate(registration_id, offset, length)
    }

    fn remove(&mut self, registration_id: i64) -> io::Result<()> {
        self.lock().0.remove(registration_id)
    }
}
