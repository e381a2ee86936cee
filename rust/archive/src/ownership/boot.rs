//! Which boot of which machine this is.

use std::io;

/// Names this boot of this machine; equal in all its processes, containers included.
///
/// # Errors
/// The system does not say.
pub fn boot_id() -> io::Result<String> {
    #[cfg(target_os = "linux")]
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    #[cfg(not(target_os = "linux"))]
    let text = {
        let mut command = std::process::Command::new("/usr/sbin/sysctl");
        let output = command.args(["-n", "kern.bootsessionuuid"]).output()?;
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let id = text.trim();
    if id.is_empty() {
        return Err(io::Error::other("the system names no boot id"));
    }
    Ok(id.to_owned())
}
