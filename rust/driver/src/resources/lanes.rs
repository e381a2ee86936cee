//! The two lanes (command queues) from the conductor to the native resource agent.
//!
//! A peer on the network can make the driver create and remove thousands of images. The commands for images have their
//! own lane, so they do not delay the commands of clients.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;

use super::command::{Lane, ResourceCommand};
use crate::queue::{QueueConsumer, QueueProducer, queue};

/// The conductor's end of the lanes.
pub struct ResourceCommands {
    clients: QueueProducer<ResourceCommand>,
    images: QueueProducer<ResourceCommand>,
}

/// The agent's end of the lanes.
pub struct ResourceInbox {
    pub(super) clients: QueueConsumer<ResourceCommand>,
    pub(super) images: QueueConsumer<ResourceCommand>,
}

/// Creates empty lanes. The counter `failed_offers` counts the attempts to add a command to a full lane.
pub fn lanes(failed_offers: &AtomicCounter<SharedBuffer>) -> (ResourceCommands, ResourceInbox) {
    let (clients, for_clients) = queue(failed_offers.clone());
    let (images, for_images) = queue(failed_offers.clone());
    (
        ResourceCommands { clients, images },
        ResourceInbox {
            clients: for_clients,
            images: for_images,
        },
    )
}

impl ResourceCommands {
    /// Puts a command into its lane if the lane has room, else into the lane's backlog.
    pub fn send(&mut self, command: ResourceCommand) {
        match command.lane() {
            Lane::Clients => self.clients.send(command),
            Lane::Images => self.images.send(command),
        }
    }

    /// Moves commands from the backlogs to the lanes. Returns the number of commands. Call this method
    /// once in each duty cycle.
    pub fn flush(&mut self) -> usize {
        self.clients.flush() + self.images.flush()
    }

    /// Returns whether the next command would go directly into `lane`.
    pub fn has_room(&self, lane: Lane) -> bool {
        match lane {
            Lane::Clients => self.clients.has_room(),
            Lane::Images => self.images.has_room(),
        }
    }

    /// Returns whether the backlog of a lane is so long that no new commands should be sent.
    pub fn is_overloaded(&self) -> bool {
        self.clients.is_overloaded() || self.images.is_overloaded()
    }
}
