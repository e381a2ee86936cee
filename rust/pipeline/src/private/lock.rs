//! `private.lock`: who owns a private archive, and what tells the archive from every other one.
//!
//! The owner holds an exclusive `flock` on the file for as long as it lives; the kernel frees it at any death. The record in the
//! file says who that was, so that the next owner knows a mark file of the dead from one of a stranger, and workers know that
//! they look at the very archive that they were sent to.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use aeron_memory::lock_file::{self, LockAttempt};

use super::PrivateError;

/// Name of the file in the archive's directory.
pub const LOCK_FILE: &str = "private.lock";

const MAGIC: [u8; 4] = *b"APRV";
const VERSION: u32 = 1;
/// Less than a page: a write of it is whole or absent.
const RECORD_LENGTH: usize = 192;
const ARCHIVE_ID_AT: usize = 8;
const NONCE_AT: usize = 24;
const PID_AT: usize = 40;
const START_TIMESTAMP_AT: usize = 48;
const OPTIONS_HASH_AT: usize = 56;
const BOOT_ID_AT: usize = 64;
const BOOT_ID_END: usize = 128;
const CHECKSUM_AT: usize = RECORD_LENGTH - 4;

/// 16 random bytes; their text is 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token([u8; 16]);

/// What a lock file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockRecord {
    /// Id of the archive: the name of its directory.
    pub archive_id: Token,
    /// Made with the archive, and known to nobody who has not seen this file.
    pub nonce: Token,
    /// The boot of the machine on which the owner runs.
    pub boot_id: String,
    /// The owner.
    pub owner: Owner,
    /// Of the options that decide what is recorded.
    pub options_hash: u64,
}

/// A process, as lock file and mark file name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    /// Process id.
    pub pid: i64,
    /// When it opened the archive, in epoch milliseconds.
    pub start_timestamp_ms: i64,
}

/// Why the bytes of a lock file are no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockDamage {
    /// Of another length.
    #[error("it has {0} bytes instead of {RECORD_LENGTH}")]
    Length(usize),
    /// Not the file of a private archive.
    #[error("it does not begin with APRV")]
    Magic,
    /// Written by another version of this software.
    #[error("it has version {0}, this aeron reads version {VERSION}")]
    Version(u32),
    /// Not what was written.
    #[error("its checksum does not fit its bytes")]
    Checksum,
    /// A name that is no text.
    #[error("its boot id is no text")]
    BootId,
}

/// A lock file that this process holds. Dropping it frees the lock.
#[derive(Debug)]
pub struct LockFile {
    lock: lock_file::LockFile,
    path: PathBuf,
}

/// What [`LockFile::try_take`] found.
#[derive(Debug)]
pub enum Taken {
    /// The lock is ours now.
    Ours(LockFile),
    /// A living process holds it; its pid, if the file says it.
    Held(Option<i64>),
    /// There is no such file.
    Missing,
}

