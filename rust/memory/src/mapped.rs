//! Maps whole files, read-write and shared: the CnC file, log buffers, the loss report.
//!
//! A file is created exclusively with mode `0666 & ~umask`, mapped as a whole, and unmapped when the last
//! [`SharedBuffer`] on it is dropped. If another process truncates a mapped file, SIGBUS kills the processes that
//! access the missing pages; this cannot be prevented. SIGBUS because of a full file system is prevented:
//! [`MappedFile::allocate`] allocates the pages of a sparse file before any process stores to them, and returns an
//! error if the allocation fails.
//!
//! Files are closed after mapping, so a process may map more files than it may have descriptors. The number of mapped
//! files is limited by the number of mappings of a process (`vm.max_map_count`, 65,530 by default on Linux).

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use memmap2::MmapOptions;

use crate::buffer::SharedBuffer;
use crate::regular::{Links, open_regular};

/// A mapped file. If this process created the file, its identity is known.
#[derive(Debug)]
pub struct MappedFile {
    buffer: SharedBuffer,
    /// Set only in the process that created the file, to allocate pages later.
    identity: Option<FileIdentity>,
}

/// Path of a file, with the numbers that identify the file at this path.
#[derive(Debug)]
struct FileIdentity {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl FileIdentity {
    fn new(file: &File, path: &Path) -> io::Result<Self> {
        let metadata = file.metadata()?;
        Ok(Self {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Opens the file again; fails with `NotFound` if another file has the path now.
    fn open(&self) -> io::Result<File> {
        let file = open_regular(&self.path, true, Links::Refused)?;
        let metadata = file.metadata()?;
        if (metadata.dev(), metadata.ino()) == (self.device, self.inode) {
            return Ok(file);
        }
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "another file has taken the place of {}",
                self.path.display()
            ),
        ))
    }
}

/// Allocation of the file's blocks by [`MappedFile::create`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allocation {
    /// Only sets the length; [`MappedFile::allocate`] or the first access allocates pages.
    Sparse,
    /// Allocates all blocks, without access through the mapping.
    Allocated,
    /// Allocates all blocks and loads all pages into memory (`MAP_POPULATE`).
    Populated,
}

/// Returns the size of a memory page of this machine, in bytes.
pub fn page_size() -> usize {
    rustix::param::page_size()
}

impl MappedFile {
    /// Creates the file `path` with `len` zero bytes and maps it.
    ///
    /// Fails with `AlreadyExists` if the file exists, `StorageFull` if the file system is full, `InvalidInput` if `len`
    /// is 0. If a step after the creation of the file fails, removes the file again.
    pub fn create(path: &Path, len: usize, allocation: Allocation) -> io::Result<Self> {
        if len == 0 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("cannot map {}: its length would be 0", path.display()),
            ));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o666)
            .open(path)?;
        let mapped = set_length(&file, len, allocation)
            .and_then(|()| map(&file, allocation == Allocation::Populated))
            .and_then(|buffer| Ok((buffer, FileIdentity::new(&file, path)?)));
        match mapped {
            Ok((buffer, identity)) => Ok(Self {
                buffer,
                identity: Some(identity),
            }),
            Err(error) => {
                // Only the first error is reported.
                let _ = std::fs::remove_file(path);
                Err(error)
            }
        }
    }

    /// Maps the existing file `path`. With `populate`, loads all pages into memory at once.
    ///
    /// Fails with `UnexpectedEof` for an empty file, which cannot be mapped, and as [`open_regular`].
    pub fn open(path: &Path, populate: bool) -> io::Result<Self> {
        let file = open_regular(path, true, Links::Followed)?;
        refuse_empty(&file, path)?;
        let buffer = map(&file, populate)?;
        Ok(Self {
            buffer,
            identity: None,
        })
    }

    /// Maps the existing file `path` for reading. Needs no write permission. Stores of this process change neither the
    /// file nor the memory of other processes.
    ///
    /// Stores of other processes are visible until this process stores to the same page. Fails like
    /// [`open`](Self::open).
    pub fn open_private(path: &Path) -> io::Result<Self> {
        let file = open_regular(path, false, Links::Followed)?;
        refuse_empty(&file, path)?;
        // SAFETY: a private copy-on-write mapping; it is accessed through `SharedBuffer` only, never as a slice.
        let mapping = unsafe { MmapOptions::new().map_copy(&file) }?;
        Ok(Self {
            buffer: SharedBuffer::mapped(mapping.into()),
            identity: None,
        })
    }

    /// Returns the whole file; keeps the mapping alive.
    pub fn buffer(&self) -> &SharedBuffer {
        &self.buffer
    }

    /// Allocates the blocks of `[offset, offset + len)`, so that stores there cannot fail for lack of space.
    ///
    /// Does not change the content. Opens the file during the call.
    ///
    /// # Errors
    /// `StorageFull` if the file system is full; `NotFound` if the file was removed or replaced; the system's error if
    /// the file cannot be opened, for example because the process has too many open files; `Unsupported` if blocks
    /// cannot be allocated: on some file systems, outside Linux, and for a file that was opened rather than created.
    pub fn allocate(&self, offset: usize, len: usize) -> io::Result<()> {
        let identity = self.identity.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        allocate_blocks(&identity.open()?, offset, len)
    }

    /// Allocates the blocks of `[offset, offset + len)` like [`allocate`](Self::allocate). If blocks cannot be
    /// allocated, writes zeros instead. Therefore use it only for a part of a new file to which nothing was stored yet.
    ///
    /// # Errors
    /// The same errors as [`allocate`](Self::allocate), except `Unsupported` for a file that was created here.
    pub fn allocate_new(&self, offset: usize, len: usize) -> io::Result<()> {
        let identity = self.identity.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        allocate_or_write_zeros(&identity.open()?, offset, len)
    }
}

