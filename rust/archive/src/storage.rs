//! Where an archive keeps its files: one directory, behind a trait that a test can make fail at any step.
//!
//! Files are read by `pread` and written by `pwrite`. A full file system then answers with an error, where a mapped store would
//! end the process.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

/// Most bytes that an archive writes or reads at once, in spite of a greater `file.io.max.length`: what is copied and checked before it is
/// written, or after it was read, is then still in the processor's cache.
pub(crate) const BLOCK_LENGTH: usize = 256 * 1024;

/// What only the owner may read and write.
const FILE_MODE: u32 = 0o600;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only to be read.
    Read,
    /// To be read and written.
    Write,
}

/// How much of a change is forced to the disk before the change counts as done: Aeron's `file.sync.level` and `catalog.file.sync.level`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SyncLevel {
    /// Nothing: the change survives the death of the process, and may be lost if the machine loses power.
    #[default]
    None = 0,
    /// The bytes, and the length of the file.
    Data = 1,
    /// Also times and permissions.
    DataAndMetadata = 2,
}

/// A directory of files. A name has no directory in it.
pub trait Storage {
    /// An open file.
    type File: StorageFile;

    /// Makes a file of `length` zero bytes, which take no space until they are written.
    ///
    /// # Errors
    /// `AlreadyExists` when there is one of that name; otherwise what the file system answers.
    fn create(&self, name: &str, length: u64) -> io::Result<Self::File>;

    /// Opens a file that is there.
    ///
    /// # Errors
    /// `NotFound`, or what the file system answers.
    fn open(&self, name: &str, access: Access) -> io::Result<Self::File>;

    /// Removes a file.
    ///
    /// # Errors
    /// `NotFound`, or what the file system answers.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Gives a file another name, in one step; a file that had this name is gone then.
    ///
    /// # Errors
    /// `NotFound`, or what the file system answers.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// The names of all files, in no order.
    ///
    /// # Errors
    /// What the file system answers.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Bytes that the file system could still take.
    ///
    /// # Errors
    /// What the file system answers.
    fn free_bytes(&self) -> io::Result<u64>;

    /// Forces to the disk which names the directory has: files that were created, renamed or removed before.
    ///
    /// # Errors
    /// The error of the file system; some of the changes may then be lost if the machine loses power.
    fn sync(&self) -> io::Result<()>;
}

/// An open file of a [`Storage`].
pub trait StorageFile: fmt::Debug {
    /// Length in bytes.
    ///
    /// # Errors
    /// What the file system answers.
    fn length(&self) -> io::Result<u64>;

    /// Cuts the file, or makes it longer with zeros.
    ///
    /// # Errors
    /// What the file system answers.
    fn set_length(&self, length: u64) -> io::Result<()>;

    /// Reads up to `bytes.len()` bytes from `offset` on; answers how many, 0 at the end.
    ///
    /// # Errors
    /// What the file system answers.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes some of `bytes` at `offset`; answers how many.
    ///
    /// # Errors
    /// What the file system answers: `StorageFull` among them.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Finds the zeros with which the file ends: no byte from the returned offset on was ever written. Looks from `offset` on. Returns `None`
    /// if the storage cannot tell without reading.
    ///
    /// # Errors
    /// The error of the file system.
    fn trailing_zeros(&self, offset: u64) -> io::Result<Option<u64>> {
        let _ = offset;
        Ok(None)
    }

    /// When it was last written.
    ///
    /// # Errors
    /// What the file system answers.
    fn modified(&self) -> io::Result<SystemTime>;

    /// Forces to the disk what was written before. Does nothing at [`SyncLevel::None`].
    ///
    /// # Errors
    /// The error of the file system. What was written since the last success may be lost then, even if a later call succeeds.
    fn sync(&self, level: SyncLevel) -> io::Result<()>;

    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file ends before; otherwise as [`read_at`](Self::read_at).
    fn read_exact_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.read_at(&mut bytes[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at); some of the bytes may then be written.
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match self.write_at(&bytes[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl<S: Storage> Storage for &S {
    type File = S::File;

    fn create(&self, name: &str, length: u64) -> io::Result<S::File> {
        (**self).create(name, length)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<S::File> {
        (**self).open(name, access)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        (**self).remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        (**self).rename(from, to)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        (**self).names()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        (**self).free_bytes()
    }

    fn sync(&self) -> io::Result<()> {
        (**self).sync()
    }
}

/// A directory of the machine's file system. Files are made for the owner alone.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// The directory `path`, which exists.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Storage for Directory {
    type File = File;

    fn create(&self, name: &str, length: u64) -> io::Result<File> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(self.path.join(name))?;
        file.set_len(length)?;
        Ok(file)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(access == Access::Write)
            .open(self.path.join(name))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // A name that is not text is none of ours.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = rustix::fs::statvfs(&self.path)?;
        Ok(state.f_bavail * state.f_frsize)
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

impl StorageFile for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset)
    }

    fn trailing_zeros(&self, offset: u64) -> io::Result<Option<u64>> {
        let hole = match seek(self, SeekFrom::Hole(offset)) {
            // The file ends before `offset`.
            Err(Errno::NXIO) => return Ok(None),
            found => found?,
        };
        match seek(self, SeekFrom::Data(hole)) {
            Err(Errno::NXIO) => Ok(Some(hole)),
            Err(error) => Err(error.into()),
            Ok(_) => Ok(None),
        }
    }

    fn modified(&self) -> io::Result<SystemTime> {
        self.metadata()?.modified()
    }

    fn sync(&self, level: SyncLevel) -> io::Result<()> {
        match level {
            SyncLevel::None => Ok(()),
            SyncLevel::Data => self.sync_data(),
            SyncLevel::DataAndMetadata => self.sync_all(),
        }
    }
}
