//! Copies one segment, and reads the copy back.

use std::fs::File;
use std::io::Read;
use std::path::Path as FilePath;
use std::time::UNIX_EPOCH;

use aeron_archive::objects::RecordingIdentity;
use aeron_archive::pause::{self, Point};
use aeron_archive::segments::segment_name;
use aeron_archive::storage::{Access, Directory, Storage};
use futures_util::StreamExt;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};

use crate::ObjectError;
use crate::key::SegmentKey;
use crate::location::ObjectStorage;
use crate::manifest::ObjectCopy;
use crate::queue::CopyTask;
use crate::throttle::Throttle;

/// Bytes of a segment that are sent in one request. S3 requires at least 5 MiB for each part but the last.
const PART_LENGTH: usize = 8 << 20;
/// Bytes that are read from a file before other work of the thread may continue.
const READ_LENGTH: usize = 256 << 10;
/// The object exists, and was not read back yet.
const PUT: Point = Point::new("objects-put");
/// The object was read back, and no manifest names it yet.
const READ_BACK: Point = Point::new("objects-read-back");

/// Copies a segment file to its object, and reads the object back.
///
/// # Errors
/// [`ObjectError`]. The local file is unchanged in each case.
pub(crate) async fn copy_segment(
    storage: &ObjectStorage,
    directory: &FilePath,
    task: &CopyTask,
    throttle: &Throttle,
) -> Result<ObjectCopy, ObjectError> {
    let recording = &task.segment.recording;
    let base = task.segment.base;
    let file_name = segment_name(recording.recording_id, base);
    let path = directory.join(&file_name);
    let directory = Directory::new(directory);
    let length = recording.segment_length as u64;
    let before_ns = modified_ns(&path, &file_name)?;
    let crc32c = file_checksum(&directory, &file_name, length).await?;
    let key = SegmentKey {
        base,
        from: recording.start_position.max(base),
        crc32c,
    };
    let object = storage.segment(&RecordingIdentity::of(recording), &key);
    if task.is_object_wrong || !exists(storage, &object, length).await? {
        let mut parts = Parts::open(&directory, &file_name, length)?;
        put(storage, &object, &mut parts, throttle).await?;
    }
    pause::at(PUT);
    verify(storage, &object, length, crc32c).await?;
    pause::at(READ_BACK);
    if modified_ns(&path, &file_name)? != before_ns {
        return Err(ObjectError::Changed { file: file_name });
    }
    Ok(ObjectCopy {
        base,
        from: key.from,
        crc32c,
        modified_ns: before_ns,
    })
}

/// Reads an object. Calls `take` with its bytes, piece by piece, and checks length and checksum only after the last
/// piece.
///
/// # Errors
/// [`ObjectError`], or the error of `take`.
pub(crate) async fn read_object(
    storage: &ObjectStorage,
    object: &Path,
    (expected_length, expected_crc32c): (u64, u32),
    mut take: impl FnMut(&[u8]) -> Result<(), ObjectError>,
) -> Result<(), ObjectError> {
    let result = storage
        .within_time(object, storage.store.get(object))
        .await?;
    let mut pieces = result.into_stream();
    let (mut length, mut crc32c) = (0, 0);
    while let Some(piece) = storage
        .within_time(object, async { pieces.next().await.transpose() })
        .await?
    {
        length += piece.len() as u64;
        crc32c = crc32c::crc32c_append(crc32c, &piece);
        if length > expected_length {
            break;
        }
        take(&piece)?;
        tokio::task::yield_now().await;
    }
    if (length, crc32c) == (expected_length, expected_crc32c) {
        return Ok(());
    }
    Err(ObjectError::Damaged {
        object: object.to_string(),
        length,
        crc32c,
        expected_length,
        expected_crc32c,
    })
}

async fn verify(
    storage: &ObjectStorage,
    object: &Path,
    length: u64,
    crc32c: u32,
) -> Result<(), ObjectError> {
    read_object(storage, object, (length, crc32c), |_| Ok(())).await
}

/// Returns whether an object with this length exists. Its bytes are verified later.
async fn exists(storage: &ObjectStorage, object: &Path, length: u64) -> Result<bool, ObjectError> {
    match storage
        .within_time(object, storage.store.head(object))
        .await
    {
        Ok(meta) => Ok(meta.size == length),
        Err(ObjectError::Store {
            source: object_store::Error::NotFound { .. },
            ..
        }) => Ok(false),
        Err(error) => Err(error),
    }
}

async fn put(
    storage: &ObjectStorage,
    object: &Path,
    parts: &mut Parts,
    throttle: &Throttle,
) -> Result<(), ObjectError> {
    if parts.left <= PART_LENGTH as u64 {
        let payload = parts.next().await?;
        throttle.pass(payload.content_length()).await;
        let put = storage.store.put(object, payload);
        return storage.within_time(object, put).await.map(drop);
    }
    let begin = storage.store.put_multipart(object);
    let mut upload = storage.within_time(object, begin).await?;
    let sent = async {
        while parts.left > 0 {
            let payload = parts.next().await?;
            throttle.pass(payload.content_length()).await;
            storage
                .within_time(object, upload.put_part(payload))
                .await?;
        }
        storage.within_time(object, upload.complete()).await
    }
    .await;
    if sent.is_err() {
        // An error of `abort` is ignored, because the first error is more useful. If parts of the object remain, the
        // storage removes them by its own rules.
        let _ = storage.within_time(object, upload.abort()).await;
    }
    sent.map(drop)
}

/// A segment file that is read in parts.
struct Parts {
    file: File,
    name: String,
    left: u64,
}

impl Parts {
    fn open(directory: &Directory, name: &str, length: u64) -> Result<Self, ObjectError> {
        Ok(Self {
            file: open(directory, name)?,
            name: name.to_owned(),
            left: length,
        })
    }

    /// Reads the next part.
    async fn next(&mut self) -> Result<PutPayload, ObjectError> {
        let mut bytes = vec![0; self.left.min(PART_LENGTH as u64) as usize];
        for piece in bytes.chunks_mut(READ_LENGTH) {
            self.file
                .read_exact(piece)
                .map_err(ObjectError::file(&self.name))?;
            tokio::task::yield_now().await;
        }
        self.left -= bytes.len() as u64;
        Ok(bytes.into())
    }
}

fn open(directory: &Directory, name: &str) -> Result<File, ObjectError> {
    directory
        .open(name, Access::Read)
        .map_err(ObjectError::file(name))
}

async fn file_checksum(directory: &Directory, name: &str, length: u64) -> Result<u32, ObjectError> {
    let mut file = open(directory, name)?;
    let mut bytes = vec![0; READ_LENGTH];
    let (mut left, mut crc32c) = (length, 0);
    while left > 0 {
        let piece = &mut bytes[..left.min(READ_LENGTH as u64) as usize];
        file.read_exact(piece).map_err(ObjectError::file(name))?;
        crc32c = crc32c::crc32c_append(crc32c, piece);
        left -= piece.len() as u64;
        tokio::task::yield_now().await;
    }
    Ok(crc32c)
}

fn modified_ns(path: &FilePath, name: &str) -> Result<Option<i64>, ObjectError> {
    let modified = path.metadata().and_then(|metadata| metadata.modified());
    let since_epoch = modified
        .map_err(ObjectError::file(name))?
        .duration_since(UNIX_EPOCH);
    Ok(since_epoch
        .ok()
        .and_then(|time| i64::try_from(time.as_nanos()).ok()))
}
