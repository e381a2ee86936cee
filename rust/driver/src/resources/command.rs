//! [`ResourceCommand`] and [`ResourceReply`]: the messages between the conductor and the native resource agent.

use std::net::SocketAddr;
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;

use crate::error::DriverError;
use crate::log_storage::LogId;
use crate::media::{ChannelRole, UdpChannel};
use crate::publication::FirstPages;
use crate::stream::PageRequest;

/// A command of the conductor.
#[derive(Debug)]
pub enum ResourceCommand {
    /// Create a log. A log that is not sparse is allocated in slices, and the reply comes after the last slice.
    CreateLog {
        log: LogId,
        /// Length of the whole log in bytes.
        length: usize,
        /// The parts of a sparse log to allocate now, besides its metadata; `None` for a log that is not sparse.
        sparse: Option<Vec<PageRequest>>,
        /// Further parts of a sparse log to allocate now. Without space for them, the log is created nevertheless.
        first_pages: Option<FirstPages>,
    },
    /// Allocate a part of a sparse log.
    AllocateLog {
        log: LogId,
        /// The part to allocate.
        pages: PageRequest,
        /// Number of bytes after the part that are reserved for the log but not allocated.
        promise: usize,
        /// Whether a client waits for the pages. Then the whole part is allocated at once, before the slices of other
        /// parts. The part must be short.
        is_awaited: bool,
    },
    /// Remove a log. After this command, the conductor sends clients no event that names the log.
    RemoveLog {
        /// Id of the log.
        log: LogId,
    },
    /// Resolve the addresses of a channel or name.
    LookUp {
        /// Id of the lookup.
        id: i64,
        /// The channel or name to look up.
        what: LookupSubject,
    },
}

/// The subject of a lookup.
#[derive(Debug)]
pub enum LookupSubject {
    /// A whole UDP channel.
    Channel {
        /// The channel as received in a command.
        channel: Box<[u8]>,
        /// The use of the channel.
        role: ChannelRole,
    },
    /// One address of a channel. It may have been looked up before.
    Name {
        /// `host:port`.
        name: String,
        /// The channel parameter that contains the name.
        parameter: &'static str,
    },
}

/// The outcome of a command, or a report that the command takes long.
#[derive(Debug)]
pub enum ResourceReply {
    /// A log was created, or its creation failed.
    LogCreated {
        log: LogId,
        result: Result<CreatedLog, DriverError>,
    },
    /// The creation of a publication's log takes long, because the whole log is allocated. The result follows in
    /// another reply.
    CreatingLog {
        /// Registration id of the publication.
        registration_id: i64,
    },
    /// The next bytes of the requested part of a log were allocated, or there is no space for the rest of the part.
    LogAllocated {
        log: LogId,
        /// The number of allocated bytes.
        result: Result<usize, DriverError>,
    },
    /// The lookup takes long. The result follows in another reply.
    LookingUp {
        /// Id of the lookup.
        id: i64,
    },
    /// The addresses of a channel are resolved, or the channel is refused.
    ChannelResolved {
        /// Id of the lookup.
        id: i64,
        result: Result<Arc<UdpChannel>, DriverError>,
    },
    /// The address of a name is resolved, or the name has no address.
    NameResolved {
        /// Id of the lookup.
        id: i64,
        result: Result<SocketAddr, DriverError>,
    },
}

/// A log that was created.
#[derive(Debug)]
pub struct CreatedLog {
    pub memory: SharedBuffer,
    /// Whether the first pages were allocated; `None` if the command has none.
    pub first_pages: Option<Result<(), DriverError>>,
}

/// The queue of a command. The agent executes the commands of one lane in order, and takes commands from both lanes in
/// turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// Commands that a client or a running stream waits for.
    Clients,
    /// Commands that create and remove images. Peers on the network can cause any number of these commands.
    Images,
}

impl ResourceCommand {
    /// Returns the lane of the command.
    ///
    /// An image's allocations use the clients' lane, because a running stream waits for them. The conductor sends them
    /// after the reply to the creation. An allocation that is executed after the removal of the log has no effect.
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
