//! Counters: the records of both sections, and the keys of the driver's counters.

use crate::declare::layout;
use crate::{I32, I64};

layout! {
    /// A counter in the values section.
    pub struct CounterValueLayout: 128 {
        /// The value.
        pub value: I64 = 0,
        /// Registration id of the resource for which the counter was created.
        pub registration_id: I64 = 8,
        /// The client that owns the counter.
        pub owner_id: I64 = 16,
        /// Id of the object to which the counter refers.
        pub reference_id: I64 = 24,
        reserved: [u8; 96] = 32,
    }

    /// A counter in the metadata section.
    pub struct CounterMetadataLayout: 512 {
        /// 0: never used, 1: allocated, -1: freed.
        pub state: I32 = 0,
        /// Type id of the counter.
        pub type_id: I32 = 4,
        /// Epoch milliseconds from which the id may be used again.
        pub free_for_reuse_deadline_ms: I64 = 8,
        /// Key of the counter; its layout depends on the type.
        pub key: [u8; 112] = 16,
        /// Length of the label in bytes.
        pub label_length: I32 = 128,
        /// Label of the counter.
        pub label: [u8; 380] = 132,
    }

    /// Key of the counters of a stream.
    pub struct StreamKeyLayout: 112 {
        /// Registration id of the publication, subscription or image.
        pub registration_id: I64 = 0,
        /// Session id of the stream.
        pub session_id: I32 = 8,
        /// Stream id.
        pub stream_id: I32 = 12,
        /// Length of the channel in bytes.
        pub channel_length: I32 = 16,
        /// The beginning of the channel.
        pub channel: [u8; 92] = 20,
    }

    /// Key of the counters of a channel.
    pub struct ChannelKeyLayout: 112 {
        /// Length of the channel in bytes.
        pub channel_length: I32 = 0,
        /// The beginning of the channel.
        pub channel: [u8; 108] = 4,
    }

    /// Key of the counter of a bound address.
    pub struct LocalAddressKeyLayout: 112 {
        /// Id of the counter with the channel's status.
        pub channel_status_id: I32 = 0,
        /// Length of the address in bytes.
        pub address_length: I32 = 4,
        /// The address.
        pub address: [u8; 103] = 8,
        reserved: u8 = 111,
    }

    /// Key of the counter with a client's heartbeat.
    pub struct HeartbeatKeyLayout: 112 {
        /// Client id.
        pub client_id: I64 = 0,
        reserved: [u8; 104] = 8,
    }
}
