//! [`Marker`]: the text in a lock file, by which a directory is known as one of ours.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// How a driver came to its directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// The driver was killed before it wrote anything.
    Empty,
    /// The user or the default named the directory.
    Named,
    /// The directory was made for one embedded driver; nothing else will ever use it.
    Embedded,
}

const NAMED: &[u8] = b"aeron-py media driver\n";
const EMBEDDED: &[u8] = b"aeron-py media driver, embedded\n";

impl Marker {
    /// Reads the lock file; `None` if it is not a lock file of ours.
    pub fn read(path: &Path) -> io::Result<Option<Self>> {
        Self::read_file(&File::open(path)?)
    }

    /// Reads the open lock file; `None` if it is not a lock file of ours.
    pub fn read_file(file: &File) -> io::Result<Option<Self>> {
        let mut bytes = Vec::with_capacity(EMBEDDED.len() + 1);
        file.take(EMBEDDED.len() as u64 + 1)
            .read_to_end(&mut bytes)?;
        Ok(match bytes.as_slice() {
            [] => Some(Self::Empty),
            NAMED => Some(Self::Named),
            EMBEDDED => Some(Self::Embedded),
            _ => None,
        })
    }

    /// Writes the text into an empty lock file, or over one that this driver takes over.
    pub fn write(self, file: &File) -> io::Result<()> {
        let bytes = match self {
            Self::Empty => &[],
            Self::Named => NAMED,
            Self::Embedded => EMBEDDED,
        };
        file.set_len(bytes.len() as u64)?;
        file.write_all_at(bytes, 0)
    }
}
