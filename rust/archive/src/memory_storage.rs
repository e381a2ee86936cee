//! A disk in memory that fails when and how it is told: for tests of whatever keeps files, here and in other crates, and for the
//! simulator.
//!
//! It is deterministic: each change (create, remove, rename, set length, write, sync) is one *step*, counted from 0, and a fault strikes
//! at a given step. After a kill every operation fails until [`MemoryStorage::restart`]; what was written before is still there, as after
//! the death of a process on a machine that lives on. A killed write ends at a page's end, which is where the kernel looks for
//! signals. Files are sparse: a page takes space once something was written to it.
//!
//! The disk also knows what was synced. [`MemoryStorage::lose_power`] takes back changes that were not: each page alone, the length of a
//! file, and the last changes of the directory, whose order a file system keeps in its journal.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::storage::{Access, Storage, StorageFile, SyncLevel};

/// What a disk writes wholly or not at all, in bytes.
const SECTOR_LENGTH: usize = 512;
/// Granularity of space, and of what a kill leaves of a write, in bytes.
pub const PAGE_LENGTH: usize = 4096;

/// A directory in memory. Clones are the same directory; may be shared between threads.
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
    /// Lives of the process before the one that opened it.
    restarts: u64,
}

/// What goes wrong at a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done, and the answer is this error.
    Error(io::ErrorKind),
    /// A write takes at most so many bytes, and says so; other steps are done.
    Short(usize),
    /// A write takes at most so many pages, and says so, as one that the system cuts; other steps are done.
    ShortPages(usize),
    /// The process dies. How much of the step is done counts in pages of a write; in "empty file, full length" of a creation; other
    /// steps are done when it is not 0.
    Kill {
        /// How much of the step is done.
        progress: usize,
    },
}

/// What a loss of power leaves of a change that was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// Nothing.
    Lost,
    /// All.
    Kept,
    /// Of a page the sectors whose bits are set; of other changes all.
    Sectors(u8),
}

#[derive(Debug, Default)]
struct Disk {
    files: BTreeMap<String, Arc<Mutex<Contents>>>,
    faults: BTreeMap<u64, Fault>,
    read_error: Option<io::ErrorKind>,
    /// Bytes that a read returns at most, if there is a limit.
    longest_read: Option<usize>,
    steps: u64,
    restarts: u64,
    killed: bool,
    /// Bytes that all files together may take, if there is a limit.
    capacity: Option<u64>,
    /// Pages of all files.
    used_pages: u64,
    /// Since the epoch.
    now: Duration,
    /// Changes of the directory since it was synced, the oldest first.
    unsynced: Vec<DirectoryChange>,
}

/// The files that names stood for before one change of the directory.
type DirectoryChange = Vec<(String, Option<Arc<Mutex<Contents>>>)>;

type Page = Box<[u8; PAGE_LENGTH]>;

/// A file's bytes. Pages that are not there are zero.
#[derive(Debug, Default)]
struct Contents {
    length: u64,
    pages: BTreeMap<u64, Page>,
    modified: Duration,
    /// Length that the disk has.
    synced_length: u64,
    /// Pages that have changed since they were synced, as the disk has them.
    unsynced: BTreeMap<u64, Option<Page>>,
    synced_modified: Duration,
    /// Removed, and kept only for those who have it open.
    removed: bool,
}

impl MemoryStorage {
    /// An empty directory without limit.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Limits the space of all files together, in bytes of whole pages. Beyond it writes take what still fits, then answer
    /// `StorageFull`.
    pub fn set_capacity(&self, bytes: u64) {
        self.disk().capacity = Some(bytes);
    }

    /// Sets the time that files written from now on were written at.
    pub fn set_time(&self, since_epoch: Duration) {
        self.disk().now = since_epoch;
    }

