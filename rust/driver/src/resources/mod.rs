//! The native resource agent: makes the system calls that can block, so that the conductor never blocks.
//!
//! The agent creates, allocates and removes logs and resolves names. One duty cycle contains at most
//!
//! - one command of the [`Lane`] of clients,
//! - one slice of a log for publishers or running streams,
//! - one command of the [`Lane`] of images,
//! - one slice of the log of a new image.
//!
//! None of these four waits for the others, even if terms are long. Each duty cycle also repeats all lookups in
//! progress and some failed removals. Replies have their own queue.

mod command;
mod lanes;
mod slices;
mod space;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;

use aeron_agent::{Agent, AgentError};
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::log::metadata::METADATA_LENGTH;
use aeron_protocol::ErrorCode;
use rustix::io::Errno;

pub use command::{CreatedLog, Lane, LookupSubject, ResourceCommand, ResourceReply};
pub use lanes::{ResourceCommands, ResourceInbox, lanes};
use slices::Slices;
use space::SpaceLedger;

use crate::diagnostics::ErrorRecorder;
use crate::error::DriverError;
use crate::log_storage::{LogId, LogStorage};
use crate::media::ChannelResolver;
use crate::publication::FirstPages;
use crate::queue::QueueProducer;
pub use crate::stream::PageRequest;

/// Counters that the agent updates.
pub struct ResourceCounters {
    /// Number of failed attempts to free log buffers.
    pub failed_frees: AtomicCounter<SharedBuffer>,
    /// Number of bytes that are currently mapped.
    pub bytes_mapped: AtomicCounter<SharedBuffer>,
}

/// Limits for the use of the file system.
#[derive(Clone, Debug)]
pub struct StorageLimits {
    /// Whether the creation of a log also requires free space that it does not allocate at once, and records a warning
    /// if the space is low. The bytes that the creation allocates must always be free.
    pub perform_checks: bool,
    /// Free space in bytes below which a warning is recorded.
    pub low_space_warning: u64,
    /// Maximum number of failed log removals that are repeated in a duty cycle.
    pub free_limit: usize,
    /// The driver's directory, for messages.
    pub dir: String,
}

/// The agent; see the [module](self).
pub struct NativeResourceAgent {
    storage: Box<dyn LogStorage>,
    channels: ChannelResolver,
    inbox: ResourceInbox,
    replies: QueueProducer<ResourceReply>,
    space: SpaceLedger,
    /// Parts of publications' logs, and of the logs of existing images.
    slices: Slices,
    /// The logs of images that are being created.
    image_slices: Slices,
    /// Logs that are being allocated completely. The conductor gets the memory of such a log after the last slice.
    creating: HashMap<LogId, SharedBuffer>,
    failed_removals: VecDeque<LogId>,
    /// Lookups in progress; each is repeated in each duty cycle.
    looking_up: Vec<(i64, LookupSubject)>,
    limits: StorageLimits,
    counters: ResourceCounters,
    errors: ErrorRecorder,
}

/// Divisor for the space of images. All images together get at most half of the space that would be free without
/// images, because any peer on the network can make the driver create images.
const IMAGE_SPACE_DIVISOR: u64 = 2;

/// Maximum number of image logs that are created at the same time. With several, a short log does not wait for a long
/// log. The limit ensures that a flood of image requests does not delay the slices of each log too much.
const MAX_IMAGES_IN_CREATION: usize = 16;

/// Number of free bytes that the creation of a sparse log requires; less if the log is shorter. The first window of the
/// log needs less.
const SPARSE_LOG_SPACE: usize = 16 * 1024 * 1024;

/// The space that is needed to create a log, in bytes.
#[derive(Clone, Copy, Debug)]
struct SpaceNeeds {
    /// Number of bytes that the creation allocates. For an image, they count against the space of images.
    allocated: usize,
    /// Number of bytes that must be free in the file system.
    free: usize,
}

impl NativeResourceAgent {
    /// Creates an agent that executes the commands of `inbox` and sends `replies`.
    pub fn new(
        storage: Box<dyn LogStorage>,
        channels: ChannelResolver,
        inbox: ResourceInbox,
        replies: QueueProducer<ResourceReply>,
        limits: StorageLimits,
        counters: ResourceCounters,
        errors: ErrorRecorder,
    ) -> Self {
        Self {
            storage,
            channels,
            inbox,
            replies,
            space: SpaceLedger::default(),
            slices: Slices::default(),
            image_slices: Slices::default(),
            creating: HashMap::new(),
            failed_removals: VecDeque::new(),
            looking_up: Vec::new(),
            limits,
            counters,
            errors,
        }
    }