impl Token {
    /// A token that nobody can guess.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn random() -> io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        Ok(Self(bytes))
    }

    /// The token of a text: 32 hexadecimal digits in small letters, and nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        let token = Self(u128::from_str_radix(text, 16).ok()?.to_be_bytes());
        (token.to_string() == text).then_some(token)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl LockRecord {
    /// The bytes of the file. A boot id that is too long is cut.
    pub fn encode(&self) -> [u8; RECORD_LENGTH] {
        let mut bytes = [0; RECORD_LENGTH];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
        bytes[ARCHIVE_ID_AT..][..16].copy_from_slice(&self.archive_id.0);
        bytes[NONCE_AT..][..16].copy_from_slice(&self.nonce.0);
        bytes[PID_AT..][..8].copy_from_slice(&self.owner.pid.to_le_bytes());
        bytes[START_TIMESTAMP_AT..][..8]
            .copy_from_slice(&self.owner.start_timestamp_ms.to_le_bytes());
        bytes[OPTIONS_HASH_AT..][..8].copy_from_slice(&self.options_hash.to_le_bytes());
        let boot_id = self.boot_id.as_bytes();
        let length = boot_id.len().min(BOOT_ID_END - BOOT_ID_AT);
        bytes[BOOT_ID_AT..][..length].copy_from_slice(&boot_id[..length]);
        let checksum = crc32fast::hash(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Reads the bytes of a file; `None` when its first owner was killed before it wrote any.
    ///
    /// # Errors
    /// [`LockDamage`] says what is wrong.
    pub fn decode(bytes: &[u8]) -> Result<Option<Self>, LockDamage> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let bytes: &[u8; RECORD_LENGTH] = bytes
            .try_into()
            .map_err(|_| LockDamage::Length(bytes.len()))?;
        if bytes[..4] != MAGIC {
            return Err(LockDamage::Magic);
        }
        let version = u32::from_le_bytes(array(bytes, 4));
        if version != VERSION {
            return Err(LockDamage::Version(version));
        }
        if bytes[CHECKSUM_AT..] != crc32fast::hash(&bytes[..CHECKSUM_AT]).to_le_bytes() {
            return Err(LockDamage::Checksum);
        }
        let boot_id =
            str::from_utf8(&bytes[BOOT_ID_AT..BOOT_ID_END]).map_err(|_| LockDamage::BootId)?;
        Ok(Some(Self {
            archive_id: Token(array(bytes, ARCHIVE_ID_AT)),
            nonce: Token(array(bytes, NONCE_AT)),
            boot_id: boot_id.trim_end_matches('\0').to_owned(),
            owner: Owner {
                pid: i64::from_le_bytes(array(bytes, PID_AT)),
                start_timestamp_ms: i64::from_le_bytes(array(bytes, START_TIMESTAMP_AT)),
            },
            options_hash: u64::from_le_bytes(array(bytes, OPTIONS_HASH_AT)),
        }))
    }

    /// What the lock file of the archive in `directory` says, without taking the lock; `None` as for [`decode`](Self::decode),
    /// and when there is no such file.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn read(directory: &Path) -> Result<Option<Self>, PrivateError> {
        let path = directory.join(LOCK_FILE);
        match open(&path) {
            Ok(file) => read_record(&file, &path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(PrivateError::io("open", &path, source)),
        }
    }
}

impl LockFile {
    /// Makes the lock file of a new archive, and locks it.
    ///
    /// # Errors
    /// There is one already, or the file system refuses.
    pub fn create(directory: &Path) -> Result<Self, PrivateError> {
        let path = directory.join(LOCK_FILE);
        let lock = lock_file::LockFile::create(&path)
            .map_err(|source| PrivateError::io("create", &path, source))?;
        Ok(Self { lock, path })
    }

    /// Takes the lock of the archive in `directory` if nobody holds it.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn try_take(directory: &Path) -> Result<Taken, PrivateError> {
        let path = directory.join(LOCK_FILE);
        let attempt = lock_file::LockFile::try_lock(&path)
            .map_err(|source| PrivateError::io("lock", &path, source))?;
        Ok(match attempt {
            LockAttempt::Acquired(lock) => Taken::Ours(Self { lock, path }),
            LockAttempt::Held(file) => Taken::Held(holder(&file, &path)),
            // Never there, or removed with the whole archive by its last owner.
            LockAttempt::Missing => Taken::Missing,
        })
    }

    /// Whether a living process owns the archive in `directory`: its pid, if the lock file says it. Also returns what the file
    /// says. Disturbs no owner.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn look(
        directory: &Path,
    ) -> Result<(Option<Option<i64>>, Option<LockRecord>), PrivateError> {
        let path = directory.join(LOCK_FILE);
        let found = lock_file::LockFile::look(&path)
            .and_then(|found| found.ok_or_else(|| io::ErrorKind::NotFound.into()))
            .map_err(|source| PrivateError::io("open", &path, source))?;
        match found {
            (true, file) => Ok((Some(holder(&file, &path)), None)),
            (false, file) => Ok((None, read_record(&file, &path)?)),
        }
    }

    /// What the file says; `None` when its first owner was killed before it wrote anything.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn record(&self) -> Result<Option<LockRecord>, PrivateError> {
        read_record(self.lock.file(), &self.path)
    }

    /// Writes what the file is to say, in one step.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn write(&self, record: &LockRecord) -> Result<(), PrivateError> {
        self.lock
            .file()
            .write_all_at(&record.encode(), 0)
            .map_err(|source| PrivateError::io("write", &self.path, source))
    }
}

/// Opens the file for reading; a symbolic link is not followed.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits() as i32)
        .open(path)
}

/// Pid of the owner, as far as the file says it.
fn holder(file: &File, path: &Path) -> Option<i64> {
    let record = read_record(file, path).ok().flatten()?;
    Some(record.owner.pid)
}

