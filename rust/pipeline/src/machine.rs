//! Identifies the machine, to distinguish workers on other machines from workers that share the file system.

pub use aeron_archive::ownership::boot_id;

/// Returns the machine's host name, for texts that people read.
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
    fn a_machine_names_itself_the_same_way_each_time() {
        assert_eq!(boot_id().unwrap(), boot_id().unwrap());
        assert!(!host_name().is_empty());
    }

    #[test]
    fn a_process_is_there_until_it_was_waited_for() {
        assert!(is_process(std::process::id() as i32));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(!is_process(child.id() as i32));
        assert!(!is_process(0), "which would stand for a group of processes");
        assert!(!is_process(-1));
    }
}
