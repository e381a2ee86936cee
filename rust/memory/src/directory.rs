//! The Aeron directory: its path and its entries (`docs/spec/01-memory-layouts.md`, section 1).

use std::ffi::{CStr, OsStr, OsString};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Environment variable that names the directory.
pub const DIRECTORY_VARIABLE: &str = "AERON_DIR";

const CNC_FILE: &str = "cnc.dat";
const LOSS_REPORT_FILE: &str = "loss-report.dat";
const LOG_LEVEL_FILE: &str = "log-level";
const RELOAD_FILE: &str = "reload";
const PUBLICATIONS: &str = "publications";
const IMAGES: &str = "images";
const LOG_EXTENSION: &str = ".logbuffer";
const DRIVER_LOCK_FILE: &str = "aeron-driver.lock";

/// Kind of an entry of an Aeron directory. It follows from the name of the entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectoryEntry {
    /// The CnC file, the loss report, or a file of a command: the level of the log, a request to reload.
    File,
    /// A directory of log buffers.
    LogDirectory,
    /// The lock file of a driver of this project; other drivers have none.
    DriverLock,
}

/// Returns `AERON_DIR`, else `/dev/shm/aeron-<user>` on Linux and `<temporary directory>/aeron-<user>` on other
/// systems.
pub fn default_directory() -> PathBuf {
    directory_from(|name| std::env::var_os(name), login_name)
}

/// Returns the path of the CnC file of a directory.
pub fn cnc_file(directory: &Path) -> PathBuf {
    directory.join(CNC_FILE)
}

/// Returns the path of the loss report of a directory.
pub fn loss_report_file(directory: &Path) -> PathBuf {
    directory.join(LOSS_REPORT_FILE)
}

/// Returns the path of the file that a driver of this project locks while it runs.
pub fn driver_lock_file(directory: &Path) -> PathBuf {
    directory.join(DRIVER_LOCK_FILE)
}

/// Returns the path of the file with the level of a driver's log. `aeron log-level` writes it.
pub fn log_level_file(directory: &Path) -> PathBuf {
    directory.join(LOG_LEVEL_FILE)
}

/// Returns the path of the file with a request to reload. `aeron reload` writes it, and the driver writes the outcome.
pub fn reload_file(directory: &Path) -> PathBuf {
    directory.join(RELOAD_FILE)
}

/// Returns the two log directories of an Aeron directory.
pub fn log_directories(directory: &Path) -> [PathBuf; 2] {
    [PUBLICATIONS, IMAGES].map(|name| directory.join(name))
}

/// Returns the kind of an entry of an Aeron directory; `None` if drivers do not use this name.
pub fn entry_named(name: &OsStr) -> Option<DirectoryEntry> {
    match name.to_str()? {
        CNC_FILE | LOSS_REPORT_FILE | LOG_LEVEL_FILE | RELOAD_FILE => Some(DirectoryEntry::File),
        PUBLICATIONS | IMAGES => Some(DirectoryEntry::LogDirectory),
        DRIVER_LOCK_FILE => Some(DirectoryEntry::DriverLock),
        _ => None,
    }
}

/// Whether the name has the form of a log buffer: a decimal id, then `.logbuffer`.
pub fn is_log_name(name: &OsStr) -> bool {
    let id = name
        .to_str()
        .and_then(|name| name.strip_suffix(LOG_EXTENSION));
    id.is_some_and(|id| {
        id.parse::<i64>()
            .is_ok_and(|number| number.to_string() == id)
    })
}

/// Returns the path of the log of the publication with this registration id.
pub fn publication_log(directory: &Path, registration_id: i64) -> PathBuf {
    directory
        .join(PUBLICATIONS)
        .join(format!("{registration_id}{LOG_EXTENSION}"))
}

/// Returns the path of the log of an image.
pub fn image_log(directory: &Path, correlation_id: i64) -> PathBuf {
    directory
        .join(IMAGES)
        .join(format!("{correlation_id}{LOG_EXTENSION}"))
}

