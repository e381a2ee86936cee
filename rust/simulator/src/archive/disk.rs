//! [`SimulatedDisk`]: the disk of a simulated archive. A kill can end the process in the middle of a disk operation.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use aeron_archive::catalog::{CATALOG_FILE, NEW_CATALOG_FILE};
use aeron_archive::extensions::{EXTENSIONS_FILE_NAME, ExtensionChange, decode_records};
use aeron_archive::memory_storage::{MemoryFile, MemoryStorage, PAGE_LENGTH, StorageFault};
use aeron_archive::segments::{SEGMENT_EXTENSION, SegmentFileName};
use aeron_archive::storage::{Access, Storage, StorageFile, SyncLevel};
use fastrand::Rng;

use super::compacting::{CompactionFault, PowerLoss};

/// Length of the header of the file of extensions.
const EXTENSIONS_HEADER_LENGTH: usize = 16;

/// Lengths of writes that change the entry of a recording. Other writes to the catalog are shorter or longer.
const ENTRY_CHANGES: std::ops::Range<usize> = 8..100;

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug, Default)]
pub struct SimulatedDisk {
    /// The files.
    pub storage: MemoryStorage,
    /// The write in which the process is killed next.
    tear: Arc<Mutex<Option<Tear>>>,
    target: Arc<Mutex<KillTarget>>,
    compaction: Arc<Mutex<CompactionState>>,
    defects: Arc<Mutex<Defects>>,
}

/// The next defects of the disk.
#[derive(Debug, Default)]
struct Defects {
    /// Kind of the file of which the next sync fails.
    failed_sync: Option<FileKind>,
    stray: Option<StrayWrite>,
    /// Random numbers of a slow disk; `None` if the disk is fast.
    slow: Option<Rng>,
    /// Time of the writes that the process still waits for, in nanoseconds.
    delay_ns: i64,
}

/// A write to a segment that the disk also stores, or only stores, at a wrong place.
#[derive(Clone, Debug)]
pub struct StrayWrite {
    /// Recording of the written segment.
    pub recording_id: i64,
    /// Name of the segment with the wrong place.
    pub victim: String,
    /// Offset of the wrong place.
    pub offset: u64,
    /// Whether the disk also stores the bytes at the right place.
    pub is_doubled: bool,
}

/// One in this number of writes is slow, if the disk is slow.
const SLOW_WRITES: u32 = 16;
/// Maximum time of a slow write, in nanoseconds.
const SLOWEST_WRITE_NS: i64 = 1_000_000_000;

/// A step on the disk before or after which the process is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskPoint {
    /// Kind of the step.
    pub step: DiskStep,
    /// The file.
    pub file: FileKind,
    /// Kind of a record: steps before the first record of this kind do not count. `None` if all steps count.
    pub after: Option<RecordKind>,
    /// Number of steps of this kind before the one at which the process is killed.
    pub skipped: u32,
    /// Whether the kill comes after the step. If `false`, the kill comes before the step.
    pub is_done: bool,
}

/// A kind of steps on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiskStep {
    /// A file is created.
    Create,
    /// Bytes are written.
    Write,
    /// A file is deleted.
    Remove,
    /// A file gets another name.
    Rename,
}

/// A kind of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// The catalog.
    Catalog,
    /// A segment.
    Segment,
    /// The index of a segment.
    Index,
    /// The file of extensions.
    Extensions,
    /// A record in the file of extensions.
    Record(RecordKind),
    /// The log of retention.
    RetentionLog,
}

/// A kind of records in the file of extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    /// A named reader, or its position.
    Reader,
    /// The end of a named reader.
    ReaderRemoved,
    /// A retention policy.
    Policy,
    /// The start of a deletion.
    Deletion,
    /// The end of a deletion.
    DeletionEnd,
    /// The link from a recording to its predecessor.
    Link,
    /// A recording subscription that the archive resumes at its next start.
    Subscription,
    /// The state of the clock that retention keeps.
    Clock,
}

/// A write that is torn, because the process is killed in it.
#[derive(Clone, Copy, Debug)]
struct Tear {
    /// Kind of the file.
    file: FileKind,
    /// Maximum number of pages that are written.
    pages: usize,
}

