//! The lock file. It shows which process owns an archive directory, and contains the random id of
//! the directory.
//!
//! The owner holds an exclusive `flock` on the file until it ends; the kernel releases the lock
//! when the process dies. The record in the file names the owner. The next owner uses the record to
//! recognize the mark file of a dead owner. Other processes use the record to check that the
//! directory is the expected directory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use aeron_layout::private_archive::LockRecordLayout;
use aeron_layout::{FromZeros, U32, offset};
use aeron_memory::lock_file;
use aeron_memory::regular::{Links, open_regular};

use super::ids::{DirectoryId, LockNonce};

const MAGIC: [u8; 4] = *b"APRV";
const VERSION: u32 = 1;
const RECORD_LENGTH: usize = LockRecordLayout::LENGTH;
const CHECKSUM_AT: usize = offset!(LockRecordLayout, checksum: U32);

/// Content of a lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRecord {
    /// Id of the directory.
    pub directory_id: DirectoryId,
    /// Random number, created with the directory. A process can know the number only from this file or from the owner.
    pub nonce: LockNonce,
    /// Boot id of the owner's machine.
    pub boot_id: String,
    /// The process that owns the directory.
    pub owner: LockOwner,
}

/// The process that owns a directory, with the values that the lock file and the mark file have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockOwner {
    /// Process id.
    pub pid: i64,
    /// Time at which the owner opened the directory, in milliseconds since the epoch.
    pub start_timestamp_ms: i64,
}

/// Why the bytes of a lock file are not a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockDamage {
    /// The file has a wrong length: the value is the length of the file, in bytes.
    #[error("it has {0} bytes instead of {RECORD_LENGTH}")]
    Length(usize),
    /// The file does not begin with the magic number of a lock file.
    #[error("it does not begin with APRV")]
    Magic,
    /// The file has another version than this software reads: the value is the version of the file.
    #[error("it has version {0}, this aeron reads version {VERSION}")]
    Version(u32),
    /// The checksum is wrong.
    #[error("its checksum does not fit its bytes")]
    Checksum,
    /// The boot id is not UTF-8.
    #[error("its boot id is not UTF-8")]
    BootId,
}

/// A lock file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The file system returns an error.
    #[error("cannot {doing} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// Path of the lock file.
        path: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
    /// The file is damaged.
    #[error("{} is damaged: {damage}", path.display())]
    Damaged {
        /// Path of the lock file.
        path: PathBuf,
        /// Reason.
        damage: LockDamage,
    },
}

/// A lock file that this process has locked. Dropping it releases the lock.
#[derive(Debug)]
pub struct OwnershipLock {
    lock: lock_file::LockFile,
    path: PathBuf,
}

/// Result of [`OwnershipLock::try_lock`].
#[derive(Debug)]
pub enum OwnershipLockAttempt {
    /// This process holds the lock.
    Acquired(OwnershipLock),
    /// A living process holds the lock. The value is its pid, if the file contains the pid.
    Held(Option<i64>),
    /// The file does not exist.
    Missing,
}

impl LockRecord {
    /// Returns the bytes of the file. A boot id that is too long is shortened.
    pub fn encode(&self) -> [u8; RECORD_LENGTH] {
        let mut layout = LockRecordLayout::new_zeroed();
        layout.magic = MAGIC;
        layout.version = VERSION.into();
        layout.archive_id = *self.directory_id.bytes();
        layout.nonce = *self.nonce.bytes();
        layout.pid = self.owner.pid.into();
        layout.start_timestamp_ms = self.owner.start_timestamp_ms.into();
        let boot_id = self.boot_id.as_bytes();
        let length = boot_id.len().min(layout.boot_id.len());
        layout.boot_id[..length].copy_from_slice(&boot_id[..length]);
        layout.checksum = checksum(&layout).into();
        layout.to_bytes()
    }

    /// Decodes the bytes of a file. Returns `None` for an empty file: its first owner was killed
    /// before it wrote a record.
    ///
    /// # Errors
    /// [`LockDamage`] says why the bytes are not a record.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, LockDamage> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let bytes: &[u8; RECORD_LENGTH] = bytes
            .try_into()
            .map_err(|_| LockDamage::Length(bytes.len()))?;
        let layout = LockRecordLayout::of(bytes);
        if layout.magic != MAGIC {
            return Err(LockDamage::Magic);
        }
        let version = layout.version.get();
        if version != VERSION {
            return Err(LockDamage::Version(version));
        }
        if layout.checksum.get() != checksum(layout) {
            return Err(LockDamage::Checksum);
        }
        let boot_id = str::from_utf8(&layout.boot_id).map_err(|_| LockDamage::BootId)?;
        Ok(Some(Self {
            directory_id: DirectoryId::from_bytes(layout.archive_id),
            nonce: LockNonce::from_bytes(layout.nonce),
            boot_id: boot_id.trim_end_matches('\0').to_owned(),
            owner: LockOwner {
                pid: layout.pid.get(),
                start_timestamp_ms: layout.start_timestamp_ms.get(),
            },
        }))
    }

    /// Reads the record of the lock file at `path` without taking the lock. Returns `None` if the
    /// file does not exist or is empty.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(path: &Path) -> Result<Option<Self>, LockError> {
        match open_regular(path, false, Links::Refused) {
            Ok(file) => read_record(&file, path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(LockError::io("open", path, source)),
        }
    }
}

