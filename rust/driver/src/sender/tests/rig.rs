//! A sender with all its parts, and simulated receivers.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use aeron_memory::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::counters::system::SystemCounter;
use aeron_memory::log::buffers::log_length;
use aeron_memory::log::{AppendError, ExclusiveAppender, LogBuffers, LogDescription, LogType};
use aeron_protocol::frame::{DataFrame, DataHeader, Nak, Rttm, Setup, StatusMessage};

use crate::config::Context;
use crate::flow_control::{FlowControl, MaxFlowControl};
use crate::media::testing::{MemoryNetwork, Sent};
use crate::media::transport::{Network, SocketSide, SocketSpec};
use crate::publication::PublicationStatus;
use crate::queue::{QueueConsumer, QueueProducer, queue};
use crate::retransmit::{RetransmitConfig, RetransmitHandler};
use crate::sender::*;
use crate::testing::DriverMemory;

pub const STREAM: i32 = 1001;
pub const SESSION: i32 = 77;
pub const INITIAL_TERM: i32 = 50;
pub const TERM: i64 = 64 * 1024;
pub const MTU: i64 = 1408;
pub const WINDOW: i32 = 32 * 1024;
pub const RECEIVER: i64 = 0x1122_3344_5566_7788;
pub const MS: i64 = 1_000_000;
pub const US: i64 = 1_000;

/// Returns the address of the receiver of unicast publications.
pub fn peer() -> SocketAddr {
    address("127.0.0.1:5000")
}

pub fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

pub struct Rig {
    pub network: MemoryNetwork,
    pub sender: Sender,
    commands: QueueProducer<SenderCommand>,
    events: QueueConsumer<SenderEvent>,
    memory: DriverMemory,
    pub now_ns: i64,
    next_id: u64,
    /// If true, sending a command runs no duty cycle. The next duty cycle of the test executes the command.
    pub holds_commands: bool,
}

/// A send endpoint of the sender.
#[derive(Clone, Copy)]
pub struct OpenEndpoint {
    pub id: SendEndpointId,
    /// Address for control frames.
    pub control: SocketAddr,
}

/// A publication: the publisher's appender, and the log, counters and status that the conductor shares with the sender.
pub struct Publication {
    pub registration_id: i64,
    pub session_id: i32,
    pub stream_id: i32,
    pub appender: ExclusiveAppender<SharedBuffer>,
    pub log: LogBuffers<SharedBuffer>,
    pub counters: PublicationCounters,
    pub status: Arc<PublicationStatus>,
    /// Address for control frames.
    pub control: SocketAddr,
}

/// Parameters of a publication, with defaults that suit most tests.
pub struct Options {
    pub session_id: i32,
    pub start_position: i64,
    pub term_length: i64,
    pub flow_control: Box<dyn FlowControl>,
    pub ttl: u8,
    pub has_group_semantics: bool,
    pub signal_eos: bool,
    pub backs_off_setups: bool,
    pub response: Response,
    pub spies_simulate_connection: bool,
    pub max_resend: Option<usize>,
    pub retransmit_delay_ns: i64,
    pub mtu_length: i64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            session_id: SESSION,
            start_position: 0,
            term_length: TERM,
            flow_control: Box::new(MaxFlowControl),
            ttl: 0,
            has_group_semantics: false,
            signal_eos: true,
            backs_off_setups: false,
            response: Response::None,
            spies_simulate_connection: false,
            max_resend: None,
            retransmit_delay_ns: 0,
            mtu_length: MTU,
        }
    }
}

/// A decoded datagram that the sender has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    Setup(Setup),
    /// Flags and position.
    Heartbeat(u8, i64),
    /// Position and length.
    Data(i64, usize),
    Rttm(Rttm),
}

impl Deref for Rig {
    type Target = DriverMemory;

    fn deref(&self) -> &DriverMemory {
        &self.memory
    }
}

impl DerefMut for Rig {
    fn deref_mut(&mut self) -> &mut DriverMemory {
        &mut self.memory
    }
}

