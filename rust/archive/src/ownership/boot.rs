//! [`boot_id`] and [`BootId`]: the current boot of the machine.

use std::io;

/// Returns the id of the current boot of this machine. All processes of the machine get the same
/// id, including processes in containers.
///
/// # Errors
/// The system does not provide the id.
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
        return Err(io::Error::other("the system has no boot id"));
    }
    Ok(id.to_owned())
}

/// A boot of a machine, as the 16 bytes that files contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BootId([u8; 16]);

impl BootId {
    /// Returns the current boot of this machine. Returns `None` if the system provides no boot id, or a boot id that is
    /// not a UUID.
    #[must_use]
    pub fn current() -> Option<Self> {
        boot_id().ok().and_then(|text| Self::parse(&text))
    }

    /// Parses a UUID. Returns `None` for a text that is not a UUID, and for a UUID of zeros.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.replace('-', "");
        let is_hexadecimal =
            digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = is_hexadecimal.then(|| u128::from_str_radix(&digits, 16).ok())??;
        Self::from_bytes(number.to_be_bytes())
    }

    /// Converts bytes from a file. Returns `None` if all bytes are zero.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    /// Returns the bytes for a file.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_id_of_this_machine_is_a_uuid_and_is_decoded_unchanged() {
        let boot = BootId::current().unwrap();
        assert_eq!(
            BootId::parse(&boot_id().unwrap().to_uppercase()),
            Some(boot)
        );
        assert_eq!(BootId::from_bytes(boot.to_bytes()), Some(boot));
    }

    #[test]
    fn a_text_that_is_zero_or_not_a_uuid_is_not_a_boot_id() {
        let zeros = "00000000-0000-0000-0000-000000000000";
        for text in ["", "boot", zeros, "+2345678-1234-1234-1234-123456789012"] {
            assert_eq!(BootId::parse(text), None, "{text}");
        }
    }
}
