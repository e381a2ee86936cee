//! The configuration of a driver: each setting with its field, default, environment variable and limits.
//!
//! Values come first from the defaults, then from the environment and properties files ([`Context::apply`]), then from
//! code that sets fields directly. A number in a text is clamped to the limits. A field outside of the limits is an
//! error of [`Context::validate`]. Lengths are in bytes.

mod field;
mod modes;
mod ports;
mod print;
mod validate;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use aeron_agent::IdleStrategySpec;
pub use aeron_agent::setting::{Grammar, Setting, Value};
pub use aeron_agent::sources::{Sources, SourcesError};
use aeron_protocol::uri::{ReceiverGroup, UntetheredTimeouts};
pub(crate) use modes::LoopKind;
pub use modes::{TerminationValidator, ThreadNaming, ThreadingMode};
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
/// Number of times that a loop under load yields before the loop parks. All these yields take about 80 us on a free
/// processor. In that time, a publisher of long messages fills half a window.
const BUSY_YIELDS: u64 = 200;

aeron_agent::settings! {
    /// The complete configuration of a driver.
    #[derive(Clone, Debug, PartialEq)]
    Context,
    /// All settings with an environment variable, in the order in which they are printed.
    SETTINGS;

    /// Directory of the driver's files.
    dir: PathBuf = aeron_memory::directory::default_directory(), "aeron.dir" Text;
    /// Delete the files of an earlier driver without saving its errors, even if its CnC file is damaged. An active
    /// driver's files are never deleted.
    dir_delete_on_start: bool = false, "aeron.dir.delete.on.start" Boolean;
    /// Remove the driver's files and the directory when the driver closes.
    dir_delete_on_shutdown: bool = false, "aeron.dir.delete.on.shutdown" Boolean;
    /// Warn on stderr when the directory exists.
    dir_warn_if_exists: bool = false, "aeron.dir.warn.if.exists" Boolean;
    /// Distribution of the agents over threads.
    threading_mode: ThreadingMode = ThreadingMode::Dedicated, "aeron.threading.mode" Text;
    /// Names of the threads: `classic` as in Aeron 1.52, or `new` as in Aeron 1.53.
    thread_naming: ThreadNaming = ThreadNaming::Classic, "aeron.thread.naming" Text;
    /// Age of the driver's heartbeat, in milliseconds, after which the driver counts as dead.
    driver_timeout_ms: i64 = 10_000, "aeron.driver.timeout" LeadingDigits(0, MAX);
    /// Print all settings to stdout at the start.
    print_configuration: bool = false, "aeron.print.configuration" Boolean;
    /// Validator of termination commands: `allow` or `deny`, or a class name such as
    /// `io.aeron.driver.DefaultAllowTerminationValidator`.
    termination_validator: TerminationValidator = TerminationValidator::Deny, "aeron.driver.termination.validator" Text;
    /// Has no effect.
    enable_experimental_features: bool = false, "aeron.enable.experimental.features" Boolean;
    /// Check the free space before a log file is created.
    perform_storage_checks: bool = true, "aeron.perform.storage.checks" Boolean;
    /// Warn in the error log when less space than this is free.
    low_file_store_warning_threshold: u64 = 160 * MIB as u64, "aeron.low.file.store.warning.threshold" Size(0, MAX);
    /// Lengths of files are rounded up to a multiple of this page size. It is a power of two, at most 1 GiB.
    file_page_size: usize = 4096, "aeron.file.page.size" Size(4 * KIB, MAX_I32);

    /// Length of the ring buffer for the clients' commands: a power of two + 768.
    to_driver_buffer_length: usize = MIB as usize + 768, "aeron.conductor.buffer.length" Size(MIB + 768, MAX_I32);
    /// Length of the broadcast buffer for events to clients: a power of two + 128.
    to_clients_buffer_length: usize = MIB as usize + 128, "aeron.clients.buffer.length" Size(MIB + 128, MAX_I32);
    /// Length of the counters' values; their metadata needs four times as much in addition.
    counters_values_buffer_length: usize = 8 * MIB as usize, "aeron.counters.buffer.length" Size(MIB, 500 * MIB);
    /// Length of the distinct error log.
    error_buffer_length: usize = 4 * MIB as usize, "aeron.error.buffer.length" Size(4 * MIB, MAX_I32);
    /// Length of the loss report file.
    loss_report_buffer_length: usize = MIB as usize, "aeron.loss.report.buffer.length" Size(KIB, MAX_I32);
    /// Term length of network publications.
    term_buffer_length: usize = 16 * MIB as usize, "aeron.term.buffer.length" Size(KIB, MAX_I32);
    /// Term length of IPC publications.
    ipc_term_buffer_length: usize = 64 * MIB as usize, "aeron.ipc.term.buffer.length" Size(KIB, MAX_I32);
    /// Create sparse log files.
    term_buffer_sparse_file: bool = true, "aeron.term.buffer.sparse.file" Boolean;
    /// Maximum length of the datagrams of network publications.
    mtu_length: usize = 1408, "aeron.mtu.length" Size(32, 65504);
    /// Maximum length of the frames of IPC publications.
    ipc_mtu_length: usize = 1408, "aeron.ipc.mtu.length" Size(32, 65504);
    /// Maximum distance of network publishers from their slowest consumer; 0 stands for half a term.
    publication_window_length: usize = 0, "aeron.publication.term.window.length" Size(0, GIB);
    /// Maximum distance of IPC publishers from their slowest consumer; 0 stands for half a term.
    ipc_publication_window_length: usize = 0, "aeron.ipc.publication.term.window.length" Size(0, GIB);
    /// Initial window of a receiver.
    initial_window_length: usize = 128 * KIB as usize, "aeron.rcv.initial.window.length" Size(256, MAX_I32);
    /// Length of the sockets' receive buffers; 0 stands for the system's default.
    socket_rcvbuf: usize = 128 * KIB as usize, "aeron.socket.so.rcvbuf" Size(0, MAX_I32);
    /// Length of the sockets' send buffers; 0 stands for the system's default.
    socket_sndbuf: usize = 0, "aeron.socket.so.sndbuf" Size(0, MAX_I32);
    /// Time to live of multicast datagrams; 0 stands for the system's default.
    multicast_ttl: i32 = 0, "aeron.socket.multicast.ttl" LeadingDigits(0, 255);

    /// Time without a keepalive after which a client counts as dead.
    client_liveness_timeout_ns: i64 = 10 * SECOND, "aeron.client.liveness.timeout" Duration(US, MAX);
    /// Interval of the checks for all timeouts.
    timer_interval_ns: i64 = SECOND, "aeron.timer.interval" Duration(US, MAX);
    /// Time after which the driver skips an unfinished claim that blocks a publication.
    publication_unblock_timeout_ns: i64 = 15 * SECOND, "aeron.publication.unblock.timeout" Duration(US, MAX);
    /// Time without a status message after which a network publication is not connected.
    publication_connection_timeout_ns: i64 = 5 * SECOND, "aeron.publication.connection.timeout" Duration(US, MAX);
    /// Time for which a drained network publication is kept.
    publication_linger_timeout_ns: i64 = 5 * SECOND, "aeron.publication.linger.timeout" Duration(US, MAX);
    /// Time without data or heartbeats after which an image ends. Also the time for which a rejected IPC image is
    /// unavailable.
    image_liveness_timeout_ns: i64 = 10 * SECOND, "aeron.image.liveness.timeout" Duration(US, MAX);
    /// Maximum time between two status messages.
    status_message_timeout_ns: i64 = 200 * MS, "aeron.rcv.status.message.timeout" Duration(US, MAX);
    /// Time during which the id of a freed counter is not reused.
    counter_free_to_reuse_timeout_ns: i64 = SECOND, "aeron.counters.free.to.reuse.timeout" Duration(0, MAX);
    /// Time that a slow untethered subscriber may hold back the publisher.
    untethered_window_limit_timeout_ns: i64 = 5 * SECOND, "aeron.untethered.window.limit.timeout" Duration(0, MAX);
    /// Time that an unlinked untethered subscriber may continue to read; `None` stands for the window limit timeout.
    untethered_linger_timeout_ns: Option<i64> = None, "aeron.untethered.linger.timeout" Duration(0, MAX);
    /// Time that an unlinked untethered subscriber rests before it rejoins.
    untethered_resting_timeout_ns: i64 = 10 * SECOND, "aeron.untethered.resting.timeout" Duration(0, MAX);
    /// Interval of the checks for changed addresses; 0 turns them off.
    re_resolution_check_interval_ns: i64 = SECOND, "aeron.driver.reresolution.check.interval" Duration(0, MAX);
    /// Duty cycles of the conductor that take longer than this time are counted.
    conductor_cycle_threshold_ns: i64 = 100 * MS, "aeron.driver.conductor.cycle.threshold" Duration(0, MAX);
    /// Duty cycles of the sender that take longer than this time are counted.
    sender_cycle_threshold_ns: i64 = 100 * MS, "aeron.driver.sender.cycle.threshold" Duration(0, MAX);
    /// Duty cycles of the receiver that take longer than this time are counted.
    receiver_cycle_threshold_ns: i64 = 100 * MS, "aeron.driver.receiver.cycle.threshold" Duration(0, MAX);
    /// Name resolutions that take longer than this time are counted.
    name_resolver_threshold_ns: i64 = 5 * SECOND, "aeron.driver.name.resolver.threshold" Duration(0, MAX);

    /// Default of the channel's `reliable`.
    reliable_stream: bool = true, "aeron.reliable.stream" Boolean;
    /// Default of the channel's `tether`.
    tether_subscriptions: bool = true, "aeron.tether.subscriptions" Boolean;
    /// Default of the channel's `rejoin`.
    rejoin_stream: bool = true, "aeron.rejoin.stream" Boolean;
    /// Default of the channel's `group`.
    receiver_group_consideration: ReceiverGroup = ReceiverGroup::Infer, "aeron.receiver.group.consideration" Text;
    /// Default of the channel's `ssc`.
    spies_simulate_connection: bool = false, "aeron.spies.simulate.connection" Boolean;
    /// First id of the session ids that the driver never allocates.
    publication_reserved_session_id_low: i32 = -1,
        "aeron.publication.reserved.session.id.low" Integer(i32::MIN as i64, MAX_I32);
    /// Last id of the session ids that the driver never allocates.
    publication_reserved_session_id_high: i32 = 1000,
        "aeron.publication.reserved.session.id.high" Integer(i32::MIN as i64, MAX_I32);
    /// Maximum number of sessions for each stream of a receive endpoint.
    stream_session_limit: i32 = i32::MAX, "aeron.driver.stream.session.limit" Integer(1, MAX_I32);
    /// Default of the channel's `max-resend`.
    max_resend: i32 = 16, "aeron.max.resend" Integer(1, 256);
    /// Delay of a unicast retransmit.
    retransmit_unicast_delay_ns: i64 = 0, "aeron.retransmit.unicast.delay" Duration(0, MAX);
    /// Time after a unicast retransmit during which NAKs for the same range are ignored.
    retransmit_unicast_linger_ns: i64 = 10 * MS, "aeron.retransmit.unicast.linger" Duration(US, MAX);
    /// Estimated number of receivers of a multicast stream.
    nak_multicast_group_size: i32 = 10, "aeron.nak.multicast.group.size" LeadingDigits(1, MAX_I32);
    /// Maximum delay of a multicast NAK.
    nak_multicast_max_backoff_ns: i64 = 10 * MS, "aeron.nak.multicast.max.backoff" Duration(US, MAX);
    /// Delay of a unicast NAK.
    nak_unicast_delay_ns: i64 = US, "aeron.nak.unicast.delay" Duration(US, MAX);
    /// Interval between repeated unicast NAKs for the same gap, as a multiple of the NAK's delay.
    nak_unicast_retry_delay_ratio: i64 = 100, "aeron.nak.unicast.retry.delay.ratio" Integer(1, MAX);
    /// Flow control of unicast publications: a short name, or a class name such as
    /// `io.aeron.driver.DefaultUnicastFlowControlSupplier`.
    unicast_flow_control_supplier: String = "unicast_max".into(), "aeron.unicast.flowcontrol.supplier" Text;
    /// Flow control of multicast publications whose channel has no `fc`: `multicast_max`, `multicast_min` or
    /// `multicast_tagged`, or a class name such as `io.aeron.driver.MinMulticastFlowControlSupplier`.
    multicast_flow_control_supplier: String = "multicast_max".into(), "aeron.multicast.flowcontrol.supplier" Text;
    /// Default group tag of tagged flow control.
    flow_control_group_tag: i64 = -1, "aeron.flow.control.group.tag" Integer(i64::MIN, MAX);
    /// Default number of receivers that flow control requires.
    flow_control_group_min_size: i32 = 0, "aeron.flow.control.group.min.size" Integer(0, MAX_I32);
    /// Time without a status message after which flow control removes a receiver.
    flow_control_receiver_timeout_ns: i64 = 5 * SECOND, "aeron.flow.control.receiver.timeout" Duration(0, MAX);
    /// Default of the channel's `gtag`.
    receiver_group_tag: Option<i64> = None, "aeron.receiver.group.tag" Integer(i64::MIN, MAX);
    /// Congestion control of channels without `cc`: `default`, `static` or `cubic`, or a class name such as
    /// `io.aeron.driver.ext.CubicCongestionControlSupplier`.
    congestion_control_supplier: String = "default".into(), "aeron.congestioncontrol.supplier" Text;
    /// Whether cubic congestion control measures the round trip.
    cubic_measure_rtt: bool = false, "aeron.cubiccongestioncontrol.measurertt" Boolean;
    /// Round trip that cubic congestion control assumes before the first measurement.
    cubic_initial_rtt_ns: i64 = 100 * US, "aeron.cubiccongestioncontrol.initialrtt" Duration(0, MAX);
    /// Whether the window of cubic congestion control grows at least as fast as the window of TCP.
    cubic_tcp_mode: bool = false, "aeron.cubiccongestioncontrol.tcpmode" Boolean;

    /// Name resolver: `default`, `driver` or `csv_table`, or the class name `io.aeron.driver.DefaultNameResolver`.
    name_resolver_supplier: String = "default".into(), "aeron.name.resolver.supplier" Text;
    /// Arguments of the name resolver.
    name_resolver_init_args: String = String::new(), "aeron.name.resolver.init.args" Text;
    /// Name under which this driver announces itself to other drivers.
    resolver_name: String = String::new(), "aeron.driver.resolver.name" Text;
    /// Local address for the protocol between name resolvers.
    resolver_interface: String = String::new(), "aeron.driver.resolver.interface" Text;
    /// Bootstrap neighbours of the resolver: `host:port`, separated by commas.
    resolver_bootstrap_neighbor: String = String::new(), "aeron.driver.resolver.bootstrap.neighbor" Text;
    /// Time without an announcement after which a neighbour is removed.
    resolver_neighbor_timeout_ns: i64 = 10 * SECOND, "aeron.driver.resolver.neighbor.timeout" Duration(MS, MAX);
    /// Interval at which this driver announces itself to other drivers.
    resolver_self_resolution_interval_ns: i64 = SECOND,
        "aeron.driver.resolver.self.resolution.interval" Duration(MS, MAX);
    /// Interval at which this driver announces its known neighbours to other drivers.
    resolver_neighbor_resolution_interval_ns: i64 = 2 * SECOND,
        "aeron.driver.resolver.neighbor.resolution.interval" Duration(MS, MAX);
    /// Interval of the resolutions of bootstrap neighbours.
    resolver_bootstrap_neighbor_resolution_interval_ns: i64 = 10 * SECOND,
        "aeron.driver.resolver.bootstrap.neighbor.resolution.interval" Duration(MS, MAX);
    /// Port range for senders without a fixed port, `low high`; `0 0` leaves the choice to the system.
    sender_wildcard_port_range: String = "0 0".into(), "aeron.sender.wildcard.port.range" Text;
    /// Port range for receivers without a fixed port, `low high`; `0 0` leaves the choice to the system.
    receiver_wildcard_port_range: String = "0 0".into(), "aeron.receiver.wildcard.port.range" Text;
    /// Whether the sockets of unicast publications are connected.
    connect_enabled: bool = true, "aeron.driver.connect" Boolean;
    /// Socket layer of the sender and the receiver.
    udp_channel_transport_bindings: String = "default".into(), "aeron.udp.channel.transport.bindings.media" Text;
    /// Socket layer of the name resolver.
    conductor_udp_channel_transport_bindings: String = "default".into(),
        "aeron.conductor.udp.channel.transport.bindings.media" Text;
    /// Interceptors of outgoing datagrams, separated by commas.
    udp_channel_outgoing_interceptors: String = String::new(), "aeron.udp.channel.outgoing.interceptors" Text;
    /// Interceptors of incoming datagrams, separated by commas.
    udp_channel_incoming_interceptors: String = String::new(), "aeron.udp.channel.incoming.interceptors" Text;
    /// Arguments of the interceptor `loss`: `rate=…|seed=…|recv-msg-mask=…`.
    udp_channel_transport_bindings_loss_args: String = String::new(),
        "aeron.udp.channel.transport.bindings.loss.args" Text;
    /// Arguments of the interceptor `fixed-loss`: `term-id=…|term-offset=…|length=…`.
    udp_channel_transport_bindings_fixed_loss_args: String = String::new(),
        "aeron.udp.channel.transport.bindings.fixed.loss.args" Text;
    /// Arguments of the interceptor `multi-gap-loss`: `term-id=…|gap-radix=…|gap-length=…|total-gaps=…`.
    udp_channel_transport_bindings_multi_gap_loss_args: String = String::new(),
        "aeron.udp.channel.transport.bindings.multi.gap.loss.args" Text;
    /// Let the kernel cut GSO batches into datagrams, if it can.
    udp_gso: bool = true, "aeron.udp.gso" Boolean;
    /// Let the kernel deliver several datagrams in one buffer (GRO), if it can.
    udp_gro: bool = true, "aeron.udp.gro" Boolean;

    /// Idle strategy of the conductor.
    conductor_idle_strategy: String = "backoff".into(), "aeron.conductor.idle.strategy" Text;
    /// Arguments of `conductor_idle_strategy`.
    conductor_idle_strategy_init_args: String = String::new(), "aeron.conductor.idle.strategy.init.args" Text;
    /// Idle strategy of the sender.
    sender_idle_strategy: String = "backoff".into(), "aeron.sender.idle.strategy" Text;
    /// Arguments of `sender_idle_strategy`.
    sender_idle_strategy_init_args: String = String::new(), "aeron.sender.idle.strategy.init.args" Text;
    /// Idle strategy of the receiver.
    receiver_idle_strategy: String = "backoff".into(), "aeron.receiver.idle.strategy" Text;
    /// Arguments of `receiver_idle_strategy`.
    receiver_idle_strategy_init_args: String = String::new(), "aeron.receiver.idle.strategy.init.args" Text;
    /// Idle strategy of the thread that sender and receiver share.
    shared_network_idle_strategy: String = "backoff".into(), "aeron.sharednetwork.idle.strategy" Text;
    /// Arguments of `shared_network_idle_strategy`.
    shared_network_idle_strategy_init_args: String = String::new(), "aeron.sharednetwork.idle.strategy.init.args" Text;
    /// Idle strategy of the thread that all agents share.
    shared_idle_strategy: String = "backoff".into(), "aeron.shared.idle.strategy" Text;
    /// Arguments of `shared_idle_strategy`.
    shared_idle_strategy_init_args: String = String::new(), "aeron.shared.idle.strategy.init.args" Text;
    /// Idle strategy of the native resource agent.
    native_resource_agent_idle_strategy: String = "sleep-ns".into(),
        "aeron.driver.native.resource.agent.idle.strategy" Text;
    /// Arguments of `native_resource_agent_idle_strategy`.
    native_resource_agent_idle_strategy_init_args: String = "1ms".into(),
        "aeron.driver.native.resource.agent.idle.strategy.init.args" Text;
    /// CPU of the conductor's thread; -1 allows any.
    conductor_cpu_affinity: i32 = -1, "aeron.conductor.cpu.affinity" Integer(-1, 255);
    /// CPU of the sender's thread; -1 allows any.
    sender_cpu_affinity: i32 = -1, "aeron.sender.cpu.affinity" Integer(-1, 255);
    /// CPU of the receiver's thread; -1 allows any.
    receiver_cpu_affinity: i32 = -1, "aeron.receiver.cpu.affinity" Integer(-1, 255);
    /// CPU of the native resource agent's thread; -1 allows any.
    native_resource_agent_cpu_affinity: i32 = -1, "aeron.driver.native.resource.agent.cpu.affinity" Integer(-1, 255);
    /// Take the CPUs of the threads from the cpuset of the process.
    cpuset_affinity: bool = false, "aeron.driver.cpuset.affinity" Boolean;
    /// Whether problems with the cpuset prevent the start.
    cpuset_warnings_as_errors: bool = false, "aeron.driver.cpuset.warnings.as.errors" Boolean;
    /// Function of a C library to call at the start of a thread. Not supported: any name is refused.
    agent_on_start_function: String = String::new(), "aeron.agent.on.start.function" Text;
    /// C libraries to load. Not supported: any name is refused.
    dynamic_libraries: String = String::new(), "aeron.driver.dynamic.libraries" Text;
    /// Maximum number of consecutive duty cycles that send without polling for status messages.
    send_to_status_poll_ratio: i32 = 6, "aeron.send.to.status.poll.ratio" LeadingDigits(1, MAX_I32);
    /// Maximum number of datagrams in a receive call.
    receiver_io_vector_capacity: i32 = 4, "aeron.receiver.io.vector.capacity" Integer(1, 16);
    /// Maximum number of datagrams in a send call.
    sender_io_vector_capacity: i32 = 4, "aeron.sender.io.vector.capacity" Integer(1, 16);
    /// Maximum number of datagrams of a publication in a duty cycle.
    network_publication_max_messages_per_send: i32 = 4, "aeron.network.publication.max.messages.per.send" Integer(1, 16);
    /// Maximum time that small messages of a busy publication wait for others to share their datagram; 0 sends them at
    /// once.
    sender_batch_wait_ns: i64 = 20 * US, "aeron.sender.batch.wait" Duration(0, SECOND);
    /// Maximum number of failed removals of log files that are repeated in a duty cycle.
    resource_free_limit: i32 = 1, "aeron.driver.resource.free.limit" Integer(1, MAX_I32);

    {
        /// Longest park in ns of an agent that has been idle for a second, if its idle strategy is backoff.
        ///
        /// This value applies if it is longer than the strategy's own longest park. With the default, an idle
        /// driver needs less CPU time than the C driver. 0 turns the longer park off.
        max_idle_park_ns: u64 = DEFAULT_MAX_IDLE_PARK_NS;
        /// Whether the directory was created for this driver alone. If the process is killed, the next embedded
        /// driver removes the directory.
        is_dir_private: bool = false;
    }
}