fn read_record(file: &File, path: &Path) -> Result<Option<LockRecord>, PrivateError> {
    let mut bytes = [0; RECORD_LENGTH + 1];
    let mut length = 0;
    while length < bytes.len() {
        match file.read_at(&mut bytes[length..], length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(source) => return Err(PrivateError::io("read", path, source)),
        }
    }
    LockRecord::decode(&bytes[..length]).map_err(|damage| PrivateError::LockDamaged {
        path: path.to_owned(),
        damage,
    })
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::time::{Duration, Instant};

    prop_compose! {
        fn records()(
            archive_id: [u8; 16], nonce: [u8; 16], boot_id in "[0-9a-f-]{0,64}", pid: i64,
            start_timestamp_ms: i64, options_hash: u64,
        ) -> LockRecord {
            let owner = Owner { pid, start_timestamp_ms };
            LockRecord { archive_id: Token(archive_id), nonce: Token(nonce), boot_id, owner, options_hash }
        }
    }

    fn record() -> LockRecord {
        LockRecord {
            archive_id: Token([7; 16]),
            nonce: Token::random().unwrap(),
            boot_id: "boot".to_owned(),
            owner: Owner {
                pid: 42,
                start_timestamp_ms: 1_000,
            },
            options_hash: 9,
        }
    }

    proptest! {
        #[test]
        fn a_record_survives_its_bytes_and_no_flipped_bit_passes(record in records(), bit in 0..RECORD_LENGTH * 8) {
            let mut bytes = record.encode();
            prop_assert_eq!(LockRecord::decode(&bytes), Ok(Some(record)));
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(LockRecord::decode(&bytes).is_err());
        }

        #[test]
        fn any_bytes_are_a_record_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = LockRecord::decode(&bytes);
        }

        #[test]
        fn a_token_is_32_digits_and_nothing_else(bytes: [u8; 16], text in "[0-9a-fA-F+]{0,40}") {
            let token = Token(bytes);
            prop_assert_eq!(Token::parse(&token.to_string()), Some(token));
            if let Some(token) = Token::parse(&text) {
                prop_assert_eq!(token.to_string(), text);
            }
        }
    }

    /// 08-28
    #[test]
    fn a_held_lock_names_its_owner_and_a_freed_one_can_be_taken() {
        let directory = tempfile::tempdir().unwrap();
        let held = LockFile::create(directory.path()).unwrap();
        let found = LockFile::try_take(directory.path()).unwrap();
        assert!(matches!(found, Taken::Held(None)), "{found:?}");
        held.write(&record()).unwrap();
        let found = LockFile::try_take(directory.path()).unwrap();
        assert!(matches!(found, Taken::Held(Some(42))), "{found:?}");
        let (live, _) = LockFile::look(directory.path()).unwrap();
        assert_eq!(live, Some(Some(42)));
        let record = held.record().unwrap();
        drop(held);
        assert_eq!(
            LockFile::look(directory.path()).unwrap(),
            (None, record.clone())
        );
        let found = LockFile::try_take(directory.path()).unwrap();
        let Taken::Ours(ours) = found else {
            panic!("{found:?}");
        };
        assert_eq!(ours.record().unwrap(), record);
    }

    #[test]
    fn the_lock_of_a_removed_archive_is_no_lock() {
        let directory = tempfile::tempdir().unwrap();
        assert!(matches!(
            LockFile::try_take(directory.path()).unwrap(),
            Taken::Missing
        ));
        drop(LockFile::create(directory.path()).unwrap());
        std::fs::remove_file(directory.path().join(LOCK_FILE)).unwrap();
        assert!(matches!(
            LockFile::try_take(directory.path()).unwrap(),
            Taken::Missing
        ));
        assert_eq!(LockRecord::read(directory.path()).unwrap(), None);
    }

    /// 08-28: a program that the owner starts does not keep its lock.
    #[test]
    fn the_lock_is_not_handed_on_to_programs_that_are_started() {
        let directory = tempfile::tempdir().unwrap();
        let held = LockFile::create(directory.path()).unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("5")
            .spawn()
            .unwrap();
        drop(held);
        // Programs that other tests start have it until they are loaded.
        let deadline = Instant::now() + Duration::from_secs(2);
        let is_taken = loop {
            let is_taken = matches!(
                LockFile::try_take(directory.path()).unwrap(),
                Taken::Ours(_)
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
    fn a_damaged_lock_file_is_refused_by_name() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(LOCK_FILE), b"APRV").unwrap();
        let error = LockRecord::read(directory.path()).unwrap_err().to_string();
        assert!(
            error.contains("private.lock") && error.contains("4 bytes"),
            "{error}"
        );
    }
}