    /// Runs one duty cycle. Returns the amount of work done.
    pub fn do_work(&mut self) -> usize {
        let mut work_count = self.replies.flush() + self.channels.do_work() + self.look_up_again();
        if let Ok(command) = self.inbox.clients.pop() {
            self.execute(command);
            work_count += 1;
        }
        if let Some((log, pages)) = self.slices.pop() {
            self.allocate_slice(log, pages);
            work_count += 1;
        }
        if self.image_slices.count() < MAX_IMAGES_IN_CREATION
            && let Ok(command) = self.inbox.images.pop()
        {
            self.execute(command);
            work_count += 1;
        }
        debug_assert!(
            self.image_slices.count() <= MAX_IMAGES_IN_CREATION,
            "{} logs of images are created at the same time",
            self.image_slices.count()
        );
        if let Some((log, pages)) = self.image_slices.pop() {
            self.allocate_slice(log, pages);
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

    /// Returns the number of objects of each kind.
    pub(crate) fn census(&self) -> [(&'static str, usize); 6] {
        [
            ("logs", self.space.logs().len()),
            ("reserved bytes of logs", self.space.held() as usize),
            ("bytes of images", self.space.image_bytes() as usize),
            (
                "parts of logs to allocate",
                self.slices.count() + self.image_slices.count() + self.creating.len(),
            ),
            ("failed removals of logs", self.failed_removals.len()),
            ("lookups", self.looking_up.len()),
        ]
    }

    /// Removes all logs.
    pub fn close(&mut self) {
        for log in self.space.logs() {
            self.remove(log);
        }
    }

    fn execute(&mut self, command: ResourceCommand) {
        match command {
            ResourceCommand::CreateLog {
                log,
                length,
                sparse,
                first_pages,
            } => {
                let created = match sparse {
                    Some(parts) => self.create_sparse(log, length, &parts).map(Some),
                    None => self.begin_creation(log, length).map(|()| None),
                };
                if let Some(result) = created.transpose() {
                    let result = result.map(|memory| CreatedLog {
                        memory,
                        first_pages: first_pages.map(|pages| self.allocate_first(log, &pages)),
                    });
                    self.replies.send(ResourceReply::LogCreated { log, result });
                }
            }
            ResourceCommand::AllocateLog {
                log,
                pages,
                promise,
                is_awaited,
            } => self.begin_allocation(log, pages, promise, is_awaited),
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

    fn look_up(&mut self, id: i64, what: &LookupSubject) -> Option<ResourceReply> {
        Some(match what {
            LookupSubject::Channel { channel, role } => ResourceReply::ChannelResolved {
                id,
                result: if_known(self.channels.resolve(channel, *role))?.map(Arc::new),
            },
            LookupSubject::Name { name, parameter } => ResourceReply::NameResolved {
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

    /// Grants a part of a log and promises bytes after it, or refuses both.
    ///
    /// A publisher that uses the first slice relies on the later slices and the promised bytes.
    fn begin_allocation(
        &mut self,
        log: LogId,
        pages: PageRequest,
        promise: usize,
        is_awaited: bool,
    ) {
        // The removal of an image on the other lane may have been executed before this allocation.
        let Some(rest) = self.space.rest(log) else {
            return;
        };
        match self.grant(log, rest, pages.length, promise) {
            Ok(()) if is_awaited => self.allocate_slice(log, pages),
            Ok(()) => self.slices.push(log, pages),
            Err(error) => {
                let result = Err(error);
                self.replies
                    .send(ResourceReply::LogAllocated { log, result });
            }
        }
    }

    /// Grants `length` of the `rest` bytes of a log that are not allocated, and promises bytes after them; or refuses
    /// both.
    fn grant(
        &mut self,
        log: LogId,
        rest: usize,
        length: usize,
        promise: usize,
    ) -> Result<(), DriverError> {
        let needed = length.max(rest.min(length + promise));
        self.check_room(log, needed)
            .map_err(|error| self.explain(error, "failed to allocate pages of log", log))?;
        self.space.grant(log, length, promise);
        Ok(())
    }

    /// Allocates the first pages of a new log at once. If there is no space for them, none of them count as allocated.
    fn allocate_first(&mut self, log: LogId, first: &FirstPages) -> Result<(), DriverError> {
        let length = first.pages.iter().map(|pages| pages.length).sum();
        let rest = self.space.rest(log).unwrap_or(0);
        self.grant(log, rest, length, first.promise)?;
        let mut pages = first.pages.iter();
        match pages.try_for_each(|pages| self.allocate_pages(log, *pages)) {
            Ok(()) => {
                self.space.on_allocated(log, length);
                Ok(())
            }
            Err(error) => {
                self.space.revoke(log);
                Err(self.describe(&error, "failed to allocate pages of log", log))
            }
        }
    }

    /// Checks that `length` more bytes for `log` are free and not reserved for other logs. An image may only use the
    /// space of images.
    fn check_room(&self, log: LogId, length: usize) -> Result<(), NoRoom> {
        let Ok(usable) = self.storage.usable_space() else {
            return Ok(());
        };
        let free = self.space.free_for(log, usable);
        let image_bytes = self.space.image_bytes();
        let image_limit = free.saturating_add(image_bytes) / IMAGE_SPACE_DIVISOR;
        let is_image = matches!(log, LogId::Image(_));
        if is_image && image_bytes.saturating_add(length as u64) > image_limit {
            return Err(NoRoom::ForImages);
        }
        if free < length as u64 {
            return Err(NoRoom::AtAll);
        }
        Ok(())
    }

    /// Allocates one slice.
    ///
    /// If the conductor already has the log, reports the slice at once, because publishers may wait for its pages.
    fn allocate_slice(&mut self, log: LogId, pages: PageRequest) {
        if self.creating.contains_key(&log) {
            return self.allocate_new_slice(log, pages);
        }
        let result = match self.allocate_pages(log, pages) {
            Ok(()) => {
                self.space.on_allocated(log, pages.length);
                Ok(pages.length)
            }
            Err(error) => {
                self.slices.forget(log);
                self.space.revoke(log);
                Err(self.describe(&error, "failed to allocate pages of log", log))
            }
        };
        self.replies
            .send(ResourceReply::LogAllocated { log, result });
    }

    /// Allocates one slice of a log that is being allocated completely. The reply is sent after the last slice.
    fn allocate_new_slice(&mut self, log: LogId, pages: PageRequest) {
        let allocated = self.storage.allocate_new(log, pages.offset, pages.length);
        if allocated.is_ok() {
            self.space.on_allocated(log, pages.length);
            if !self.space.is_granted_part_allocated(log) {
                return self.announce_creation(log, pages);
            }
        }
        let Some(memory) = self.creating.remove(&log) else {
            return;
        };
        let result = match allocated {
            Ok(()) => Ok(CreatedLog {
                memory,
                first_pages: None,
            }),
            Err(error) => {
                drop(memory);
                let error = self.describe(&error, "failed to create log", log);
                self.remove(log);
                Err(error)
            }
        };
        self.replies.send(ResourceReply::LogCreated { log, result });
    }

    /// After the first of several slices, reports that the creation of a publication's log takes long.
    fn announce_creation(&mut self, log: LogId, pages: PageRequest) {
        if let (LogId::Publication(registration_id), 0) = (log, pages.offset) {
            self.replies
                .send(ResourceReply::CreatingLog { registration_id });
        }
    }

    fn allocate_pages(&mut self, log: LogId, pages: PageRequest) -> io::Result<()> {
        self.storage
            .allocate(log, pages.offset, pages.length)
            .or_else(ignore_unsupported)
    }

    /// Creates a log, and allocates its metadata and its first pages.
    fn create_sparse(
        &mut self,
        log: LogId,
        length: usize,
        first_pages: &[PageRequest],
    ) -> Result<SharedBuffer, DriverError> {
        let length_of_parts: usize = first_pages.iter().map(|part| part.length).sum();
        let first_length = length_of_parts + METADATA_LENGTH;
        let needs = SpaceNeeds {
            allocated: first_length,
            free: length.min(SPARSE_LOG_SPACE),
        };
        let memory = self.create(log, length, needs)?;
        // The driver writes the metadata, and subscribers read the header of the first frame before a publisher writes
        // the frame. The pages of both must therefore exist from the beginning.
        let metadata = PageRequest {
            offset: length - METADATA_LENGTH,
            length: METADATA_LENGTH,
        };
        let allocated = std::iter::once(&metadata)
            .chain(first_pages)
            .try_for_each(|part| self.allocate_pages(log, *part));
        match allocated {
            Ok(()) => {
                self.enter(log, length, first_length);
                Ok(memory)
            }
            Err(error) => {
                // No client knows the log yet. The error of the allocation is reported, and not the error of the
                // removal.
                let _ = self.storage.remove(log);
                Err(self.describe(&error, "failed to create log", log))
            }
        }
    }

    /// Starts the creation of a log that is allocated completely, slice by slice, before the conductor gets it.
    fn begin_creation(&mut self, log: LogId, length: usize) -> Result<(), DriverError> {
        let needs = SpaceNeeds {
            allocated: length,
            free: length,
        };
        let memory = self.create(log, length, needs)?;
        self.enter(log, length, 0);
        self.space.grant(log, length, 0);
        let replaced = self.creating.insert(log, memory);
        debug_assert!(
            replaced.is_none(),
            "{log:?} is created twice at the same time"
        );
        let all = PageRequest { offset: 0, length };
        match log {
            LogId::Publication(_) => self.slices.push(log, all),
            LogId::Image(_) => self.image_slices.push(log, all),
        }
        Ok(())
    }

    /// Creates a log without allocated pages, if the space that it needs is free.
    fn create(
        &mut self,
        log: LogId,
        length: usize,
        needs: SpaceNeeds,
    ) -> Result<SharedBuffer, DriverError> {
        if self.limits.perform_checks {
            self.check_space(log, length, needs.free)?;
        }
        self.check_room(log, needs.allocated)
            .map_err(|error| self.explain(error, "failed to create log", log))?;
        self.storage
            .create(log, length)
            .map_err(|error| self.describe_creation(&error, log))
    }

    fn enter(&mut self, log: LogId, length: usize, allocated: usize) {
        self.space.add(log, length, allocated);
        self.counters.bytes_mapped.fetch_add(length as i64);
    }

    fn check_space(&self, log: LogId, length: usize, needed: usize) -> Result<(), DriverError> {
        let usable = self.storage.usable_space().map_err(|error| {
            DriverError::io(
                &error,
                format!("failed to find the usable space in {}", self.limits.dir),
            )
        })?;
        let usable = self.space.free_for(log, usable);
        if usable < needed as u64 {
            return Err(DriverError::coded(
                ErrorCode::StorageSpace,
                format!(
                    "insufficient usable storage for new log of length={length} usable={usable} in {}",
                    self.limits.dir
                ),
            )
            .noted_as(format_args!(
                "insufficient usable storage for new log in {}",
                self.limits.dir
            )));
        }
        if usable <= self.limits.low_space_warning {
            // The text must be the same for every log. Otherwise each log would add an entry to the error log.
            self.errors.note(&format!(
                "WARNING: space is running low: threshold={} in {}\n",
                self.limits.low_space_warning, self.limits.dir
            ));
        }
        Ok(())
    }

    fn remove(&mut self, log: LogId) -> bool {
        self.slices.forget(log);
        self.image_slices.forget(log);
        self.creating.remove(&log);
        self.space.revoke(log);
        match self.storage.remove(log) {
            Ok(()) => {
                if let Some(length) = self.space.remove(log) {
                    self.counters.bytes_mapped.fetch_add(-(length as i64));
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

    fn explain(&self, error: NoRoom, action: &str, log: LogId) -> DriverError {
        match error {
            // The text must be the same for every image. Otherwise each image would add an entry to the error log.
            NoRoom::ForImages => DriverError::coded(
                ErrorCode::StorageSpace,
                format!(
                    "images may not take more than half of the free space in {}",
                    self.limits.dir
                ),
            ),
            NoRoom::AtAll => self.describe(&io::ErrorKind::StorageFull.into(), action, log),
        }
    }

    /// Returns the error for a failed creation.
    ///
    /// A lack of descriptors is temporary, because the driver closes each file after mapping it.
    fn describe_creation(&self, error: &io::Error, log: LogId) -> DriverError {
        let error_number = Errno::from_io_error(error);
        let error = self.describe(error, "failed to create log", log);
        match error_number {
            Some(Errno::MFILE | Errno::NFILE) => DriverError::coded(
                ErrorCode::ResourceTemporarilyUnavailable,
                format!("{}raise ulimit -n, or retry", error.text()),
            ),
            _ => error,
        }
    }

    fn describe(&self, error: &io::Error, action: &str, log: LogId) -> DriverError {
        let (LogId::Publication(id) | LogId::Image(id)) = log;
        DriverError::io(
            error,
            format!("{action}: registrationId={id} in {}", self.limits.dir),
        )
        .noted_as(format_args!("{action} in {}", self.limits.dir))
    }
}

/// The reason why no more bytes of a log are allocated.
#[derive(Clone, Copy, Debug)]
enum NoRoom {
    /// The images have used their share.
    ForImages,
    /// The file system is full, or its free space is reserved for other logs.
    AtAll,
}

/// Returns the result of a lookup; `None` while the lookup is in progress.
fn if_known<T>(result: Result<T, DriverError>) -> Option<Result<T, DriverError>> {
    let is_over = !result.as_ref().is_err_and(DriverError::is_temporary);
    is_over.then_some(result)
}

/// Accepts a file system that cannot allocate in advance. On such a file system, only the stores show a lack of space.
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
