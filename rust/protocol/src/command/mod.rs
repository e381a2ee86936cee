//! Commands of a client to the driver, through the to-driver ring.
//!
//! A command is a [`Command`] on both sides: a client encodes the command into a record, and the driver decodes the
//! record. Each command begins with the client's id and the command's correlation id. Channels, labels and reasons are
//! bytes, because nothing guarantees that a peer writes valid text.
//!
//! ```
//! use aeron_protocol::command::{AddPublication, Command};
//!
//! let command = Command::AddPublication(AddPublication {
//!     client_id: 1,
//!     correlation_id: 2,
//!     stream_id: 1001,
//!     channel: b"aeron:ipc",
//! });
//! let mut record = [0; 64];
//! let length = command.encode(&mut record)?;
//!
//! assert_eq!(length, 33);
//! assert_eq!(Command::decode(command.type_id(), &record[..length])?, command);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod message;

pub use message::*;

use crate::codec::message_set;

/// Maximum length of a channel URI that a driver accepts, in bytes.
pub const MAX_CHANNEL_LENGTH: usize = 4095;

/// Maximum length of a reason of [`RejectImage`] that a driver accepts, in bytes.
pub const MAX_REJECTION_REASON_LENGTH: usize = 1023;

/// Type ids of the records that carry commands.
#[allow(missing_docs, reason = "each is the name of the command in `Command`")]
pub mod type_id {
    pub const ADD_PUBLICATION: i32 = 0x01;
    pub const REMOVE_PUBLICATION: i32 = 0x02;
    pub const ADD_EXCLUSIVE_PUBLICATION: i32 = 0x03;
    pub const ADD_SUBSCRIPTION: i32 = 0x04;
    pub const REMOVE_SUBSCRIPTION: i32 = 0x05;
    pub const CLIENT_KEEPALIVE: i32 = 0x06;
    pub const ADD_DESTINATION: i32 = 0x07;
    pub const REMOVE_DESTINATION: i32 = 0x08;
    pub const ADD_COUNTER: i32 = 0x09;
    pub const REMOVE_COUNTER: i32 = 0x0A;
    pub const CLIENT_CLOSE: i32 = 0x0B;
    pub const ADD_RCV_DESTINATION: i32 = 0x0C;
    pub const REMOVE_RCV_DESTINATION: i32 = 0x0D;
    pub const TERMINATE_DRIVER: i32 = 0x0E;
    pub const ADD_STATIC_COUNTER: i32 = 0x0F;
    pub const REJECT_IMAGE: i32 = 0x10;
    pub const REMOVE_DESTINATION_BY_ID: i32 = 0x11;
    pub const GET_NEXT_AVAILABLE_SESSION_ID: i32 = 0x12;
}

message_set! {
    /// A request of a client to the driver.
    pub enum Command {
        /// Add a publication, or a reference to an existing publication that matches.
        AddPublication(AddPublication<'a>) = type_id::ADD_PUBLICATION,
        /// Release a publication.
        RemovePublication(RemovePublication) = type_id::REMOVE_PUBLICATION,
        /// Add a publication that is not shared.
        AddExclusivePublication(AddPublication<'a>) = type_id::ADD_EXCLUSIVE_PUBLICATION,
        /// Add a subscription.
        AddSubscription(AddSubscription<'a>) = type_id::ADD_SUBSCRIPTION,
        /// Remove a subscription with all its images.
        RemoveSubscription(RemoveSubscription) = type_id::REMOVE_SUBSCRIPTION,
        /// Keep the client alive; current clients update their heartbeat counter instead.
        ClientKeepalive(ClientKeepalive) = type_id::CLIENT_KEEPALIVE,
        /// Add a destination to a publication with manual control.
        AddDestination(Destination<'a>) = type_id::ADD_DESTINATION,
        /// Remove a publication's destination by its channel.
        RemoveDestination(Destination<'a>) = type_id::REMOVE_DESTINATION,
        /// Add a counter that the driver frees when the client ends.
        AddCounter(AddCounter<'a>) = type_id::ADD_COUNTER,
        /// Remove a counter.
        RemoveCounter(RemoveCounter) = type_id::REMOVE_COUNTER,
        /// Tell the driver that the client has closed.
        ClientClose(ClientClose) = type_id::CLIENT_CLOSE,
        /// Add a destination to a subscription with manual control.
        AddRcvDestination(Destination<'a>) = type_id::ADD_RCV_DESTINATION,
        /// Remove a subscription's destination by its channel.
        RemoveRcvDestination(Destination<'a>) = type_id::REMOVE_RCV_DESTINATION,
        /// Request the driver to terminate.
        TerminateDriver(TerminateDriver<'a>) = type_id::TERMINATE_DRIVER,
        /// Add a counter that outlives its client, or find the existing counter.
        AddStaticCounter(AddStaticCounter<'a>) = type_id::ADD_STATIC_COUNTER,
        /// Reject an image, with a reason for its publisher.
        RejectImage(RejectImage<'a>) = type_id::REJECT_IMAGE,
        /// Remove a publication's destination by its registration id.
        RemoveDestinationById(RemoveDestinationById) = type_id::REMOVE_DESTINATION_BY_ID,
        /// Request a session id that no publication uses on the stream.
        GetNextAvailableSessionId(GetNextAvailableSessionId) = type_id::GET_NEXT_AVAILABLE_SESSION_ID,
    }
}

impl Command<'_> {
    /// Returns the id of the client that sends the command; any value is legal.
    #[must_use]
    pub const fn client_id(&self) -> i64 {
        self.ids().0
    }

    /// Returns the correlation id of the command. The response repeats it. It becomes the registration id of a resource
    /// that the command adds, except for a static counter.
    #[must_use]
    pub const fn correlation_id(&self) -> i64 {
        self.ids().1
    }

    const fn ids(&self) -> (i64, i64) {
        match self {
            Self::AddPublication(c) | Self::AddExclusivePublication(c) => {
                (c.client_id, c.correlation_id)
            }
            Self::RemovePublication(c) => (c.client_id, c.correlation_id),
            Self::AddSubscription(c) => (c.client_id, c.correlation_id),
            Self::RemoveSubscription(c) => (c.client_id, c.correlation_id),
            Self::ClientKeepalive(c) => (c.client_id, c.correlation_id),
            Self::AddDestination(c)
            | Self::RemoveDestination(c)
            | Self::AddRcvDestination(c)
            | Self::RemoveRcvDestination(c) => (c.client_id, c.correlation_id),
            Self::AddCounter(c) => (c.client_id, c.correlation_id),
            Self::RemoveCounter(c) => (c.client_id, c.correlation_id),
            Self::ClientClose(c) => (c.client_id, c.correlation_id),
            Self::TerminateDriver(c) => (c.client_id, c.correlation_id),
            Self::AddStaticCounter(c) => (c.client_id, c.correlation_id),
            Self::RejectImage(c) => (c.client_id, c.correlation_id),
            Self::RemoveDestinationById(c) => (c.client_id, c.correlation_id),
            Self::GetNextAvailableSessionId(c) => (c.client_id, c.correlation_id),
        }
    }
}