/// The next fault of a compaction, and the number of compactions.
#[derive(Debug, Default)]
struct CompactionState {
    /// The fault, and the number of steps between the creation of the new catalog and the fault.
    fault: Option<(u64, CompactionFault)>,
    /// The loss of power that the next change of a recording's entry causes.
    later: Option<PowerLoss>,
    /// Whether the next deletion of a segment fails.
    fails_removal: bool,
    /// The loss of power that the current compaction causes.
    power_loss: Option<PowerLoss>,
    count: u64,
}

/// The point at which the process is killed, and whether that has happened.
#[derive(Debug, Default)]
struct KillTarget {
    point: Option<DiskPoint>,
    is_reached: bool,
}

/// An open file of a [`SimulatedDisk`].
#[derive(Debug)]
pub struct SimulatedFile {
    file: MemoryFile,
    disk: SimulatedDisk,
    kind: Option<FileKind>,
    /// Recording of a segment.
    recording_id: Option<i64>,
}

/// The process was killed in the middle of a disk operation.
pub struct Killed;

/// Runs a part of a process.
///
/// # Errors
/// The process was killed. Do not run the objects of the process any more.
pub fn run_until_killed<T>(part: impl FnOnce() -> T) -> Result<T, Killed> {
    catch_unwind(AssertUnwindSafe(part)).map_err(|cause: Box<dyn Any + Send>| {
        match cause.downcast::<Killed>() {
            Ok(killed) => *killed,
            Err(panic) => resume_unwind(panic),
        }
    })
}

/// Returns `outcome`, or ends the process if the disk has killed it. Error handlers of the process do not run then.
fn unless_killed<T>(disk: &SimulatedDisk, outcome: T) -> T {
    if disk.storage.is_killed() && !std::thread::panicking() {
        resume_unwind(Box::new(Killed));
    }
    outcome
}

impl SimulatedDisk {
    /// Returns the names of all files.
    pub fn names(&self) -> Vec<String> {
        self.storage.names().unwrap_or_default()
    }

    /// Kills the process in the next write that crosses the end of a page in a file of this kind. At most `pages` pages
    /// are written, and always fewer than the whole write has.
    pub fn tear_write(&self, file: FileKind, pages: usize) {
        *lock(&self.tear) = Some(Tear { file, pages });
    }

    /// Tears no write.
    pub fn forget_tear(&self) {
        *lock(&self.tear) = None;
    }

    /// Kills the process in this write, if it is the one to tear.
    fn tear(&self, file: FileKind, offset: u64, length: usize) {
        let count = (offset as usize % PAGE_LENGTH + length).div_ceil(PAGE_LENGTH);
        let mut tear = lock(&self.tear);
        if count > 1
            && let Some(Tear { pages, .. }) = tear.take_if(|tear| tear.file == file)
        {
            let progress = pages.min(count - 1);
            let step = self.storage.steps();
            self.storage.fail_at(step, StorageFault::Kill { progress });
        }
    }

    /// Kills the process when it reaches a point.
    pub fn kill_at(&self, point: DiskPoint) {
        self.target().point = Some(point);
    }

    /// Whether the process was killed at the point of [`kill_at`](Self::kill_at).
    pub fn was_killed_at_point(&self) -> bool {
        self.target().is_reached
    }

    /// Notes a step. Kills the process in this step if the step is the point of [`kill_at`](Self::kill_at).
    fn reach(&self, step: DiskStep, file: Option<FileKind>) {
        let mut target = self.target();
        let Some(point) = &mut target.point else {
            return;
        };
        if let Some(record) = point.after {
            if file == Some(FileKind::Record(record)) {
                point.after = None;
            }
            return;
        }
        if point.step != step || Some(point.file) != file {
            return;
        }
        if point.skipped > 0 {
            point.skipped -= 1;
            return;
        }
        let progress = if point.is_done { usize::MAX } else { 0 };
        let step = self.storage.steps();
        self.storage.fail_at(step, StorageFault::Kill { progress });
        *target = KillTarget {
            point: None,
            is_reached: true,
        };
    }

