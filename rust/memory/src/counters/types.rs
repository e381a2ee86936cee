//! Types of counters: their ids and what their values mean (`docs/spec/01-memory-layouts.md`, section 7).
//!
//! Each type is declared once, in this file. Tools, the exporter of metrics and `docs/reference/counters.md` take name,
//! kind, unit and description from here. Applications use ids from 1000 on.

use super::meaning::CounterKind::{self, Counter, Gauge, Position, State, Timestamp};
use super::meaning::CounterUnit::{self, Bytes, Milliseconds, Nanoseconds, Number};
use super::meaning::KeyLayout::{self, Channel, LocalAddress, Other, Recording, Stream};

/// Channel status: being set up.
pub const CHANNEL_INITIALIZING: i64 = 0;
/// Channel status: set-up failed.
pub const CHANNEL_ERRORED: i64 = -1;
/// Channel status: in use.
pub const CHANNEL_ACTIVE: i64 = 1;
/// Channel status: being closed.
pub const CHANNEL_CLOSING: i64 = 2;

/// [System counters](super::system). The counter id says which one.
pub const SYSTEM: i32 = 0;

/// A type of counters.
#[derive(Clone, Copy, Debug)]
pub struct CounterType {
    /// Type id.
    pub id: i32,
    /// Name of the constant, in upper case.
    pub(super) constant: &'static str,
    /// Kind of the values.
    pub kind: CounterKind,
    /// Unit of the values.
    pub unit: CounterUnit,
    /// Layout of the keys.
    pub key: KeyLayout,
    /// Description, in one line.
    pub help: &'static str,
}