impl Rig {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// Creates a rig without batch wait, unless `configure` sets one.
    pub fn with(configure: impl FnOnce(&mut Context)) -> Self {
        let mut context = Context {
            sender_batch_wait_ns: 0,
            ..Context::default()
        };
        configure(&mut context);
        let memory = DriverMemory::new();
        let counter = |counter| memory.system.get(counter).clone();
        let (commands, for_sender) = queue(counter(SystemCounter::SenderProxyFails));
        let (from_sender, events) = queue(counter(SystemCounter::ConductorProxyFails));
        let mut network = MemoryNetwork::new();
        let now_ns = 1_000_000_000_000;
        let parts = SenderParts {
            commands: for_sender,
            events: from_sender,
            poller: network.poller(),
            system_counters: memory.system.clone(),
            errors: memory.error_recorder(),
            epoch_nanos: Box::new(|| 1_234_567_890_000_000_000),
        };
        Rig {
            network,
            sender: Sender::new(&context, parts, now_ns),
            commands,
            events,
            memory,
            now_ns,
            next_id: 1,
            holds_commands: false,
        }
    }

    /// Opens an endpoint that is connected to [`peer`].
    pub fn unicast(&mut self) -> OpenEndpoint {
        let peer = Peer {
            name: Some("peer:5000".into()),
            address: peer(),
            is_multicast: false,
            is_connected: true,
        };
        self.endpoint(Destinations::One(peer), None)
    }

    /// Opens an endpoint with several destinations. Also returns the counter of the number of destinations.
    pub fn mdc(
        &mut self,
        control: DestinationControl,
    ) -> (OpenEndpoint, AtomicCounter<SharedBuffer>) {
        let counter = self.counter();
        let tracker = DestinationTracker::new(control, counter.clone(), 1);
        let endpoint = self.endpoint(Destinations::Several(tracker), None);
        (endpoint, counter)
    }

    /// Opens an endpoint that sends to `destinations`.
    pub fn endpoint(
        &mut self,
        destinations: Destinations,
        send_timestamp_offset: Option<i32>,
    ) -> OpenEndpoint {
        let connect = match &destinations {
            Destinations::One(peer) => peer.is_connected.then_some(peer.address),
            _ => None,
        };
        let spec = SocketSpec {
            bind: address("127.0.0.1:0"),
            connect,
            multicast: None,
            send_buffer_length: 0,
            receive_buffer_length: 0,
            receive_timestamps: false,
            side: SocketSide::Sender,
        };
        let socket = self.network.open(&spec).expect("a free port");
        let control = socket.local_address();
        let id = self.next_id();
        let config = SendEndpointConfig {
            id,
            socket,
            destinations,
            send_timestamp_offset,
        };
        let endpoint = SendEndpoint::new(config, self.now_ns);
        self.command(SenderCommand::AddEndpoint(Box::new(endpoint)));
        OpenEndpoint { id, control }
    }

    pub fn publication(&mut self, endpoint: OpenEndpoint) -> Publication {
        self.publication_with(endpoint, Options::default())
    }

    pub fn publication_with(&mut self, endpoint: OpenEndpoint, options: Options) -> Publication {
        let log = new_log(&options);
        let counters = PublicationCounters {
            sender_position: self.counter(),
            sender_limit: self.counter(),
            back_pressure_events: self.counter(),
            naks_received: self.counter(),
        };
        let status = Arc::new(PublicationStatus::new(
            options.spies_simulate_connection,
            options.start_position,
        ));
        status.set_open(true);
        let registration_id = self.next_id() as i64;
        let config = SenderPublicationConfig {
            registration_id,
            session_id: options.session_id,
            stream_id: STREAM,
            log: log.clone(),
            start_position: options.start_position,
            counters: counters.clone(),
            flow_control: options.flow_control,
            retransmits: RetransmitHandler::new(RetransmitConfig {
                positions: log.positions(),
                start_position: options.start_position,
                max_resend: options.max_resend,
                window_multiple: 16,
                delay_ns: options.retransmit_delay_ns,
                linger_ns: 10 * MS,
            }),
            status: status.clone(),
            ttl: options.ttl,
            has_group_semantics: options.has_group_semantics,
            signal_eos: options.signal_eos,
            backs_off_setups: options.backs_off_setups,
            response: options.response,
            connection_timeout_ns: 5_000 * MS,
        };
        let publication = SenderPublication::new(config, self.now_ns);
        self.command(SenderCommand::AddPublication(
            endpoint.id,
            Box::new(publication),
        ));
        Publication {
            registration_id,
            session_id: options.session_id,
            stream_id: STREAM,
            appender: ExclusiveAppender::new(log.clone()).expect("a new log"),
            log,
            counters,
            status,
            control: endpoint.control,
        }
    }

