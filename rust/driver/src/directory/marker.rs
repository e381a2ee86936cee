//! [`Marker`]: the text in a lock file. It identifies a directory of this implementation.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The origin of a driver's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// The driver was killed before it wrote a marker.
    Empty,
    /// The user or the default chose the directory.
    Named,
    /// The directory was created for one embedded driver; no other driver will ever use it.
    Embedded,
}

const NAMED: &[u8] = b"aeron-py media driver\n";
const EMBEDDED: &[u8] = b"aeron-py media driver, embedded\n";

impl Marker {
    /// Reads the lock file; `None` if it is not a lock file of this implementation.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        Self::read_file(&File::open(path)?)
    }

    /// Reads the open lock file; `None` if it is not a lock file of this implementation.
    pub fn read_file(file: &File) -> io::Result<Option<Self>> {
        // Reads all bytes at once, because the owner may write the text at the same time.
        let mut bytes = [0; EMBEDDED.len() + 1];
        let length = file.read_at(&mut bytes, 0)?;
        Ok(match &bytes[..length] {
            [] => Some(Self::Empty),
            NAMED => Some(Self::Named),
            EMBEDDED => Some(Self::Embedded),
            _ => None,
        })
    }

    /// Writes the text into an empty lock file, or replaces the text of an earlier driver.
    ///
    /// Another driver may read the file at any time, and this process may be killed at any time. The file is therefore
    /// empty between the old and the new text, and never contains a part of a text.
    pub fn write(self, file: &File) -> io::Result<()> {
        let bytes = match self {
            Self::Empty => &[],
            Self::Named => NAMED,
            Self::Embedded => EMBEDDED,
        };
        file.set_len(0)?;
        file.write_all_at(bytes, 0)
    }
}
