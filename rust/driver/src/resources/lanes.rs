//! The two lanes from the conductor to the native resource agent.
//!
//! A peer on the network can make the driver create and remove thousands of images. In a lane of their own, those commands delay
//! no command of a client.

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

/// Empty lanes; both count their full moments in `failed_offers`.
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
    /// Sends a command on its lane, now or as soon as the lane has room.
    pub fn send(&mut self, command: ResourceCommand) {
        match command.lane() {
            Lane::Clients => self.clients.send(command),
            Lane::Images => self.images.send(command),
        }
    }

    /// Delivers commands that did not fit before; returns their number. Called once per duty cycle.
    pub fn flush(&mut self) -> usize {
        self.clients.flush() + self.images.flush()
    }

    /// Whether the next command on `lane` would be delivered at once.
    pub fn has_room(&self, lane: Lane) -> bool {
        match lane {
            Lane::Clients => self.clients.has_room(),
            Lane::Images => self.images.has_room(),
        }
    }

    /// Whether the backlog of a lane is so long that nothing new should be taken on.
    pub fn is_overloaded(&self) -> bool {
        self.clients.is_overloaded() || self.images.is_overloaded()
    }
}
