//! Directories for private archives: the directory that the user names, or a directory in memory or below the temporary
//! directory.
//!
//! A symbolic link, and a directory that belongs to another user or is writable for everybody, are refused: a query
//! returns the contents of the directory as rows.

use std::fs::{DirBuilder, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::PrivateArchiveId;
use super::PrivateError;

/// Free bytes that a default root must have in addition to the retained bytes, because segments get their full length
/// before they have data.
const SPARE_BYTES: u64 = 128 * 1024 * 1024;

/// The directories that may contain private archives.
#[derive(Debug, Clone)]
pub struct ArchiveRoots {
    /// Directories for new archives, in the order of preference. If the user named a directory, it is the only one.
    candidates: Vec<Candidate>,
}

#[derive(Debug, Clone)]
struct Candidate {
    /// An existing directory on the same file system. It is used to find the number of free bytes.
    file_system: PathBuf,
    directory: PathBuf,
}

/// The root that was selected for a new archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedRoot {
    /// Path of the root. It exists and belongs to this user.
    pub directory: PathBuf,
    /// One line for the log: the root and the reason for its selection.
    pub line: String,
}

impl ArchiveRoots {
    /// Creates the list of roots: the directory of the option `archiveDir`, or the default directories.
    ///
    /// # Errors
    /// The path is not absolute.
    pub fn new(archive_dir: Option<&Path>) -> Result<Self, PrivateError> {
        let Some(directory) = archive_dir else {
            let roots = [PathBuf::from("/dev/shm"), std::env::temp_dir()];
            return Ok(Self::of_roots(roots, rustix::process::geteuid().as_raw()));
        };
        if !directory.is_absolute() {
            return Err(PrivateError::root(directory, "is not an absolute path"));
        }
        Ok(Self {
            candidates: vec![Candidate {
                file_system: directory.to_owned(),
                directory: directory.to_owned(),
            }],
        })
    }

    fn of_roots(roots: impl IntoIterator<Item = PathBuf>, uid: u32) -> Self {
        let candidate = |root: PathBuf| Candidate {
            directory: root.join(format!("aeron-spark-{uid}")),
            file_system: root,
        };
        Self {
            candidates: roots.into_iter().map(candidate).collect(),
        }
    }

