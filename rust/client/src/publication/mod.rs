//! Publications: the sending side of a stream.
//!
//! Several threads may share a [`Publication`]. An [`ExclusivePublication`] is the only writer of its stream and serves
//! one thread at a time, which makes it faster. Offering never blocks and never allocates. Both types are handles: all
//! clones share one publication, which is closed when the last clone is dropped.

mod claim;
mod concurrent;
pub(crate) mod core;
mod exclusive;
pub(crate) mod flush;
mod offer_error;

use std::sync::Arc;

use aeron_memory::counters::types;
use aeron_memory::log::AppendError;

use crate::channel_status;
use crate::client::Client;
use crate::command::CommandSteps;
#[cfg(doc)]
use crate::error::Error;
use crate::error::{CloseCause, Result};
use crate::operation::{PendingOperation, Waiter};
use crate::proxy::DestinationCommand;

pub use self::claim::{BufferClaim, ClaimAborted};
pub use self::concurrent::Publication;
pub use self::exclusive::{ExclusivePublication, ExclusiveWriter};
pub use self::offer_error::{OfferError, error_string};

use self::core::{PublicationBase, PublicationCore};

/// Number of attempts to append that were refused, since the publication was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedAttempts {
    /// No subscriber was connected.
    pub not_connected: u64,
    /// The subscribers had not consumed enough, or the network was too slow.
    pub back_pressured: u64,
    /// The log was rotating to its next term.
    pub admin_action: u64,
}