    /// How many steps were made, in all lives of the process.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.disk().steps
    }

    /// Lets `fault` strike at a step that has not been made yet.
    pub fn fail_at(&self, step: u64, fault: Fault) {
        self.disk().faults.insert(step, fault);
    }

    /// Lets no fault strike that has not done so yet.
    pub fn forget_faults(&self) {
        self.disk().faults.clear();
    }

    /// Makes all reads fail, or work again.
    pub fn fail_reads(&self, error: Option<io::ErrorKind>) {
        self.disk().read_error = error;
    }

    /// Lets reads return at most so many bytes, or as many as there are.
    pub fn shorten_reads(&self, longest: Option<usize>) {
        self.disk().longest_read = longest;
    }

    /// Bytes that all files together take, in whole pages.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.disk().used_pages * PAGE_LENGTH as u64
    }

    /// Kills the process between two steps.
    pub fn kill(&self) {
        self.disk().killed = true;
    }

    /// Whether the process is dead.
    #[must_use]
    pub fn is_killed(&self) -> bool {
        self.disk().killed
    }

    /// Starts another process on the same files. Faults that have not struck are forgotten, and files opened before stay dead.
    pub fn restart(&self) {
        let mut disk = self.disk();
        disk.killed = false;
        disk.faults.clear();
        disk.restarts += 1;
    }

    /// Ends the process, lets the machine lose its power, and starts another process on what the disk has.
    ///
    /// `survives` is asked for each change that was not synced, in the order of the names and pages, and for the changes of the directory
    /// from the oldest on until it first returns `false`. A change that does not survive is undone.
    pub fn lose_power(&self, mut survives: impl FnMut() -> bool) {
        self.lose_power_in_sectors(|| match survives() {
            true => Survival::Kept,
            false => Survival::Lost,
        });
    }

    /// As [`lose_power`](Self::lose_power); a page may also be torn.
    pub fn lose_power_in_sectors(&self, mut survives: impl FnMut() -> Survival) {
        self.disk().lose_power(&mut survives);
        self.restart();
    }

    /// A file's bytes, if it is there. For tests: takes no step and never fails.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let contents = self.contents(name)?;
        let contents = lock(&contents);
        let mut bytes = vec![0; contents.length as usize];
        contents.read(&mut bytes, 0);
        Some(bytes)
    }

    /// Puts a file there, or in the place of another. For tests: takes no step and never fails.
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

    /// Bit rot: turns one bit of a file around. Answers whether the file has that byte.
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
            Some(Fault::Short(most)) => bytes.len().min(most),
            Some(Fault::ShortPages(pages)) => bytes.len().min(bytes_of_pages(offset, pages)),
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
            disk.step()?;
            disk.still_alive()?;
            lock(&self.contents).sync(level);
        }
        Ok(())
    }
}

impl MemoryFile {
    /// The disk, if the process that opened the file lives.
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
    /// Begins a step, and answers what goes wrong in it.
    fn step(&mut self) -> io::Result<Option<Fault>> {
        self.still_alive()?;
        let fault = self.faults.remove(&self.steps);
        self.steps += 1;
        match fault {
            Some(Fault::Error(kind)) => return Err(kind.into()),
            Some(Fault::Kill { .. }) => self.killed = true,
            _ => {}
        }
        Ok(fault)
    }

    /// How much of a step is done.
    fn progress(&self, fault: Option<Fault>) -> usize {
        match fault {
            Some(Fault::Kill { progress }) => progress,
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

    /// Changes a file's bytes and counts what they take.
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

    /// Notes what `names` stand for, before a change of the directory.
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

    /// The end of the pages with `offset`, if no page follows after a gap.
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

    /// Notes a page as the disk has it, before it changes.
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
        // Pages beyond the end that are not part of the file: they would show up if it grew.
        self.set_length(self.length);
        self.sync(SyncLevel::DataAndMetadata);
    }

    /// Puts a page back as the disk had it, except the sectors whose bits are set.
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

    /// How many of `count` bytes at `offset` can be written when no more than `free` pages are added.
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

/// The pages that `count` bytes at `offset` are spread over: number, where in the page, and which of the bytes.
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

/// Bytes from `offset` to the end of the page that is the `pages`-th from there on.
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