impl Context {
    /// Returns the default timeouts of untethered subscribers, for channels that do not set them.
    pub fn untethered_timeouts(&self) -> UntetheredTimeouts {
        UntetheredTimeouts {
            window_limit_timeout_ns: self.untethered_window_limit_timeout_ns,
            linger_timeout_ns: self.untethered_linger_timeout_ns,
            resting_timeout_ns: self.untethered_resting_timeout_ns,
        }
    }

    /// Returns the ports for senders without a fixed port.
    ///
    /// Returns `None` if the range is `0 0` or invalid. The system then chooses the ports.
    pub fn sender_wildcard_ports(&self) -> Option<RangeInclusive<u16>> {
        ports::parse_port_range(&self.sender_wildcard_port_range).unwrap_or_default()
    }

    /// Returns the ports for receivers without a fixed port; `None` if the range is `0 0` or invalid.
    pub fn receiver_wildcard_ports(&self) -> Option<RangeInclusive<u16>> {
        ports::parse_port_range(&self.receiver_wildcard_port_range).unwrap_or_default()
    }

    /// Returns the bootstrap neighbours of the resolver, each as `host:port`.
    pub fn bootstrap_neighbors(&self) -> impl Iterator<Item = &str> {
        self.resolver_bootstrap_neighbor
            .split(',')
            .filter(|neighbor| !neighbor.is_empty())
    }

