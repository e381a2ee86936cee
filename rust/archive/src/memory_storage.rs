//! [`MemoryStorage`]: a disk in memory on which a test can make any operation fail. The simulator
//! and the tests of this and other crates use it.
//!
//! The disk is deterministic. Each change (create, remove, rename, set length, write, sync) is one *step*, counted from
//! 0, and a fault occurs at a given step. After a kill every operation fails until [`MemoryStorage::restart`]. Bytes
//! that were written before the kill remain, because the machine continues to run when a process dies. A killed write
//! ends at the end of a page, because the kernel checks for signals at the end of each page. Files are sparse: space is
//! allocated for a page at the first write to it.
//!
//! The disk also records which changes were synced. [`MemoryStorage::lose_power`] undoes changes
//! that were not synced: single pages, the length of a file, and the last changes of the directory.
//! The newest change of the directory is undone first, because the journal of a file system has
//! these changes in order.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::storage::{Access, Storage, StorageFile, SyncLevel};

/// Length of a sector in bytes. A loss of power leaves either all or none of a sector's new bytes.
const SECTOR_LENGTH: usize = 512;
/// Length of a page in bytes. Space is allocated in whole pages, and a killed write ends at the end
/// of a page.
pub const PAGE_LENGTH: usize = 4096;

/// A directory in memory. Clones share one directory. Several threads may use it.
#[derive(Clone, Debug, Default)]
pub struct MemoryStorage {
    disk: Arc<Mutex<Disk>>,
}

/// An open file of a [`MemoryStorage`].
#[derive(Debug)]
pub struct MemoryFile {
    disk: Arc<Mutex<Disk>>,
    contents: Arc<Mutex<Contents>>,
    access: Access,
    /// Number of restarts before the file was opened.
    restarts: u64,
}

/// A fault of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageFault {
    /// The step changes nothing and returns this error. A sync fails as after
    /// [`fail_next_sync`](MemoryStorage::fail_next_sync).
    Error(io::ErrorKind),
    /// A write stores at most this many bytes and returns their number. Other steps are done completely.
    Short(usize),
    /// A write stores at most this many pages and returns their length, like a write that the
    /// kernel has shortened. Other steps are done completely.
    ShortPages(usize),
    /// The process dies. `progress` says how much of the step is done. For a write, it is a number of pages. For a
    /// creation, 1 is an empty file, and 2 is a file of full length. Other steps are done if `progress` is not 0.
    Kill {
        /// How much of the step is done.
        progress: usize,
    },
}

/// The part of an unsynced change that survives a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// No part of the change survives.
    Lost,
    /// The whole change survives.
    Kept,
    /// If the change is a page, only the sectors with a set bit survive. Any other change survives entirely.
    Sectors(u8),
}

#[derive(Debug, Default)]
struct Disk {
    files: BTreeMap<String, Arc<Mutex<Contents>>>,
    faults: BTreeMap<u64, StorageFault>,
    read_error: Option<io::ErrorKind>,
    /// Maximum number of bytes that one read returns; `None` is no limit.
    longest_read: Option<usize>,
    /// Whether the next sync of a file fails.
    fails_sync: bool,
    steps: u64,
    restarts: u64,
    killed: bool,
    /// Maximum number of bytes of all files together; `None` is no limit.
    capacity: Option<u64>,
    /// Number of pages of all files.
    used_pages: u64,
    /// Time of the disk's clock since the epoch.
    now: Duration,
    /// Changes of the directory since its last sync, the oldest first.
    unsynced: Vec<DirectoryChange>,
}

/// The names that one change of the directory affects, with their files before the change.
type DirectoryChange = Vec<(String, Option<Arc<Mutex<Contents>>>)>;

type Page = Box<[u8; PAGE_LENGTH]>;

