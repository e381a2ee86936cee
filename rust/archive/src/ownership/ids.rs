//! [`DirectoryId`] and [`LockNonce`]: 128 random bits each, written as 32 hexadecimal digits.

use std::fmt;
use std::io;

/// Id of an archive directory, and the name of the directory of a private archive.
///
/// Aeron's archive id is another value: an `i64` that distinguishes the archives of one driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DirectoryId([u8; 16]);

/// A random value in the lock file of an archive directory. A process that knows the nonce has read
/// this file, or received the nonce from the file's owner. So a new directory of the same name is
/// not mistaken for the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LockNonce([u8; 16]);

impl DirectoryId {
    /// Creates a new id, which cannot be guessed.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn random() -> io::Result<Self> {
        random_bytes().map(Self)
    }

    /// Parses the text of an id: exactly 32 hexadecimal digits, with lower-case letters.
    pub fn parse(text: &str) -> Option<Self> {
        let id = Self(u128::from_str_radix(text, 16).ok()?.to_be_bytes());
        (id.to_string() == text).then_some(id)
    }

    pub(super) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl LockNonce {
    /// Creates a new nonce, which cannot be guessed.
    ///
    /// # Errors
    /// The system has no random bytes.
    pub fn random() -> io::Result<Self> {
        random_bytes().map(Self)
    }

    pub(super) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub(super) fn bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for DirectoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_digits(f, self.0)
    }
}

impl fmt::Display for LockNonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_digits(f, self.0)
    }
}

fn random_bytes() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes)
}

fn write_digits(f: &mut fmt::Formatter<'_>, bytes: [u8; 16]) -> fmt::Result {
    write!(f, "{:032x}", u128::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn only_32_lower_case_hexadecimal_digits_are_a_directory_id(bytes: [u8; 16], text in "[0-9a-fA-F+]{0,40}") {
            let id = DirectoryId(bytes);
            prop_assert_eq!(DirectoryId::parse(&id.to_string()), Some(id));
            if let Some(id) = DirectoryId::parse(&text) {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }
}