/// Methods that both kinds of publications have.
macro_rules! publication_methods {
    ($publication:ident) => {
        impl $publication {
            /// Returns the channel URI as the application gave it.
            pub fn channel(&self) -> &str {
                &self.base().stream.channel
            }

            /// Returns the stream id.
            pub fn stream_id(&self) -> i32 {
                self.base().stream.stream_id
            }

            /// Returns the session id of the stream.
            pub fn session_id(&self) -> i32 {
                self.base().parts().session_id
            }

            /// Returns the id that identifies this publication to the driver.
            pub fn registration_id(&self) -> i64 {
                self.base().parts().registration_id
            }

            /// Returns the registration id of the first publication that shares this log.
            pub fn original_registration_id(&self) -> i64 {
                self.base().parts().original_registration_id
            }

            /// Whether this publication created its log; `false` if it shares a log that existed before.
            pub fn is_original(&self) -> bool {
                self.registration_id() == self.original_registration_id()
            }

            /// Returns the id of the stream's first term.
            pub fn initial_term_id(&self) -> i32 {
                self.base().log().positions().initial_term_id()
            }

            /// Returns the length of a term, in bytes.
            pub fn term_buffer_length(&self) -> usize {
                self.base().log().term_length()
            }

            /// Returns the base-two logarithm of the term length.
            pub fn position_bits_to_shift(&self) -> u32 {
                self.base().log().positions().bits_to_shift()
            }

            /// Returns the maximum length of a message in bytes; longer messages are refused.
            pub fn max_message_length(&self) -> usize {
                self.base().log().framing().max_message_length()
            }

            /// Returns the maximum payload of one frame in bytes; longer messages are sent as several fragments.
            pub fn max_payload_length(&self) -> usize {
                self.base().log().framing().max_payload_length()
            }

            /// Returns the maximum position that the stream can reach.
            pub fn max_possible_position(&self) -> i64 {
                self.base().log().positions().max_position()
            }

            /// Returns the position up to which the driver lets the stream grow.
            ///
            /// # Errors
            /// [`AppendError::Closed`] if the publication or its client is closed.
            pub fn position_limit(&self) -> std::result::Result<i64, AppendError> {
                if self.is_closed() {
                    return Err(AppendError::Closed);
                }
                // Without a driver, nothing can be offered.
                match self.has_driver() {
                    true => Ok(self.base().parts().limit.get()),
                    false => self.position(),
                }
            }

            /// Returns how many attempts to append were refused, by reason. All clones count together.
            pub fn refused(&self) -> RefusedAttempts {
                self.base().refused()
            }

            /// Returns the counter id of the position limit.
            pub fn position_limit_id(&self) -> i32 {
                self.base().parts().limit.id()
            }

            /// Returns the number of drivers that had the publication before the current one; 0 if the client has never
            /// reconnected. Positions and, unless the channel has one, the session id begin again with each driver.
            pub fn generation(&self) -> u64 {
                self.base().generation()
            }

            /// Returns the position up to which the stream is written.
            ///
            /// # Errors
            /// [`AppendError::Closed`] if the publication or its client is closed.
            pub fn position(&self) -> std::result::Result<i64, AppendError> {
                if self.is_closed() {
                    return Err(AppendError::Closed);
                }
                Ok(self.base().parts().log.producer_position())
            }

            /// Returns the number of bytes that may be offered before the limit; 0 or less at the limit.
            ///
            /// # Errors
            /// [`AppendError::Closed`] if the publication or its client is closed.
            pub fn available_window(&self) -> std::result::Result<i64, AppendError> {
                Ok(self.position_limit()? - self.position()?)
            }

            /// Whether everything before `position` has left the publisher. For a network publication, the sender has
            /// sent this data. For an IPC publication, the subscribers have consumed it. Over a network, the result
            /// `true` does not mean that receivers have the data. Over IPC without subscribers: `true`.
            ///
            /// Reads all counters: use it at the end of a stream, not for each message.
            pub fn is_flushed(&self, position: i64) -> bool {
                self.base().is_flushed(position)
            }

            /// Whether the stream has a subscriber; `false` after the close.
            pub fn is_connected(&self) -> bool {
                self.base().is_connected()
            }

            /// Whether the publication is in a driver. Only a client that reconnects can be open without a driver.
            pub fn has_driver(&self) -> bool {
                self.base().has_driver()
            }

            /// Whether the publication, or its client, is closed.
            pub fn is_closed(&self) -> bool {
                self.base().state.is_closed()
            }

            /// Returns the cause of the close.
            pub fn close_cause(&self) -> CloseCause {
                self.base().state.cause()
            }

            /// Returns the counter id of the channel's status; −1 if the channel has no status counter (IPC).
            pub fn channel_status_id(&self) -> i32 {
                self.base().parts().channel_status_id
            }

            /// Returns the status of the channel: 1 active, 0 initialising, −1 errored or closed, 2 closing. An open
            /// IPC publication is always active.
            pub fn channel_status(&self) -> i64 {
                if !self.has_driver() && !self.is_closed() {
                    return types::CHANNEL_INITIALIZING;
                }
                channel_status::status(
                    &self.client().link().counters,
                    self.channel_status_id(),
                    self.is_closed(),
                )
            }

            /// Returns the addresses from which the channel sends, while the channel is active; empty for IPC.
            pub fn local_socket_addresses(&self) -> Vec<String> {
                channel_status::local_addresses(
                    &self.client().link().counters,
                    self.channel_status_id(),
                    self.is_closed(),
                )
            }

            /// Adds a destination to a channel with `control-mode=manual` and waits for the driver. Returns the
            /// destination's registration id.
            ///
            /// # Errors
            /// [`Error::ResourceClosed`], the driver's refusal, or no response within the driver timeout.
            pub fn add_destination(&self, channel: &str) -> Result<i64> {
                self.client().check_may_wait()?;
                self.async_add_destination(channel)?.wait()
            }

            /// Like [`add_destination`](Self::add_destination), but does not wait for the driver.
            ///
            /// # Errors
            /// [`Error::ResourceClosed`], or the command could not be sent. The operation returns all other errors.
            pub fn async_add_destination(&self, channel: &str) -> Result<PendingOperation<i64>> {
                self.base().open_id()?;
                let (core, channel) = (Arc::clone(&self.core), channel.to_owned());
                let steps = CommandSteps::send(
                    self.client(),
                    move |conductor, client| {
                        if !conductor.is_up() {
                            return Ok(None);
                        }
                        let publication_id = core.base().open_id()?;
                        let add = DestinationCommand::Add;
                        conductor
                            .request_destination(client, add, publication_id, &channel)
                            .map(Some)
                    },
                    |_, _, id, _| Some(id),
                )?;
                Ok(steps.into_operation())
            }

            /// Removes a destination by its channel and waits for the driver.
            ///
            /// # Errors
            /// The same errors as [`add_destination`](Self::add_destination).
            pub fn remove_destination(&self, channel: &str) -> Result<()> {
                self.client().check_may_wait()?;
                self.async_remove_destination(channel)?.wait()
            }

            /// Like [`remove_destination`](Self::remove_destination), but does not wait for the driver.
            ///
            /// # Errors
            /// The same errors as [`async_add_destination`](Self::async_add_destination).
            pub fn async_remove_destination(&self, channel: &str) -> Result<PendingOperation<()>> {
                self.base().open_id()?;
                let (core, channel) = (Arc::clone(&self.core), channel.to_owned());
                let steps = CommandSteps::send(
                    self.client(),
                    move |conductor, client| {
                        if !conductor.is_up() {
                            return Ok(None);
                        }
                        let publication_id = core.base().open_id()?;
                        core.base().forget_destination(&channel);
                        let remove = DestinationCommand::Remove;
                        conductor
                            .request_destination(client, remove, publication_id, &channel)
                            .map(Some)
                    },
                    |_, _, _, _| Some(()),
                )?;
                Ok(steps.irrevocable().into_operation())
            }

            /// Removes a destination by its registration id and waits for the driver.
            ///
            /// # Errors
            /// The same errors as [`add_destination`](Self::add_destination).
            pub fn remove_destination_by_id(&self, destination_id: i64) -> Result<()> {
                self.client().check_may_wait()?;
                self.async_remove_destination_by_id(destination_id)?.wait()
            }

            /// Like [`remove_destination_by_id`](Self::remove_destination_by_id), but does not wait for the driver.
            ///
            /// # Errors
            /// The same errors as [`async_add_destination`](Self::async_add_destination).
            pub fn async_remove_destination_by_id(
                &self,
                destination_id: i64,
            ) -> Result<PendingOperation<()>> {
                self.base().open_id()?;
                let core = Arc::clone(&self.core);
                let steps = CommandSteps::send(
                    self.client(),
                    move |conductor, client| {
                        if !conductor.is_up() {
                            return Ok(None);
                        }
                        let publication_id = core.base().open_id()?;
                        let destination_id = core.base().forget_destination_id(destination_id);
                        conductor
                            .request_destination_removal(client, publication_id, destination_id)
                            .map(Some)
                    },
                    |_, _, _, _| Some(()),
                )?;
                Ok(steps.irrevocable().into_operation())
            }

            /// Closes the publication without waiting for the driver. Does nothing if it is already closed. May be
            /// called from any thread.
            pub fn close(&self) {
                self.lifetime.close();
            }

            /// Closes the publication and ends its stream at once, for all clients that share the publication.
            pub fn revoke(&self) {
                self.lifetime.revoke();
            }

            fn client(&self) -> &Arc<Client> {
                self.lifetime.client()
            }

            fn base(&self) -> &PublicationBase {
                self.core.base()
            }
        }

        impl std::fmt::Debug for $publication {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($publication))
                    .field("channel", &self.channel())
                    .field("stream_id", &self.stream_id())
                    .field("session_id", &self.session_id())
                    .field("registration_id", &self.registration_id())
                    .field("is_closed", &self.is_closed())
                    .finish_non_exhaustive()
            }
        }
    };
}

publication_methods!(Publication);
publication_methods!(ExclusivePublication);