impl LockError {
    fn io(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            doing,
            path: path.to_owned(),
            source,
        }
    }
}

impl OwnershipLock {
    /// Creates the lock file of a new directory at `path`, and locks it.
    ///
    /// # Errors
    /// The file exists, or the file system returns an error.
    pub fn create(path: &Path) -> Result<Self, LockError> {
        let lock = lock_file::LockFile::create(path)
            .map_err(|source| LockError::io("create", path, source))?;
        let path = path.to_owned();
        Ok(Self { lock, path })
    }

    /// Locks the lock file at `path` if no process holds the lock.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn try_lock(path: &Path) -> Result<OwnershipLockAttempt, LockError> {
        let attempt = lock_file::LockFile::try_lock(path)
            .map_err(|source| LockError::io("lock", path, source))?;
        Ok(match attempt {
            lock_file::LockAttempt::Acquired(lock) => {
                let path = path.to_owned();
                OwnershipLockAttempt::Acquired(Self { lock, path })
            }
            lock_file::LockAttempt::Held(file) => OwnershipLockAttempt::Held(holder(&file, path)),
            // The file never existed, or its last owner removed the whole directory.
            lock_file::LockAttempt::Missing => OwnershipLockAttempt::Missing,
        })
    }

    /// Returns the pid of the living process that holds the lock at `path`, or the record of the
    /// last owner if no process holds the lock. Does not take the lock.
    ///
    /// If no process holds the lock, the outer option is `None`. If the file does not contain the pid, cannot be read
    /// or is damaged, the inner option is `None`.
    ///
    /// # Errors
    /// The file does not exist, or cannot be opened or locked. If no process holds the lock, a file that cannot be read
    /// or is damaged is also an error.
    pub fn look(path: &Path) -> Result<(Option<Option<i64>>, Option<LockRecord>), LockError> {
        let found = lock_file::LockFile::look(path)
            .and_then(|found| found.ok_or_else(|| io::ErrorKind::NotFound.into()))
            .map_err(|source| LockError::io("open", path, source))?;
        match found {
            (true, file) => Ok((Some(holder(&file, path)), None)),
            (false, file) => Ok((None, read_record(&file, path)?)),
        }
    }

    /// Reads the record. Returns `None` if the first owner was killed before it wrote a record.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn record(&self) -> Result<Option<LockRecord>, LockError> {
        read_record(self.lock.file(), &self.path)
    }

    /// Replaces the record in the file with one write.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn write(&self, record: &LockRecord) -> Result<(), LockError> {
        self.lock
            .file()
            .write_all_at(&record.encode(), 0)
            .map_err(|source| LockError::io("write", &self.path, source))
    }
}

/// Returns the pid of the owner, if the file contains it.
fn holder(file: &File, path: &Path) -> Option<i64> {
    let record = read_record(file, path).ok().flatten()?;
    Some(record.owner.pid)
}

fn read_record(file: &File, path: &Path) -> Result<Option<LockRecord>, LockError> {
    let mut bytes = [0; RECORD_LENGTH + 1];
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(LockError::io("read", path, source)),
        }
    }
    LockRecord::decode(&bytes[..length]).map_err(|damage| LockError::Damaged {
        path: path.to_owned(),
        damage,
    })
}

