//! The fields of each command, in their order in the message.

use aeron_layout::command::{
    AddCounterLayout, AddPublicationLayout, AddStaticCounterLayout, AddSubscriptionLayout,
    ClientCommandLayout, DestinationLayout, NextSessionIdLayout, RejectImageLayout, RemovalLayout,
    RemoveDestinationByIdLayout, RemovePublicationLayout,
};

use crate::DecodeError;
use crate::codec::{Encode, Message, Reader, Writer, message};

message! {
    /// Adds a publication. The command's type id says whether the publication is shared or exclusive.
    pub struct AddPublication<'a>(AddPublicationLayout) {
        /// Id of the client that sends the command.
        pub client_id: i64,
        /// Correlation id of the command. It becomes the registration id.
        pub correlation_id: i64,
        /// Stream id; any value is valid.
        pub stream_id: i32,
        texts {
            /// Channel URI.
            channel,
        }
    }
}

/// Releases a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemovePublication {
    /// Id of the client that sends the command.
    pub client_id: i64,
    /// Correlation id of the command, which the response repeats.
    pub correlation_id: i64,
    /// Correlation id of the command with which this client added the publication. For a shared publication, this may
    /// differ from the original registration id.
    pub registration_id: i64,
    /// Whether the stream ends at once for all clients that share the publication.
    pub revoke: bool,
}

const REVOKE_FLAG: u64 = 1;

/// Length of the form that older clients send, which has no flags.
const REMOVE_PUBLICATION_LEGACY_LENGTH: usize = RemovalLayout::LENGTH;

impl<'a> Message<'a> for RemovePublication {
    fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let (removal, revoke) = match reader.length() {
            REMOVE_PUBLICATION_LEGACY_LENGTH => (reader.layout::<RemovalLayout>()?, false),
            _ => {
                let layout = reader.layout::<RemovePublicationLayout>()?;
                (&layout.removal, layout.flags.get() & REVOKE_FLAG != 0)
            }
        };
        Ok(Self {
            client_id: removal.client_id.get(),
            correlation_id: removal.correlation_id.get(),
            registration_id: removal.registration_id.get(),
            revoke,
        })
    }
}

impl Encode for RemovePublication {
    fn write(&self, writer: &mut Writer<'_>) {
        writer.layout(&RemovePublicationLayout {
            removal: RemovalLayout {
                client_id: self.client_id.into(),
                correlation_id: self.correlation_id.into(),
                registration_id: self.registration_id.into(),
            },
            flags: if self.revoke { REVOKE_FLAG } else { 0 }.into(),
        });
    }
}

message! {
    /// Adds a subscription.
    pub struct AddSubscription<'a>(AddSubscriptionLayout) {
        /// Id of the client that sends the command.
        pub client_id: i64,
        /// Correlation id of the command. It becomes the registration id.
        pub correlation_id: i64,
        /// Unused; clients write −1 or leave 0.
        pub registration_correlation_id: i64,
        /// Stream id; any value is valid.
        pub stream_id: i32,
        texts {
            /// Channel URI.
            channel,
        }
    }
}

message! {
    /// Removes a subscription.
    pub struct RemoveSubscription(RemovalLayout) {
        /// Id of the client that sends the command.
        pub client_id: i64,
        /// Correlation id of the command, which the response repeats.
        pub correlation_id: i64,
        /// Correlation id of the command that added the resource.
        pub registration_id: i64,
    }
}

message! {
    /// Keeps a client alive.
    pub struct ClientKeepalive(ClientCommandLayout) {
        /// Id of the client that is alive.
        pub client_id: i64,
        /// Not used; the command has no response.
        pub correlation_id: i64,
    }
}

