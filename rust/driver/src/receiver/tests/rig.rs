//! A receiver with all its parts, simulated senders, and a simulated conductor.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use aeron_memory::counters::AtomicCounter;
use aeron_memory::counters::system::SystemCounter;
use aeron_memory::log::buffers::log_length;
use aeron_memory::log::{LogBuffers, LogDescription, LogType};
use aeron_memory::{SharedBuffer, Words};
use aeron_protocol::frame::{ControlFrame, ErrorFrame, Nak, ResponseSetup, Rttm, Setup};

pub use super::frames::*;
use crate::config::Context;
use crate::congestion::RttMeter;
use crate::image::ImageStatus;
use crate::media::interfaces::{InterfaceAddress, Interfaces};
use crate::media::testing::MemoryNetwork;
use crate::media::transport::{MulticastSpec, Network, Socket, SocketSide, SocketSpec};
use crate::media::{ChannelResolver, ChannelRole, UdpChannel};
use crate::names::SystemNames;
use crate::queue::{QueueConsumer, QueueProducer, queue};
use crate::receiver::*;
use crate::stream::StreamSession;
use crate::testing::DriverMemory;

pub const WINDOW: i64 = 32 * 1024;
pub const FIRST_RECEIVER_ID: i64 = 0x1122_3344_5566_7788;
pub const MS: i64 = 1_000_000;
pub const SECOND: i64 = 1_000 * MS;
pub const EPOCH_NS: i64 = 1_234_567_890_000_000_000;

pub const UNICAST: &str = "aeron:udp?endpoint=127.0.0.1:24001";
pub const MULTICAST: &str = "aeron:udp?endpoint=224.20.30.41:24002|interface=10.0.0.1|ttl=3";
pub const EXPLICIT: &str = "aeron:udp?endpoint=127.0.0.1:24003|control=127.0.0.1:24004";

pub fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// Returns the source address of the sender in most tests.
pub fn sender() -> SocketAddr {
    address("127.0.0.1:9000")
}

pub fn session(session_id: i32) -> StreamSession {
    StreamSession {
        stream_id: STREAM,
        session_id,
    }
}

pub struct Rig {
    pub network: MemoryNetwork,
    pub receiver: Receiver,
    commands: QueueProducer<ReceiverCommand>,
    events: QueueConsumer<ReceiverEvent>,
    memory: DriverMemory,
    pub now_ns: i64,
    next_id: i64,
}

/// An endpoint and its first destination.
#[derive(Clone, Copy, Debug)]
pub struct Endpoint {
    pub id: ReceiveEndpointId,
    pub receiver_id: i64,
    pub destination: DestinationId,
    /// Address for data.
    pub address: SocketAddr,
}

/// The conductor's half of an image.
pub struct Image {
    pub correlation_id: i64,
    pub log: LogBuffers<SharedBuffer>,
    pub status: Arc<ImageStatus>,
    pub high_water_mark: AtomicCounter<SharedBuffer>,
    pub naks_sent: AtomicCounter<SharedBuffer>,
}

/// The conductor's parameters for an image.
pub struct Options {
    pub is_reliable: bool,
    pub allocated_end: i64,
    pub window_length: i64,
    pub rtt_meter: Option<RttMeter>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            is_reliable: true,
            allocated_end: i64::MAX,
            window_length: WINDOW,
            rtt_meter: None,
        }
    }
}

/// A decoded frame that the receiver has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Session id and stream id.
    SetupRequest(i32, i32),
    /// Position in a stream that begins with [`INITIAL_TERM`], window, and whether the receiver announces that it
    /// leaves.
    Status(i64, i32, bool),
    Nak(Nak),
    /// Error code and text.
    Error(i32, String),
    Rttm(Rttm),
    ResponseSetup(ResponseSetup),
}

/// A machine with one interface and a loopback interface.
struct OneInterface;

impl Interfaces for OneInterface {
    fn addresses(&mut self) -> io::Result<Vec<InterfaceAddress>> {
        let address = |index, name: &str, address: [u8; 4], is_loopback| InterfaceAddress {
            name: name.to_owned(),
            index,
            address: IpAddr::from(address),
            prefix_length: 8,
            is_up: true,
            is_loopback,
            is_multicast: !is_loopback,
        };
        Ok(vec![
            address(1, "lo", [127, 0, 0, 1], true),
            address(2, "eth0", [10, 0, 0, 1], false),
        ])
    }
}