    /// Returns the idle strategy of a loop.
    ///
    /// A backoff strategy parks for up to `max_idle_park_ns` after a long idle time. It also
    /// yields longer under load, unless its arguments set the number of yields.
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

    /// Returns why a text in `sources` does not mean what it seems to mean, such as `False` for a boolean. [`apply`]
    /// has the effect of the C driver for such a text, with a warning. `is_meant` says which variables to check.
    ///
    /// [`apply`]: Self::apply
    pub fn misread(sources: &Sources, is_meant: impl Fn(&str) -> bool) -> Option<String> {
        SETTINGS.iter().find_map(|setting| {
            let variable = setting.variable();
            let text = is_meant(&variable).then(|| sources.get(&variable));
            field::misread(setting, text??)
        })
    }

    /// Sets every setting that has its variable in `sources`. Returns warnings for the operator.
    pub fn apply(&mut self, sources: &Sources) -> Vec<String> {
        SETTINGS
            .iter()
            .filter_map(|setting| {
                let text = sources.get(&setting.variable())?;
                field::read(setting, self, text)
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
    fn a_loop_under_load_yields_longer_unless_its_arguments_set_the_number_of_yields() {
        assert_eq!(busy_yields(""), BUSY_YIELDS);
        assert_eq!(busy_yields("10-20-1us-1ms"), 20);
    }
}
