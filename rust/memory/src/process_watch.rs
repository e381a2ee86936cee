//! [`ProcessWatch`]: notices the end of another process.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Notices the end of another process without a signal or a lock, so the process is not disturbed.
#[derive(Debug)]
pub struct ProcessWatch {
    /// A descriptor of the process. It never refers to a later process with the same number.
    process: OwnedFd,
}

impl ProcessWatch {
    /// Watches the process `pid`, which locks the file `lock_path` (`flock`) while it runs.
    ///
    /// Returns `None` if another process or none has the lock: `pid` may be a number of another container, or the
    /// process may lock another way. Also returns `None` for this process, and without support of the kernel.
    pub fn of_lock_holder(lock_path: &Path, pid: i64) -> Option<Self> {
        let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0)?;
        if pid.cast_unsigned() == std::process::id() {
            return None;
        }
        // Opened first: if the number belongs to another process now, that process does not have the lock below.
        let process = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        let inode = fs::metadata(lock_path).ok()?.ino();
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let is_locked = locks.lines().any(|line| is_lock_of(line, pid, inode));
        is_locked.then_some(Self { process })
    }

    /// Whether the process has ended. Never waits.
    pub fn has_ended(&self) -> bool {
        let mut watched = [PollFd::new(&self.process, PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        matches!(poll(&mut watched, Some(&now)), Ok(ready) if ready > 0)
    }
}

/// Whether a line of `/proc/locks` is an exclusive `flock` of this process on the file with this inode.
///
/// Such a line is `1: FLOCK  ADVISORY  WRITE 4711 00:1a:815 0 EOF`.
fn is_lock_of(line: &str, pid: i32, inode: u64) -> bool {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [_, "FLOCK", _, "WRITE", holder, file, ..] = fields[..] else {
        return false;
    };
    let found = file.rsplit(':').next().and_then(|inode| inode.parse().ok());
    holder.parse() == Ok(pid) && found == Some(inode)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;
    use crate::lock_file::LockFile;

    #[test]
    fn a_line_names_the_process_and_the_file() {
        let line = "12: FLOCK  ADVISORY  WRITE 4711 00:1a:815 0 EOF";
        assert!(is_lock_of(line, 4711, 815));
        assert!(!is_lock_of(line, 4712, 815) && !is_lock_of(line, 4711, 816));
        assert!(!is_lock_of(&line.replace("WRITE", "READ "), 4711, 815));
        assert!(!is_lock_of(
            "12: -> FLOCK ADVISORY WRITE 4711 00:1a:815 0 EOF",
            4711,
            815
        ));
        assert!(!is_lock_of("", 4711, 815));
    }

    #[test]
    fn the_end_of_a_process_is_noticed() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let watch = ProcessWatch {
            process: pidfd_open(pid, PidfdFlags::empty()).unwrap(),
        };
        assert!(!watch.has_ended());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(watch.has_ended());
    }

    #[test]
    fn a_process_without_the_lock_is_not_watched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let _lock = LockFile::create(&path).unwrap();
        let parent = std::os::unix::process::parent_id().into();
        assert!(ProcessWatch::of_lock_holder(&path, parent).is_none());
    }

    #[test]
    fn this_process_is_not_watched() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let _lock = LockFile::create(&path).unwrap();
        assert!(ProcessWatch::of_lock_holder(&path, std::process::id().into()).is_none());
    }
}
