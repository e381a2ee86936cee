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
use aeron_memory::log::frame::HEADER_LENGTH;
use aeron_memory::log::metadata::METADATA_LENGTH;
use aeron_protocol::ErrorCode;

use crate::diagnostics::ErrorRecorder;
use crate::error::DriverError;
use crate::log_storage::LogStorage;
use crate::media::{ChannelResolver, ChannelRole, UdpChannel};
use crate::queue::{Receiver, Sender};

/// What the conductor asks for.
#[derive(Debug)]
pub enum ResourceCommand {
    /// Create the log of a publication.
    CreateLog {
        /// Names the log.
        registration_id: i64,
        /// Length of the whole log in bytes.
        length: usize,
        /// Where its first frame goes, in bytes from the start, if only that page and the metadata are allocated now.
        sparse_start: Option<usize>,
    },
    /// Allocate a part of a sparse log.
    AllocateLog {
        /// Names the log.
        registration_id: i64,
        /// Where the part begins, in bytes.
        offset: usize,
        /// Length of the part in bytes.
        length: usize,
    },
    /// Remove a log that nobody is told of any more.
    RemoveLog {
        /// Names the log.
        registration_id: i64,
    },
    /// Find the addresses of a UDP channel.
    ResolveChannel {
        /// Names the request.
        id: i64,
        /// The channel as it came in a command.
        channel: Box<[u8]>,
        /// What it is for.
        role: ChannelRole,
    },
    /// Find one address of a channel, for the first time or again.
    ResolveName {
        /// Names the request.
        id: i64,
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
        registration_id: i64,
        /// Its memory.
        result: Result<SharedBuffer, DriverError>,
    },
    /// Stores to the next bytes of the part of a log asked for are safe now, or there is no space for the rest of it.
    LogAllocated {
        /// Names the log.
        registration_id: i64,
        /// How many bytes were allocated.
        result: Result<usize, DriverError>,
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
    /// Lengths of the logs there are, by registration id.
    log_lengths: HashMap<i64, usize>,
    failed_removals: VecDeque<i64>,
    allocation: Option<Allocation>,
    limits: StorageLimits,
    counters: ResourceCounters,
    errors: ErrorRecorder,
}

/// A part of a log that is being allocated, slice by slice.
#[derive(Clone, Copy, Debug)]
struct Allocation {
    registration_id: i64,
    offset: usize,
    end: usize,
}

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
            log_lengths: HashMap::new(),
            failed_removals: VecDeque::new(),
            allocation: None,
            limits,
            counters,
            errors,
        }
    }

    /// One duty cycle; answers how much was done.
    pub fn do_work(&mut self) -> usize {
        let mut work_count = self.replies.flush() + self.channels.do_work();
        if let Some(allocation) = self.allocation.take() {
            self.allocate(allocation);
            work_count += 1;
        } else if let Ok(command) = self.commands.pop() {
            self.execute(command);
            work_count += 1;
        }
        for _ in 0..self.limits.free_limit.min(self.failed_removals.len()) {
            let Some(registration_id) = self.failed_removals.pop_front() else {
                break;
            };
            work_count += usize::from(self.remove(registration_id));
        }
        work_count
    }

    /// Removes all logs.
    pub fn close(&mut self) {
        let registration_ids: Vec<_> = self.log_lengths.keys().copied().collect();
        for registration_id in registration_ids {
            self.remove(registration_id);
        }
    }

    fn execute(&mut self, command: ResourceCommand) {
        match command {
            ResourceCommand::CreateLog {
                registration_id,
                length,
                sparse_start,
            } => {
                let result = self.create(registration_id, length, sparse_start);
                self.replies.send(ResourceReply::LogCreated {
                    registration_id,
                    result,
                });
            }
            ResourceCommand::AllocateLog {
                registration_id,
                offset,
                length,
            } => {
                let allocation = Allocation {
                    registration_id,
                    offset,
                    end: offset + length,
                };
                // All or nothing: whoever sees the first slice relies on the last one.
                match self.storage.usable_space() {
                    Ok(usable) if usable < length as u64 => {
                        self.answer_allocation(
                            registration_id,
                            Err(io::ErrorKind::StorageFull.into()),
                        );
                    }
                    _ => self.allocate(allocation),
                }
            }
            ResourceCommand::RemoveLog { registration_id } => {
                self.remove(registration_id);
            }
            ResourceCommand::ResolveChannel { id, channel, role } => {
                let result = self.channels.resolve(&channel, role).map(Arc::new);
                self.replies
                    .send(ResourceReply::ChannelResolved { id, result });
            }
            ResourceCommand::ResolveName {
                id,
                name,
                parameter,
            } => {
                let result = self.channels.resolve_name(&name, parameter);
                self.replies
                    .send(ResourceReply::NameResolved { id, result });
            }
        }
    }

    /// Allocates one slice, and tells the conductor at once: publishers may wait for it.
    fn allocate(&mut self, mut allocation: Allocation) {
        let registration_id = allocation.registration_id;
        let length = (allocation.end - allocation.offset).min(ALLOCATION_SLICE_LENGTH);
        let result = self.allocate_pages(registration_id, allocation.offset, length);
        allocation.offset += length;
        if result.is_ok() && allocation.offset < allocation.end {
            self.allocation = Some(allocation);
        }
        self.answer_allocation(registration_id, result.map(|()| length));
    }

    fn answer_allocation(&mut self, registration_id: i64, result: io::Result<usize>) {
        let result = result.map_err(|error| {
            self.describe(&error, "failed to allocate pages of log", registration_id)
        });
        self.replies.send(ResourceReply::LogAllocated {
            registration_id,
            result,
        });
    }

    fn allocate_pages(
        &mut self,
        registration_id: i64,
        offset: usize,
        length: usize,
    ) -> io::Result<()> {
        self.storage
            .allocate(registration_id, offset, length)
            .or_else(ignore_unsupported)
    }

    fn create(
        &mut self,
        registration_id: i64,
        length: usize,
        sparse_start: Option<usize>,
    ) -> Result<SharedBuffer, DriverError> {
        if self.limits.perform_checks {
            self.check_space(length as u64)?;
        }
        let memory = self
            .storage
            .create(registration_id, length, sparse_start.is_some())
            .map_err(|error| self.describe(&error, "failed to create log", registration_id))?;
        if let Some(start) = sparse_start {
            // The driver writes the metadata, and subscribers look at the first frame before there is one.
            let allocated = self
                .allocate_pages(registration_id, length - METADATA_LENGTH, METADATA_LENGTH)
                .and_then(|()| self.allocate_pages(registration_id, start, HEADER_LENGTH));
            if let Err(error) = allocated {
                // Nobody knows the log yet; the failure to report is the allocation's.
                let _ = self.storage.remove(registration_id);
                return Err(self.describe(&error, "failed to create log", registration_id));
            }
        }
        self.log_lengths.insert(registration_id, length);
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

    fn remove(&mut self, registration_id: i64) -> bool {
        match self.storage.remove(registration_id) {
            Ok(()) => {
                let length = self
                    .log_lengths
                    .remove(&registration_id)
                    .unwrap_or_default();
                self.counters.bytes_mapped.fetch_add(-(length as i64));
                true
            }
            Err(error) => {
                self.counters.failed_frees.fetch_add(1);
                self.errors
                    .record(&self.describe(&error, "failed to remove log", registration_id));
                self.failed_removals.push_back(registration_id);
                false
            }
        }
    }

    fn describe(&self, error: &io::Error, action: &str, registration_id: i64) -> DriverError {
        DriverError::io(
            error,
            format!(
                "{action}: registrationId={registration_id} in {}",
                self.limits.dir
            ),
        )
    }
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
