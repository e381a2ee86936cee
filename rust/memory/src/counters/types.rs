//! Type ids of counters (`docs/spec/01-memory-layouts.md`, section 7). Applications use ids from 1000 on.

/// Channel status: being set up.
pub const CHANNEL_INITIALIZING: i64 = 0;
/// Channel status: set-up failed.
pub const CHANNEL_ERRORED: i64 = -1;
/// Channel status: in use.
pub const CHANNEL_ACTIVE: i64 = 1;
/// Channel status: being closed.
pub const CHANNEL_CLOSING: i64 = 2;

/// [System counters](super::system).
pub const SYSTEM: i32 = 0;
/// Limit up to which publishers may append.
pub const PUBLISHER_LIMIT: i32 = 1;
/// Position up to which a sender has sent.
pub const SENDER_POSITION: i32 = 2;
/// Highest position up to which an image has received data.
pub const RECEIVER_HWM: i32 = 3;
/// Position up to which a subscriber has consumed.
pub const SUBSCRIBER_POSITION: i32 = 4;
/// Position up to which an image is without gaps.
pub const RECEIVER_POSITION: i32 = 5;
/// Status of a send channel endpoint.
pub const SEND_CHANNEL_STATUS: i32 = 6;
/// Status of a receive channel endpoint.
pub const RECEIVE_CHANNEL_STATUS: i32 = 7;
/// Limit up to which a sender may send.
pub const SENDER_LIMIT: i32 = 9;
/// Indicators of an image's congestion control.
pub const PER_IMAGE_INDICATOR: i32 = 10;
/// Time of a client's last heartbeat, in epoch milliseconds.
pub const CLIENT_HEARTBEAT: i32 = 11;
/// Position up to which publishers have appended.
pub const PUBLISHER_POSITION: i32 = 12;
/// Number of back-pressure events of a sender.
pub const SENDER_BACK_PRESSURE: i32 = 13;
/// Status of a bound address.
pub const LOCAL_SOCKET_ADDRESS: i32 = 14;
/// Number of neighbours of the name resolver.
pub const RESOLVER_NEIGHBORS: i32 = 15;
/// Number of cache entries of the name resolver.
pub const RESOLVER_CACHE_ENTRIES: i32 = 16;
/// Number of receivers that a flow control strategy tracks.
pub const FLOW_CONTROL_RECEIVERS: i32 = 17;
/// Number of destinations of a channel.
pub const MDC_DESTINATIONS: i32 = 18;
/// Number of NAKs that a sender received.
pub const SENDER_NAKS_RECEIVED: i32 = 19;
/// Number of NAKs that an image sent.
pub const RECEIVER_NAKS_SENT: i32 = 20;
/// A bootstrap neighbour of the name resolver.
pub const BOOTSTRAP_NEIGHBOR: i32 = 21;
/// Position up to which a recording is written.
pub const ARCHIVE_RECORDING_POSITION: i32 = 100;
/// Number of errors of an archive.
pub const ARCHIVE_ERRORS: i32 = 101;
/// Number of control sessions of an archive.
pub const ARCHIVE_CONTROL_SESSIONS: i32 = 102;
/// Longest duty cycle of an archive agent.
pub const ARCHIVE_MAX_CYCLE_TIME: i32 = 103;
/// Number of duty cycles of an archive agent that exceeded the threshold.
pub const ARCHIVE_CYCLE_TIME_EXCEEDED: i32 = 104;
/// Longest write of an archive's recorder.
pub const ARCHIVE_RECORDER_MAX_WRITE_TIME: i32 = 105;
/// Number of bytes that an archive's recorder has written.
pub const ARCHIVE_RECORDER_WRITE_BYTES: i32 = 106;
/// Total time that an archive's recorder spent on writing.
pub const ARCHIVE_RECORDER_WRITE_TIME: i32 = 107;
/// Longest read of an archive's replayer.
pub const ARCHIVE_REPLAYER_MAX_READ_TIME: i32 = 108;
/// Number of bytes that an archive's replayer has read.
pub const ARCHIVE_REPLAYER_READ_BYTES: i32 = 109;
/// Total time that an archive's replayer spent on reading.
pub const ARCHIVE_REPLAYER_READ_TIME: i32 = 110;
/// Number of active recordings.
pub const ARCHIVE_RECORDING_SESSIONS: i32 = 111;
/// Number of active replays.
pub const ARCHIVE_REPLAY_SESSIONS: i32 = 112;
/// One control session of an archive.
pub const ARCHIVE_CONTROL_SESSION: i32 = 113;
/// State of a persistent subscription.
pub const PERSISTENT_SUBSCRIPTION_STATE: i32 = 114;
/// Distance of a persistent subscription from the live stream, in bytes.
pub const PERSISTENT_SUBSCRIPTION_JOIN_DIFFERENCE: i32 = 115;
/// Number of times that a persistent subscription left the live stream.
pub const PERSISTENT_SUBSCRIPTION_LIVE_LEFT: i32 = 116;
/// Number of times that a persistent subscription joined the live stream.
pub const PERSISTENT_SUBSCRIPTION_LIVE_JOINED: i32 = 117;
/// Toggle of an entry of the CSV name resolver.
pub const NAME_ENTRY: i32 = 2001;
