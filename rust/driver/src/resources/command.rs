//! What the conductor asks of the native resource agent, and the replies.

use std::net::SocketAddr;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;

use crate::error::DriverError;
use crate::log_storage::LogId;
use crate::media::{ChannelRole, UdpChannel};
use crate::stream::PageRequest;

/// A request of the conductor.
#[derive(Debug)]
pub enum ResourceCommand {
    /// Create a log. A log that is not sparse is allocated in slices, and the reply comes after the last slice.
    CreateLog {
        /// Names the log.
        log: LogId,
        /// Length of the whole log in bytes.
        length: usize,
        /// The part of a sparse log to allocate now, besides its metadata; `None` for a log that is not sparse.
        sparse: Option<PageRequest>,
    },
    /// Allocate a part of a sparse log.
    AllocateLog {
        /// Names the log.
        log: LogId,
        /// The part.
        pages: PageRequest,
        /// Bytes after the part that are not allocated, but kept free for the log.
        promise: usize,
    },
    /// Remove a log that no client is told of any more.
    RemoveLog {
        /// Names the log.
        log: LogId,
    },
    /// Find addresses.
    LookUp {
        /// Names the request.
        id: i64,
        /// The channel or name to look up.
        what: Lookup,
    },
}

/// The subject of a lookup.
#[derive(Debug)]
pub enum Lookup {
    /// A whole UDP channel.
    Channel {
        /// The channel as it came in a command.
        channel: Box<[u8]>,
        /// The use of the channel.
        role: ChannelRole,
    },
    /// One address of a channel, for the first time or again.
    Name {
        /// `host:port`.
        name: String,
        /// The channel parameter that contains the name.
        parameter: &'static str,
    },
}

/// The outcome of a command.
#[derive(Debug)]
pub enum ResourceReply {
    /// A log was created, or its creation failed.
    LogCreated {
        /// Names the log.
        log: LogId,
        /// Its memory.
        result: Result<SharedBuffer, DriverError>,
    },
    /// The creation of a publication's log takes longer, because all of the log is allocated. Its result follows in another reply.
    CreatingLog {
        /// Names the publication.
        registration_id: i64,
    },
    /// The next bytes of the requested part of a log were allocated, or there is no space for the rest of the part.
    LogAllocated {
        /// Names the log.
        log: LogId,
        /// The number of bytes that were allocated.
        result: Result<usize, DriverError>,
    },
    /// The lookup takes longer. Its result follows in another reply.
    LookingUp {
        /// Names the request.
        id: i64,
    },
    /// The addresses of a channel are known, or the channel is refused.
    ChannelResolved {
        /// Names the request.
        id: i64,
        /// The channel.
        result: Result<Arc<UdpChannel>, DriverError>,
    },
    /// The address of a name is known, or the name has no address.
    NameResolved {
        /// Names the request.
        id: i64,
        /// The address.
        result: Result<SocketAddr, DriverError>,
    },
}

/// The queue that a command takes: commands of one lane are executed in order, and the two lanes take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Commands that a client or a running stream waits for.
    Clients,
    /// The creation and removal of images, which peers on the network can cause in any number.
    Images,
}

impl ResourceCommand {
    /// The lane of the command.
    ///
    /// An image's allocations take the clients' lane, because a running stream waits for them. They are sent after the reply to
    /// the creation. An allocation that comes after the removal finds no log and does nothing.
    pub fn lane(&self) -> Lane {
        match self {
            Self::CreateLog {
                log: LogId::Image(_),
                ..
            }
            | Self::RemoveLog {
                log: LogId::Image(_),
            } => Lane::Images,
            Self::CreateLog { .. }
            | Self::AllocateLog { .. }
            | Self::RemoveLog { .. }
            | Self::LookUp { .. } => Lane::Clients,
        }
    }
}
