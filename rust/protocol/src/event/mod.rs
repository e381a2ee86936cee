//! Responses and announcements of the driver, through the to-clients broadcast.
//!
//! Every client receives every event and ignores events with the ids of other clients. File names, texts
//! and channels are bytes, because nothing guarantees that a peer writes valid text.

mod message;

pub use message::*;

use crate::codec::message_set;

/// Type ids of the records that carry events.
#[allow(missing_docs, reason = "each is the name of the event in `Event`")]
pub mod type_id {
    pub const ERROR: i32 = 0x0F01;
    pub const AVAILABLE_IMAGE: i32 = 0x0F02;
    pub const PUBLICATION_READY: i32 = 0x0F03;
    pub const OPERATION_SUCCESS: i32 = 0x0F04;
    pub const UNAVAILABLE_IMAGE: i32 = 0x0F05;
    pub const EXCLUSIVE_PUBLICATION_READY: i32 = 0x0F06;
    pub const SUBSCRIPTION_READY: i32 = 0x0F07;
    pub const COUNTER_READY: i32 = 0x0F08;
    pub const UNAVAILABLE_COUNTER: i32 = 0x0F09;
    pub const CLIENT_TIMEOUT: i32 = 0x0F0A;
    pub const STATIC_COUNTER: i32 = 0x0F0B;
    pub const PUBLICATION_ERROR: i32 = 0x0F0C;
    pub const NEXT_AVAILABLE_SESSION_ID: i32 = 0x0F0D;
}

message_set! {
    /// A response or announcement of the driver.
    pub enum Event {
        /// A command was refused.
        Error(Error<'a>) = type_id::ERROR,
        /// A subscription has a new image.
        AvailableImage(AvailableImage<'a>) = type_id::AVAILABLE_IMAGE,
        /// A publication was added or shared.
        PublicationReady(PublicationReady<'a>) = type_id::PUBLICATION_READY,
        /// A command that adds nothing succeeded.
        OperationSuccess(OperationSuccess) = type_id::OPERATION_SUCCESS,
        /// A subscription lost an image.
        UnavailableImage(UnavailableImage<'a>) = type_id::UNAVAILABLE_IMAGE,
        /// An exclusive publication was added.
        ExclusivePublicationReady(PublicationReady<'a>) = type_id::EXCLUSIVE_PUBLICATION_READY,
        /// A subscription was added.
        SubscriptionReady(SubscriptionReady) = type_id::SUBSCRIPTION_READY,
        /// A counter was added. The event also announces the counter to all other clients.
        CounterReady(CounterUpdate) = type_id::COUNTER_READY,
        /// A counter was freed.
        UnavailableCounter(CounterUpdate) = type_id::UNAVAILABLE_COUNTER,
        /// The driver closed a client because its heartbeat was too old.
        ClientTimeout(ClientTimeout) = type_id::CLIENT_TIMEOUT,
        /// A static counter was added or found.
        StaticCounter(StaticCounter) = type_id::STATIC_COUNTER,
        /// A receiver reported an error to a publication.
        PublicationError(PublicationError<'a>) = type_id::PUBLICATION_ERROR,
        /// A session id that no publication uses.
        NextAvailableSessionId(NextAvailableSessionId) = type_id::NEXT_AVAILABLE_SESSION_ID,
    }
}