/// Creates the Aeron directory and its two log directories with mode `0777 & ~umask`, unless they exist.
pub fn create_directories(directory: &Path) -> io::Result<()> {
    for path in log_directories(directory) {
        DirBuilder::new().recursive(true).create(path)?;
    }
    Ok(())
}

fn directory_from(
    variable: impl Fn(&str) -> Option<OsString>,
    login_name: impl FnOnce() -> Option<OsString>,
) -> PathBuf {
    let set = |name| variable(name).filter(|value| !value.is_empty());
    if let Some(directory) = set(DIRECTORY_VARIABLE) {
        return directory.into();
    }
    let base = match cfg!(target_os = "linux") {
        true => "/dev/shm".into(),
        false => set("TMPDIR").unwrap_or_else(|| "/tmp".into()),
    };
    let user = set("USER")
        .or_else(login_name)
        .unwrap_or_else(|| "default".into());
    let mut name = OsString::from("aeron-");
    name.push(user);
    Path::new(&base).join(name)
}

/// Returns the name of the real user from the passwd database.
fn login_name() -> Option<OsString> {
    let mut strings = [0; 4096];
    // SAFETY: all-zero bytes are a valid passwd (null pointers and zeros).
    let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are to live locals, and the length is the buffer's length.
    let status = unsafe {
        libc::getpwuid_r(
            libc::getuid(),
            &mut entry,
            strings.as_mut_ptr(),
            strings.len(),
            &mut found,
        )
    };
    if status != 0 || found.is_null() {
        return None;
    }
    // SAFETY: on success the name is a C string in `strings`.
    let name = unsafe { CStr::from_ptr(entry.pw_name) };
    Some(OsString::from_vec(name.to_bytes().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn directory_of(variables: &[(&str, &str)], login_name: Option<&str>) -> PathBuf {
        let variable = |name: &str| {
            variables
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, value)| value.into())
        };
        directory_from(variable, || login_name.map(OsString::from))
    }

    /// 01-1
    #[test]
    fn the_default_directory_is_in_shared_memory_and_named_after_the_user() {
        let base = match cfg!(target_os = "linux") {
            true => Path::new("/dev/shm"),
            false => Path::new("/tmp"),
        };
        let ann = [("USER", "ann")];
        assert_eq!(directory_of(&ann, Some("bob")), base.join("aeron-ann"));
        assert_eq!(directory_of(&[], Some("bob")), base.join("aeron-bob"));
        assert_eq!(
            directory_of(&[("USER", "")], None),
            base.join("aeron-default")
        );
        let overridden = [("USER", "ann"), ("AERON_DIR", "/tmp/x")];
        assert_eq!(directory_of(&overridden, None), Path::new("/tmp/x"));
        assert!(login_name().is_some(), "this user has a passwd entry");
    }

    /// 01-3 (directories)
    #[test]
    fn directories_are_created_with_mode_0777_less_the_umask() {
        let base = tempfile::tempdir().unwrap();
        let directory = base.path().join("a/b");
        create_directories(&directory).unwrap();
        let reference = base.path().join("reference");
        std::fs::create_dir(&reference).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode();
        for name in ["", PUBLICATIONS, IMAGES] {
            assert_eq!(mode(&directory.join(name)), mode(&reference));
        }
        create_directories(&directory).unwrap();
    }

    /// 01-4 (names)
    #[test]
    fn logs_are_named_by_decimal_ids() {
        let directory = Path::new("/d");
        assert_eq!(
            publication_log(directory, 12),
            Path::new("/d/publications/12.logbuffer")
        );
        assert_eq!(image_log(directory, 7), Path::new("/d/images/7.logbuffer"));
        assert_eq!(cnc_file(directory), Path::new("/d/cnc.dat"));
        assert_eq!(loss_report_file(directory), Path::new("/d/loss-report.dat"));
    }
}
