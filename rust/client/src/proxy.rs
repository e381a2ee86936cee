//! [`DriverProxy`]: sends commands to the driver. The client's conductor calls it.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::ring::{ClaimError, ManyToOneRing};
use aeron_protocol::command::{
    AddCounter, AddPublication, AddStaticCounter, AddSubscription, ClientClose, Command,
    Destination, GetNextAvailableSessionId, MAX_CHANNEL_LENGTH, RejectImage, RemoveCounter,
    RemoveDestinationById, RemovePublication, RemoveSubscription, TerminateDriver,
};

use crate::counter::core::CounterDescription;
use crate::error::{Error, Result};

/// Number of attempts to write to a full ring before the command fails.
const MAX_WRITE_ATTEMPTS: usize = 10;
/// Correlation id of the command `CLIENT_CLOSE`, which has no response.
const NO_CORRELATION: i64 = -1;

/// Writes the commands of one client into the ring to the driver; usable from any thread.
pub(crate) struct DriverProxy {
    ring: ManyToOneRing<SharedBuffer>,
    client_id: i64,
}

/// The kinds of destination commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DestinationCommand {
    Add,
    Remove,
    AddReceive,
    RemoveReceive,
}

impl DriverProxy {
    /// Creates a proxy for a new client. The client id is the next correlation id.
    pub(crate) fn new(ring: ManyToOneRing<SharedBuffer>) -> Self {
        let client_id = ring.next_correlation_id();
        Self { ring, client_id }
    }

    pub(crate) fn client_id(&self) -> i64 {
        self.client_id
    }

    pub(crate) fn next_correlation_id(&self) -> i64 {
        self.ring.next_correlation_id()
    }

    /// Returns the epoch time in milliseconds of the driver's last heartbeat; −1 after the driver was closed.
    pub(crate) fn driver_heartbeat_ms(&self) -> i64 {
        self.ring.consumer_heartbeat_ms()
    }

    pub(crate) fn add_publication(
        &self,
        channel: &str,
        stream_id: i32,
        exclusive: bool,
    ) -> Result<i64> {
        let correlation_id = self.next_correlation_id();
        let add = AddPublication {
            client_id: self.client_id,
            correlation_id,
            stream_id,
            channel: checked_channel(channel)?,
        };
        if exclusive {
            self.send(
                "ADD_EXCLUSIVE_PUBLICATION",
                &Command::AddExclusivePublication(add),
            )?;
        } else {
            self.send("ADD_PUBLICATION", &Command::AddPublication(add))?;
        }
        Ok(correlation_id)
    }

    pub(crate) fn remove_publication(&self, registration_id: i64, revoke: bool) -> Result<i64> {
        let correlation_id = self.next_correlation_id();
        let remove = RemovePublication {
            client_id: self.client_id,
            correlation_id,
            registration_id,
            revoke,
        };
        self.send("REMOVE_PUBLICATION", &Command::RemovePublication(remove))?;
        Ok(correlation_id)
    }

    pub(crate) fn add_subscription(&self, channel: &str, stream_id: i32) -> Result<i64> {
        let correlation_id = self.next_correlation_id();
        let add = AddSubscription {
            client_id: self.client_id,
            correlation_id,
            registration_correlation_id: -1,
            stream_id,
            channel: checked_channel(channel)?,
        };
        self.send("ADD_SUBSCRIPTION", &Command::AddSubscription(add))?;
        Ok(correlation_id)
    }

    pub(crate) fn remove_subscription(&self, registration_id: i64) -> Result<i64> {
        let correlation_id = self.next_correlation_id();
        let remove = RemoveSubscription {
            client_id: self.client_id,
            correlation_id,
            registration_id,
        };
        self.send("REMOVE_SUBSCRIPTION", &Command::RemoveSubscription(remove))?;
        Ok(correlation_id)
    }

    pub(crate) fn destination(
        &self,
        command: DestinationCommand,
        resource_id: i64,
        channel: &str,
    ) -> Result<i64> {
        let correlation_id = self.next_correlation_id();
        let destination = Destination {
            client_id: self.client_id,
            correlation_id,
            registration_correlation_id: resource_id,
            channel: checked_channel(channel)?,
        };
        match command {
            DestinationCommand::Add => {
                self.send("ADD_DESTINATION", &Command::AddDestination(destination))
            }
            DestinationCommand::Remove => self.send(
                "REMOVE_DESTINATION",
                &Command::RemoveDestination(destination),
            ),
            DestinationCommand::AddReceive => self.send(
                "ADD_RCV_DESTINATION",
                &Command::AddRcvDestination(destination),
            ),
            DestinationCommand::RemoveReceive => self.send(
                "REMOVE_RCV_DESTINATION",
                &Command::RemoveRcvDestination(destination),
            ),
        }?;
        Ok(correlation_id)
    }

