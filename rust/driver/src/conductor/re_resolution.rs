//! Names whose addresses may have changed, because nobody answers at the old ones.

use std::net::SocketAddr;
use std::sync::Arc;

use aeron_protocol::uri::key;

use super::Conductor;
use crate::error::DriverError;
use crate::receiver::{self, DestinationId, ReceiverCommand};
use crate::resources::Lookup;
use crate::sender::{self, SenderCommand};

/// A name that is looked up again.
#[derive(Debug)]
pub(super) struct ReResolution {
    id: i64,
    whose: Whose,
    name: Arc<str>,
    current: Option<SocketAddr>,
}

/// Who wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// A send endpoint, or a destination of it.
    Sender(sender::EndpointId),
    /// The destination of a receive endpoint.
    Receiver(receiver::EndpointId, DestinationId),
}

impl Conductor {
    pub(super) fn re_resolve(&mut self, whose: Whose, name: Arc<str>, current: Option<SocketAddr>) {
        // Who asks does so again every second, however long the answer takes.
        let is_asked = |waiting: &ReResolution| {
            (waiting.whose, &waiting.name, waiting.current) == (whose, &name, current)
        };
        if self.re_resolutions.iter().any(is_asked) {
            return;
        }
        let parameter = match whose {
            Whose::Sender(_) => key::ENDPOINT,
            Whose::Receiver(..) => key::CONTROL,
        };
        let id = self.outlets.look_up(Lookup::Name {
            name: name.to_string(),
            parameter,
        });
        self.re_resolutions.push(ReResolution {
            id,
            whose,
            name,
            current,
        });
    }

    pub(super) fn on_re_resolved(&mut self, id: i64, result: Result<SocketAddr, DriverError>) {
        let mut waiting = self.re_resolutions.iter();
        let Some(index) = waiting.position(|waiting| waiting.id == id) else {
            return;
        };
        let waiting = self.re_resolutions.swap_remove(index);
        let address = match result {
            Ok(address) => address,
            Err(error) => return self.outlets.errors.record(&error),
        };
        if waiting.current == Some(address) {
            return;
        }
        match waiting.whose {
            Whose::Sender(endpoint) => {
                self.outlets
                    .sender_commands
                    .send(SenderCommand::ResolutionChange {
                        endpoint,
                        name: waiting.name,
                        address,
                    });
            }
            Whose::Receiver(endpoint, destination) => {
                self.outlets
                    .receiver_commands
                    .send(ReceiverCommand::ResolutionChange {
                        endpoint,
                        destination,
                        address,
                    });
            }
        }
    }
}
