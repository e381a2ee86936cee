//! The fields of each event, in their order in the message.

use std::net::SocketAddr;

use aeron_layout::event::{
    AvailableImageLayout, ClientTimeoutLayout, CounterEventLayout, ErrorLayout,
    NextAvailableSessionIdLayout, OperationSuccessLayout, PublicationErrorLayout,
    PublicationReadyLayout, SubscriptionReadyLayout, UnavailableImageLayout,
};

use crate::ErrorCode;
use crate::codec::message;

/// Counter id in an event if there is no such counter. For example, an IPC channel has no status counter.
pub const NO_COUNTER_ID: i32 = -1;

message! {
    /// A command was refused, with the reason.
    pub struct Error<'a>(ErrorLayout) {
        /// Correlation id of the refused command.
        pub offending_command_correlation_id: i64,
        /// Kind of the refusal.
        pub error_code: ErrorCode,
        texts {
            /// Text of the error, for people.
            error_message,
        }
    }
}

message! {
    /// A publication of the client is ready. The event's type id says whether the publication is shared or exclusive.
    pub struct PublicationReady<'a>(PublicationReadyLayout) {
        /// Correlation id of the command.
        pub correlation_id: i64,
        /// Original registration id: for a shared publication, the id of the command that created the publication.
        pub registration_id: i64,
        /// Session id of the publication.
        pub session_id: i32,
        /// Stream id of the publication.
        pub stream_id: i32,
        /// Id of the counter with the position limit of the publication.
        pub publication_limit_counter_id: i32,
        /// Id of the counter with the channel's status, [`NO_COUNTER_ID`] for IPC.
        pub channel_status_indicator_id: i32,
        texts {
            /// Path of the log buffer file.
            log_file_name,
        }
    }
}

message! {
    /// A subscription of the client is ready.
    pub struct SubscriptionReady(SubscriptionReadyLayout) {
        /// Correlation id of the command.
        pub correlation_id: i64,
        /// Id of the counter with the channel's status, [`NO_COUNTER_ID`] for IPC and spies.
        pub channel_status_indicator_id: i32,
    }
}

message! {
    /// A subscription has a new image.
    pub struct AvailableImage<'a>(AvailableImageLayout) {
        /// Correlation id of the image.
        pub correlation_id: i64,
        /// Session id of the stream.
        pub session_id: i32,
        /// Stream id.
        pub stream_id: i32,
        /// Registration id of the subscription.
        pub subscription_registration_id: i64,
        /// Id of the counter with the subscriber's position.
        pub subscriber_position_id: i32,
        texts {
            /// Path of the log buffer file.
            log_file_name,
            /// `aeron:ipc`, or `host:port` of the sender.
            source_identity,
        }
    }
}

message! {
    /// A subscription lost an image.
    pub struct UnavailableImage<'a>(UnavailableImageLayout) {
        /// Correlation id of the image.
        pub correlation_id: i64,
        /// Registration id of the subscription.
        pub subscription_registration_id: i64,
        /// Stream id.
        pub stream_id: i32,
        texts {
            /// Channel of the subscription, for information.
            channel,
        }
    }
}

message! {
    /// A command that adds nothing succeeded.
    pub struct OperationSuccess(OperationSuccessLayout) {
        /// Correlation id of the command.
        pub correlation_id: i64,
    }
}

message! {
    /// A counter of a client was added or freed.
    pub struct CounterUpdate(CounterEventLayout) {
        /// Registration id of the counter; for the heartbeat counter of a client, the client's id.
        pub correlation_id: i64,
        /// Id of the counter.
        pub counter_id: i32,
    }
}

message! {
    /// A static counter was added or found.
    pub struct StaticCounter(CounterEventLayout) {
        /// Correlation id of the command.
        pub correlation_id: i64,
        /// Id of the counter.
        pub counter_id: i32,
    }
}

message! {
    /// The driver closed a client because its heartbeat was too old.
    pub struct ClientTimeout(ClientTimeoutLayout) {
        /// Id of the client that timed out.
        pub client_id: i64,
    }
}

message! {
    /// A session id that no publication uses. The driver does not reserve it.
    pub struct NextAvailableSessionId(NextAvailableSessionIdLayout) {
        /// Correlation id of the command.
        pub correlation_id: i64,
        /// The session id.
        pub next_session_id: i32,
    }
}

message! {
    /// A receiver reported an error to a publication. Padded to the minimum of 72 bytes that C clients require.
    pub struct PublicationError<'a>(PublicationErrorLayout) at least 72 {
        /// Original registration id of the publication.
        pub registration_id: i64,
        /// Registration id of the destination, −1 without a destination.
        pub destination_registration_id: i64,
        /// Session id of the publication.
        pub session_id: i32,
        /// Stream id of the publication.
        pub stream_id: i32,
        /// Id of the receiver, −1 for IPC.
        pub receiver_id: i64,
        /// Group tag of the receiver, −1 without a tag.
        pub group_tag: i64,
        /// Address of the receiver; `None` for an unknown address type.
        pub source_address: Option<SocketAddr>,
        /// Error code of the receiver, usually the number of an [`ErrorCode`].
        pub error_code: i32,
        texts {
            /// Text of the error, for people.
            error_message,
        }
    }
}