    pub(crate) fn remove_destination_by_id(
        &self,
        publication_id: i64,
        destination_id: i64,
    ) -> Result<i64> {
        let correlation_id = self.next_correlation_id();
        let remove = RemoveDestinationById {
            client_id: self.client_id,
            correlation_id,
            resource_registration_id: publication_id,
            destination_registration_id: destination_id,
        };
        self.send(
            "REMOVE_DESTINATION_BY_ID",
            &Command::RemoveDestinationById(remove),
        )?;
        Ok(correlation_id)
    }

    pub(crate) fn counter(&self, counter: &CounterDescription) -> Result<i64> {
        let (client_id, correlation_id) = (self.client_id, self.next_correlation_id());
        let (type_id, key) = (counter.type_id, counter.key.as_slice());
        let label = counter.label.as_bytes();
        match counter.static_registration_id {
            None => {
                let add = AddCounter {
                    client_id,
                    correlation_id,
                    type_id,
                    key,
                    label,
                };
                self.send("ADD_COUNTER", &Command::AddCounter(add))?;
            }
            Some(registration_id) => {
                let add = AddStaticCounter {
                    client_id,
                    correlation_id,
                    registration_id,
                    type_id,
                    key,
                    label,
                };
                self.send("ADD_STATIC_COUNTER", &Command::AddStaticCounter(add))?;
            }
        }
        Ok(correlation_id)
    }

    pub(crate) fn remove_counter(&self, registration_id: i64) -> Result<i64> {
        let correlation_id = self.next_correlation_id();
        let remove = RemoveCounter {
            client_id: self.client_id,
            correlation_id,
            registration_id,
        };
        self.send("REMOVE_COUNTER", &Command::RemoveCounter(remove))?;
        Ok(correlation_id)
    }

    pub(crate) fn reject_image(
        &self,
        image_correlation_id: i64,
        position: i64,
        reason: &str,
    ) -> Result<i64> {
        let correlation_id = self.next_correlation_id();
        let reject = RejectImage {
            client_id: self.client_id,
            correlation_id,
            image_correlation_id,
            position,
            reason: reason.as_bytes(),
        };
        self.send("REJECT_IMAGE", &Command::RejectImage(reject))?;
        Ok(correlation_id)
    }

    pub(crate) fn next_available_session_id(&self, stream_id: i32) -> Result<i64> {
        let correlation_id = self.next_correlation_id();
        let get = GetNextAvailableSessionId {
            client_id: self.client_id,
            correlation_id,
            stream_id,
        };
        self.send(
            "GET_NEXT_AVAILABLE_SESSION_ID",
            &Command::GetNextAvailableSessionId(get),
        )?;
        Ok(correlation_id)
    }

    pub(crate) fn client_close(&self) -> Result<()> {
        let close = ClientClose {
            client_id: self.client_id,
            correlation_id: NO_CORRELATION,
        };
        self.send("CLIENT_CLOSE", &Command::ClientClose(close))
    }

    pub(crate) fn terminate_driver(&self, token: &[u8]) -> Result<()> {
        let correlation_id = self.next_correlation_id();
        let terminate = TerminateDriver {
            client_id: self.client_id,
            correlation_id,
            token,
        };
        self.send("TERMINATE_DRIVER", &Command::TerminateDriver(terminate))
    }

    fn send(&self, name: &'static str, command: &Command<'_>) -> Result<()> {
        let refuse = |reason: String| Error::InvalidCommand {
            command: name,
            reason,
        };
        let mut record = vec![0; command.encoded_length()];
        command
            .encode(&mut record)
            .map_err(|error| refuse(error.to_string()))?;
        for _ in 0..MAX_WRITE_ATTEMPTS {
            match self.ring.write(command.type_id(), &record) {
                Ok(()) => return Ok(()),
                Err(ClaimError::Full) => std::thread::yield_now(),
                Err(error) => return Err(refuse(error.to_string())),
            }
        }
        Err(Error::CommandBufferFull { command: name })
    }
}

/// Returns the bytes of a channel if a driver could accept the text as a channel.
fn checked_channel(channel: &str) -> Result<&[u8]> {
    if channel.len() > MAX_CHANNEL_LENGTH {
        return Err(Error::InvalidArgument(format!(
            "channel has {} bytes, the limit is {MAX_CHANNEL_LENGTH}",
            channel.len()
        )));
    }
    if !channel.is_ascii() {
        return Err(Error::InvalidArgument(format!(
            "channel is not ASCII: {channel}"
        )));
    }
    Ok(channel.as_bytes())
}
