//! Fetches copied segments into local files.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path as FilePath;

use aeron_archive::objects::{RecordingIdentity, fetched_name};
use aeron_archive::segments::sidecar_name;
use futures_util::StreamExt;
use object_store::ObjectStoreExt;
use object_store::path::Path;

use crate::ObjectError;
use crate::copy::read_object;
use crate::key::{MANIFEST_NAME, SegmentKey};
use crate::local::{FETCHING_EXTENSION, create_anew, unreadable_name};
use crate::location::ObjectStorage;
use crate::manifest::{MAX_LENGTH, Manifest, ManifestError, ObjectCopy};

/// Maximum number of times that an object is read if its bytes are wrong.
const ATTEMPTS: usize = 2;

/// The copy from which a segment is fetched.
#[derive(Clone, Debug)]
pub(crate) struct FetchSource {
    pub recording: RecordingIdentity,
    pub copy: ObjectCopy,
    /// Length of the segment in bytes.
    pub length: u64,
}

impl FetchSource {
    /// Returns the source of a segment that the manifest names.
    pub fn of(manifest: &Manifest, base: i64) -> Option<Self> {
        Some(Self {
            recording: manifest.identity(),
            copy: *manifest.get(base)?,
            length: manifest.recording.segment_length as u64,
        })
    }
}

/// Fetches a segment into its file in `directory`. The file gets its name only after length and checksum of the bytes
/// were found to be correct.
///
/// # Errors
/// [`ObjectError`]. No file remains then.
pub(crate) async fn fetch_to_directory(
    storage: &ObjectStorage,
    directory: &FilePath,
    source: &FetchSource,
) -> Result<(), ObjectError> {
    let (id, base) = (source.recording.recording_id, source.copy.base);
    let temporary = sidecar_name(id, base, FETCHING_EXTENSION);
    let path = directory.join(&temporary);
    let fetched = async {
        let mut file = create_anew(&path).map_err(ObjectError::file(&temporary))?;
        fetch(storage, source, &mut file, &temporary).await?;
        fs::rename(&path, directory.join(fetched_name(id, base)))
            .map_err(ObjectError::file(&temporary))
    }
    .await;
    if fetched.is_err() {
        let _ = fs::remove_file(&path);
    }
    fetched
}

/// Writes the bytes of a segment into an empty file. `name` is used in errors.
///
/// # Errors
/// [`ObjectError`]. The bytes in the file must then not be used.
pub(crate) async fn fetch(
    storage: &ObjectStorage,
    source: &FetchSource,
    file: &mut File,
    name: &str,
) -> Result<(), ObjectError> {
    let object = storage.segment(&source.recording, &source.copy.key());
    let mut attempt = 1;
    loop {
        let expected = (source.length, source.copy.crc32c);
        let written = read_object(storage, &object, expected, |bytes| {
            file.write_all(bytes).map_err(ObjectError::file(name))
        })
        .await;
        match written {
            Err(ObjectError::Damaged { .. }) if attempt < ATTEMPTS => {
                attempt += 1;
                restart(file).map_err(ObjectError::file(name))?;
            }
            written => return written,
        }
    }
}

fn restart(file: &mut File) -> std::io::Result<()> {
    use std::io::Seek;
    file.set_len(0)?;
    file.rewind()
}

/// Reads the manifest of a recording from the storage; `None` if it does not exist. If a manifest cannot be used, this
/// function keeps its bytes under another name, because the next copied segment replaces the manifest. The inner error
/// is a text with the fault and this name.
///
/// # Errors
/// The storage returns an error.
pub(crate) async fn fetch_manifest(
    storage: &ObjectStorage,
    recording: &RecordingIdentity,
) -> Result<Option<Result<Manifest, String>>, ObjectError> {
    let object = storage.manifest(recording);
    let bytes = match read_all(storage, &object).await {
        Err(ObjectError::Store {
            source: object_store::Error::NotFound { .. },
            ..
        }) => return Ok(None),
        bytes => bytes?,
    };
    let manifest =
        Manifest::decode(&bytes).and_then(|manifest| match manifest.identity() == *recording {
            true => Ok(manifest),
            false => Err(ManifestError::OtherRecording {
                recording_id: manifest.recording.recording_id,
            }),
        });
    let error = match manifest {
        Ok(manifest) => return Ok(Some(Ok(manifest))),
        Err(error) => error,
    };
    let kept = storage.beside_manifest(recording, &unreadable_name(MANIFEST_NAME, &bytes));
    storage
        .within_time(&kept, storage.store.copy(&object, &kept))
        .await?;
    Ok(Some(Err(format!(
        "{object} {error}: it is kept as {kept}, and the copies are taken from the names of the objects"
    ))))
}

async fn read_all(storage: &ObjectStorage, object: &Path) -> Result<Vec<u8>, ObjectError> {
    let result = storage
        .within_time(object, storage.store.get(object))
        .await?;
    let mut pieces = result.into_stream();
    let mut bytes = Vec::new();
    while let Some(piece) = storage
        .within_time(object, async { pieces.next().await.transpose() })
        .await?
    {
        bytes.extend_from_slice(&piece);
        if bytes.len() as u64 > MAX_LENGTH {
            break;
        }
    }
    Ok(bytes)
}

/// Lists the copied segments of a recording, the oldest copy first. Leaves out objects that do not have the name and
/// the length of a segment.
///
/// # Errors
/// The storage returns an error.
pub(crate) async fn list_segments(
    storage: &ObjectStorage,
    recording: &RecordingIdentity,
    segment_length: i32,
) -> Result<Vec<SegmentKey>, ObjectError> {
    let folder = storage.folder(recording);
    let mut objects = storage.store.list(Some(&folder));
    let mut found = Vec::new();
    while let Some(object) = storage
        .within_time(&folder, async { objects.next().await.transpose() })
        .await?
    {
        let key = object.location.filename().and_then(SegmentKey::parse);
        if let Some(key) = key.filter(|_| object.size == segment_length as u64) {
            found.push((object.last_modified, key));
        }
    }
    // If a segment has several copies, `Manifest::add_listed` uses the last one in this order, which is the newest.
    found.sort();
    Ok(found.into_iter().map(|(_, key)| key).collect())
}