    /// Makes a fault occur in the next compaction of the catalog, `steps` steps after the creation of the new catalog.
    pub fn fail_compaction(&self, steps: u64, fault: CompactionFault) {
        let mut compaction = lock(&self.compaction);
        match fault {
            CompactionFault::Removal => compaction.fails_removal = true,
            _ => compaction.fault = Some((steps, fault)),
        }
    }

    /// Cancels the pending faults of compactions.
    pub fn forget_compaction_fault(&self) {
        let mut compaction = lock(&self.compaction);
        compaction.fault = None;
        compaction.later = None;
        compaction.fails_removal = false;
    }

    /// Returns the loss of power that a compaction has caused.
    pub fn take_power_loss(&self) -> Option<PowerLoss> {
        lock(&self.compaction).power_loss.take()
    }

    /// Whether the machine loses power during a compaction.
    pub fn loses_power(&self) -> bool {
        let loss = lock(&self.compaction).power_loss;
        loss.is_some_and(|loss| loss.after_ns == 0)
    }

    /// Returns the number of new catalogs that the archive began to write.
    pub fn compactions(&self) -> u64 {
        lock(&self.compaction).count
    }

    /// Notes a write to the catalog.
    fn write_catalog(&self, offset: u64, length: usize) {
        if offset > 0 && ENTRY_CHANGES.contains(&length) {
            let mut compaction = lock(&self.compaction);
            if let Some(loss) = compaction.later.take() {
                compaction.power_loss = Some(loss);
            }
        }
    }

    fn begin_compaction(&self) {
        let mut compaction = lock(&self.compaction);
        compaction.count += 1;
        let Some((steps, fault)) = compaction.fault.take() else {
            return;
        };
        let fault = match fault {
            CompactionFault::Disk(fault) => fault,
            CompactionFault::Removal => return,
            CompactionFault::PowerLoss(loss) => {
                if loss.after_ns > 0 {
                    compaction.later = Some(loss);
                    return;
                }
                compaction.power_loss = Some(loss);
                StorageFault::Kill { progress: 1 }
            }
        };
        self.storage.fail_at(self.storage.steps() + steps, fault);
    }

    /// Returns the kind of the record that is written to the file of extensions. The first write to a new file begins
    /// with the file's header.
    fn record_kind(&self, bytes: &[u8]) -> Option<RecordKind> {
        let stored = self.storage.bytes(EXTENSIONS_FILE_NAME)?;
        let records = match stored.get(..EXTENSIONS_HEADER_LENGTH) {
            Some(header) => decode_records(&[header, bytes].concat()),
            None => decode_records(bytes),
        };
        Some(match records?.first()? {
            ExtensionChange::Reader(_) => RecordKind::Reader,
            ExtensionChange::ReaderRemoved { .. } => RecordKind::ReaderRemoved,
            ExtensionChange::Policy(_) => RecordKind::Policy,
            ExtensionChange::Info { .. } => RecordKind::Link,
            ExtensionChange::Subscription(_) => RecordKind::Subscription,
            ExtensionChange::SubscriptionStopped { .. } => return None,
            ExtensionChange::Clock(_) => RecordKind::Clock,
            ExtensionChange::Deleting { deletion, .. } if deletion.range.is_empty() => {
                RecordKind::DeletionEnd
            }
            ExtensionChange::Deleting { .. } => RecordKind::Deletion,
        })
    }

    fn target(&self) -> MutexGuard<'_, KillTarget> {
        lock(&self.target)
    }

    fn opened(&self, name: &str, file: io::Result<MemoryFile>) -> io::Result<SimulatedFile> {
        unless_killed(self, file).map(|file| SimulatedFile {
            file,
            disk: self.clone(),
            kind: FileKind::of(name),
            recording_id: SegmentFileName::parse(name)
                .filter(|file| file.extension == SEGMENT_EXTENSION)
                .map(|file| file.recording_id),
        })
    }

    /// Makes the next sync of a file of this kind fail. The bytes that were not synced are lost.
    pub fn fail_sync(&self, file: FileKind) {
        lock(&self.defects).failed_sync = Some(file);
    }

    /// Makes the next write to a segment of a recording a stray write.
    pub fn go_astray(&self, stray: StrayWrite) {
        lock(&self.defects).stray = Some(stray);
    }

    /// Makes some writes take up to a second.
    pub fn slow_down(&self, seed: u64) {
        lock(&self.defects).slow = Some(Rng::with_seed(seed));
    }

    /// Ends all defects.
    pub fn forget_defects(&self) {
        *lock(&self.defects) = Defects::default();
        self.storage.forget_failed_sync();
    }

    /// Returns the time for which the process waits for its last writes, in nanoseconds.
    pub fn take_delay_ns(&self) -> i64 {
        std::mem::take(&mut lock(&self.defects).delay_ns)
    }

    fn delay_write(&self) {
        let mut defects = lock(&self.defects);
        if let Some(random) = &mut defects.slow
            && random.u32(..SLOW_WRITES) == 0
        {
            let delay_ns = random.i64(1..=SLOWEST_WRITE_NS);
            defects.delay_ns = defects.delay_ns.max(delay_ns);
        }
    }
}