fn resolve(channel: &str) -> UdpChannel {
    ChannelResolver::new(Box::new(SystemNames), Box::new(OneInterface))
        .resolve(channel.as_bytes(), ChannelRole::Subscription)
        .expect("a channel")
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

    pub fn with(configure: impl FnOnce(&mut Context)) -> Self {
        let mut context = Context::default();
        configure(&mut context);
        let memory = DriverMemory::new();
        let counter = |counter| memory.system.get(counter).clone();
        let (commands, for_receiver) = queue(counter(SystemCounter::ReceiverProxyFails));
        let (from_receiver, events) = queue(counter(SystemCounter::ConductorProxyFails));
        let mut network = MemoryNetwork::new();
        let now_ns = 1_000 * SECOND;
        let parts = ReceiverParts {
            commands: for_receiver,
            events: from_receiver,
            poller: network.poller(),
            system_counters: memory.system.clone(),
            errors: memory.error_recorder(),
            epoch_nanos: Box::new(|| EPOCH_NS),
        };
        Rig {
            network,
            receiver: Receiver::new(&context, parts, now_ns),
            commands,
            events,
            memory,
            now_ns,
            next_id: 1,
        }
    }

    /// Opens an endpoint with a subscription to all sessions of [`STREAM`].
    pub fn subscribed(&mut self, channel: &str) -> Endpoint {
        let endpoint = self.endpoint(channel, None);
        self.command(ReceiverCommand::AddSubscription {
            endpoint: endpoint.id,
            stream_id: STREAM,
        });
        endpoint
    }

    /// Opens an endpoint with one destination and without a subscription.
    pub fn endpoint(&mut self, channel: &str, group_tag: Option<i64>) -> Endpoint {
        self.endpoint_with_limit(channel, group_tag, usize::MAX)
    }

    pub fn endpoint_with_limit(
        &mut self,
        channel: &str,
        group_tag: Option<i64>,
        stream_session_limit: usize,
    ) -> Endpoint {
        let id = self.next_id() as ReceiveEndpointId;
        let (destination, destination_id, address) = self.destination(channel);
        let identity = ReceiverIdentity {
            receiver_id: FIRST_RECEIVER_ID + id as i64,
            group_tag,
        };
        let endpoint = ReceiveEndpoint::new(id, identity, channel.to_owned(), stream_session_limit);
        self.command(ReceiverCommand::AddEndpoint {
            endpoint: Box::new(endpoint),
            destinations: vec![destination],
        });
        Endpoint {
            id,
            receiver_id: identity.receiver_id,
            destination: destination_id,
            address,
        }
    }

    /// Adds a destination to an endpoint.
    pub fn add_destination(&mut self, endpoint: &Endpoint, channel: &str) -> Endpoint {
        let (destination, destination_id, address) = self.destination(channel);
        self.command(ReceiverCommand::AddDestination {
            endpoint: endpoint.id,
            destination: Box::new(destination),
        });
        Endpoint {
            destination: destination_id,
            address,
            ..*endpoint
        }
    }

    fn destination(&mut self, channel: &str) -> (ReceiveDestination, DestinationId, SocketAddr) {
        let channel = resolve(channel);
        let socket = self.open(&channel);
        let mut address = channel.remote_data;
        if address.port() == 0 {
            address = socket.local_address();
        }
        let id = self.next_id() as DestinationId;
        let offsets = channel.params.timestamp_offsets;
        let destination = ReceiveDestination::new(id, &channel, offsets, socket);
        (destination, id, address)
    }

    fn open(&mut self, channel: &UdpChannel) -> Box<dyn Socket> {
        let spec = SocketSpec {
            bind: channel.remote_data,
            connect: None,
            multicast: channel.is_multicast.then(|| MulticastSpec {
                group: channel.remote_data.ip(),
                interface: IpAddr::from([10, 0, 0, 1]),
                interface_index: 2,
                ttl: 0,
            }),
            send_buffer_length: 0,
            receive_buffer_length: 0,
            receive_timestamps: channel.params.timestamp_offsets.media_receive.is_some(),
            side: SocketSide::Receiver,
        };
        self.network.open(&spec).expect("a free address")
    }

    /// Sends a command to the receiver, which executes it at once. The receiver's events and frames stay in their
    /// queues.
    pub fn command(&mut self, command: ReceiverCommand) {
        self.commands.send(command);
        self.cycle();
    }

    pub fn cycle(&mut self) {
        self.receiver.do_work(self.now_ns);
    }

    /// Advances the time by `time_ns` and runs one duty cycle.
    pub fn after(&mut self, time_ns: i64) {
        self.now_ns += time_ns;
        self.cycle();
    }

    /// Runs a duty cycle every millisecond for `time_ns`.
    pub fn run(&mut self, time_ns: i64) {
        for _ in 0..time_ns / MS {
            self.after(MS);
        }
    }

    /// Delivers a datagram from [`sender`] and runs a duty cycle.
    pub fn deliver(&mut self, to: &Endpoint, datagram: &[u8]) {
        self.deliver_from(sender(), to, datagram);
    }

    /// Delivers a datagram and runs a duty cycle.
    pub fn deliver_from(&mut self, from: SocketAddr, to: &Endpoint, datagram: &[u8]) {
        self.network.deliver(from, to.address, datagram);
        self.cycle();
    }

    /// Returns the receiver's events since the last call.
    pub fn events(&mut self) -> Vec<ReceiverEvent> {
        std::iter::from_fn(|| self.events.pop().ok()).collect()
    }

    /// Returns the receiver's requests for images since the last call, and discards all other events.
    pub fn image_requests(&mut self) -> Vec<ImageRequest> {
        self.events()
            .into_iter()
            .filter_map(|event| match event {
                ReceiverEvent::CreateImage(request) => Some(*request),
                _ => None,
            })
            .collect()
    }

    /// Creates the image for a SETUP frame. Discards the frames sent so far, including the first status message.
    pub fn image(&mut self, endpoint: &Endpoint, setup: Setup) -> Image {
        self.image_with(endpoint, setup, Options::default())
    }

    pub fn image_with(&mut self, endpoint: &Endpoint, setup: Setup, options: Options) -> Image {
        self.deliver(endpoint, &encoded(|out| setup.encode(out)));
        let requests = self.image_requests();
        let [request] = requests.as_slice() else {
            panic!("{} images were asked for", requests.len());
        };
        let image = self.create_image(request, options);
        self.network.take_sent();
        image
    }

    /// Creates the requested image, as the conductor does.
    pub fn create_image(&mut self, request: &ImageRequest, options: Options) -> Image {
        let setup = &request.setup;
        let log = new_log(setup);
        let position = log
            .positions()
            .position(setup.active_term_id, setup.term_offset as usize);
        let image = Image {
            correlation_id: self.next_id(),
            log: log.clone(),
            status: Arc::new(ImageStatus::new(
                position,
                options.window_length,
                options.allocated_end,
                self.now_ns,
            )),
            high_water_mark: self.counter(),
            naks_sent: self.counter(),
        };
        let config = ReceiverImageConfig {
            correlation_id: image.correlation_id,
            endpoint: request.endpoint,
            destination: request.destination,
            source_address: request.source_address,
            session_id: setup.session_id,
            stream_id: setup.stream_id,
            log,
            join_position: position,
            max_window_length: options.window_length,
            is_reliable: options.is_reliable,
            high_water_mark: image.high_water_mark.clone(),
            naks_sent: image.naks_sent.clone(),
            rtt_meter: options.rtt_meter,
            status: image.status.clone(),
        };
        self.command(ReceiverCommand::AddImage(Box::new(ReceiverImage::new(
            config,
        ))));
        image
    }

    /// Returns the decoded frames that were sent since the last call.
    pub fn sent(&mut self) -> Vec<Seen> {
        self.sent_to().into_iter().map(|(_, seen)| seen).collect()
    }

    /// Returns the decoded frames that were sent since the last call, with their destinations.
    pub fn sent_to(&mut self) -> Vec<(SocketAddr, Seen)> {
        self.network
            .take_sent()
            .iter()
            .map(|sent| (sent.to, understood(&sent.bytes)))
            .collect()
    }

    fn next_id(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id - 1
    }
}

