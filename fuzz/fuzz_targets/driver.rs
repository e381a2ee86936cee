//! A driver that gets any datagrams and has hostile clients. The clients send any command and overwrite any shared
//! memory. The driver must continue. There are no files, threads or clocks. Logs and network are on the heap.
#![no_main]

mod datagrams;
mod machine;
mod media;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use aeron_agent::{CachedEpochClock, CachedNanoClock};
use aeron_driver::Context;
use aeron_driver::driver_core::{DriverCore, DriverEnvironment};
use aeron_driver::log_storage::{HeapLogs, LogId, LogStorage};
// The included file of `media` refers to this module as `crate::socket_buffers`.
use aeron_driver::socket_buffers;
use aeron_memory::broadcast::BroadcastReceiver;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::cnc::{Cnc, CncLengths, DriverIdentity};
use aeron_memory::log::{ConcurrentAppender, LogBuffers};
use aeron_memory::words::Words;
use aeron_protocol::command::{self, Command};
use aeron_protocol::event::Event;
use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;

use datagrams::Datagram;
use media::testing::MemoryNetwork;
use media::transport::MAX_GSO_BATCH_DATAGRAMS;

const KIB: usize = 1024;
const NANOS_PER_MILLI: i64 = 1_000_000;

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
    AddDestination {
        client: u8,
        registration: u8,
        receives: bool,
        channel: Channel<'a>,
    },
    RemoveDestination {
        client: u8,
        registration: u8,
        receives: bool,
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
    Deliver(Datagram<'a>),
    /// Sockets accept this number of further datagrams, or all of them.
    SetRoom(Option<u8>),
    SetSegmentation(bool),
}

#[derive(Arbitrary, Debug)]
enum Channel<'a> {
    Ipc,
    IpcWith(&'a str),
    Udp {
        form: u8,
        port: u8,
        parameters: Parameters<'a>,
    },
    Any(&'a [u8]),
}

#[derive(Arbitrary, Debug)]
enum Parameters<'a> {
    None,
    Known(u8),
    Any(&'a str),
}

/// Forms of channels; `#` is a port.
const UDP_FORMS: [&str; 12] = [
    "aeron:udp?endpoint=localhost:#",
    "aeron:udp?endpoint=localhost:0",
    "aeron:udp?endpoint=224.0.1.1:#|interface=localhost",
    "aeron:udp?control=localhost:#|control-mode=dynamic",
    "aeron:udp?control=localhost:#|endpoint=localhost:0",
    "aeron:udp?control-mode=manual|tags=#",
    "aeron:udp?control=localhost:#|control-mode=manual",
    "aeron:udp?control=localhost:#|control-mode=response",
    "aeron:udp?tags=#",
    "aeron-spy:aeron:udp?endpoint=localhost:#",
    "aeron-spy:aeron:udp?endpoint=224.0.1.1:#|interface=localhost",
    "aeron-spy:aeron:udp?control=localhost:#|control-mode=dynamic",
];

const UDP_PARAMETERS: [&str; 14] = [
    "reliable=false",
    "tether=false",
    "ssc=true",
    "cc=cubic",
    "fc=min,t:1s",
    "fc=tagged,g:7/1",
    "gtag=7",
    "session-id=5",
    "term-length=128k|init-term-id=2147483647|term-id=-2147483648|term-offset=64",
    "linger=0|eos=false",
    "response-correlation-id=3",
    "channel-snd-ts-offset=0|channel-rcv-ts-offset=8",
    "rejoin=false|group=true",
    "pub-wnd=8k|mtu=4096",
];

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
    // After any input, an idle driver frees all resources and can be closed.
    for _ in 0..32 {
        driver.advance(1_000);
        driver.work();
    }
    driver.core.close();
});

