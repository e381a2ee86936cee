//! The native resource agent: does everything that can block, so that the conductor never does.
//!
//! It creates, extends and removes logs and resolves names, one command per duty cycle, and answers through a queue of its own.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use aeron_agent::{Agent, AgentError};
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::log::metadata::METADATA_LENGTH;
use aeron_protocol::ErrorCode;

use crate::diagnostics::ErrorRecorder;
use crate::error::DriverError;
use crate::log_storage::{LogId, LogStorage};
use crate::media::{ChannelResolver, ChannelRole, UdpChannel};
use crate::queue::{Receiver, Sender};
pub use crate::stream::PageRequest;

/// What the conductor asks for.
#[derive(Debug)]
pub enum ResourceCommand {
    /// Create a log.
    CreateLog {
        /// Names the log.
        log: LogId,
        /// Length of the whole log in bytes.
        length: usize,
        /// What is allocated of a sparse log now, apart from its metadata; `None` for a log that is not sparse.
        sparse: Option<PageRequest>,
    },
    /// Allocate a part of a sparse log.
    AllocateLog {
        /// Names the log.
        log: LogId,
        /// The part.
        pages: PageRequest,
    },
    /// Remove a log that nobody is told of any more.
    RemoveLog {
        /// Names the log.
        log: LogId,
    },
    /// Find addresses.
    LookUp {
        /// Names the request.
        id: i64,
        /// Whose addresses.
        what: Lookup,
    },
}

/// What addresses are wanted for.
#[derive(Debug)]
pub enum Lookup {
    /// A whole UDP channel.
    Channel {
        /// The channel as it came in a command.
        channel: Box<[u8]>,
        /// What it is for.
        role: ChannelRole,
    },
    /// One address of a channel, for the first time or again.
    Name {
        /// `host:port`.
        name: String,
        /// The parameter of the channel that says it.
        parameter: &'static str,
    },
}

/// What became of a command.
#[derive(Debug)]
pub enum ResourceReply {
    /// A log is there, or cannot be made.
    LogCreated {
        /// Names the log.
        log: LogId,
        /// Its memory.
        result: Result<SharedBuffer, DriverError>,
    },
    /// Stores to the next bytes of the part of a log asked for are safe now, or there is no space for the rest of it.
    LogAllocated {
        /// Names the log.
        log: LogId,
        /// How many bytes were allocated.
        result: Result<usize, DriverError>,
    },
    /// The addresses asked for are not known yet: it takes longer, and the answer comes later.
    LookingUp {
        /// Names the request.
        id: i64,
    },
    /// A channel's addresses are known, or it is refused.
    ChannelResolved {
        /// Names the request.
        id: i64,
        /// The channel.
        result: Result<Arc<UdpChannel>, DriverError>,
    },
    /// A name's address is known, or there is none.
    NameResolved {
        /// Names the request.
        id: i64,
        /// The address.
        result: Result<SocketAddr, DriverError>,
    },
}

/// Counters that the agent keeps.
pub struct ResourceCounters {
    /// Failed attempts to free log buffers.
    pub failed_frees: AtomicCounter<SharedBuffer>,
    /// Bytes currently mapped.
    pub bytes_mapped: AtomicCounter<SharedBuffer>,
}

/// How much of the file system the agent may fill.
#[derive(Clone, Debug)]
pub struct StorageLimits {
    /// Look at the free space before a log is created.
    pub perform_checks: bool,
    /// Warn when less than this is free.
    pub low_space_warning: u64,
    /// Log removals that are tried again in one duty cycle.
    pub free_limit: usize,
    /// The driver's directory, for messages.
    pub dir: String,
}

/// The agent. See the [module](self).
pub struct NativeResourceAgent {
    storage: Box<dyn LogStorage>,
    channels: ChannelResolver,
    commands: Receiver<ResourceCommand>,
    replies: Sender<ResourceReply>,
    logs: HashMap<LogId, LogLengths>,
    /// Bytes that are allocated for images.
    image_bytes: u64,
    failed_removals: VecDeque<LogId>,
    /// What takes long; it is tried again in each duty cycle.
    looking_up: Vec<(i64, Lookup)>,
    allocation: Option<Allocation>,
    limits: StorageLimits,
    counters: ResourceCounters,
    errors: ErrorRecorder,
}

/// A part of a log that is being allocated, slice by slice.
#[derive(Clone, Copy, Debug)]
struct Allocation {
    log: LogId,
    offset: usize,
    end: usize,
}

/// What a log takes.
#[derive(Clone, Copy, Debug)]
struct LogLengths {
    /// Bytes of the whole log.
    mapped: usize,
    /// Bytes that are known to be allocated.
    allocated: usize,
}

/// Whoever can reach the driver can make it create images: they get at most this part of the space that is free without them.
const IMAGE_SPACE_DIVISOR: u64 = 2;
/// Longest slice that is allocated in one duty cycle, in bytes; it takes about a millisecond.
const ALLOCATION_SLICE_LENGTH: usize = 4 * 1024 * 1024;

