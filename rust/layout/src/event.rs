//! Events of the driver to its clients: the fields before the first text. A text is an i32 length and its bytes; the
//! next text begins at the next multiple of 4.

use crate::declare::layout;
use crate::{I32, I64, U16};

layout! {
    /// Refusal of a command; the message follows.
    pub struct ErrorLayout: 12 {
        /// Correlation id of the refused command.
        pub offending_command_correlation_id: I64 = 0,
        /// Code of the error.
        pub error_code: I32 = 8,
    }

    /// A publication is ready; the name of its log file follows.
    pub struct PublicationReadyLayout: 32 {
        /// Correlation id of the command.
        pub correlation_id: I64 = 0,
        /// Original registration id of the publication.
        pub registration_id: I64 = 8,
        /// Session id of the publication.
        pub session_id: I32 = 16,
        /// Stream id of the publication.
        pub stream_id: I32 = 20,
        /// Id of the counter with the publication's limit.
        pub publication_limit_counter_id: I32 = 24,
        /// Id of the counter with the channel's status.
        pub channel_status_indicator_id: I32 = 28,
    }

    /// A subscription is ready.
    pub struct SubscriptionReadyLayout: 12 {
        /// Correlation id of the command.
        pub correlation_id: I64 = 0,
        /// Id of the counter with the channel's status.
        pub channel_status_indicator_id: I32 = 8,
    }

    /// A subscription has a new image; the name of the image's log file and the source follow.
    pub struct AvailableImageLayout: 28 {
        /// Correlation id of the image.
        pub correlation_id: I64 = 0,
        /// Session id of the stream.
        pub session_id: I32 = 8,
        /// Stream id.
        pub stream_id: I32 = 12,
        /// Registration id of the subscription.
        pub subscription_registration_id: I64 = 16,
        /// Id of the counter with the subscriber's position.
        pub subscriber_position_id: I32 = 24,
    }

    /// A subscription lost an image; the channel follows.
    pub struct UnavailableImageLayout: 20 {
        /// Correlation id of the image.
        pub correlation_id: I64 = 0,
        /// Registration id of the subscription.
        pub subscription_registration_id: I64 = 8,
        /// Stream id.
        pub stream_id: I32 = 16,
    }

    /// Success of a command that adds no publication, subscription or counter.
    pub struct OperationSuccessLayout: 8 {
        /// Correlation id of the command.
        pub correlation_id: I64 = 0,
    }

    /// A counter was added, found or removed.
    pub struct CounterEventLayout: 12 {
        /// Correlation id of the command.
        pub correlation_id: I64 = 0,
        /// Id of the counter.
        pub counter_id: I32 = 8,
    }

    /// The driver closed a client because its heartbeat was too old.
    pub struct ClientTimeoutLayout: 8 {
        /// Client id.
        pub client_id: I64 = 0,
    }

    /// A session id that no publication of a stream uses.
    pub struct NextAvailableSessionIdLayout: 12 {
        /// Correlation id of the command.
        pub correlation_id: I64 = 0,
        /// The session id.
        pub next_session_id: I32 = 8,
    }

    /// Address of a socket.
    pub struct SocketAddressLayout: 20 {
        /// 1: IPv4, 2: IPv6, 0: no address.
        pub address_type: U16 = 0,
        /// Port, little-endian.
        pub port: U16 = 2,
        /// Address in network order; IPv4 in the first 4 bytes.
        pub address: [u8; 16] = 4,
    }

    /// A receiver reported an error to a publication; the message follows.
    pub struct PublicationErrorLayout: 64 {
        /// Original registration id of the publication.
        pub registration_id: I64 = 0,
        /// Registration id of the destination.
        pub destination_registration_id: I64 = 8,
        /// Session id of the publication.
        pub session_id: I32 = 16,
        /// Stream id of the publication.
        pub stream_id: I32 = 20,
        /// Receiver id.
        pub receiver_id: I64 = 24,
        /// Group tag of the receiver.
        pub group_tag: I64 = 32,
        /// Source of the report.
        pub source_address: SocketAddressLayout = 40,
        /// Code of the error.
        pub error_code: I32 = 60,
    }
}
