//! [`Storage`]: the directory of an archive's files. It is a trait, so that a test can make any
//! file access fail.
//!
//! Files are read by `pread` and written by `pwrite`. If the file system is full, these calls return an error, whereas
//! a write to mapped memory would end the process.

mod closer;

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use aeron_memory::regular::{Links, open_regular};
use aeron_memory::{SharedBuffer, Words};
use rustix::fs::{FallocateFlags, SeekFrom, seek};
use rustix::io::Errno;

use closer::FileCloser;

/// Maximum number of bytes of one read or write, even if `file.io.max.length` is greater. Bytes are
/// copied and checked before the write or after the read. Blocks of this length stay in the
/// processor's cache between the two steps.
pub(crate) const BLOCK_LENGTH: usize = 256 * 1024;

/// Permissions of new files: only the user that owns the file may read and write it.
const FILE_MODE: u32 = 0o600;

/// Unit of [`MetadataExt::blocks`] in bytes.
const BLOCK_UNIT: u64 = 512;
/// A removed file that takes at least this number of bytes is closed on another thread. Smaller files are closed within
/// microseconds.
const LARGE_FILE: u64 = 1024 * 1024;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// For reading.
    Read,
    /// For reading and writing.
    Write,
}

/// How much of a change is forced to the disk before its call returns: Aeron's `file.sync.level` and
/// `catalog.file.sync.level`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum SyncLevel {
    /// Nothing. The change survives the death of the process, but may be lost if the machine loses
    /// power.
    #[default]
    None = 0,
    /// The bytes and the length of the file.
    Data = 1,
    /// The bytes, the length, and the metadata of the file, such as times and permissions.
    DataAndMetadata = 2,
}

/// A directory of files. A name is a plain file name, without a directory.
pub trait Storage {
    /// An open file.
    type File: StorageFile;

    /// Creates a file of `length` zero bytes, which take no space until they are written.
    ///
    /// # Errors
    /// `AlreadyExists` if there is a file with that name; otherwise the error of the file system.
    fn create(&self, name: &str, length: u64) -> io::Result<Self::File>;

    /// Opens an existing regular file, without waiting.
    ///
    /// # Errors
    /// `NotFound`, `InvalidInput` if it is not a regular file, or the error of the file system.
    fn open(&self, name: &str, access: Access) -> io::Result<Self::File>;

    /// Removes a file.
    ///
    /// # Errors
    /// `NotFound`, or the error of the file system.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Renames a file, atomically. An existing file with the new name is replaced.
    ///
    /// # Errors
    /// `NotFound`, or the error of the file system.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Returns the names of all files, in no particular order.
    ///
    /// # Errors
    /// The file system returns an error.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Returns the number of free bytes in the file system. The bytes of a removed file count as free at once, even if
    /// the file system frees them some milliseconds later.
    ///
    /// # Errors
    /// The file system returns an error.
    fn free_bytes(&self) -> io::Result<u64>;

    /// Forces the directory's list of names to the disk: earlier creations, renames and removals of files.
    ///
    /// # Errors
    /// The file system returns an error; some of the changes may then be lost if the machine loses power.
    fn sync(&self) -> io::Result<()>;

    /// Returns the name of a file for error texts: the path, if the storage is a directory.
    fn shown_name(&self, name: &str) -> String {
        name.to_owned()
    }
}

/// An open file of a [`Storage`].
pub trait StorageFile: fmt::Debug {
    /// Returns the length in bytes.
    ///
    /// # Errors
    /// The file system returns an error.
    fn length(&self) -> io::Result<u64>;

    /// Shortens the file, or makes it longer with zeros.
    ///
    /// # Errors
    /// The file system returns an error.
    fn set_length(&self, length: u64) -> io::Result<()>;

    /// Reserves the space of the first `length` bytes, so that writing them later does not fail because the file system
    /// is full. The file must have at least this length.
    ///
    /// # Errors
    /// The file system is full, cannot reserve space, or returns another error.
    fn reserve(&self, length: u64) -> io::Result<()> {
        let _ = length;
        Ok(())
    }

    /// Reads up to `bytes.len()` bytes from `offset` on. Returns the number of bytes that were
    /// read; 0 at the end of the file.
    ///
    /// # Errors
    /// The file system returns an error.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes `bytes`, or only the first of them, at `offset`. Returns the number of bytes that
    /// were written.
    ///
    /// # Errors
    /// The file system returns an error, for example `StorageFull`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;

    /// Finds zeros at the end of the file without reading them. Returns the lowest offset, at least
    /// `offset`, from which on no byte was ever written.
    ///
    /// Returns `None` if the storage cannot find the offset without reading, or if `offset` is not before the end of
    /// the file.
    ///
    /// # Errors
    /// The file system returns an error.
    fn trailing_zeros(&self, offset: u64) -> io::Result<Option<u64>> {
        let _ = offset;
        Ok(None)
    }