impl NativeResourceAgent {
    /// An agent that takes `commands` and answers with `replies`.
    pub fn new(
        storage: Box<dyn LogStorage>,
        channels: ChannelResolver,
        (commands, replies): (Receiver<ResourceCommand>, Sender<ResourceReply>),
        limits: StorageLimits,
        counters: ResourceCounters,
        errors: ErrorRecorder,
    ) -> Self {
        Self {
            storage,
            channels,
            commands,
            replies,
            logs: HashMap::new(),
            image_bytes: 0,
            failed_removals: VecDeque::new(),
            looking_up: Vec::new(),
            allocation: None,
            limits,
            counters,
            errors,
        }
    }

    /// One duty cycle; answers how much was done.
    pub fn do_work(&mut self) -> usize {
        let mut work_count = self.replies.flush() + self.channels.do_work() + self.look_up_again();
        if let Some(allocation) = self.allocation.take() {
            self.allocate(allocation);
            work_count += 1;
        } else if let Ok(command) = self.commands.pop() {
            self.execute(command);
            work_count += 1;
        }
        for _ in 0..self.limits.free_limit.min(self.failed_removals.len()) {
            let Some(log) = self.failed_removals.pop_front() else {
                break;
            };
            work_count += usize::from(self.remove(log));
        }
        work_count
    }

    /// Removes all logs.
    pub fn close(&mut self) {
        let logs: Vec<_> = self.logs.keys().copied().collect();
        for log in logs {
            self.remove(log);
        }
    }

    fn execute(&mut self, command: ResourceCommand) {
        match command {
            ResourceCommand::CreateLog {
                log,
                length,
                sparse,
            } => {
                let result = self.create(log, length, sparse);
                self.replies.send(ResourceReply::LogCreated { log, result });
            }
            ResourceCommand::AllocateLog { log, pages } => {
                let allocation = Allocation {
                    log,
                    offset: pages.offset,
                    end: pages.offset + pages.length,
                };
                // All or nothing: whoever sees the first slice relies on the last one.
                match self.check_room_for_pages(log, pages.length) {
                    Ok(()) => self.allocate(allocation),
                    Err(error) => self.answer_allocation(log, Err(error)),
                }
            }
            ResourceCommand::RemoveLog { log } => {
                self.remove(log);
            }
            ResourceCommand::LookUp { id, what } => {
                let reply = self.look_up(id, &what).unwrap_or_else(|| {
                    self.looking_up.push((id, what));
                    ResourceReply::LookingUp { id }
                });
                self.replies.send(reply);
            }
        }
    }

    fn look_up(&mut self, id: i64, what: &Lookup) -> Option<ResourceReply> {
        Some(match what {
            Lookup::Channel { channel, role } => ResourceReply::ChannelResolved {
                id,
                result: if_known(self.channels.resolve(channel, *role))?.map(Arc::new),
            },
            Lookup::Name { name, parameter } => ResourceReply::NameResolved {
                id,
                result: if_known(self.channels.resolve_name(name, parameter))?,
            },
        })
    }

    fn look_up_again(&mut self) -> usize {
        let waiting = std::mem::take(&mut self.looking_up);
        let count = waiting.len();
        for (id, what) in waiting {
            match self.look_up(id, &what) {
                Some(reply) => self.replies.send(reply),
                None => self.looking_up.push((id, what)),
            }
        }
        count - self.looking_up.len()
    }

    fn check_room_for_pages(&self, log: LogId, length: usize) -> Result<(), DriverError> {
        let Ok(usable) = self.storage.usable_space() else {
            return Ok(());
        };
        self.check_image_space(log, usable, length)?;
        if usable < length as u64 {
            let full = io::ErrorKind::StorageFull.into();
            return Err(self.describe(&full, "failed to allocate pages of log", log));
        }
        Ok(())
    }

    fn check_image_space(&self, log: LogId, usable: u64, length: usize) -> Result<(), DriverError> {
        let limit = usable.saturating_add(self.image_bytes) / IMAGE_SPACE_DIVISOR;
        let needed = self.image_bytes.saturating_add(length as u64);
        if matches!(log, LogId::Publication(_)) || needed <= limit {
            return Ok(());
        }
        // The text must not change with each image: the error log would fill up.
        Err(DriverError::coded(
            ErrorCode::StorageSpace,
            format!(
                "images may not take more than half of the free space in {}",
                self.limits.dir
            ),
        ))
    }

    /// Allocates one slice, and tells the conductor at once: publishers may wait for it.
    fn allocate(&mut self, mut allocation: Allocation) {
        let log = allocation.log;
        let length = (allocation.end - allocation.offset).min(ALLOCATION_SLICE_LENGTH);
        let result = self.allocate_pages(log, allocation.offset, length);
        allocation.offset += length;
        if result.is_ok() {
            self.count_allocated(log, length);
            if allocation.offset < allocation.end {
                self.allocation = Some(allocation);
            }
        }
        let result = result
            .map(|()| length)
            .map_err(|error| self.describe(&error, "failed to allocate pages of log", log));
        self.answer_allocation(log, result);
    }

