//! Which machine this is, so that a worker elsewhere can be told from one that shares our files.

pub use aeron_archive::ownership::boot_id;

/// The machine's name, for people.
pub fn host_name() -> String {
    let names = rustix::system::uname();
    names.nodename().to_string_lossy().into_owned()
}

/// Whether a process of this id exists, as far as this process may see.
pub fn is_process(pid: i32) -> bool {
    // The system gives 0 and negative numbers another meaning: groups of processes.
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