    /// Returns the directory of the archive `id` in any root; `None` if it does not exist.
    ///
    /// # Errors
    /// The directory exists and belongs to another user, or its root is refused.
    pub fn find(&self, id: PrivateArchiveId) -> Result<Option<PathBuf>, PrivateError> {
        for candidate in &self.candidates {
            let path = candidate.directory.join(id.to_string());
            match path.symlink_metadata() {
                Ok(found) => {
                    check_existing(&candidate.directory)?;
                    check(&path, &found)?;
                    return Ok(Some(path));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(PrivateError::io("look at", &path, source)),
            }
        }
        Ok(None)
    }

    /// Returns the path of the archive `id` in the preferred root.
    pub fn preferred_path(&self, id: PrivateArchiveId) -> PathBuf {
        let first = self.candidates.first().expect("one root or more");
        first.directory.join(id.to_string())
    }

    /// Returns the roots that exist and belong to this user.
    pub fn existing(&self) -> impl Iterator<Item = &Path> {
        let directories = self.candidates.iter();
        directories
            .map(|candidate| candidate.directory.as_path())
            .filter(|directory| check_existing(directory).is_ok())
    }

    /// Selects the first root with enough space for `max_retained_bytes` and the open segments, and creates it if it is
    /// missing. If no root has enough space, selects the last one.
    ///
    /// # Errors
    /// The root is refused, or the directory cannot be created.
    pub fn select(&self, max_retained_bytes: u64) -> Result<SelectedRoot, PrivateError> {
        let needed = max_retained_bytes.saturating_add(SPARE_BYTES);
        let mut passed = String::new();
        let (last, others) = self.candidates.split_last().expect("one root or more");
        for candidate in others {
            let free = free_bytes(&candidate.file_system).unwrap_or(0);
            if free >= needed {
                return candidate.make(free, &passed);
            }
            passed += &format!(
                "; {} has {} MiB free of {} MiB that are needed",
                candidate.file_system.display(),
                free >> 20,
                needed >> 20
            );
        }
        make(&last.directory)?;
        let free = free_bytes(&last.directory)
            .map_err(|source| PrivateError::io("look at", &last.directory, source))?;
        last.make(free, &passed)
    }
}

impl Candidate {
    fn make(&self, free: u64, passed: &str) -> Result<SelectedRoot, PrivateError> {
        make(&self.directory)?;
        let directory = self.directory.clone();
        let line = format!(
            "private archive in {}, {} MiB free{passed}",
            directory.display(),
            free >> 20
        );
        Ok(SelectedRoot { directory, line })
    }
}

/// Creates a directory and its missing parents, with access only for the owner. Accepts an existing directory that
/// [`check`] accepts.
fn make(directory: &Path) -> Result<(), PrivateError> {
    match directory.symlink_metadata() {
        Ok(found) => return check(directory, &found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(source) => return Err(PrivateError::io("look at", directory, source)),
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(|source| PrivateError::io("create", directory, source))?;
    check_existing(directory)
}

/// Creates the directory of one archive; it must not exist.
pub(super) fn make_archive(
    directory: &Path,
    id: PrivateArchiveId,
) -> Result<PathBuf, PrivateError> {
    let path = directory.join(id.to_string());
    DirBuilder::new()
        .mode(0o700)
        .create(&path)
        .map_err(|source| PrivateError::io("create", &path, source))?;
    Ok(path)
}

fn check_existing(directory: &Path) -> Result<(), PrivateError> {
    let found = directory
        .symlink_metadata()
        .map_err(|source| PrivateError::io("look at", directory, source))?;
    check(directory, &found)
}

/// Refuses a path that is not a directory of this user, or that is writable for everybody.
pub(super) fn check(path: &Path, found: &Metadata) -> Result<(), PrivateError> {
    let refuse = |reason: String| Err(PrivateError::root(path, reason));
    let uid = rustix::process::geteuid().as_raw();
    if found.is_symlink() {
        refuse("is a symbolic link; name the directory itself".to_owned())
    } else if !found.is_dir() {
        refuse("is no directory".to_owned())
    } else if found.uid() != uid {
        refuse(format!(
            "belongs to user {}, and this process runs as user {uid}",
            found.uid()
        ))
    } else if found.permissions().mode() & 0o002 != 0 {
        refuse(
            "is writable for everybody; take that right away or name another directory".to_owned(),
        )
    } else {
        Ok(())
    }
}

/// Returns the free bytes of a file system.
fn free_bytes(path: &Path) -> io::Result<u64> {
    let state = rustix::fs::statvfs(path)?;
    Ok(state.f_bavail.saturating_mul(state.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn id() -> PrivateArchiveId {
        PrivateArchiveId::parse("9f0c000000000000000000000000beef").unwrap()
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn refusal(directory: &Path) -> String {
        let roots = ArchiveRoots::new(Some(directory)).unwrap();
        roots.select(0).unwrap_err().to_string()
    }

    /// 08-32
    #[test]
    fn only_the_owner_has_access_to_the_created_directories() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("deep/archives");
        let roots = ArchiveRoots::new(Some(&directory)).unwrap();
        assert!(roots.find(id()).unwrap().is_none());
        let selected = roots.select(1 << 30).unwrap();
        assert_eq!(selected.directory, directory);
        let archive = make_archive(&directory, id()).unwrap();
        for path in [&directory, &archive] {
            assert_eq!(path.metadata().unwrap().mode() & 0o7777, 0o700);
        }
        assert_eq!(roots.find(id()).unwrap(), Some(archive));
    }

    /// 08-32
    #[test]
    fn a_directory_that_other_users_can_change_is_refused_with_the_reason() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().join("real");
        fs::create_dir(&real).unwrap();
        let link = root.path().join("link");
        symlink(&real, &link).unwrap();
        assert!(refusal(&link).contains("symbolic link"));
        set_mode(&real, 0o777);
        assert!(refusal(&real).contains("writable for everybody"));
        set_mode(&real, 0o700);
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(refusal(&file).contains("no directory"));
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&real, Some(1), None).unwrap();
            assert!(refusal(&real).contains("belongs to user 1"));
        }
        let error = ArchiveRoots::new(Some(Path::new("relative")))
            .unwrap_err()
            .to_string();
        assert!(error.contains("absolute"), "{error}");
    }

    /// 08-32: a symbolic link cannot replace an archive's own directory by another one.
    #[test]
    fn an_archive_that_is_a_symbolic_link_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let roots = ArchiveRoots::new(Some(root.path())).unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path(), root.path().join(id().to_string())).unwrap();
        assert!(roots.find(id()).is_err());
    }

    #[test]
    fn the_first_root_with_enough_space_is_used_and_the_log_line_gives_the_reason() {
        let small = tempfile::tempdir().unwrap();
        let large = tempfile::tempdir().unwrap();
        let roots = [small.path().to_owned(), large.path().to_owned()];
        let roots = ArchiveRoots::of_roots(roots, 77);
        let selected = roots.select(0).unwrap();
        assert_eq!(selected.directory, small.path().join("aeron-spark-77"));
        let selected = roots.select(u64::MAX / 2).unwrap();
        assert_eq!(selected.directory, large.path().join("aeron-spark-77"));
        assert!(
            selected.line.contains("that are needed"),
            "{}",
            selected.line
        );
        // `find` finds an archive in every root, not only in the preferred one.
        let archive = make_archive(&small.path().join("aeron-spark-77"), id()).unwrap();
        assert_eq!(roots.find(id()).unwrap(), Some(archive));
    }
}