    /// Returns the time of the last write.
    ///
    /// # Errors
    /// The file system returns an error.
    fn modified(&self) -> io::Result<SystemTime>;

    /// Forces earlier writes to the disk. Does nothing at [`SyncLevel::None`].
    ///
    /// # Errors
    /// The file system returns an error. Bytes written since the last successful sync may then be lost, even if a later
    /// call succeeds.
    fn sync(&self, level: SyncLevel) -> io::Result<()>;

    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before the last byte; otherwise as [`read_at`](Self::read_at).
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

    /// Reads up to `length` bytes from `offset` on into `memory` at offset `at`. Returns the number
    /// of bytes that were read; 0 at the end of the file.
    ///
    /// No other thread may access that part of `memory` during the call.
    ///
    /// # Errors
    /// The same errors as [`read_at`](Self::read_at).
    fn read_shared_at(
        &self,
        memory: &SharedBuffer,
        at: usize,
        length: usize,
        offset: u64,
    ) -> io::Result<usize> {
        let mut bytes = vec![0; length];
        let count = self.read_at(&mut bytes, offset)?;
        memory.copy_in(at, &bytes[..count]);
        Ok(count)
    }

    /// Copies `length` bytes of the file from `offset` on into `memory` at offset `at`.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before the last byte; otherwise as [`read_shared_at`](Self::read_shared_at).
    fn read_exact_shared_at(
        &self,
        memory: &SharedBuffer,
        at: usize,
        length: usize,
        offset: u64,
    ) -> io::Result<()> {
        let mut done = 0;
        while done < length {
            match self.read_shared_at(memory, at + done, length - done, offset + done as u64) {
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
    /// The same errors as [`write_at`](Self::write_at); some of the bytes may then be written.
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

    fn shown_name(&self, name: &str) -> String {
        (**self).shown_name(name)
    }
}

/// A directory of the machine's file system. Only the owner may access the files that it creates.
#[derive(Debug, Clone)]
pub struct Directory {
    path: PathBuf,
    /// Closes removed files; `None` if the call that removes a file also closes the file.
    closer: Option<Arc<FileCloser>>,
}

impl Directory {
    /// Creates the storage for the directory `path`, which exists.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            closer: None,
        }
    }

    /// Frees the space of large removed files on a thread of its own.
    ///
    /// The names of the files are removed at once. The thread starts with the first large file, and ends when the last
    /// clone of the directory is dropped. A file that other processes have open stays readable for them.
    #[must_use]
    pub fn freeing_on_a_thread(mut self) -> Self {
        self.closer = Some(Arc::new(FileCloser::new()));
        self
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the free bytes of the file system, without the bytes of removed files that are not closed yet.
    fn free_bytes_now(&self) -> io::Result<u64> {
        let state = rustix::fs::statvfs(&self.path)?;
        Ok(state.f_bavail * state.f_frsize)
    }

    /// Closes a file that was removed, on the thread if the close may take long.
    fn close_removed(&self, file: File, closer: &FileCloser) {
        let bytes = match file.metadata() {
            Ok(metadata) if metadata.nlink() == 0 => metadata.blocks() * BLOCK_UNIT,
            // A file that still has another name keeps its space.
            _ => return,
        };
        if bytes < LARGE_FILE {
            return;
        }
        // On an almost full file system, the recorder may need these bytes for its next block, so this call frees them.
        let needed_bytes = closer.waiting_bytes().saturating_add(bytes);
        let has_room = self
            .free_bytes_now()
            .is_ok_and(|free_bytes| free_bytes >= needed_bytes);
        if has_room {
            closer.close(file, bytes);
        }
    }
}

/// Opens a file that will be removed. Returns `None` if the file cannot be opened.
fn open_for_removal(path: &Path) -> Option<File> {
    open_regular(path, false, Links::Refused).ok()
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
        let path = self.path.join(name);
        open_regular(&path, access == Access::Write, Links::Followed)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let path = self.path.join(name);
        let Some(closer) = &self.closer else {
            return fs::remove_file(path);
        };
        // While the file is open, its space is not freed by the removal of its name.
        let file = open_for_removal(&path);
        fs::remove_file(&path)?;
        if let Some(file) = file {
            self.close_removed(file, closer);
        }
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            // A name that is not UTF-8 is not an archive's file.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn free_bytes(&self) -> io::Result<u64> {
        // Read first: a file that is closed between the two reads is counted twice for a moment, and never left out.
        let waiting_bytes = self.closer.as_ref().map_or(0, |it| it.waiting_bytes());
        Ok(self.free_bytes_now()?.saturating_add(waiting_bytes))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn shown_name(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }
}

impl StorageFile for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn reserve(&self, length: u64) -> io::Result<()> {
        Ok(rustix::fs::fallocate(
            self,
            FallocateFlags::empty(),
            0,
            length,
        )?)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        FileExt::read_at(self, bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, offset)
    }

    fn read_shared_at(
        &self,
        memory: &SharedBuffer,
        at: usize,
        length: usize,
        offset: u64,
    ) -> io::Result<usize> {
        memory.read_file_at(self, at, length, offset)
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use super::{Access, Directory, File, Storage, StorageFile, fs, io};
    use crate::store::{ArchiveStore, StoreOptions};

    const FILE_BYTES: u64 = 64 * 1024 * 1024;
    const NAME: &str = "3-0.rec";

    /// Dropping it waits until the test drops the sender.
    struct Held(Receiver<()>);

    impl Drop for Held {
        fn drop(&mut self) {
            let _ = self.0.recv();
        }
    }

    /// Creates a file that takes `FILE_BYTES` bytes.
    fn create_full(directory: &Directory) -> File {
        let file = directory.create(NAME, FILE_BYTES).unwrap();
        let flags = rustix::fs::FallocateFlags::empty();
        rustix::fs::fallocate(&file, flags, 0, FILE_BYTES).unwrap();
        file
    }

    #[test]
    fn the_name_of_a_removed_file_is_gone_before_the_thread_frees_its_bytes() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = Directory::new(temporary.path()).freeing_on_a_thread();
        let closer = directory.closer.as_ref().unwrap();
        let (release, held) = channel();
        closer.close(Held(held), 0);
        drop(create_full(&directory));

        directory.remove(NAME).unwrap();

        assert!(directory.names().unwrap().is_empty());
        assert_eq!(closer.waiting_bytes(), FILE_BYTES);
        drop(release);
    }

    /// Retention deletes files, and then the archive checks the free space for the recording that waits.
    #[test]
    fn a_recording_is_not_refused_because_the_thread_has_not_freed_removed_files_yet() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = Directory::new(temporary.path()).freeing_on_a_thread();
        // More than the free bytes of any file system.
        let options = StoreOptions {
            low_storage_space_threshold: u64::MAX / 4,
            ..StoreOptions::default()
        };
        let (store, _) = ArchiveStore::open(directory.clone(), options, 0).unwrap();
        store.check_storage_space().unwrap_err();

        let closer = directory.closer.as_ref().unwrap();
        let (release, held) = channel();
        closer.close(Held(held), u64::MAX / 2);

        store.check_storage_space().unwrap();
        drop(release);
    }