/// A file's bytes. A missing page is zero.
#[derive(Debug, Default)]
struct Contents {
    length: u64,
    pages: BTreeMap<u64, Page>,
    modified: Duration,
    /// Length of the file at its last sync.
    synced_length: u64,
    /// Pages that have changed since their last sync, with the content that was synced.
    unsynced: BTreeMap<u64, Option<Page>>,
    synced_modified: Duration,
    /// Whether the file was removed. A removed file still exists for the processes that have it open.
    removed: bool,
}

impl MemoryStorage {
    /// Creates an empty directory with unlimited space.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the space of all files together, in bytes of whole pages. A write beyond this limit stores only the bytes
    /// that still fit, and returns their number. If no bytes fit, the write fails with
    /// `StorageFull`.
    pub fn set_capacity(&self, bytes: u64) {
        self.disk().capacity = Some(bytes);
    }

    /// Sets the modification time of files that are written from now on.
    pub fn set_time(&self, since_epoch: Duration) {
        self.disk().now = since_epoch;
    }

    /// Returns the number of steps, counted since the storage was created.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.disk().steps
    }

    /// Makes the future step `step` fail with `fault`.
    pub fn fail_at(&self, step: u64, fault: StorageFault) {
        self.disk().faults.insert(step, fault);
    }

    /// Removes all faults that have not occurred yet.
    pub fn forget_faults(&self) {
        self.disk().faults.clear();
    }

    /// Makes the next sync of a file fail. All pages of the file that have changed since their last sync get the
    /// content of that sync again, and count as synced. On Linux, later reads may see this too: the pages become clean,
    /// and the kernel drops them from memory.
    pub fn fail_next_sync(&self) {
        self.disk().fails_sync = true;
    }

    /// Cancels a failure of the next sync.
    pub fn forget_failed_sync(&self) {
        self.disk().fails_sync = false;
    }

    /// Simulates a defect of the disk: bytes of another write overwrite a part of a file, up to the end of the file.
    /// Returns whether the file has that part.
    pub fn overwrite(&self, name: &str, bytes: &[u8], offset: u64) -> bool {
        let mut disk = self.disk();
        let Some(contents) = disk.files.get(name).cloned() else {
            return false;
        };
        let mut contents = lock(&contents);
        let fitting = contents
            .length
            .saturating_sub(offset)
            .min(bytes.len() as u64);
        let before = contents.pages.len() as u64;
        contents.write(&bytes[..fitting as usize], offset);
        contents.sync(SyncLevel::Data);
        disk.used_pages += contents.pages.len() as u64 - before;
        fitting > 0
    }

    /// Makes all reads fail, or work again.
    pub fn fail_reads(&self, error: Option<io::ErrorKind>) {
        self.disk().read_error = error;
    }

    /// Makes each read return at most `longest` bytes; `None` is no limit.
    pub fn shorten_reads(&self, longest: Option<usize>) {
        self.disk().longest_read = longest;
    }

    /// Returns the bytes that all files together occupy, in whole pages.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.disk().used_pages * PAGE_LENGTH as u64
    }

    /// Kills the process between two steps.
    pub fn kill(&self) {
        self.disk().killed = true;
    }

    /// Returns whether the process is dead.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.disk().killed
    }

    /// Starts another process on the same files. Faults that have not occurred are removed. Operations on files that
    /// were opened before the restart still fail.
    pub fn restart(&self) {
        let mut disk = self.disk();
        disk.killed = false;
        disk.fails_sync = false;
        disk.faults.clear();
        disk.restarts += 1;
    }

    /// Ends the process, simulates a loss of power, and starts another process on the files that the disk then has.
    ///
    /// `survives` is called for each change that was not synced, and a change for which it returns
    /// `false` is undone. For pages, the calls are in the order of file names and page numbers. For
    /// changes of the directory, the calls begin with the oldest change and end when `survives`
    /// first returns `false`: all later changes are undone too.
    pub fn lose_power(&self, mut survives: impl FnMut() -> bool) {
        self.lose_power_in_sectors(|| match survives() {
            true => Survival::Kept,
            false => Survival::Lost,
        });
    }

    /// Does the same as [`lose_power`](Self::lose_power), but a part of the sectors of a page may
    /// survive.
    pub fn lose_power_in_sectors(&self, mut survives: impl FnMut() -> Survival) {
        self.disk().lose_power(&mut survives);
        self.restart();
    }

    /// Returns a file's bytes if the file exists. For tests: the call is not a step and never
    /// fails.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let contents = self.contents(name)?;
        let contents = lock(&contents);
        let mut bytes = vec![0; contents.length as usize];
        contents.read(&mut bytes, 0);
        Some(bytes)
    }

    /// Creates or replaces a file. For tests: the call is not a step and never fails.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let mut disk = self.disk();
        let mut contents = Contents {
            modified: disk.now,
            ..Contents::default()
        };
        contents.write(bytes, 0);
        contents.sync(SyncLevel::DataAndMetadata);
        disk.used_pages += contents.pages.len() as u64;
        disk.link(name, Arc::new(Mutex::new(contents)));
        disk.unsynced.clear();
    }

    /// Simulates a defect of the disk: inverts one bit of a file. Returns whether the file has that
    /// byte.
    pub fn flip_bit(&self, name: &str, offset: u64, bit: u32) -> bool {
        let mut disk = self.disk();
        let Some(contents) = disk.files.get(name).cloned() else {
            return false;
        };
        let mut contents = lock(&contents);
        let mut byte = [0];
        if contents.read(&mut byte, offset) == 0 {
            return false;
        }
        let before = contents.pages.len() as u64;
        contents.write(&[byte[0] ^ 1 << (bit % 8)], offset);
        contents.sync(SyncLevel::Data);
        disk.used_pages += contents.pages.len() as u64 - before;
        true
    }

    fn contents(&self, name: &str) -> Option<Arc<Mutex<Contents>>> {
        self.disk().files.get(name).cloned()
    }

    fn disk(&self) -> MutexGuard<'_, Disk> {
        lock(&self.disk)
    }
}

