//! [`consume_recorded`]: consumes the bytes of an image that a recording already has.
//!
//! After a restart, an image may join before the end of its recording, for two reasons. A killed
//! archive may have written a block and not yet moved its subscriber position. And until the driver
//! notices the kill, new images join at the position of the killed archive's subscription.

use aeron_client::{Action, Image};
use aeron_memory::Words;

use crate::catalog::RecordingDescriptor;
use crate::frame::{CheckedFrame, CheckedFrames};
use crate::reader::RecordingReader;
use crate::storage::{BLOCK_LENGTH, Storage};
use crate::stream::RecordedStream;

/// Consumes the bytes of an image up to the stop position of a recording, if the recording has the
/// same frames at these positions. Returns whether the bytes were consumed. Returns `false` if the
/// publisher has sent other bytes at these positions, or has not sent them yet.
pub(super) fn consume_recorded<S: Storage + Clone>(
    image: &Image,
    storage: &S,
    recording: &RecordingDescriptor,
) -> bool {
    let stop_position = recording.stop_position;
    let Ok(stream) = RecordedStream::of_recording(recording) else {
        return false;
    };
    let recorded = RecordingReader::new(storage.clone(), stream, image.position(), stop_position);
    let Ok(mut recorded) = recorded else {
        return false;
    };
    let mut bytes = Vec::new();
    while image.position() < stop_position {
        let missing = usize::try_from(stop_position - image.position()).unwrap_or(0);
        let limit = missing.min(BLOCK_LENGTH);
        let polled = image.block_poll(
            |block| {
                bytes.resize(block.length().min(limit), 0);
                block.term().copy_out(block.offset(), &mut bytes);
                let frames = stream.rules().frames(block.begin_position(), &bytes);
                match are_recorded(frames, &mut recorded) {
                    true => Action::Continue,
                    false => Action::Abort,
                }
            },
            limit,
        );
        if !polled.is_ok_and(|length| length > 0) {
            return false;
        }
    }
    image.position() == stop_position
}

fn are_recorded<S: Storage>(
    mut frames: CheckedFrames<'_>,
    recorded: &mut RecordingReader<S>,
) -> bool {
    frames.all(|frame| {
        let recorded = recorded.next_frame();
        matches!((frame, recorded), (Ok(frame), Ok(Some(recorded))) if is_equal(&frame, &recorded))
    })
}

/// Returns whether two frames are equal except for the session id field, in which a recording may
/// store checksums.
fn is_equal(one: &CheckedFrame<'_>, other: &CheckedFrame<'_>) -> bool {
    let header = |frame: &CheckedFrame<'_>| {
        (
            frame.position(),
            frame.end_position(),
            frame.flags(),
            frame.is_padding(),
            frame.reserved_value(),
        )
    };
    header(one) == header(other) && one.payload() == other.payload()
}