struct Driver {
    cnc: Cnc<SharedBuffer>,
    events: BroadcastReceiver<SharedBuffer>,
    logs: Logs,
    network: MemoryNetwork,
    nano_clock: Arc<CachedNanoClock>,
    epoch_clock: Arc<CachedEpochClock>,
    core: DriverCore,
    now_ms: i64,
    correlation_id: i64,
    /// Session ids of the publications that the driver has announced to clients.
    session_ids: Vec<i32>,
}

impl Driver {
    fn new(seed: u64) -> Self {
        let context = Arc::new(Context {
            ipc_term_buffer_length: 64 * KIB,
            term_buffer_length: 64 * KIB,
            dir: "/heap".into(),
            ..Context::default()
        });
        let lengths = CncLengths {
            counters_values: 1024 * KIB,
            ..CncLengths::default()
        };
        let identity = DriverIdentity {
            client_liveness_timeout_ns: context.client_liveness_timeout_ns,
            start_timestamp_ms: 0,
            pid: 1,
        };
        let memory = SharedBuffer::heap(lengths.file_length().expect("the lengths are valid"));
        let cnc = Cnc::format(memory, &lengths, &identity).expect("the lengths are valid");
        let (logs, network) = (Logs::default(), MemoryNetwork::new());
        let (nano_clock, epoch_clock) = <(Arc<CachedNanoClock>, Arc<CachedEpochClock>)>::default();
        let environment = DriverEnvironment {
            logs: Box::new(logs.clone()),
            network: Box::new(network.clone()),
            names: Box::new(|_| Ok(Box::new(machine::Literals))),
            interfaces: Box::new(machine::Loopback),
            nano_clock: nano_clock.clone(),
            epoch_clock: epoch_clock.clone(),
            epoch_nanos: Arc::new(|| 0),
            system_socket_buffers: socket_buffers::SocketBufferLengths {
                send: 212_992,
                receive: 212_992,
            },
            seed,
        };
        let loss_report = SharedBuffer::heap(context.loss_report_buffer_length);
        let core = DriverCore::new(&context, &cnc, loss_report, environment)
            .expect("the name resolver is there");
        Self {
            events: BroadcastReceiver::new(cnc.to_clients().clone())
                .expect("the length is that of a broadcast"),
            cnc,
            logs,
            network,
            nano_clock,
            epoch_clock,
            core,
            now_ms: 0,
            correlation_id: 0,
            session_ids: Vec::new(),
        }
    }

    /// Runs three duty cycles: a command, its log and its response need one each.
    fn work(&mut self) {
        let now_ns = self.now_ms * NANOS_PER_MILLI;
        self.nano_clock.update(now_ns);
        self.epoch_clock.update(self.now_ms);
        for _ in 0..3 {
            self.core.do_work(now_ns, self.now_ms);
        }
        self.network.take_sent();
        self.network.take_gso_batch_sizes();
        self.hear();
    }

    /// Reads an event of the driver as a client does, and stores the session id of a new publication.
    fn hear(&mut self) {
        let session_ids = &mut self.session_ids;
        let on_event = |type_id, body: &[u8]| {
            if let Ok(Event::PublicationReady(ready) | Event::ExclusivePublicationReady(ready)) =
                Event::decode(type_id, body)
            {
                session_ids.push(ready.session_id);
            }
        };
        let _ = self.events.receive(on_event);
    }

    fn advance(&mut self, by_ms: u16) {
        self.now_ms += i64::from(by_ms);
    }