impl Storage for MemoryStorage {
    type File = MemoryFile;

    fn create(&self, name: &str, length: u64) -> io::Result<MemoryFile> {
        let mut disk = self.disk();
        let fault = disk.step()?;
        if disk.files.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let progress = disk.progress(fault);
        let contents = Contents {
            length: if progress >= 2 { length } else { 0 },
            modified: disk.now,
            ..Contents::default()
        };
        let contents = Arc::new(Mutex::new(contents));
        if progress >= 1 {
            disk.note_change(&[name]);
            disk.link(name, Arc::clone(&contents));
        }
        disk.still_alive()?;
        Ok(self.opened(&disk, contents, Access::Write))
    }

    fn open(&self, name: &str, access: Access) -> io::Result<MemoryFile> {
        let disk = self.disk();
        disk.still_alive()?;
        let contents = disk
            .files
            .get(name)
            .cloned()
            .ok_or(io::ErrorKind::NotFound)?;
        Ok(self.opened(&disk, contents, access))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = self.disk();
        let fault = disk.step()?;
        if !disk.files.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if disk.progress(fault) >= 1 {
            disk.note_change(&[name]);
            disk.unlink(name);
        }
        disk.still_alive()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk();
        let fault = disk.step()?;
        if !disk.files.contains_key(from) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if disk.progress(fault) >= 1 {
            disk.note_change(&[from, to]);
            if let Some(contents) = disk.files.remove(from) {
                disk.link(to, contents);
            }
        }
        disk.still_alive()
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let disk = self.disk();
        disk.still_alive()?;
        Ok(disk.files.keys().cloned().collect())
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let disk = self.disk();
        disk.still_alive()?;
        Ok(disk.free_pages().saturating_mul(PAGE_LENGTH as u64))
    }

    fn sync(&self) -> io::Result<()> {
        let mut disk = self.disk();
        disk.step()?;
        disk.still_alive()?;
        disk.unsynced.clear();
        Ok(())
    }
}

