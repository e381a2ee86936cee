//! The configuration of a driver: every setting once, with its field, default, environment variable and limits.
//!
//! Values come from the defaults, then from the environment and properties files ([`Context::apply`]), then from whoever
//! sets fields directly. Text beyond a limit is clamped; a field beyond one is refused by [`Context::validate`].
//! Lengths are bytes.

mod field;
mod modes;
mod ports;
mod print;
mod validate;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use aeron_agent::IdleStrategySpec;
pub use aeron_agent::setting::{Grammar, Value};
pub use aeron_agent::sources::{Sources, SourcesError};
use aeron_protocol::uri::{ReceiverGroup, UntetheredTimeouts};
use field::Field;
pub use field::Setting;
pub(crate) use modes::LoopKind;
pub use modes::{TerminationValidator, ThreadingMode};
pub use validate::ConfigurationError;

const KIB: i64 = 1024;
const MIB: i64 = 1024 * KIB;
const GIB: i64 = 1024 * MIB;
const MAX_I32: i64 = i32::MAX as i64;
const MAX: i64 = i64::MAX;
const US: i64 = 1_000;
const MS: i64 = 1_000 * US;
const SECOND: i64 = 1_000 * MS;
const DEFAULT_MAX_IDLE_PARK_NS: u64 = 2 * MS as u64;
/// Yields of a loop under load, about 80 us on a free processor: a publisher of long messages fills half a window in that time.
const BUSY_YIELDS: u64 = 200;

macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $default:expr, $variable:literal $grammar:expr;)*) => {
        /// Everything a driver can be told before it starts.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Context {
            $($(#[$doc])* pub $name: $type,)*
            /// After one second without work, agents that back off park up to this long (ns), if it is longer than their own
            /// longest park. The default costs an idle driver less than the C driver; 0 turns it off.
            pub max_idle_park_ns: u64,
            /// The directory was made up for this driver alone. If the process is killed, the next embedded driver removes it.
            pub is_dir_private: bool,
        }

        impl Default for Context {
            fn default() -> Self {
                Context {
                    $($name: $default,)*
                    max_idle_park_ns: DEFAULT_MAX_IDLE_PARK_NS,
                    is_dir_private: false,
                }
            }
        }

        /// Every setting that has an environment variable, in the order in which they are printed.
        pub static SETTINGS: &[Setting] = &[$(Setting {
            variable: $variable,
            name: stringify!($name),
            grammar: { #[allow(unused_imports)] use Grammar::*; $grammar },
            get: |context| context.$name.to_value(),
            set: |context, value| match <$type>::from_value(value) {
                Some(value) => { context.$name = value; true }
                None => false,
            },
        }),*];
    };
}

settings! {
    /// Directory of the driver's files.
    dir: PathBuf = aeron_memory::directory::default_directory(), "AERON_DIR" Text;
    /// Delete what an earlier driver left without saving its errors, even if its CnC file is damaged; never a live driver's.
    dir_delete_on_start: bool = false, "AERON_DIR_DELETE_ON_START" Boolean;
    /// Remove the driver's files and the directory when the driver closes.
    dir_delete_on_shutdown: bool = false, "AERON_DIR_DELETE_ON_SHUTDOWN" Boolean;
    /// Warn on stderr when the directory exists.
    dir_warn_if_exists: bool = false, "AERON_DIR_WARN_IF_EXISTS" Boolean;
    /// Threads of the agents.
    threading_mode: ThreadingMode = ThreadingMode::Dedicated, "AERON_THREADING_MODE" Text;
    /// Age of the driver's heartbeat, in milliseconds, after which it counts as dead.
    driver_timeout_ms: i64 = 10_000, "AERON_DRIVER_TIMEOUT" LeadingDigits(0, MAX);
    /// Print every setting on stdout at the start.
    print_configuration: bool = false, "AERON_PRINT_CONFIGURATION" Boolean;
    /// Who may terminate the driver by command.
    termination_validator: TerminationValidator = TerminationValidator::Deny, "AERON_DRIVER_TERMINATION_VALIDATOR" Text;
    /// Nothing depends on it.
    enable_experimental_features: bool = false, "AERON_ENABLE_EXPERIMENTAL_FEATURES" Boolean;
    /// Check the free space before a log file is created.
    perform_storage_checks: bool = true, "AERON_PERFORM_STORAGE_CHECKS" Boolean;
    /// Warn in the error log when less space than this is free.
    low_file_store_warning_threshold: u64 = 160 * MIB as u64, "AERON_LOW_FILE_STORE_WARNING_THRESHOLD" Size(0, MAX);
    /// Lengths of files are rounded up to it; a power of two up to 1 GiB.
    file_page_size: usize = 4096, "AERON_FILE_PAGE_SIZE" Size(4 * KIB, MAX_I32);

    /// Ring of commands from clients: a power of two + 768.
    to_driver_buffer_length: usize = MIB as usize + 768, "AERON_CONDUCTOR_BUFFER_LENGTH" Size(MIB + 768, MAX_I32);
    /// Broadcast to clients: a power of two + 128.
    to_clients_buffer_length: usize = MIB as usize + 128, "AERON_CLIENTS_BUFFER_LENGTH" Size(MIB + 128, MAX_I32);
    /// Values of counters; their metadata takes four times as much again.
    counters_values_buffer_length: usize = 8 * MIB as usize, "AERON_COUNTERS_BUFFER_LENGTH" Size(MIB, 500 * MIB);
    /// Distinct error log.
    error_buffer_length: usize = 4 * MIB as usize, "AERON_ERROR_BUFFER_LENGTH" Size(4 * MIB, MAX_I32);
    /// Loss report file.
    loss_report_buffer_length: usize = MIB as usize, "AERON_LOSS_REPORT_BUFFER_LENGTH" Size(KIB, MAX_I32);
    /// Term length of network publications.
    term_buffer_length: usize = 16 * MIB as usize, "AERON_TERM_BUFFER_LENGTH" Size(KIB, MAX_I32);
    /// Term length of IPC publications.
    ipc_term_buffer_length: usize = 64 * MIB as usize, "AERON_IPC_TERM_BUFFER_LENGTH" Size(KIB, MAX_I32);
    /// Log files are sparse.
    term_buffer_sparse_file: bool = true, "AERON_TERM_BUFFER_SPARSE_FILE" Boolean;
    /// Longest datagram of network publications.
    mtu_length: usize = 1408, "AERON_MTU_LENGTH" Size(32, 65504);
    /// Longest frame of IPC publications.
    ipc_mtu_length: usize = 1408, "AERON_IPC_MTU_LENGTH" Size(32, 65504);
    /// How far network publishers may run ahead of consumers; 0 is half a term.
    publication_window_length: usize = 0, "AERON_PUBLICATION_TERM_WINDOW_LENGTH" Size(0, GIB);
    /// How far IPC publishers may run ahead of consumers; 0 is half a term.
    ipc_publication_window_length: usize = 0, "AERON_IPC_PUBLICATION_TERM_WINDOW_LENGTH" Size(0, GIB);
    /// Window a receiver offers at first.
    initial_window_length: usize = 128 * KIB as usize, "AERON_RCV_INITIAL_WINDOW_LENGTH" Size(256, MAX_I32);
    /// Receive buffer of sockets; 0 is the system's default.
    socket_rcvbuf: usize = 128 * KIB as usize, "AERON_SOCKET_SO_RCVBUF" Size(0, MAX_I32);
    /// Send buffer of sockets; 0 is the system's default.
    socket_sndbuf: usize = 0, "AERON_SOCKET_SO_SNDBUF" Size(0, MAX_I32);
    /// Time to live of multicast datagrams; 0 is the system's default.
    multicast_ttl: i32 = 0, "AERON_SOCKET_MULTICAST_TTL" LeadingDigits(0, 255);

    /// A client that is silent for longer is dead.
    client_liveness_timeout_ns: i64 = 10 * SECOND, "AERON_CLIENT_LIVENESS_TIMEOUT" Duration(US, MAX);
    /// Time between two checks of everything that times out.
    timer_interval_ns: i64 = SECOND, "AERON_TIMER_INTERVAL" Duration(US, MAX);
    /// A publication blocked for longer by a dead publisher is unblocked.
    publication_unblock_timeout_ns: i64 = 15 * SECOND, "AERON_PUBLICATION_UNBLOCK_TIMEOUT" Duration(US, MAX);
    /// Without a status message for longer, a network publication is not connected.
    publication_connection_timeout_ns: i64 = 5 * SECOND, "AERON_PUBLICATION_CONNECTION_TIMEOUT" Duration(US, MAX);
    /// How long a drained network publication is kept.
    publication_linger_timeout_ns: i64 = 5 * SECOND, "AERON_PUBLICATION_LINGER_TIMEOUT" Duration(US, MAX);
    /// An image without data or heartbeats for longer is gone; also how long a rejected IPC image stays away.
    image_liveness_timeout_ns: i64 = 10 * SECOND, "AERON_IMAGE_LIVENESS_TIMEOUT" Duration(US, MAX);
    /// Longest time between two status messages.
    status_message_timeout_ns: i64 = 200 * MS, "AERON_RCV_STATUS_MESSAGE_TIMEOUT" Duration(US, MAX);
    /// How long the id of a freed counter is not used again.
    counter_free_to_reuse_timeout_ns: i64 = SECOND, "AERON_COUNTERS_FREE_TO_REUSE_TIMEOUT" Duration(0, MAX);
    /// How long an untethered subscriber may hold back a publisher.
    untethered_window_limit_timeout_ns: i64 = 5 * SECOND, "AERON_UNTETHERED_WINDOW_LIMIT_TIMEOUT" Duration(0, MAX);
    /// How long a dropped untethered subscriber may finish reading; absent, the window limit timeout.
    untethered_linger_timeout_ns: Option<i64> = None, "AERON_UNTETHERED_LINGER_TIMEOUT" Duration(0, MAX);
    /// How long a dropped untethered subscriber rests before it rejoins.
    untethered_resting_timeout_ns: i64 = 10 * SECOND, "AERON_UNTETHERED_RESTING_TIMEOUT" Duration(0, MAX);
    /// Time between two checks for changed addresses; 0 is never.
    re_resolution_check_interval_ns: i64 = SECOND, "AERON_DRIVER_RERESOLUTION_CHECK_INTERVAL" Duration(0, MAX);
    /// Longer duty cycles of the conductor are counted.
    conductor_cycle_threshold_ns: i64 = 100 * MS, "AERON_DRIVER_CONDUCTOR_CYCLE_THRESHOLD" Duration(0, MAX);
    /// Longer duty cycles of the sender are counted.
    sender_cycle_threshold_ns: i64 = 100 * MS, "AERON_DRIVER_SENDER_CYCLE_THRESHOLD" Duration(0, MAX);
    /// Longer duty cycles of the receiver are counted.
    receiver_cycle_threshold_ns: i64 = 100 * MS, "AERON_DRIVER_RECEIVER_CYCLE_THRESHOLD" Duration(0, MAX);
    /// Longer resolutions of a name are counted.
    name_resolver_threshold_ns: i64 = 5 * SECOND, "AERON_DRIVER_NAME_RESOLVER_THRESHOLD" Duration(0, MAX);

    /// Default of the channel's `reliable`.
    reliable_stream: bool = true, "AERON_RELIABLE_STREAM" Boolean;
    /// Default of the channel's `tether`.
    tether_subscriptions: bool = true, "AERON_TETHER_SUBSCRIPTIONS" Boolean;
    /// Default of the channel's `rejoin`.
    rejoin_stream: bool = true, "AERON_REJOIN_STREAM" Boolean;
    /// Default of the channel's `group`.
    receiver_group_consideration: ReceiverGroup = ReceiverGroup::Infer, "AERON_RECEIVER_GROUP_CONSIDERATION" Text;
    /// Default of the channel's `ssc`.
    spies_simulate_connection: bool = false, "AERON_SPIES_SIMULATE_CONNECTION" Boolean;
    /// First session id that is never allocated.
    publication_reserved_session_id_low: i32 = -1,
        "AERON_PUBLICATION_RESERVED_SESSION_ID_LOW" Integer(i32::MIN as i64, MAX_I32);
    /// Last session id that is never allocated.
    publication_reserved_session_id_high: i32 = 1000,
        "AERON_PUBLICATION_RESERVED_SESSION_ID_HIGH" Integer(i32::MIN as i64, MAX_I32);
    /// Sessions per stream and receive endpoint.
    stream_session_limit: i32 = i32::MAX, "AERON_DRIVER_STREAM_SESSION_LIMIT" Integer(1, MAX_I32);
    /// Default of the channel's `max-resend`.
    max_resend: i32 = 16, "AERON_MAX_RESEND" Integer(1, 256);
    /// How long a unicast retransmit waits.
    retransmit_unicast_delay_ns: i64 = 0, "AERON_RETRANSMIT_UNICAST_DELAY" Duration(0, MAX);
    /// How long after a unicast retransmit another request for it is ignored.
    retransmit_unicast_linger_ns: i64 = 10 * MS, "AERON_RETRANSMIT_UNICAST_LINGER" Duration(US, MAX);
    /// Estimated number of receivers of a multicast stream.
    nak_multicast_group_size: i32 = 10, "AERON_NAK_MULTICAST_GROUP_SIZE" LeadingDigits(1, MAX_I32);
    /// Longest delay of a multicast NAK.
    nak_multicast_max_backoff_ns: i64 = 10 * MS, "AERON_NAK_MULTICAST_MAX_BACKOFF" Duration(US, MAX);
    /// Delay of a unicast NAK.
    nak_unicast_delay_ns: i64 = US, "AERON_NAK_UNICAST_DELAY" Duration(US, MAX);
    /// A NAK is repeated after this many delays.
    nak_unicast_retry_delay_ratio: i64 = 100, "AERON_NAK_UNICAST_RETRY_DELAY_RATIO" Integer(1, MAX);
    /// Flow control of unicast publications.
    unicast_flow_control_supplier: String = "unicast_max".into(), "AERON_UNICAST_FLOWCONTROL_SUPPLIER" Text;
    /// Flow control of multicast publications whose channel has no `fc`.
    multicast_flow_control_supplier: String = "multicast_max".into(), "AERON_MULTICAST_FLOWCONTROL_SUPPLIER" Text;
    /// Default group tag of tagged flow control.
    flow_control_group_tag: i64 = -1, "AERON_FLOW_CONTROL_GROUP_TAG" Integer(i64::MIN, MAX);
    /// Default number of receivers that flow control requires.
    flow_control_group_min_size: i32 = 0, "AERON_FLOW_CONTROL_GROUP_MIN_SIZE" Integer(0, MAX_I32);
    /// Flow control forgets a receiver that is silent for longer.
    flow_control_receiver_timeout_ns: i64 = 5 * SECOND, "AERON_FLOW_CONTROL_RECEIVER_TIMEOUT" Duration(0, MAX);
    /// Default of the channel's `gtag`.
    receiver_group_tag: Option<i64> = None, "AERON_RECEIVER_GROUP_TAG" Integer(i64::MIN, MAX);
    /// Congestion control of channels without `cc`.
    congestion_control_supplier: String = "default".into(), "AERON_CONGESTIONCONTROL_SUPPLIER" Text;
    /// Cubic congestion control measures round trips.
    cubic_measure_rtt: bool = false, "AERON_CUBICCONGESTIONCONTROL_MEASURERTT" Boolean;
    /// Round trip that cubic congestion control assumes at first.
    cubic_initial_rtt_ns: i64 = 100 * US, "AERON_CUBICCONGESTIONCONTROL_INITIALRTT" Duration(0, MAX);
    /// Cubic congestion control is fair to TCP.
    cubic_tcp_mode: bool = false, "AERON_CUBICCONGESTIONCONTROL_TCPMODE" Boolean;

    /// Name resolver: `default`, `driver` or `csv_table`.
    name_resolver_supplier: String = "default".into(), "AERON_NAME_RESOLVER_SUPPLIER" Text;
    /// Arguments of the name resolver.
    name_resolver_init_args: String = String::new(), "AERON_NAME_RESOLVER_INIT_ARGS" Text;
    /// Name this driver announces to other drivers.
    resolver_name: String = String::new(), "AERON_DRIVER_RESOLVER_NAME" Text;
    /// Address of the protocol between resolvers.
    resolver_interface: String = String::new(), "AERON_DRIVER_RESOLVER_INTERFACE" Text;
    /// First contacts of the resolver, `host:port`, separated by commas.
    resolver_bootstrap_neighbor: String = String::new(), "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR" Text;
    /// A neighbour that is silent for longer is gone.
    resolver_neighbor_timeout_ns: i64 = 10 * SECOND, "AERON_DRIVER_RESOLVER_NEIGHBOR_TIMEOUT" Duration(MS, MAX);
    /// Time between two announcements of this driver.
    resolver_self_resolution_interval_ns: i64 = SECOND,
        "AERON_DRIVER_RESOLVER_SELF_RESOLUTION_INTERVAL" Duration(MS, MAX);
    /// Time between two announcements of known neighbours.
    resolver_neighbor_resolution_interval_ns: i64 = 2 * SECOND,
        "AERON_DRIVER_RESOLVER_NEIGHBOR_RESOLUTION_INTERVAL" Duration(MS, MAX);
    /// Time between two resolutions of the first contacts.
    resolver_bootstrap_neighbor_resolution_interval_ns: i64 = 10 * SECOND,
        "AERON_DRIVER_RESOLVER_BOOTSTRAP_NEIGHBOR_RESOLUTION_INTERVAL" Duration(MS, MAX);
    /// Ports for senders that ask for any, `low high`; `0 0` leaves it to the system.
    sender_wildcard_port_range: String = "0 0".into(), "AERON_SENDER_WILDCARD_PORT_RANGE" Text;
    /// Ports for receivers that ask for any, `low high`; `0 0` leaves it to the system.
    receiver_wildcard_port_range: String = "0 0".into(), "AERON_RECEIVER_WILDCARD_PORT_RANGE" Text;
    /// Connect the sockets of unicast publications.
    connect_enabled: bool = true, "AERON_DRIVER_CONNECT" Boolean;
    /// Socket layer of sender and receiver.
    udp_channel_transport_bindings: String = "default".into(), "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA" Text;
    /// Socket layer of the name resolver.
    conductor_udp_channel_transport_bindings: String = "default".into(),
        "AERON_CONDUCTOR_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA" Text;
    /// Interceptors of outgoing datagrams, separated by commas.
    udp_channel_outgoing_interceptors: String = String::new(), "AERON_UDP_CHANNEL_OUTGOING_INTERCEPTORS" Text;
    /// Interceptors of incoming datagrams, separated by commas.
    udp_channel_incoming_interceptors: String = String::new(), "AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS" Text;
    /// Arguments of the interceptor `loss`: `rate=…|seed=…|recv-msg-mask=…`.
    udp_channel_transport_bindings_loss_args: String = String::new(),
        "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_LOSS_ARGS" Text;
    /// Arguments of the interceptor `fixed-loss`: `term-id=…|term-offset=…|length=…`.
    udp_channel_transport_bindings_fixed_loss_args: String = String::new(),
        "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_FIXED_LOSS_ARGS" Text;
    /// Arguments of the interceptor `multi-gap-loss`: `term-id=…|gap-radix=…|gap-length=…|total-gaps=…`.
    udp_channel_transport_bindings_multi_gap_loss_args: String = String::new(),
        "AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MULTI_GAP_LOSS_ARGS" Text;
    /// Leave cutting GSO batches into datagrams to the kernel, where it can.
    udp_gso: bool = true, "AERON_UDP_GSO" Boolean;
    /// Receive trains of datagrams, where the kernel can.
    udp_gro: bool = true, "AERON_UDP_GRO" Boolean;

    /// Idle strategy of the conductor.
    conductor_idle_strategy: String = "backoff".into(), "AERON_CONDUCTOR_IDLE_STRATEGY" Text;
    /// Its arguments.
    conductor_idle_strategy_init_args: String = String::new(), "AERON_CONDUCTOR_IDLE_STRATEGY_INIT_ARGS" Text;
    /// Idle strategy of the sender.
    sender_idle_strategy: String = "backoff".into(), "AERON_SENDER_IDLE_STRATEGY" Text;
    /// Its arguments.
    sender_idle_strategy_init_args: String = String::new(), "AERON_SENDER_IDLE_STRATEGY_INIT_ARGS" Text;
    /// Idle strategy of the receiver.
    receiver_idle_strategy: String = "backoff".into(), "AERON_RECEIVER_IDLE_STRATEGY" Text;
    /// Its arguments.
    receiver_idle_strategy_init_args: String = String::new(), "AERON_RECEIVER_IDLE_STRATEGY_INIT_ARGS" Text;
    /// Idle strategy of the thread shared by sender and receiver.
    shared_network_idle_strategy: String = "backoff".into(), "AERON_SHAREDNETWORK_IDLE_STRATEGY" Text;
    /// Its arguments.
    shared_network_idle_strategy_init_args: String = String::new(), "AERON_SHAREDNETWORK_IDLE_STRATEGY_INIT_ARGS" Text;
    /// Idle strategy of the thread shared by all agents.
    shared_idle_strategy: String = "backoff".into(), "AERON_SHARED_IDLE_STRATEGY" Text;
    /// Its arguments.
    shared_idle_strategy_init_args: String = String::new(), "AERON_SHARED_IDLE_STRATEGY_INIT_ARGS" Text;
    /// Idle strategy of the native resource agent.
    native_resource_agent_idle_strategy: String = "sleep-ns".into(),
        "AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY" Text;
    /// Its arguments.
    native_resource_agent_idle_strategy_init_args: String = "1ms".into(),
        "AERON_DRIVER_NATIVE_RESOURCE_AGENT_IDLE_STRATEGY_INIT_ARGS" Text;
    /// CPU of the conductor's thread; -1 is any.
    conductor_cpu_affinity: i32 = -1, "AERON_CONDUCTOR_CPU_AFFINITY" Integer(-1, 255);
    /// CPU of the sender's thread; -1 is any.
    sender_cpu_affinity: i32 = -1, "AERON_SENDER_CPU_AFFINITY" Integer(-1, 255);
    /// CPU of the receiver's thread; -1 is any.
    receiver_cpu_affinity: i32 = -1, "AERON_RECEIVER_CPU_AFFINITY" Integer(-1, 255);
    /// CPU of the native resource agent's thread; -1 is any.
    native_resource_agent_cpu_affinity: i32 = -1, "AERON_DRIVER_NATIVE_RESOURCE_AGENT_CPU_AFFINITY" Integer(-1, 255);
    /// Take the CPUs of the threads from the cpuset of the process.
    cpuset_affinity: bool = false, "AERON_DRIVER_CPUSET_AFFINITY" Boolean;
    /// Doubts about the cpuset stop the start.
    cpuset_warnings_as_errors: bool = false, "AERON_DRIVER_CPUSET_WARNINGS_AS_ERRORS" Boolean;
    /// Function of a C library to call when a thread starts: not available here, any name is refused.
    agent_on_start_function: String = String::new(), "AERON_AGENT_ON_START_FUNCTION" Text;
    /// C libraries to load: not available here, any name is refused.
    dynamic_libraries: String = String::new(), "AERON_DRIVER_DYNAMIC_LIBRARIES" Text;
    /// Data sends per poll for status messages.
    send_to_status_poll_ratio: i32 = 6, "AERON_SEND_TO_STATUS_POLL_RATIO" LeadingDigits(1, MAX_I32);
    /// Datagrams per receive call.
    receiver_io_vector_capacity: i32 = 4, "AERON_RECEIVER_IO_VECTOR_CAPACITY" Integer(1, 16);
    /// Datagrams per send call.
    sender_io_vector_capacity: i32 = 4, "AERON_SENDER_IO_VECTOR_CAPACITY" Integer(1, 16);
    /// Datagrams per publication and duty cycle.
    network_publication_max_messages_per_send: i32 = 4, "AERON_NETWORK_PUBLICATION_MAX_MESSAGES_PER_SEND" Integer(1, 16);
    /// How long small messages may wait for others that share their datagram, while the publication is busy; 0 is not at all.
    sender_batch_wait_ns: i64 = 20 * US, "AERON_SENDER_BATCH_WAIT" Duration(0, SECOND);
    /// Log files whose removal failed that are tried again in one duty cycle.
    resource_free_limit: i32 = 1, "AERON_DRIVER_RESOURCE_FREE_LIMIT" Integer(1, MAX_I32);
}

impl Context {
    /// The setting with this field name, e.g. `mtu_length`.
    pub fn setting(name: &str) -> Option<&'static Setting> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }

    /// The timeouts of subscribers that are not tethered, for channels that state none.
    pub fn untethered_timeouts(&self) -> UntetheredTimeouts {
        UntetheredTimeouts {
            window_limit_timeout_ns: self.untethered_window_limit_timeout_ns,
            linger_timeout_ns: self.untethered_linger_timeout_ns,
            resting_timeout_ns: self.untethered_resting_timeout_ns,
        }
    }

    /// The ports for senders that ask for any; `None` leaves the choice to the system, as does a range that makes no sense.
    pub fn sender_wildcard_ports(&self) -> Option<RangeInclusive<u16>> {
        ports::parse_port_range(&self.sender_wildcard_port_range).unwrap_or_default()
    }

    /// The ports for receivers that ask for any; as for senders.
    pub fn receiver_wildcard_ports(&self) -> Option<RangeInclusive<u16>> {
        ports::parse_port_range(&self.receiver_wildcard_port_range).unwrap_or_default()
    }

    /// The first contacts of the resolver, each `host:port`.
    pub fn bootstrap_neighbors(&self) -> impl Iterator<Item = &str> {
        self.resolver_bootstrap_neighbor
            .split(',')
            .filter(|neighbor| !neighbor.is_empty())
    }

    /// The idle strategy of a loop, which parks longer once it is idle for long if the context says so, and which yields longer
    /// under load unless its arguments say how often.
    pub(crate) fn idle_strategy(
        &self,
        kind: LoopKind,
    ) -> Result<IdleStrategySpec, ConfigurationError> {
        let (name, arguments) = match kind {
            LoopKind::Conductor => (
                &self.conductor_idle_strategy,
                &self.conductor_idle_strategy_init_args,
            ),
            LoopKind::Sender => (
                &self.sender_idle_strategy,
                &self.sender_idle_strategy_init_args,
            ),
            LoopKind::Receiver => (
                &self.receiver_idle_strategy,
                &self.receiver_idle_strategy_init_args,
            ),
            LoopKind::Resources => (
                &self.native_resource_agent_idle_strategy,
                &self.native_resource_agent_idle_strategy_init_args,
            ),
            LoopKind::Network => (
                &self.shared_network_idle_strategy,
                &self.shared_network_idle_strategy_init_args,
            ),
            LoopKind::Shared => (
                &self.shared_idle_strategy,
                &self.shared_idle_strategy_init_args,
            ),
        };
        let arguments = Some(arguments.as_str()).filter(|arguments| !arguments.is_empty());
        let mut spec = IdleStrategySpec::parse(name, arguments)
            .map_err(|error| ConfigurationError(error.to_string()))?;
        if let IdleStrategySpec::Backoff {
            max_idle_park_ns,
            busy_yields,
            ..
        } = &mut spec
        {
            *max_idle_park_ns = self.max_idle_park_ns;
            if arguments.is_none() {
                *busy_yields = BUSY_YIELDS;
            }
        }
        Ok(spec)
    }

    /// Takes over every variable of `sources` that names a setting; answers the warnings to show.
    pub fn apply(&mut self, sources: &Sources) -> Vec<String> {
        SETTINGS
            .iter()
            .filter_map(|setting| {
                sources
                    .get(setting.variable)
                    .and_then(|text| setting.read(self, text))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy_yields(arguments: &str) -> u64 {
        let context = Context {
            shared_idle_strategy_init_args: arguments.into(),
            ..Context::default()
        };
        match context.idle_strategy(LoopKind::Shared).unwrap() {
            IdleStrategySpec::Backoff { busy_yields, .. } => busy_yields,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_loop_under_load_yields_longer_unless_its_arguments_say_how_often() {
        assert_eq!(busy_yields(""), BUSY_YIELDS);
        assert_eq!(busy_yields("10-20-1us-1ms"), 20);
    }
}