    /// Adds a unicast publication with a first receiver that has a window of [`WINDOW`]. Discards the frames sent so
    /// far.
    pub fn connected(&mut self) -> Publication {
        let endpoint = self.unicast();
        let publication = self.publication(endpoint);
        self.connect(&publication);
        publication
    }

    /// Delivers the receiver's first status message, and discards the heartbeat that follows.
    pub fn connect(&mut self, publication: &Publication) {
        let position = publication.counters.sender_position.get();
        self.status(publication, RECEIVER, position, WINDOW);
        self.cycle();
        self.network.take_sent();
    }

    /// Sends a command to the sender. Unless `holds_commands` is true, runs the duty cycle that executes the command.
    pub fn command(&mut self, command: SenderCommand) {
        self.commands.send(command);
        if !self.holds_commands {
            self.cycle();
        }
    }

    /// Runs one duty cycle. Returns the amount of work done.
    pub fn cycle(&mut self) -> usize {
        self.sender.do_work(self.now_ns)
    }

    /// Advances the time by `time_ns` and runs one duty cycle.
    pub fn after(&mut self, time_ns: i64) -> usize {
        self.now_ns += time_ns;
        self.cycle()
    }

    /// Runs a duty cycle every millisecond for `time_ns`.
    pub fn run(&mut self, time_ns: i64) {
        for _ in 0..time_ns / MS {
            self.after(MS);
        }
    }

    /// Runs duty cycles without advancing the time, until there is nothing to do.
    pub fn settle(&mut self) {
        for _ in 0..1_000 {
            if self.cycle() == 0 {
                return;
            }
        }
        panic!("the sender does not come to rest");
    }

    /// Delivers a status message of a receiver at [`peer`], and lets the sender read it.
    pub fn status(
        &mut self,
        publication: &Publication,
        receiver_id: i64,
        position: i64,
        window: i32,
    ) {
        let message = publication.status_message(receiver_id, position, window);
        self.hear(publication, &message);
    }

    /// Delivers a status message from [`peer`], and lets the sender read it.
    pub fn hear(&mut self, publication: &Publication, message: &StatusMessage<'_>) {
        self.hear_from(peer(), publication.control, message);
    }

    pub fn hear_from(&mut self, from: SocketAddr, to: SocketAddr, message: &StatusMessage<'_>) {
        let mut datagram = [0; 128];
        let length = message.encode(&mut datagram);
        self.datagram(from, to, &datagram[..length]);
    }

    /// Delivers a datagram, and lets the sender read it.
    ///
    /// While the sender sends data, it does not read control frames in every duty cycle. Extra cycles therefore let it
    /// send all data first.
    pub fn datagram(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.settle();
        self.network.deliver(from, to, bytes);
        self.cycle();
    }

    pub fn nak(&mut self, publication: &Publication, position: i64, length: i32) {
        self.nak_from(peer(), publication, position, length);
    }

    pub fn nak_from(
        &mut self,
        from: SocketAddr,
        publication: &Publication,
        position: i64,
        length: i32,
    ) {
        let positions = publication.log.positions();
        let nak = Nak {
            session_id: publication.session_id,
            stream_id: publication.stream_id,
            term_id: positions.term_id(position),
            term_offset: positions.term_offset(position) as i32,
            length,
        };
        let mut datagram = [0; Nak::LENGTH];
        nak.encode(&mut datagram);
        self.datagram(from, publication.control, &datagram);
    }

    /// Returns the datagrams that were sent since the last call.
    pub fn sent(&self) -> Vec<Sent> {
        self.network.take_sent()
    }

    /// Returns the decoded datagrams of all streams that were sent since the last call.
    pub fn seen(&self) -> Vec<Seen> {
        self.sent().iter().map(understood).collect()
    }