macro_rules! counter_types {
    ($(#[doc = $help:literal] $name:ident = $id:literal, $kind:ident $unit:ident $key:ident;)*) => {
        $(#[doc = $help] pub const $name: i32 = $id;)*

        /// All types except [`SYSTEM`], in the order of their ids.
        pub const ALL: &[CounterType] = &[$(CounterType {
            id: $id,
            constant: stringify!($name),
            kind: $kind,
            unit: $unit,
            key: $key,
            help: $help,
        }),*];
    };
}

counter_types! {
    /// Position up to which publishers may append.
    PUBLISHER_LIMIT = 1, Position Bytes Stream;
    /// Position up to which a sender has sent.
    SENDER_POSITION = 2, Position Bytes Stream;
    /// Highest position up to which an image has received data.
    RECEIVER_HWM = 3, Position Bytes Stream;
    /// Position up to which a subscriber has consumed.
    SUBSCRIBER_POSITION = 4, Position Bytes Stream;
    /// Position up to which an image is without gaps.
    RECEIVER_POSITION = 5, Position Bytes Stream;
    /// Status of a channel that sends: -1 errored, 0 initializing, 1 active, 2 closing.
    SEND_CHANNEL_STATUS = 6, State Number Channel;
    /// Status of a channel that receives: -1 errored, 0 initializing, 1 active, 2 closing.
    RECEIVE_CHANNEL_STATUS = 7, State Number Channel;
    /// Position up to which a sender may send.
    SENDER_LIMIT = 9, Position Bytes Stream;
    /// Indicator of an image's congestion control. The label says which one.
    PER_IMAGE_INDICATOR = 10, Gauge Number Stream;
    /// Time of a client's last heartbeat.
    CLIENT_HEARTBEAT = 11, Timestamp Milliseconds Other;
    /// Position up to which publishers have appended.
    PUBLISHER_POSITION = 12, Position Bytes Stream;
    /// Times that a sender was at its limit although there was data to send.
    SENDER_BACK_PRESSURE = 13, Counter Number Stream;
    /// Status of a bound address: -1 errored, 0 initializing, 1 active, 2 closing.
    LOCAL_SOCKET_ADDRESS = 14, State Number LocalAddress;
    /// Neighbors of the name resolver.
    RESOLVER_NEIGHBORS = 15, Gauge Number Other;
    /// Cache entries of the name resolver.
    RESOLVER_CACHE_ENTRIES = 16, Gauge Number Other;
    /// Receivers that a flow control strategy tracks.
    FLOW_CONTROL_RECEIVERS = 17, Gauge Number Stream;
    /// Destinations of a channel.
    MDC_DESTINATIONS = 18, Gauge Number Channel;
    /// NAKs that a sender has received.
    SENDER_NAKS_RECEIVED = 19, Counter Number Stream;
    /// NAKs that an image has sent.
    RECEIVER_NAKS_SENT = 20, Counter Number Stream;
    /// A bootstrap neighbor of the name resolver. The label has its name and address.
    BOOTSTRAP_NEIGHBOR = 21, State Number Other;
    /// Position up to which a recording is written.
    ARCHIVE_RECORDING_POSITION = 100, Position Bytes Recording;
    /// Errors of an archive.
    ARCHIVE_ERRORS = 101, Counter Number Other;
    /// Open control sessions of an archive.
    ARCHIVE_CONTROL_SESSIONS = 102, Gauge Number Other;
    /// Longest duty cycle of an archive's agent.
    ARCHIVE_MAX_CYCLE_TIME = 103, Gauge Nanoseconds Other;
    /// Duty cycles of an archive's agent that took longer than the threshold.
    ARCHIVE_CYCLE_TIME_EXCEEDED = 104, Counter Number Other;
    /// Longest write of an archive's recorder.
    ARCHIVE_RECORDER_MAX_WRITE_TIME = 105, Gauge Nanoseconds Other;
    /// Bytes that an archive's recorder has written.
    ARCHIVE_RECORDER_WRITE_BYTES = 106, Counter Bytes Other;
    /// Time that an archive's recorder has spent on writing.
    ARCHIVE_RECORDER_WRITE_TIME = 107, Counter Nanoseconds Other;
    /// Longest read of an archive's replayer.
    ARCHIVE_REPLAYER_MAX_READ_TIME = 108, Gauge Nanoseconds Other;
    /// Bytes that an archive's replayer has read.
    ARCHIVE_REPLAYER_READ_BYTES = 109, Counter Bytes Other;
    /// Time that an archive's replayer has spent on reading.
    ARCHIVE_REPLAYER_READ_TIME = 110, Counter Nanoseconds Other;
    /// Active recordings.
    ARCHIVE_RECORDING_SESSIONS = 111, Gauge Number Other;
    /// Active replays.
    ARCHIVE_REPLAY_SESSIONS = 112, Gauge Number Other;
    /// A control session of an archive. The value is its id.
    ARCHIVE_CONTROL_SESSION = 113, State Number Other;
    /// Code of the state of a persistent subscription.
    PERSISTENT_SUBSCRIPTION_STATE = 114, State Number Other;
    /// Distance of a persistent subscription from the live stream.
    PERSISTENT_SUBSCRIPTION_JOIN_DIFFERENCE = 115, Gauge Bytes Other;
    /// Times that a persistent subscription has left the live stream.
    PERSISTENT_SUBSCRIPTION_LIVE_LEFT = 116, Counter Number Other;
    /// Times that a persistent subscription has joined the live stream.
    PERSISTENT_SUBSCRIPTION_LIVE_JOINED = 117, Counter Number Other;
    /// Toggle of an entry of the CSV name resolver.
    NAME_ENTRY = 2001, State Number Other;
    // Type ids of this project. They are far above the type ids of Aeron.
    /// Counter of a deep check of health, which is freed at once.
    HEALTH_PROBE = 20_001, State Number Other;
    /// Bytes of recordings that retention has deleted.
    ARCHIVE_RETENTION_FREED_BYTES = 20_101, Counter Bytes Other;
    /// Segments that retention has deleted.
    ARCHIVE_RETENTION_FREED_SEGMENTS = 20_102, Counter Number Other;
    /// Named readers that have expired.
    ARCHIVE_RETENTION_EXPIRED_READERS = 20_103, Counter Number Other;
    /// Bytes of valid frames that scrubbing has read.
    ARCHIVE_SCRUB_CHECKED_BYTES = 20_104, Counter Bytes Other;
    /// Damaged frames that scrubbing has found.
    ARCHIVE_SCRUB_FINDINGS = 20_105, Counter Number Other;
    /// Segments that were copied to object storage and read back.
    ARCHIVE_OBJECTS_COPIED_SEGMENTS = 20_106, Counter Number Other;
    /// Bytes of local files that were deleted after they were copied to object storage.
    ARCHIVE_OBJECTS_FREED_BYTES = 20_107, Counter Bytes Other;
    /// Bytes that were fetched from object storage for replays.
    ARCHIVE_OBJECTS_FETCHED_BYTES = 20_108, Counter Bytes Other;
    /// Failed copies to object storage and fetches from it.
    ARCHIVE_OBJECTS_FAILURES = 20_109, Counter Number Other;
    /// Connect requests that an archive dropped because of its limits.
    ARCHIVE_CONNECTS_DROPPED = 20_110, Counter Number Other;
    /// Images that an archive does not read, because their recordings have failed.
    ARCHIVE_BLOCKED_IMAGES = 20_111, Gauge Number Other;
    /// Bytes that an archive read and did not record, because their recordings have failed.
    ARCHIVE_LOST_BYTES = 20_112, Counter Bytes Other;
}

/// Names of the types of Aeron Cluster, by type id. This project has no cluster. Tools show these counters of others by
/// their names.
pub const CLUSTER: &[(i32, &str)] = &[
    (200, "cluster_consensus_module_state"),
    (201, "cluster_node_role"),
    (202, "cluster_control_toggle"),
    (203, "cluster_commit_position"),
    (204, "cluster_recovery_state"),
    (205, "cluster_snapshot_counter"),
    (207, "cluster_election_state"),
    (208, "cluster_backup_state"),
    (209, "cluster_backup_live_log_position"),
    (210, "cluster_backup_query_deadline"),
    (211, "cluster_backup_error_count"),
    (212, "cluster_consensus_module_error_count"),
    (213, "cluster_client_timeout_count"),
    (214, "cluster_invalid_request_count"),
    (215, "cluster_clustered_service_error_count"),
    (216, "cluster_max_cycle_time"),
    (217, "cluster_cycle_time_threshold_exceeded"),
    (218, "cluster_clustered_service_max_cycle_time"),
    (
        219,
        "cluster_clustered_service_cycle_time_threshold_exceeded",
    ),
    (220, "cluster_standby_state"),
    (221, "cluster_standby_error_count"),
    (222, "cluster_standby_heartbeat_response_count"),
    (223, "cluster_standby_control_toggle"),
    (224, "transition_module_state"),
    (226, "transition_module_error_count"),
    (227, "cluster_standby_max_cycle_time"),
    (228, "cluster_standby_cycle_time_threshold_exceeded"),
    (229, "transition_module_max_cycle_time"),
    (230, "transition_module_cycle_time_threshold_exceeded"),
    (231, "cluster_standby_source_member_id"),
    (232, "cluster_standby_snapshot_counter"),
    (233, "node_control_toggle"),
    (234, "cluster_total_max_snapshot_duration"),
    (235, "cluster_total_snapshot_duration_threshold_exceeded"),
    (236, "clustered_service_max_snapshot_duration"),
    (
        237,
        "clustered_service_snapshot_duration_threshold_exceeded",
    ),
    (238, "cluster_election_count"),
    (239, "cluster_leadership_term_id"),
    (240, "cluster_backup_snapshot_retrieve_count"),
    (241, "cluster_session"),
];
