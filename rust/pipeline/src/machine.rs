//! Identifies the machine, to distinguish workers on other machines from workers that share the file system. Also
//! checks whether a process exists.

pub use aeron_archive::ownership::boot_id;

/// Returns the machine's host name, for error texts and log lines.
pub fn host_name() -> String {
    let names = rustix::system::uname();
    names.nodename().to_string_lossy().into_owned()
}

/// Whether a process with this id exists and is visible to the current process.
pub fn is_process(pid: i32) -> bool {
    // For `kill`, 0 and negative numbers mean process groups.
    if pid <= 0 {
        return false;
    }
    let Some(pid) = rustix::process::Pid::from_raw(pid) else {
        return false;
    };
    match rustix::process::test_kill_process(pid) {
        Ok(()) | Err(rustix::io::Errno::PERM) => true,
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_id_is_the_same_in_each_call_and_the_host_name_is_not_empty() {
        assert_eq!(boot_id().unwrap(), boot_id().unwrap());
        assert!(!host_name().is_empty());
    }

    #[test]
    fn a_process_exists_until_its_parent_has_waited_for_its_end() {
        assert!(is_process(std::process::id() as i32));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(!is_process(child.id() as i32));
        assert!(!is_process(0), "0 means a process group");
        assert!(!is_process(-1));
    }
}
