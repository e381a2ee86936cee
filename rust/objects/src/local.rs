//! Files in the archive directory: manifests, the location of the storage, and fetched segments.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use aeron_archive::objects::{FETCHED_EXTENSION, manifest_name, manifest_owner};
use aeron_archive::segments::SegmentFileName;
use aeron_archive::storage::{Access, Directory, Storage};

use crate::ObjectError;
use crate::location::ObjectLocation;
use crate::manifest::{MAX_LENGTH, Manifest, ManifestError};

/// Extension, without the dot, of a file that is being fetched.
pub(crate) const FETCHING_EXTENSION: &str = "fetching";
/// Name of the file with the location of the storage. Other processes use the file to find the copied segments.
const LOCATION_FILE: &str = "archive-objects.json";

/// Reads the manifest of a recording. Returns `None` if the recording has no manifest. The inner error is the reason
/// why the manifest cannot be used.
///
/// # Errors
/// The file system returns an error.
pub(crate) fn read_manifest(
    directory: &Path,
    recording_id: i64,
) -> io::Result<Option<Result<Manifest, ManifestError>>> {
    let bytes = match read(directory, &manifest_name(recording_id)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes?,
    };
    let manifest = Manifest::decode(&bytes).and_then(|manifest| {
        match manifest.recording.recording_id == recording_id {
            true => Ok(manifest),
            false => Err(ManifestError::OtherRecording {
                recording_id: manifest.recording.recording_id,
            }),
        }
    });
    Ok(Some(manifest))
}

/// Keeps the bytes of an unusable manifest under another name, because the next copied segment replaces the manifest.
/// Returns this name. The same bytes always get the same name.
///
/// # Errors
/// The file system returns an error.
pub(crate) fn keep_unreadable(directory: &Path, recording_id: i64) -> io::Result<String> {
    let name = manifest_name(recording_id);
    let bytes = read(directory, &name)?;
    let kept = unreadable_name(&name, &bytes);
    replace(directory, &kept, &bytes)?;
    Ok(kept)
}

/// Returns the name under which a manifest with these bytes is kept if it cannot be used.
pub(crate) fn unreadable_name(name: &str, bytes: &[u8]) -> String {
    format!("{name}.{:08x}.unreadable", crc32c::crc32c(bytes))
}

/// Replaces the manifest of a recording, and forces it to the disk.
///
/// # Errors
/// The file system returns an error. Then the file contains either the former or the new manifest, and a loss of power
/// may undo the change.
pub(crate) fn write_manifest(directory: &Path, id: i64, text: &str) -> Result<(), ObjectError> {
    let name = manifest_name(id);
    replace(directory, &name, text.as_bytes()).map_err(ObjectError::file(&name))
}

/// Stores the location of the copies in the archive directory.
///
/// # Errors
/// The file system returns an error.
pub(crate) fn write_location(directory: &Path, location: &ObjectLocation) -> io::Result<()> {
    let text = serde_json::to_vec(location).map_err(io::Error::other)?;
    replace(directory, LOCATION_FILE, &text)
}

/// Reads the location of the copies; `None` if the archive has never had object storage.
///
/// # Errors
/// The file system returns an error, or the file is damaged.
pub(crate) fn read_location(directory: &Path) -> io::Result<Option<ObjectLocation>> {
    match read(directory, LOCATION_FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        bytes => serde_json::from_slice(&bytes?)
            .map(Some)
            .map_err(io::Error::other),
    }
}

/// Checks that the copies that the manifests name are in the storage of the settings.
///
/// # Errors
/// A text with the former storage, and what to do.
pub(crate) fn check_location(directory: &Path, location: &ObjectLocation) -> Result<(), String> {
    let shown = directory.join(LOCATION_FILE);
    let shown = shown.display();
    let former = read_location(directory)
        .map_err(|error| format!("{shown}: {error}: write the former url and endpoint into it"))?;
    let Some(former) = former.filter(|former| !former.is_same_storage(location)) else {
        return Ok(());
    };
    let has_manifests = has_manifests(directory).map_err(|error| format!("{shown}: {error}"))?;
    match has_manifests {
        true => Err(format!(
            "aeron.archive.objects.url={} and aeron.archive.objects.endpoint={} are not the storage with the copies of this archive, which is {} with the endpoint {:?}: use the former settings, or copy all objects to the new storage and then delete {shown}",
            location.url, location.endpoint, former.url, former.endpoint
        )),
        false => Ok(()),
    }
}

fn has_manifests(directory: &Path) -> io::Result<bool> {
    for entry in fs::read_dir(directory)? {
        if entry?
            .file_name()
            .to_str()
            .and_then(manifest_owner)
            .is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes fetched segments that a former process has left, and manifests of recordings that do not exist.
///
/// # Errors
/// The file system returns an error.
pub(crate) fn remove_leftovers(directory: &Path, exists: impl Fn(i64) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let file = name.to_str().and_then(SegmentFileName::parse);
        let is_fetched = |file: SegmentFileName<'_>| {
            [FETCHED_EXTENSION, FETCHING_EXTENSION].contains(&file.extension)
        };
        let owner = name.to_str().and_then(manifest_owner);
        if file.is_some_and(is_fetched) || owner.is_some_and(|id| !exists(id)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Reads a file of the archive directory, up to the maximum length of a manifest.
fn read(directory: &Path, name: &str) -> io::Result<Vec<u8>> {
    let file = Directory::new(directory).open(name, Access::Read)?;
    let mut bytes = Vec::new();
    file.take(MAX_LENGTH).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Creates a file. First removes what a former process has left under this name, so that it is never opened: it may be
/// a pipe or a link.
pub(crate) fn create_anew(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn replace(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let temporary = directory.join(format!("{name}.new"));
    let mut file = create_anew(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, directory.join(name))?;
    File::open(directory)?.sync_all()
}
