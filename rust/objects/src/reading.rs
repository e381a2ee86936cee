//! [`CopiedDirectory`]: an archive directory for readers in other processes than the archive. Some of its segments may
//! be only in object storage.

use std::fs::File;
use std::io::{self, Seek};
use std::path::{Path, PathBuf};

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::objects::{CopiedRange, CopiedSegments, RecordingIdentity, manifest_name};
use aeron_archive::segments::{SEGMENT_EXTENSION, SegmentFileName};
use aeron_archive::storage::{Access, Directory, Storage};
use tokio::runtime::Builder;

use crate::fetch::{FetchSource, fetch};
use crate::local::{read_location, read_manifest};
use crate::manifest::{Manifest, ObjectCopy};

/// An archive directory. Opening a segment without a local file fetches the segment, and waits until that is done.
///
/// Each fetched segment is in a file without a name, which the system removes when the file is closed.
#[derive(Clone, Debug)]
pub struct CopiedDirectory(Directory);

impl CopiedDirectory {
    /// Creates the storage for the archive directory `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(Directory::new(path))
    }

    /// Returns the path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Returns the part of a recording that is in the directory, and the part that is in object storage according to
    /// the manifest in the directory. Returns `None` if the directory has no manifest of this recording. Also returns
    /// `None` if neither the first local segment nor the segment before it has a copy.
    ///
    /// # Errors
    /// The file system returns an error, or the manifest cannot be used.
    pub fn range(&self, recording: &RecordingDescriptor) -> io::Result<Option<CopiedRange>> {
        let Some(manifest) = self.manifest(recording.recording_id)? else {
            return Ok(None);
        };
        if manifest.identity() != RecordingIdentity::of(recording) {
            return Ok(None);
        }
        let mut copied = CopiedSegments::default();
        let copies = manifest.copies().map(ObjectCopy::segment_copy);
        copies.for_each(|copy| copied.insert(copy));
        Ok(copied.range(recording))
    }

    /// Returns the recording. If its copies begin before its local files, its start position is the position at which
    /// the copies begin.
    ///
    /// # Errors
    /// As [`range`](Self::range).
    pub fn whole(&self, recording: RecordingDescriptor) -> io::Result<RecordingDescriptor> {
        let range = self.range(&recording)?;
        let start_position = range.map_or(recording.start_position, |range| range.start_position);
        Ok(RecordingDescriptor {
            start_position,
            ..recording
        })
    }

    fn manifest(&self, recording_id: i64) -> io::Result<Option<Manifest>> {
        let manifest = read_manifest(self.path(), recording_id)?.transpose();
        manifest.map_err(|error| {
            let name = manifest_name(recording_id);
            let text = format!("{name} {error}: start the archive, which makes it again");
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }

    /// Fetches the segment with this file name; `None` if it has no copy, or if `name` is not the name of a segment.
    fn fetch(&self, name: &str) -> io::Result<Option<File>> {
        let segment = SegmentFileName::parse(name).filter(|it| it.extension == SEGMENT_EXTENSION);
        let (Some(segment), Some(location)) = (segment, read_location(self.path())?) else {
            return Ok(None);
        };
        let manifest = self.manifest(segment.recording_id)?;
        let Some(source) = manifest.and_then(|it| FetchSource::of(&it, segment.base)) else {
            return Ok(None);
        };
        let storage = location.open().map_err(io::Error::other)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let mut file = tempfile::tempfile()?;
        let fetched = runtime.block_on(fetch(&storage, &source, &mut file, name));
        fetched.map_err(|error| io::Error::other(format!("object storage: {error}")))?;
        file.rewind()?;
        Ok(Some(file))
    }
}

impl Storage for CopiedDirectory {
    type File = File;

    fn create(&self, name: &str, length: u64) -> io::Result<File> {
        self.0.create(name, length)
    }

    fn open(&self, name: &str, access: Access) -> io::Result<File> {
        match self.0.open(name, access) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && access == Access::Read => {
                self.fetch(name)?.ok_or(error)
            }
            opened => opened,
        }
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.0.names()
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.0.free_bytes()
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn shown_name(&self, name: &str) -> String {
        self.0.shown_name(name)
    }
}