impl FileKind {
    /// Returns the kind of a file by its name.
    fn of(name: &str) -> Option<Self> {
        match name {
            // The archive renames a new catalog while it is open. So both names have the same kind.
            CATALOG_FILE | NEW_CATALOG_FILE => Some(Self::Catalog),
            EXTENSIONS_FILE_NAME => Some(Self::Extensions),
            "archive-retention.log" => Some(Self::RetentionLog),
            _ => match name.rsplit_once('.') {
                Some((_, SEGMENT_EXTENSION)) => Some(Self::Segment),
                Some((_, "idx")) => Some(Self::Index),
                _ => None,
            },
        }
    }
}

impl Storage for SimulatedDisk {
    type File = SimulatedFile;

    fn create(&self, name: &str, length: u64) -> io::Result<SimulatedFile> {
        if name == NEW_CATALOG_FILE {
            self.begin_compaction();
        }
        self.reach(DiskStep::Create, FileKind::of(name));
        self.opened(name, self.storage.create(name, length))
    }

    fn open(&self, name: &str, access: Access) -> io::Result<SimulatedFile> {
        self.opened(name, self.storage.open(name, access))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let kind = FileKind::of(name);
        if kind == Some(FileKind::Segment)
            && std::mem::take(&mut lock(&self.compaction).fails_removal)
        {
            let fault = StorageFault::Error(io::ErrorKind::Other);
            self.storage.fail_at(self.storage.steps(), fault);
        }
        self.reach(DiskStep::Remove, kind);
        unless_killed(self, self.storage.remove(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.reach(DiskStep::Rename, FileKind::of(to));
        unless_killed(self, self.storage.rename(from, to))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.storage.names()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.storage.free_bytes()
    }

    fn sync(&self) -> io::Result<()> {
        unless_killed(self, Storage::sync(&self.storage))
    }
}

impl StorageFile for SimulatedFile {
    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        unless_killed(&self.disk, self.file.set_length(length))
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if self.kind == Some(FileKind::Catalog) {
            self.disk.write_catalog(offset, bytes.len());
        }
        if let Some(kind) = self.kind {
            self.disk.tear(kind, offset, bytes.len());
        }
        let kind = match self.kind {
            Some(FileKind::Extensions) if self.disk.target().point.is_some() => {
                self.disk.record_kind(bytes).map(FileKind::Record)
            }
            kind => kind,
        };
        self.disk.reach(DiskStep::Write, kind);
        self.disk.delay_write();
        let stray = lock(&self.disk.defects)
            .stray
            .take_if(|stray| Some(stray.recording_id) == self.recording_id);
        if let Some(stray) = stray {
            self.disk
                .storage
                .overwrite(&stray.victim, bytes, stray.offset);
            if !stray.is_doubled {
                return Ok(bytes.len());
            }
        }
        unless_killed(&self.disk, self.file.write_at(bytes, offset))
    }

    fn modified(&self) -> io::Result<SystemTime> {
        self.file.modified()
    }

    fn sync(&self, level: SyncLevel) -> io::Result<()> {
        let mut defects = lock(&self.disk.defects);
        if level > SyncLevel::None
            && self.kind.is_some()
            && defects
                .failed_sync
                .take_if(|kind| Some(*kind) == self.kind)
                .is_some()
        {
            self.disk.storage.fail_next_sync();
        }
        drop(defects);
        unless_killed(&self.disk, self.file.sync(level))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