    fn take(&mut self, step: &Step<'_>) {
        match step {
            Step::Record { type_id, body } => {
                let _ = self.cnc.to_driver().write(*type_id, body);
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
                .cnc
                .counters_values()
                .store_i64_release(value_offset(*id), *value),
            Step::MoveCounter { id, by } => {
                self.cnc
                    .counters_values()
                    .fetch_add_i64(value_offset(*id), i64::from(*by) * 32);
            }
            Step::Write {
                section,
                offset,
                bytes,
            } => self.write(section, *offset, bytes),
            Step::Advance { by_ms } => self.advance(*by_ms),
            Step::Deliver(datagram) => {
                let bytes = datagram.bytes(&self.session_ids);
                self.network.deliver(datagram.from(), datagram.to(), &bytes);
            }
            Step::SetRoom(room) => self.network.set_room(room.map(usize::from)),
            Step::SetSegmentation(is_on) => {
                let datagrams = if *is_on { MAX_GSO_BATCH_DATAGRAMS } else { 1 };
                self.network.set_max_gso_batch_datagrams(datagrams);
            }
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
            let _ = self.cnc.to_driver().write(command.type_id(), &body);
        }
    }

    fn write(&self, section: &Section, offset: u32, bytes: &[u8]) {
        let words = match section {
            Section::Ring => Some(self.cnc.to_driver().words().clone()),
            Section::Broadcast => Some(self.cnc.to_clients().clone()),
            Section::CountersMetadata => Some(self.cnc.counters_metadata().clone()),
            Section::CountersValues => Some(self.cnc.counters_values().clone()),
            Section::ErrorLog => Some(self.cnc.error_log().clone()),
            Section::Log(index) => self.logs.memory(*index),
        };
        let Some(words) = words else { return };
        let offset = offset as usize % words.len();
        words.copy_in(offset, &bytes[..bytes.len().min(words.len() - offset)]);
    }
}

fn value_offset(counter_id: u8) -> usize {
    usize::from(counter_id) * 128
}

fn to_command<'a>(step: &Step<'a>, correlation_id: i64, channel: &'a mut Vec<u8>) -> Command<'a> {
    let id = |of: &u8| i64::from(*of);
    if let Step::AddPublication { channel: of, .. }
    | Step::AddSubscription { channel: of, .. }
    | Step::AddDestination { channel: of, .. }
    | Step::RemoveDestination { channel: of, .. } = step
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
        Step::AddDestination {
            client,
            registration,
            receives,
            ..
        } => {
            let add = command::Destination {
                client_id: id(client),
                correlation_id,
                registration_correlation_id: id(registration),
                channel,
            };
            if *receives {
                Command::AddRcvDestination(add)
            } else {
                Command::AddDestination(add)
            }
        }
        Step::RemoveDestination {
            client,
            registration,
            receives,
            ..
        } => {
            let remove = command::Destination {
                client_id: id(client),
                correlation_id,
                registration_correlation_id: id(registration),
                channel,
            };
            if *receives {
                Command::RemoveRcvDestination(remove)
            } else {
                Command::RemoveDestination(remove)
            }
        }
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
            Self::Udp {
                form,
                port,
                parameters,
            } => {
                let port = (4001 + u16::from(port % 4)).to_string();
                let channel = UDP_FORMS[usize::from(*form) % UDP_FORMS.len()].replace('#', &port);
                format!("{channel}{}", parameters.text()).into_bytes()
            }
            Self::Any(bytes) => bytes.to_vec(),
        }
    }
}

impl Parameters<'_> {
    fn text(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Known(index) => {
                format!(
                    "|{}",
                    UDP_PARAMETERS[usize::from(*index) % UDP_PARAMETERS.len()]
                )
            }
            Self::Any(text) => format!("|{text}"),
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

    fn create(&mut self, log: LogId, length: usize) -> io::Result<SharedBuffer> {
        // Longer logs are refused: a term may have up to a gibibyte, and the heap is not sparse.
        if length > 1024 * KIB {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut logs = self.lock();
        let memory = logs.0.create(log, length)?;
        logs.1.push(memory.clone());
        Ok(memory)
    }

    fn allocate(&mut self, log: LogId, offset: usize, length: usize) -> io::Result<()> {
        self.lock().0.allocate(log, offset, length)
    }

    fn remove(&mut self, log: LogId) -> io::Result<()> {
        self.lock().0.remove(log)
    }
}