impl MemoryStorage {
    fn opened(&self, disk: &Disk, contents: Arc<Mutex<Contents>>, access: Access) -> MemoryFile {
        MemoryFile {
            disk: Arc::clone(&self.disk),
            contents,
            access,
            restarts: disk.restarts,
        }
    }
}

impl StorageFile for MemoryFile {
    fn length(&self) -> io::Result<u64> {
        let _disk = self.alive()?;
        Ok(lock(&self.contents).length)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        let mut disk = self.alive()?;
        let fault = disk.step()?;
        self.check_writable()?;
        if disk.progress(fault) >= 1 {
            disk.change(&self.contents, |contents| contents.set_length(length));
        }
        disk.still_alive()
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let disk = self.alive()?;
        match disk.read_error {
            Some(error) => Err(error.into()),
            None => {
                let most = bytes.len().min(disk.longest_read.unwrap_or(usize::MAX));
                Ok(lock(&self.contents).read(&mut bytes[..most], offset))
            }
        }
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut disk = self.alive()?;
        let fault = disk.step()?;
        self.check_writable()?;
        let wanted = match fault {
            Some(StorageFault::Short(most)) => bytes.len().min(most),
            Some(StorageFault::ShortPages(pages)) => bytes.len().min(bytes_of_pages(offset, pages)),
            _ => bytes
                .len()
                .min(bytes_of_pages(offset, disk.progress(fault))),
        };
        let free_pages = disk.free_pages();
        let written = disk.change(&self.contents, |contents| {
            let fitting = contents.fitting(offset, wanted, free_pages);
            contents.write(&bytes[..fitting], offset);
            fitting
        });
        disk.still_alive()?;
        if written == 0 && wanted > 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(written)
    }

    fn trailing_zeros(&self, offset: u64) -> io::Result<Option<u64>> {
        let _disk = self.alive()?;
        Ok(lock(&self.contents).trailing_zeros(offset))
    }

    fn modified(&self) -> io::Result<SystemTime> {
        let _disk = self.alive()?;
        Ok(SystemTime::UNIX_EPOCH + lock(&self.contents).modified)
    }

    fn sync(&self, level: SyncLevel) -> io::Result<()> {
        let mut disk = self.alive()?;
        if level > SyncLevel::None {
            let step = disk.step();
            disk.still_alive()?;
            let mut contents = lock(&self.contents);
            let fails = std::mem::take(&mut disk.fails_sync);
            let error = step.err();
            if let Some(error) =
                error.or_else(|| fails.then(|| io::Error::other("input/output error")))
            {
                let before = contents.pages.len() as u64;
                contents.lose_unsynced();
                if !contents.removed {
                    disk.used_pages = disk.used_pages + contents.pages.len() as u64 - before;
                }
                return Err(error);
            }
            contents.sync(level);
        }
        Ok(())
    }
}