fn refuse_empty(file: &File, path: &Path) -> io::Result<()> {
    if file.metadata()?.len() > 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::UnexpectedEof,
        format!("{} is empty", path.display()),
    ))
}

fn set_length(file: &File, len: usize, allocation: Allocation) -> io::Result<()> {
    file.set_len(len as u64)?;
    if allocation == Allocation::Sparse {
        return Ok(());
    }
    allocate_or_write_zeros(file, 0, len)
}

fn allocate_or_write_zeros(file: &File, offset: usize, len: usize) -> io::Result<()> {
    match allocate_blocks(file, offset, len) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => write_zeros(file, offset, len),
        result => result,
    }
}

#[cfg(target_os = "linux")]
fn allocate_blocks(file: &File, offset: usize, len: usize) -> io::Result<()> {
    use rustix::fs::{FallocateFlags, fallocate};
    use rustix::io::Errno;
    match fallocate(file, FallocateFlags::empty(), offset as u64, len as u64) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Err(io::ErrorKind::Unsupported.into()),
        result => Ok(result?),
    }
}

/// Returns an error on other systems, because their functions for this purpose may truncate the file after the range.
#[cfg(not(target_os = "linux"))]
fn allocate_blocks(_file: &File, _offset: usize, _len: usize) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Allocates blocks by writing zeros, for file systems that cannot allocate blocks otherwise. Nothing was stored to
/// this range of the file yet.
fn write_zeros(file: &File, offset: usize, len: usize) -> io::Result<()> {
    static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
    let mut left = len;
    while left > 0 {
        let position = offset + len - left;
        left -= file.write_at(&ZEROS[..left.min(ZEROS.len())], position as u64)?;
    }
    Ok(())
}

