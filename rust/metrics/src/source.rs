//! [`DriverSource`] and [`ArchiveSource`]: the files of a driver and of an archive, which are opened again after each
//! restart.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use aeron_archive::mark_file::{self, MarkFileState};
use aeron_archive::storage::Directory;
use aeron_memory::cnc::{Cnc, Reader};
use aeron_memory::loss_report::{self, LossObservation};
use aeron_memory::mapped::MappedFile;
use aeron_memory::{SharedBuffer, directory, error_log};

/// Age of a heartbeat after which a driver or an archive counts as dead: the time after which Aeron's clients give up a
/// driver.
pub const MAX_HEARTBEAT_AGE_MS: i64 = 10_000;

/// A driver: a name for the label `driver`, and the directory.
#[derive(Debug)]
pub struct DriverSource {
    /// Value of the label.
    pub name: String,
    directory: PathBuf,
    opened: Option<Opened>,
}

/// The mapped file of a driver.
#[derive(Debug)]
struct Opened {
    cnc: Cnc<SharedBuffer>,
    inode: u64,
    start_timestamp_ms: i64,
}

/// An archive: a name for the label `archive`, and the directory.
#[derive(Debug)]
pub struct ArchiveSource {
    /// Value of the label.
    pub name: String,
    directory: PathBuf,
}

impl DriverSource {
    /// Creates a source. Opens nothing.
    #[must_use]
    pub fn new(name: String, directory: PathBuf) -> Self {
        Self {
            name,
            directory,
            opened: None,
        }
    }

    /// Returns the directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the file of the driver, and whether it is another one than in the call before. `None` without a complete
    /// file.
    pub(crate) fn open(&mut self) -> (Option<Cnc<SharedBuffer>>, bool) {
        let path = directory::cnc_file(&self.directory);
        let found = std::fs::metadata(&path).ok();
        let inode = found.as_ref().map(MetadataExt::ino);
        // A driver may also write a new start into the same file. If somebody has cut the file, to read after its end
        // would end the process.
        let is_same = self.opened.as_ref().is_some_and(|opened| {
            Some(opened.inode) == inode
                && found.is_some_and(|found| found.len() >= opened.cnc.file_length() as u64)
                && opened.cnc.identity().start_timestamp_ms == opened.start_timestamp_ms
        });
        if !is_same {
            self.opened = inode.and_then(|inode| {
                let cnc = Cnc::map(&path, Reader::Tool).ok()?.ok()?;
                let start_timestamp_ms = cnc.identity().start_timestamp_ms;
                Some(Opened {
                    cnc,
                    inode,
                    start_timestamp_ms,
                })
            });
        }
        (
            self.opened.as_ref().map(|opened| opened.cnc.clone()),
            !is_same,
        )
    }

    /// Returns the losses of the driver's images.
    pub(crate) fn losses(&self) -> Vec<LossObservation> {
        let path = directory::loss_report_file(&self.directory);
        MappedFile::open_private(&path)
            .map_or_else(|_| Vec::new(), |file| loss_report::read(file.buffer()))
    }
}

impl ArchiveSource {
    /// Creates a source. Opens nothing.
    #[must_use]
    pub fn new(name: String, directory: PathBuf) -> Self {
        Self { name, directory }
    }

    /// Returns the directory.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the content of the mark file, and the number of distinct errors in its log. `None` without a valid file.
    pub(crate) fn read(&self) -> Option<(MarkFileState, usize)> {
        let linked = mark_file::read_link(&Directory::new(&self.directory)).ok()?;
        let directory = linked.map_or_else(|| self.directory.clone(), PathBuf::from);
        let storage = Directory::new(&directory);
        let state = mark_file::read(&storage).ok()??;
        let errors = mark_file::read_errors(&storage).map_or(0, |errors| errors.len());
        Some((state, errors))
    }
}

/// Returns whether a heartbeat is fresh.
pub fn is_fresh(heartbeat_ms: i64, now_ms: i64) -> bool {
    heartbeat_ms >= 0
        && now_ms.saturating_sub(heartbeat_ms).saturating_abs() <= MAX_HEARTBEAT_AGE_MS
}

/// Returns the number of distinct errors in a driver's log.
pub fn distinct_errors(cnc: &Cnc<SharedBuffer>) -> usize {
    error_log::read(cnc.error_log(), i64::MIN).len()
}

/// Returns the free space of the file system of a directory, in bytes.
pub fn free_bytes(directory: &Path) -> io::Result<u64> {
    let found = rustix::fs::statvfs(directory)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}