/// Returns the checksum of all bytes before the checksum field.
fn checksum(layout: &LockRecordLayout) -> u32 {
    crc32fast::hash(&layout.to_bytes()[..CHECKSUM_AT])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::{Duration, Instant};

    prop_compose! {
        fn records()(
            directory_id: [u8; 16], nonce: [u8; 16], boot_id in "[0-9a-f-]{0,64}", pid: i64,
            start_timestamp_ms: i64,
        ) -> LockRecord {
            let owner = LockOwner { pid, start_timestamp_ms };
            let (directory_id, nonce) = (DirectoryId::from_bytes(directory_id), LockNonce::from_bytes(nonce));
            LockRecord { directory_id, nonce, boot_id, owner }
        }
    }

    fn record() -> LockRecord {
        LockRecord {
            directory_id: DirectoryId::from_bytes([7; 16]),
            nonce: LockNonce::random().unwrap(),
            boot_id: "boot".to_owned(),
            owner: LockOwner {
                pid: 42,
                start_timestamp_ms: 1_000,
            },
        }
    }

    proptest! {
        #[test]
        fn a_record_is_decoded_unchanged_and_refused_after_a_flipped_bit(
            record in records(), bit in 0..RECORD_LENGTH * 8,
        ) {
            let mut bytes = record.encode();
            prop_assert_eq!(LockRecord::decode(&bytes), Ok(Some(record)));
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(LockRecord::decode(&bytes).is_err());
        }

        #[test]
        fn decoding_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = LockRecord::decode(&bytes);
        }
    }

    #[test]
    fn a_record_has_the_same_bytes_as_in_earlier_versions() {
        let record = LockRecord {
            nonce: LockNonce::from_bytes([9; 16]),
            ..record()
        };
        let text: String = record
            .encode()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let expected = [
            "4150525601000000070707070707070707070707070707070909090909090909",
            "09090909090909092a00000000000000e8030000000000000000000000000000",
            "626f6f7400000000000000000000000000000000000000000000000000000000",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0000000000000000000000000000000000000000000000000000000000000000",
            "00000000000000000000000000000000000000000000000000000000b2c084b1",
        ];
        assert_eq!(text, expected.concat());
    }

    #[test]
    fn the_reserved_field_is_written_as_zero_and_its_value_from_an_earlier_version_is_ignored() {
        let mut layout = *LockRecordLayout::of(&record().encode());
        assert_eq!(layout.reserved_after_owner, [0; 8]);
        // Earlier versions wrote a hash of options here.
        layout.reserved_after_owner = 0x1234_5678_9abc_def0_u64.to_le_bytes();
        layout.checksum = checksum(&layout).into();
        let bytes = layout.to_bytes();
        let read = LockRecord::decode(&bytes).unwrap().unwrap();
        assert_eq!(
            (read.directory_id, read.owner),
            (record().directory_id, record().owner)
        );
    }

    /// 08-28
    #[test]
    fn a_held_lock_has_the_pid_of_its_owner_and_a_released_lock_can_be_taken() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archive.lock");
        let held = OwnershipLock::create(&path).unwrap();
        let found = OwnershipLock::try_lock(&path).unwrap();
        assert!(
            matches!(found, OwnershipLockAttempt::Held(None)),
            "{found:?}"
        );
        held.write(&record()).unwrap();
        let found = OwnershipLock::try_lock(&path).unwrap();
        assert!(
            matches!(found, OwnershipLockAttempt::Held(Some(42))),
            "{found:?}"
        );
        let (live, _) = OwnershipLock::look(&path).unwrap();
        assert_eq!(live, Some(Some(42)));
        let record = held.record().unwrap();
        drop(held);
        assert_eq!(OwnershipLock::look(&path).unwrap(), (None, record.clone()));
        let found = OwnershipLock::try_lock(&path).unwrap();
        let OwnershipLockAttempt::Acquired(ours) = found else {
            panic!("{found:?}");
        };
        assert_eq!(ours.record().unwrap(), record);
    }

    #[test]
    fn a_removed_lock_file_is_reported_as_missing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archive.lock");
        assert!(matches!(
            OwnershipLock::try_lock(&path).unwrap(),
            OwnershipLockAttempt::Missing
        ));
        drop(OwnershipLock::create(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(
            OwnershipLock::try_lock(&path).unwrap(),
            OwnershipLockAttempt::Missing
        ));
        assert_eq!(LockRecord::read(&path).unwrap(), None);
    }

    /// 08-28: a program that the owner starts does not inherit its lock.
    #[test]
    fn the_lock_is_not_inherited_by_started_programs() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archive.lock");
        let held = OwnershipLock::create(&path).unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("5")
            .spawn()
            .unwrap();
        drop(held);
        // Programs that other tests start hold the lock until their `exec`.
        let deadline = Instant::now() + Duration::from_secs(2);
        let is_taken = loop {
            let is_taken = matches!(
                OwnershipLock::try_lock(&path).unwrap(),
                OwnershipLockAttempt::Acquired(_)
            );
            if is_taken || Instant::now() > deadline {
                break is_taken;
            }
            std::thread::yield_now();
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_taken);
    }

    #[test]
    fn the_error_of_a_damaged_lock_file_has_the_name_of_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("archive.lock");
        std::fs::write(&path, b"APRV").unwrap();
        let error = LockRecord::read(&path).unwrap_err().to_string();
        assert!(
            error.contains("archive.lock") && error.contains("4 bytes"),
            "{error}"
        );
    }
}
