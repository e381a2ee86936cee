//! Commands of clients to the driver: the fields before the first text. A text is an i32 length and its bytes; the next
//! text begins at the next multiple of 4.

use crate::declare::layout;
use crate::{I32, I64, U64};

layout! {
    /// Beginning of every command. A keepalive or a close has no further fields. In a request for termination, the
    /// token follows.
    pub struct ClientCommandLayout: 16 {
        /// Client id.
        pub client_id: I64 = 0,
        /// Correlation id of the command.
        pub correlation_id: I64 = 8,
    }

    /// A command that removes the resource with a registration id.
    pub struct RemovalLayout: 24 {
        /// Client id.
        pub client_id: I64 = 0,
        /// Correlation id of the command.
        pub correlation_id: I64 = 8,
        /// Correlation id of the command that added the resource.
        pub registration_id: I64 = 16,
    }

    /// Command to remove a publication. Older clients send only the first 24 bytes.
    pub struct RemovePublicationLayout: 32 {
        /// Client, correlation id and registration id.
        pub removal: RemovalLayout = 0,
        /// Bit 0: end the stream at once.
        pub flags: U64 = 24,
    }

    /// Command to add a shared or exclusive publication; the channel follows.
    pub struct AddPublicationLayout: 20 {
        /// Client id.
        pub client_id: I64 = 0,
        /// Correlation id of the command.
        pub correlation_id: I64 = 8,
        /// Stream id.
        pub stream_id: I32 = 16,
    }

    /// Command to add a subscription; the channel follows.
    pub struct AddSubscriptionLayout: 28 {
        /// Client id.
        pub client_id: I64 = 0,
        /// Correlation id of the command.
        pub correlation_id: I64 = 8,
        /// Not used.
        pub registration_correlation_id: I64 = 16,
        /// Stream id.
        pub stream_id: I32 = 24,
    }

    /// Command to add or remove a destination by its channel, which follows.
    pub struct DestinationLayout: 24 {
        /// Client id.
        pub client_id: I64 = 0,
        /// Correlation id of the command.
        pub correlation_id: I64 = 8,
        /// Registration id of the publication or subscription.
        pub registration_correlation_id: I64 = 16,
    }

    /// Command to remove a destination by its registration id.
    pub struct RemoveDestinationByIdLayout: 32 {
        /// Client id.
        pub client_id: I64 = 0,
        /// Correlation id of the command.
        pub correlation_id: I64 = 8,
        /// Registration id of the publication.
        pub resource_registration_id: I64 = 16,
        /// Registration id of the destination.
        pub destination_registration_id: I64 = 24,
    }

    /// Command to add a counter of the client; key and label follow.
    pub struct AddCounterLayout: 20 {
        /// Client id.
        pub client_id: I64 = 0,
        /// Correlation id of the command.
        pub correlation_id: I64 = 8,
        /// Type id of the counter.
        pub type_id: I32 = 16,
    }

    /// Command to add a counter that outlives the client; key and label follow.
    pub struct AddStaticCounterLayout: 28 {
        /// Client id.
        pub client_id: I64 = 0,
        /// Correlation id of the command.
        pub correlation_id: I64 = 8,
        /// Registration id that the client chooses.
        pub registration_id: I64 = 16,
        /// Type id of the counter.
        pub type_id: I32 = 24,
    }

    /// Command to reject an image; the reason follows.
    pub struct RejectImageLayout: 32 {
        /// Client id.
        pub client_id: I64 = 0,
        /// Correlation id of the command.
        pub correlation_id: I64 = 8,
        /// Correlation id of the image.
        pub image_correlation_id: I64 = 16,
        /// Position of the image, in bytes.
        pub position: I64 = 24,
    }

    /// Request for a session id that no publication of a stream uses.
    pub struct NextSessionIdLayout: 20 {
        /// Client id.
        pub client_id: I64 = 0,
        /// Correlation id of the command.
        pub correlation_id: I64 = 8,
        /// Stream id.
        pub stream_id: I32 = 16,
    }
}