    #[test]
    fn on_an_almost_full_file_system_the_removal_itself_frees_the_file() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = Directory::new(temporary.path()).freeing_on_a_thread();
        let closer = directory.closer.as_ref().unwrap();
        // Number of bytes that already wait to be freed: more than the file system has.
        let waiting_bytes = u64::MAX / 2;
        let (release, held) = channel();
        closer.close(Held(held), waiting_bytes);
        drop(create_full(&directory));

        directory.remove(NAME).unwrap();

        assert_eq!(closer.waiting_bytes(), waiting_bytes);
        drop(release);
    }

    #[test]
    fn a_reader_keeps_the_bytes_of_a_removed_file() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = Directory::new(temporary.path()).freeing_on_a_thread();
        let file = create_full(&directory);
        file.write_all_at(b"kept", FILE_BYTES - 4).unwrap();
        let reader = directory.open(NAME, Access::Read).unwrap();

        directory.remove(NAME).unwrap();
        drop((directory, file));

        let mut bytes = [0; 4];
        reader.read_exact_at(&mut bytes, FILE_BYTES - 4).unwrap();
        assert_eq!(&bytes, b"kept");
    }

    #[test]
    fn a_file_with_another_name_is_not_counted_as_free() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = Directory::new(temporary.path()).freeing_on_a_thread();
        drop(create_full(&directory));
        let other = temporary.path().join("other");
        fs::hard_link(temporary.path().join(NAME), &other).unwrap();

        directory.remove(NAME).unwrap();

        assert_eq!(directory.closer.as_ref().unwrap().waiting_bytes(), 0);
        assert_eq!(fs::metadata(other).unwrap().len(), FILE_BYTES);
    }

    #[test]
    fn a_pipe_with_the_name_of_a_segment_is_removed_at_once() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = Directory::new(temporary.path()).freeing_on_a_thread();
        let mode = rustix::fs::Mode::RUSR;
        let path = temporary.path().join(NAME);
        rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();

        directory.remove(NAME).unwrap();

        assert!(directory.names().unwrap().is_empty());
        let missing = directory.remove(NAME).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
}
