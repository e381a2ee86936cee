//! Checks objects that no manifest names, before their names are trusted. The name says which bytes a fetch must
//! find, but not that they are a segment of the recording.

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::frame::{FrameFault, FrameRules};
use aeron_archive::objects::RecordingIdentity;
use aeron_archive::stream::RecordedStream;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::ObjectStoreExt;

use crate::ObjectError;
use crate::key::SegmentKey;
use crate::location::ObjectStorage;
use crate::manifest::is_segment_place;

/// Length of the header of a frame, in bytes. Frames begin at multiples of it.
const HEADER_LENGTH: u64 = 32;
/// Maximum number of objects that are checked at the same time.
const CONCURRENCY: usize = 8;

/// Returns the keys of the objects that begin with a frame of the recording, in the order of `keys`. Also returns a
/// text about each other object.
///
/// # Errors
/// The storage returns an error.
pub(crate) async fn sound_segments(
    storage: &ObjectStorage,
    recording: &RecordingDescriptor,
    keys: Vec<SegmentKey>,
) -> Result<(Vec<SegmentKey>, Vec<String>), ObjectError> {
    let checks = stream::iter(keys)
        .map(|key| async move { Ok((key, check(storage, recording, &key).await?)) });
    let checked: Vec<(SegmentKey, Result<(), String>)> =
        checks.buffered(CONCURRENCY).try_collect().await?;
    let (mut sound, mut faults) = (Vec::new(), Vec::new());
    for (key, outcome) in checked {
        match outcome {
            Ok(()) => sound.push(key),
            Err(fault) => {
                let object = storage.segment(&RecordingIdentity::of(recording), &key);
                let id = recording.recording_id;
                faults.push(format!(
                    "{object} is not a segment of recording {id}: {fault}; it stays, and is not used"
                ));
            }
        }
    }
    Ok((sound, faults))
}

/// Reads the first frame's header. The inner error says why the object is not a segment of the recording.
async fn check(
    storage: &ObjectStorage,
    recording: &RecordingDescriptor,
    key: &SegmentKey,
) -> Result<Result<(), String>, ObjectError> {
    let SegmentKey { base, from, .. } = *key;
    let (segment_length, term_length) = (recording.segment_length, recording.term_length);
    if !is_segment_place(base, from, segment_length, term_length)
        || from % HEADER_LENGTH as i64 != 0
    {
        return Ok(Err("its name has no positions of a segment".to_owned()));
    }
    let rules = match RecordedStream::of_recording(recording) {
        Ok(stream) => stream.rules(),
        Err(error) => return Ok(Err(error.to_string())),
    };
    let object = storage.segment(&RecordingIdentity::of(recording), key);
    let begin = (from - base) as u64;
    let range = begin..begin + HEADER_LENGTH;
    let header = storage
        .within_time(&object, storage.store.get_range(&object, range))
        .await?;
    Ok(check_header(rules, from, &header).map_err(|fault| fault.to_string()))
}

fn check_header(rules: FrameRules, position: i64, header: &[u8]) -> Result<(), FrameFault> {
    match rules.check(position, header) {
        // The header is sound, and the payload was not read.
        Err(FrameFault::Incomplete { available, .. }) if available as u64 == HEADER_LENGTH => {
            Ok(())
        }
        checked => checked.map(drop),
    }
}