    /// Returns the position and length of the data that was sent since the last call.
    pub fn data(&self) -> Vec<(i64, usize)> {
        let data = |it: Seen| match it {
            Seen::Data(position, length) => Some((position, length)),
            _ => None,
        };
        self.seen().into_iter().filter_map(data).collect()
    }

    /// Runs for `time_ms`. Returns the times of the datagrams that `is_meant` selects, in milliseconds since the call.
    pub fn times_ms(&mut self, time_ms: i64, is_meant: impl Fn(&Seen) -> bool) -> Vec<i64> {
        let mut times = Vec::new();
        for at in 0..time_ms {
            self.cycle();
            times.extend(self.seen().iter().filter(|it| is_meant(it)).map(|_| at));
            self.now_ns += MS;
        }
        times
    }

    pub fn events(&mut self) -> Vec<SenderEvent> {
        std::iter::from_fn(|| self.events.pop().ok()).collect()
    }

    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

impl Publication {
    /// Appends a message.
    pub fn offer(&mut self, length: usize) {
        let message = vec![7; length];
        let mut offered = self.appender.offer(i64::MAX, &message);
        while offered == Err(AppendError::AdminAction) {
            offered = self.appender.offer(i64::MAX, &message);
        }
        offered.expect("appended");
    }

    pub fn position(&self) -> i64 {
        self.counters.sender_position.get()
    }

    pub fn limit(&self) -> i64 {
        self.counters.sender_limit.get()
    }

    pub fn is_connected(&self) -> bool {
        self.log.metadata().is_connected()
    }

    pub fn status_message(
        &self,
        receiver_id: i64,
        position: i64,
        window: i32,
    ) -> StatusMessage<'static> {
        let positions = self.log.positions();
        StatusMessage {
            wants_setup: false,
            is_end_of_stream: false,
            session_id: self.session_id,
            stream_id: self.stream_id,
            consumption_term_id: positions.term_id(position),
            consumption_term_offset: positions.term_offset(position) as i32,
            receiver_window: window,
            receiver_id,
            feedback: &[],
        }
    }

    /// Returns a status message that requests a SETUP.
    pub fn setup_request(&self, receiver_id: i64) -> StatusMessage<'static> {
        StatusMessage {
            wants_setup: true,
            consumption_term_id: 0,
            consumption_term_offset: 0,
            ..self.status_message(receiver_id, 0, 0)
        }
    }
}

pub fn is_setup(seen: &Seen) -> bool {
    matches!(seen, Seen::Setup(_))
}

pub fn is_heartbeat(seen: &Seen) -> bool {
    matches!(seen, Seen::Heartbeat(..))
}

/// Decodes a datagram of a stream that begins with [`INITIAL_TERM`] and has terms of [`TERM`] bytes.
pub fn understood(sent: &Sent) -> Seen {
    let frame = DataFrame::decode(&sent.bytes)
        .expect("the sender sends valid frames")
        .expect("the sender sends frames for receivers");
    match frame {
        DataFrame::Setup(setup) => Seen::Setup(setup),
        DataFrame::Rttm(rttm) => Seen::Rttm(rttm),
        DataFrame::Data(header) => {
            let position =
                i64::from(header.term_id - INITIAL_TERM) * TERM + i64::from(header.term_offset);
            if header.is_heartbeat(sent.bytes.len()) {
                assert_eq!((header.reserved_value, header.session_id), (0, SESSION));
                Seen::Heartbeat(header.flags, position)
            } else {
                Seen::Data(position, sent.bytes.len())
            }
        }
    }
}

/// Returns the header of a data frame.
pub fn header(datagram: &[u8]) -> DataHeader {
    DataHeader::decode(datagram).expect("a data frame")
}

fn new_log(options: &Options) -> LogBuffers<SharedBuffer> {
    let description = LogDescription {
        mtu_length: options.mtu_length as i32,
        term_length: options.term_length as i32,
        ..LogDescription::new(
            LogType::ExclusivePublication,
            options.session_id,
            STREAM,
            INITIAL_TERM,
        )
    };
    let length = log_length(options.term_length, description.page_size.into()).expect("a length");
    LogBuffers::create(
        &SharedBuffer::heap(length),
        &description,
        options.start_position,
    )
    .expect("a log")
}