impl Image {
    /// Returns bytes of the log, beginning at a position.
    pub fn bytes(&self, position: i64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        let offset = self.log.positions().term_offset(position);
        self.log.term_at(position).copy_out(offset, &mut bytes);
        bytes
    }

    /// Returns whether all bytes of the three terms are zero.
    pub fn is_empty(&self) -> bool {
        (0..3).all(|partition| {
            let term = self.log.term(partition);
            let mut bytes = vec![0; term.len()];
            term.copy_out(0, &mut bytes);
            bytes.iter().all(|byte| *byte == 0)
        })
    }

    pub fn high_water_mark(&self) -> i64 {
        assert_eq!(self.high_water_mark.get(), self.status.high_water_mark());
        self.high_water_mark.get()
    }
}

fn new_log(setup: &Setup) -> LogBuffers<SharedBuffer> {
    let description = LogDescription {
        term_length: setup.term_length,
        mtu_length: 1408,
        ..LogDescription::new(
            LogType::Image,
            setup.session_id,
            setup.stream_id,
            setup.initial_term_id,
        )
    };
    let length = log_length(setup.term_length.into(), 4096).expect("a term length");
    LogBuffers::create(&SharedBuffer::heap(length), &description, 0).expect("a log")
}

fn understood(datagram: &[u8]) -> Seen {
    let frame = ControlFrame::decode(datagram)
        .expect("valid")
        .expect("ours");
    match frame {
        ControlFrame::StatusMessage(message) if message.wants_setup => {
            let nothing = (
                message.consumption_term_id,
                message.consumption_term_offset,
                message.receiver_window,
            );
            assert_eq!(nothing, (0, 0, 0));
            Seen::SetupRequest(message.session_id, message.stream_id)
        }
        ControlFrame::StatusMessage(message) => {
            let term_count = message.consumption_term_id.wrapping_sub(INITIAL_TERM);
            let position =
                i64::from(term_count) * TERM as i64 + i64::from(message.consumption_term_offset);
            Seen::Status(position, message.receiver_window, message.is_end_of_stream)
        }
        ControlFrame::Nak(nak) => Seen::Nak(nak),
        ControlFrame::Error(ErrorFrame {
            error_code,
            error_text,
            ..
        }) => Seen::Error(error_code, String::from_utf8_lossy(error_text).into_owned()),
        ControlFrame::Rttm(rttm) => Seen::Rttm(rttm),
        ControlFrame::ResponseSetup(setup) => Seen::ResponseSetup(setup),
    }
}