    fn answer_allocation(&mut self, log: LogId, result: Result<usize, DriverError>) {
        self.replies
            .send(ResourceReply::LogAllocated { log, result });
    }

    fn allocate_pages(&mut self, log: LogId, offset: usize, length: usize) -> io::Result<()> {
        self.storage
            .allocate(log, offset, length)
            .or_else(ignore_unsupported)
    }

    fn count_allocated(&mut self, log: LogId, length: usize) {
        if let Some(lengths) = self.logs.get_mut(&log) {
            lengths.allocated += length;
            if matches!(log, LogId::Image(_)) {
                self.image_bytes += length as u64;
            }
        }
    }

    fn create(
        &mut self,
        log: LogId,
        length: usize,
        sparse: Option<PageRequest>,
    ) -> Result<SharedBuffer, DriverError> {
        let first_length = sparse.map_or(length, |pages| pages.length + METADATA_LENGTH);
        if self.limits.perform_checks {
            self.check_space(length as u64)?;
        }
        if let Ok(usable) = self.storage.usable_space() {
            self.check_image_space(log, usable, first_length)?;
        }
        let memory = self
            .storage
            .create(log, length, sparse.is_some())
            .map_err(|error| self.describe(&error, "failed to create log", log))?;
        if let Some(pages) = sparse {
            // The driver writes the metadata, and subscribers look at the first frame before there is one.
            let allocated = self
                .allocate_pages(log, length - METADATA_LENGTH, METADATA_LENGTH)
                .and_then(|()| self.allocate_pages(log, pages.offset, pages.length));
            if let Err(error) = allocated {
                // Nobody knows the log yet; the failure to report is the allocation's.
                let _ = self.storage.remove(log);
                return Err(self.describe(&error, "failed to create log", log));
            }
        }
        let lengths = LogLengths {
            mapped: length,
            allocated: 0,
        };
        self.logs.insert(log, lengths);
        self.count_allocated(log, first_length);
        self.counters.bytes_mapped.fetch_add(length as i64);
        Ok(memory)
    }

    fn check_space(&self, log_length: u64) -> Result<(), DriverError> {
        let usable = self.storage.usable_space().map_err(|error| {
            DriverError::io(
                &error,
                format!("failed to find the usable space in {}", self.limits.dir),
            )
        })?;
        if usable < log_length {
            return Err(DriverError::coded(
                ErrorCode::StorageSpace,
                format!(
                    "insufficient usable storage for new log of length={log_length} usable={usable} in {}",
                    self.limits.dir
                ),
            ));
        }
        if usable <= self.limits.low_space_warning {
            // The text must not change with each log: the error log would fill up.
            self.errors.note(&format!(
                "WARNING: space is running low: threshold={} in {}\n",
                self.limits.low_space_warning, self.limits.dir
            ));
        }
        Ok(())
    }

    fn remove(&mut self, log: LogId) -> bool {
        match self.storage.remove(log) {
            Ok(()) => {
                if let Some(lengths) = self.logs.remove(&log) {
                    self.counters
                        .bytes_mapped
                        .fetch_add(-(lengths.mapped as i64));
                    if matches!(log, LogId::Image(_)) {
                        self.image_bytes -= lengths.allocated as u64;
                    }
                }
                true
            }
            Err(error) => {
                self.counters.failed_frees.fetch_add(1);
                self.errors
                    .record(&self.describe(&error, "failed to remove log", log));
                self.failed_removals.push_back(log);
                false
            }
        }
    }

    fn describe(&self, error: &io::Error, action: &str, log: LogId) -> DriverError {
        let (LogId::Publication(id) | LogId::Image(id)) = log;
        DriverError::io(
            error,
            format!("{action}: registrationId={id} in {}", self.limits.dir),
        )
    }
}

/// The outcome of a lookup that is over.
fn if_known<T>(result: Result<T, DriverError>) -> Option<Result<T, DriverError>> {
    let is_over = !result.as_ref().is_err_and(DriverError::is_temporary);
    is_over.then_some(result)
}

/// Where the file system cannot allocate ahead, stores find out themselves.
fn ignore_unsupported(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::Unsupported {
        Ok(())
    } else {
        Err(error)
    }
}

impl Agent for NativeResourceAgent {
    fn do_work(&mut self) -> Result<usize, AgentError> {
        Ok(NativeResourceAgent::do_work(self))
    }

    fn on_close(&mut self) -> Result<(), AgentError> {
        self.close();
        Ok(())
    }

    fn role_name(&self) -> Cow<'_, str> {
        "aeron-md-nra".into()
    }
}