impl MemoryFile {
    /// Returns the disk if the process that opened the file is alive.
    fn alive(&self) -> io::Result<MutexGuard<'_, Disk>> {
        let disk = lock(&self.disk);
        if disk.restarts != self.restarts {
            return Err(killed());
        }
        disk.still_alive()?;
        Ok(disk)
    }

    fn check_writable(&self) -> io::Result<()> {
        match self.access {
            Access::Write => Ok(()),
            Access::Read => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}

impl Disk {
    /// Begins a step, and returns its fault.
    fn step(&mut self) -> io::Result<Option<StorageFault>> {
        self.still_alive()?;
        let fault = self.faults.remove(&self.steps);
        self.steps += 1;
        match fault {
            Some(StorageFault::Error(kind)) => return Err(kind.into()),
            Some(StorageFault::Kill { .. }) => self.killed = true,
            _ => {}
        }
        Ok(fault)
    }

    /// Returns how much of a step is done.
    fn progress(&self, fault: Option<StorageFault>) -> usize {
        match fault {
            Some(StorageFault::Kill { progress }) => progress,
            _ => usize::MAX,
        }
    }

    fn still_alive(&self) -> io::Result<()> {
        if self.killed { Err(killed()) } else { Ok(()) }
    }

    fn free_pages(&self) -> u64 {
        let capacity = self.capacity.unwrap_or(i64::MAX as u64);
        (capacity / PAGE_LENGTH as u64).saturating_sub(self.used_pages)
    }

    /// Changes a file's bytes and updates the number of used pages.
    fn change<R>(
        &mut self,
        contents: &Mutex<Contents>,
        change: impl FnOnce(&mut Contents) -> R,
    ) -> R {
        let mut contents = lock(contents);
        let before = contents.pages.len() as u64;
        let answer = change(&mut contents);
        contents.modified = self.now;
        if !contents.removed {
            self.used_pages = self.used_pages + contents.pages.len() as u64 - before;
        }
        answer
    }

    /// Notes the files with these names before a change of the directory, so that a loss of power
    /// can undo the change.
    fn note_change(&mut self, names: &[&str]) {
        let before = |name: &&str| (name.to_string(), self.files.get(*name).cloned());
        self.unsynced.push(names.iter().map(before).collect());
    }

    fn lose_power(&mut self, survives: &mut impl FnMut() -> Survival) {
        let surviving = self
            .unsynced
            .iter()
            .take_while(|_| survives() != Survival::Lost)
            .count();
        for change in self.unsynced.split_off(surviving).into_iter().rev() {
            for (name, contents) in change {
                match contents {
                    Some(contents) => drop(self.files.insert(name, contents)),
                    None => drop(self.files.remove(&name)),
                }
            }
        }
        self.unsynced.clear();
        self.used_pages = 0;
        for contents in self.files.values() {
            let mut contents = lock(contents);
            contents.lose_power(survives);
            contents.removed = false;
            self.used_pages += contents.pages.len() as u64;
        }
    }

    fn link(&mut self, name: &str, contents: Arc<Mutex<Contents>>) {
        self.unlink(name);
        self.files.insert(name.to_owned(), contents);
    }

    fn unlink(&mut self, name: &str) {
        if let Some(contents) = self.files.remove(name) {
            let mut contents = lock(&contents);
            contents.removed = true;
            self.used_pages -= contents.pages.len() as u64;
        }
    }
}

impl Contents {
    fn read(&self, bytes: &mut [u8], offset: u64) -> usize {
        let count = (bytes.len() as u64).min(self.length.saturating_sub(offset)) as usize;
        for (page, within, part) in parts(offset, count) {
            let target = &mut bytes[part];
            match self.pages.get(&page) {
                Some(page) => target.copy_from_slice(&page[within..within + target.len()]),
                None => target.fill(0),
            }
        }
        count
    }

    /// Returns where the zeros at the end of the file begin, at `offset` or later. Returns `None` if a written page
    /// follows after a gap.
    fn trailing_zeros(&self, offset: u64) -> Option<u64> {
        let first = offset / PAGE_LENGTH as u64;
        let following = self.pages.range(first..).map(|(number, _)| *number);
        let end = (first..)
            .zip(following.clone())
            .take_while(|(expected, found)| expected == found)
            .count();
        let zeros = (first + end as u64) * PAGE_LENGTH as u64;
        (following.count() == end && offset <= self.length)
            .then(|| zeros.clamp(offset, self.length))
    }

    fn write(&mut self, bytes: &[u8], offset: u64) {
        for (page, within, part) in parts(offset, bytes.len()) {
            let source = &bytes[part];
            self.note_page(page);
            let page = self
                .pages
                .entry(page)
                .or_insert_with(|| Box::new([0; PAGE_LENGTH]));
            page[within..within + source.len()].copy_from_slice(source);
        }
        if !bytes.is_empty() {
            self.length = self.length.max(offset + bytes.len() as u64);
        }
    }

    fn set_length(&mut self, length: u64) {
        self.length = length;
        let within = (length % PAGE_LENGTH as u64) as usize;
        let cut = length / PAGE_LENGTH as u64;
        let changed: Vec<u64> = self.pages.range(cut..).map(|(&number, _)| number).collect();
        for number in changed {
            self.note_page(number);
        }
        let mut beyond = self.pages.split_off(&cut);
        if let Some((number, mut page)) = beyond.pop_first()
            && number == cut
            && within > 0
        {
            page[within..].fill(0);
            self.pages.insert(number, page);
        }
    }

    /// Notes the synced content of a page before the page changes.
    fn note_page(&mut self, number: u64) {
        let page = self.pages.get(&number);
        self.unsynced.entry(number).or_insert_with(|| page.cloned());
    }

    fn sync(&mut self, level: SyncLevel) {
        self.unsynced.clear();
        self.synced_length = self.length;
        if level == SyncLevel::DataAndMetadata {
            self.synced_modified = self.modified;
        }
    }

    /// Restores the synced content of all pages. The length stays.
    fn lose_unsynced(&mut self) {
        for (number, before) in std::mem::take(&mut self.unsynced) {
            self.lose_sectors(number, before, 0);
        }
    }

    fn lose_power(&mut self, survives: &mut impl FnMut() -> Survival) {
        for (number, before) in std::mem::take(&mut self.unsynced) {
            let sectors = match survives() {
                Survival::Kept => continue,
                Survival::Lost => 0,
                Survival::Sectors(sectors) => sectors,
            };
            self.lose_sectors(number, before, sectors);
        }
        if self.length != self.synced_length && survives() == Survival::Lost {
            self.length = self.synced_length;
        }
        if self.modified != self.synced_modified && survives() == Survival::Lost {
            self.modified = self.synced_modified;
        }
        // Removes pages beyond the end. Otherwise their bytes would appear when the file grows.
        self.set_length(self.length);
        self.sync(SyncLevel::DataAndMetadata);
    }

    /// Restores the synced content of a page, except for the sectors with a set bit.
    fn lose_sectors(&mut self, number: u64, before: Option<Page>, sectors: u8) {
        let after = self.pages.remove(&number);
        let mut page = before;
        for sector in (0..PAGE_LENGTH / SECTOR_LENGTH).filter(|sector| sectors >> sector & 1 == 1) {
            let bytes = sector * SECTOR_LENGTH..(sector + 1) * SECTOR_LENGTH;
            let target = &mut page.get_or_insert_with(|| Box::new([0; PAGE_LENGTH]))[bytes.clone()];
            match &after {
                Some(after) => target.copy_from_slice(&after[bytes]),
                None => target.fill(0),
            }
        }
        if let Some(page) = page {
            self.pages.insert(number, page);
        }
    }

    /// Returns how many of `count` bytes at `offset` can be written if at most `free` pages are added.
    fn fitting(&self, offset: u64, count: usize, mut free: u64) -> usize {
        let mut fitting = 0;
        for (page, _, part) in parts(offset, count) {
            if !self.pages.contains_key(&page) {
                let Some(left) = free.checked_sub(1) else {
                    break;
                };
                free = left;
            }
            fitting = part.end;
        }
        fitting
    }
}

/// Splits `count` bytes at `offset` by pages. Returns the page number, the offset in the page, and the range of the
/// bytes.
fn parts(offset: u64, count: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = offset + done as u64;
        let within = (at % PAGE_LENGTH as u64) as usize;
        let length = (count - done).min(PAGE_LENGTH - within);
        let part = done..done + length;
        done += length;
        (length > 0).then_some((at / PAGE_LENGTH as u64, within, part))
    })
}

/// Returns the number of bytes from `offset` to the end of `pages` pages. The first of these pages
/// holds `offset`.
fn bytes_of_pages(offset: u64, pages: usize) -> usize {
    let within = (offset % PAGE_LENGTH as u64) as usize;
    pages.saturating_mul(PAGE_LENGTH).saturating_sub(within)
}

fn killed() -> io::Error {
    io::Error::other("the process was killed")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