fn map(file: &File, populate: bool) -> io::Result<SharedBuffer> {
    let mut options = MmapOptions::new();
    if populate {
        options.populate();
    }
    options.map_raw(file).map(SharedBuffer::mapped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::Words;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn two_mappings_of_a_file_share_its_bytes_and_outlive_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let created = MappedFile::create(&path, 8192, Allocation::Sparse).unwrap();
        let opened = MappedFile::open(&path, false).unwrap();
        created.buffer().store_i64_release(4096, 42);
        assert_eq!(opened.buffer().load_i64_acquire(4096), 42);
        std::fs::remove_file(&path).unwrap();
        let tail = opened.buffer().slice(4096, 4096);
        drop((created, opened));
        assert_eq!(tail.load_i64_acquire(0), 42);
    }

    /// 01-3 (files)
    #[test]
    fn files_are_created_exclusively_with_mode_0666_less_the_umask() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let reference = dir.path().join("reference");
        File::create(&reference).unwrap();
        MappedFile::create(&path, 4096, Allocation::Sparse).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode();
        assert_eq!(mode(&path), mode(&reference));
        let again = MappedFile::create(&path, 4096, Allocation::Sparse).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn sparse_files_have_only_the_requested_blocks_and_allocated_files_have_all() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let blocks = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().blocks() * 512;
        let create = |name: &str, allocation| {
            MappedFile::create(&dir.path().join(name), 1 << 20, allocation).unwrap()
        };
        let sparse = create("sparse", Allocation::Sparse);
        assert_eq!(blocks("sparse"), 0);
        sparse.allocate(65_536, 65_536).unwrap();
        assert_eq!(blocks("sparse"), 65_536);
        create("allocated", Allocation::Allocated);
        assert_eq!(blocks("allocated"), 1 << 20);
        create("populated", Allocation::Populated);
        assert_eq!(blocks("populated"), 1 << 20);
    }

    #[test]
    fn a_private_mapping_shows_stores_of_other_processes_and_hides_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let shared = MappedFile::create(&path, 8192, Allocation::Sparse).unwrap();
        let private = MappedFile::open_private(&path).unwrap();
        shared.buffer().store_i64_release(0, 1);
        assert_eq!(private.buffer().load_i64_acquire(0), 1);
        shared.buffer().store_i64_release(0, 2);
        assert_eq!(private.buffer().load_i64_acquire(0), 2);
        private.buffer().store_i64_release(4096, 3);
        assert_eq!(shared.buffer().load_i64_acquire(4096), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn mapped_files_use_no_descriptors() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let before = descriptors_below(dir.path());
        let files: Vec<_> = [
            Allocation::Sparse,
            Allocation::Allocated,
            Allocation::Populated,
        ]
        .iter()
        .enumerate()
        .map(|(n, allocation)| {
            MappedFile::create(&dir.path().join(n.to_string()), 8192, *allocation).unwrap()
        })
        .collect();
        files[0].allocate(0, 4096).unwrap();
        assert_eq!((before, descriptors_below(dir.path())), (0, 0));
    }

    /// Returns the number of descriptors of this process for files in `dir`. Other tests of the process, which run at
    /// the same time, use other directories.
    #[cfg(target_os = "linux")]
    fn descriptors_below(dir: &Path) -> usize {
        std::fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|entry| std::fs::read_link(entry.unwrap().path()).ok())
            .filter(|target| target.starts_with(dir))
            .count()
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_is_allocated_in_a_file_that_has_replaced_the_mapped_file() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let (path, victim) = (dir.path().join("a"), dir.path().join("victim"));
        let file = MappedFile::create(&path, 1 << 20, Allocation::Sparse).unwrap();
        File::create(&victim).unwrap();
        std::fs::remove_file(&path).unwrap();
        let error = file.allocate(0, 4096).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        std::fs::hard_link(&victim, &path).unwrap();
        let error = file.allocate(0, 4096).unwrap_err();
        assert!(error.to_string().contains("taken the place"), "{error}");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        assert!(file.allocate(0, 4096).is_err());
        assert_eq!(std::fs::metadata(&victim).unwrap().len(), 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_too_long_for_the_file_system_is_an_error_and_is_removed() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("huge");
        let error = MappedFile::create(&path, 1 << 46, Allocation::Allocated).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert!(!path.exists());
        let sparse = MappedFile::create(&path, 1 << 44, Allocation::Sparse).unwrap();
        let error = sparse.allocate(0, 1 << 44).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn opening_an_empty_file_and_creating_a_file_of_length_0_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("empty");
        let error = MappedFile::create(&path, 0, Allocation::Sparse).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        File::create(&path).unwrap();
        let error = MappedFile::open(&path, false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