message! {
    /// Identifies a destination of a publication or subscription by its channel.
    pub struct Destination<'a>(DestinationLayout) {
        /// Id of the client that sends the command.
        pub client_id: i64,
        /// Correlation id of the command, which the response repeats. If the command adds a destination to a
        /// publication, this is also the destination's registration id.
        pub correlation_id: i64,
        /// Original registration id of the publication, or registration id of the subscription.
        pub registration_correlation_id: i64,
        texts {
            /// Channel URI of the destination.
            channel,
        }
    }
}

message! {
    /// Adds a counter that the driver frees when the client ends.
    pub struct AddCounter<'a>(AddCounterLayout) {
        /// Id of the client that sends the command and owns the counter.
        pub client_id: i64,
        /// Correlation id of the command. It becomes the registration id.
        pub correlation_id: i64,
        /// Type id of the counter.
        pub type_id: i32,
        texts {
            /// Key of the counter; the driver truncates it to 112 bytes.
            key,
            /// Label of the counter; the driver truncates it to 380 bytes.
            label,
        }
    }
}

message! {
    /// Removes a counter.
    pub struct RemoveCounter(RemovalLayout) {
        /// Id of the client that sends the command and owns the counter.
        pub client_id: i64,
        /// Correlation id of the command, which the response repeats.
        pub correlation_id: i64,
        /// Correlation id of the command that added the resource.
        pub registration_id: i64,
    }
}

message! {
    /// Adds a counter that outlives its client, or finds the existing counter with this type and registration id.
    pub struct AddStaticCounter<'a>(AddStaticCounterLayout) {
        /// Id of the client that sends the command.
        pub client_id: i64,
        /// Correlation id of the command, which the response repeats.
        pub correlation_id: i64,
        /// Registration id that the client chooses. No other counter has the same type id and registration id.
        pub registration_id: i64,
        /// Type id of the counter.
        pub type_id: i32,
        texts {
            /// Key of a new counter.
            key,
            /// Label of a new counter.
            label,
        }
    }
}

message! {
    /// Tells the driver that a client has closed.
    pub struct ClientClose(ClientCommandLayout) {
        /// Id of the client that closes.
        pub client_id: i64,
        /// Not used (−1). The command has no direct response.
        pub correlation_id: i64,
    }
}

message! {
    /// Requests the driver to terminate.
    pub struct TerminateDriver<'a>(ClientCommandLayout) {
        /// A new id; no client with this id needs to exist.
        pub client_id: i64,
        /// Not used; the command has no response.
        pub correlation_id: i64,
        texts {
            /// Token for the driver's termination validator.
            token,
        }
    }
}

message! {
    /// Rejects an image. A shorter message is padded to the minimum of 40 bytes that C drivers require.
    pub struct RejectImage<'a>(RejectImageLayout) at least 40 {
        /// Id of the client that sends the command; 0 from C clients.
        pub client_id: i64,
        /// Correlation id of the command, which the response repeats; 0 from C clients.
        pub correlation_id: i64,
        /// Correlation id of the image.
        pub image_correlation_id: i64,
        /// Position of the image, for information.
        pub position: i64,
        texts {
            /// Text for the publisher, at most [`MAX_REJECTION_REASON_LENGTH`](super::MAX_REJECTION_REASON_LENGTH)
            /// bytes.
            reason,
        }
    }
}

message! {
    /// Removes a publication's destination by its registration id.
    pub struct RemoveDestinationById(RemoveDestinationByIdLayout) {
        /// Id of the client that sends the command.
        pub client_id: i64,
        /// Correlation id of the command, which the response repeats.
        pub correlation_id: i64,
        /// Original registration id of the publication.
        pub resource_registration_id: i64,
        /// Correlation id of the command that added the destination.
        pub destination_registration_id: i64,
    }
}

message! {
    /// Requests a session id that no publication uses on the stream.
    pub struct GetNextAvailableSessionId(NextSessionIdLayout) {
        /// Id of the client that sends the command.
        pub client_id: i64,
        /// Correlation id of the command, which the response repeats.
        pub correlation_id: i64,
        /// Stream id; any value is valid.
        pub stream_id: i32,
    }
}
