//! [`Marker`]: the text in a lock file, by which a directory is known as one of ours.

use std::fs::File;
use std::io;
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
        // In one read: the owner may write the text at this moment.
        let mut bytes = [0; EMBEDDED.len() + 1];
        let length = file.read_at(&mut bytes, 0)?;
        Ok(match &bytes[..length] {
            [] => Some(Self::Empty),
            NAMED => Some(Self::Named),
            EMBEDDED => Some(Self::Embedded),
            _ => None,
        })
    }

    /// Writes the text into an empty lock file, or over one that this driver takes over.
    ///
    /// The file is empty in between and never holds half a text: another driver may read it, and this process may be killed.
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
