//! [`FrameVerifier`]: checks the session id fields of the frames that a reader returns.
//!
//! The session id field of a data frame has the session id of the stream, or a checksum of the frame. The catalog does
//! not say which. So the first frame of a segment with another value than the session id decides: its value must be a
//! checksum of its bytes. From then on, each data frame of the segment must have a checksum of this kind.
//!
//! Frames without a checksum may have other session ids than the catalog, because a recording may be extended by other
//! sessions. The index of the segment says whether its frames have checksums. Without an index, the next frames decide.

use crate::checksum::Checksum;
use crate::frame::{CheckedFrame, FrameFault};
use crate::index::{IndexFile, IndexForm};
use crate::storage::{Access, Storage};
use crate::stream::RecordedStream;
use crate::window::Window;

/// Maximum number of frames that are read ahead to decide whether a value is a session id.
const FRAMES_AHEAD: usize = 16;

/// The content of the session id fields of a segment's data frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionField {
    /// Not known: the index is from an archive without this value.
    #[default]
    Unknown,
    /// Session ids.
    SessionId,
    /// Checksums.
    Checksum(Checksum),
    /// Session ids in some frames, and checksums in others, because the setting was changed between two recorders. Such
    /// frames are not checked: a damaged checksum looks like the session id of an earlier recorder.
    Mixed,
}

impl SessionField {
    /// Returns the content of a segment in which frames with this content follow frames with the content `before`.
    #[must_use]
    pub(crate) fn after(self, before: Self) -> Self {
        match before {
            Self::Unknown => Self::Unknown,
            same if same == self => self,
            _ => Self::Mixed,
        }
    }
}

impl From<Option<Checksum>> for SessionField {
    fn from(checksum: Option<Checksum>) -> Self {
        checksum.map_or(Self::SessionId, Self::Checksum)
    }
}

/// Checks frames in the order of their positions.
#[derive(Clone, Debug)]
pub(crate) struct FrameVerifier {
    /// The content of the current segment's fields, as far as it is known.
    field: SessionField,
    /// The latest session id.
    session_id: i32,
    /// End of the segment for which `field` is known.
    segment_end: i64,
}

impl FrameVerifier {
    pub(crate) fn new(stream: &RecordedStream) -> Self {
        Self {
            field: SessionField::Unknown,
            session_id: stream.session_id(),
            segment_end: 0,
        }
    }

    /// Checks a frame that the window holds.
    ///
    /// # Errors
    /// [`FrameFault::Checksum`] if the frame has neither a session id nor a checksum of its bytes, or no checksum in a
    /// segment with checksums.
    #[inline(always)]
    pub(crate) fn verify<S: Storage>(
        &mut self,
        window: &Window<S>,
        frame: &CheckedFrame<'_>,
    ) -> Result<(), FrameFault> {
        if frame.position() >= self.segment_end {
            self.begin_segment(window.stream(), frame.position());
        }
        let is_sound = match self.field {
            SessionField::SessionId | SessionField::Mixed => true,
            SessionField::Checksum(checksum) => checksum.verify(frame).is_ok(),
            SessionField::Unknown => frame.session_id() == self.session_id,
        };
        match is_sound || frame.is_padding() {
            true => Ok(()),
            false => self.decide(window, frame),
        }
    }

    #[cold]
    fn begin_segment(&mut self, stream: &RecordedStream, position: i64) {
        self.segment_end = stream.segment_base(position) + stream.segment_length();
        self.field = SessionField::Unknown;
    }

    /// Checks a frame whose session id field has neither the session id nor the expected checksum.
    #[cold]
    fn decide<S: Storage>(
        &mut self,
        window: &Window<S>,
        frame: &CheckedFrame<'_>,
    ) -> Result<(), FrameFault> {
        if self.field == SessionField::Unknown {
            self.field = indexed_field(window, frame.position());
        }
        if let SessionField::SessionId | SessionField::Mixed = self.field {
            return Ok(());
        }
        // A checksum of another kind proves the bytes too: a tool may have replaced the checksums.
        if let Some(checksum) = proven(frame) {
            self.field = SessionField::Checksum(checksum);
            return Ok(());
        }
        let checksum = match self.field {
            SessionField::Checksum(checksum) => Some(checksum),
            _ => checksum_after(window, frame),
        };
        match checksum {
            Some(checksum) => Err(FrameFault::Checksum {
                checksum,
                found: frame.session_id(),
                computed: checksum.of(frame),
            }),
            None => {
                self.session_id = frame.session_id();
                Ok(())
            }
        }
    }

    /// Returns the checksum that the frames of the current segment have, if it is known.
    pub(crate) fn checksum(&self) -> Option<Checksum> {
        match self.field {
            SessionField::Checksum(checksum) => Some(checksum),
            _ => None,
        }
    }
}

/// Returns the checksum that the frame has.
fn proven(frame: &CheckedFrame<'_>) -> Option<Checksum> {
    Checksum::ALL
        .into_iter()
        .find(|checksum| !frame.is_padding() && checksum.verify(frame).is_ok())
}

/// Returns the checksum of the frames after `frame`. Returns `None` if a later frame has the same value as `frame`,
/// which is then a session id, or if the next frames in the window have no checksum.
fn checksum_after<S: Storage>(window: &Window<S>, frame: &CheckedFrame<'_>) -> Option<Checksum> {
    let data_frames = window
        .frames_from(frame.end_position())
        .map_while(Result::ok)
        .filter(|next| !next.is_padding());
    for next in data_frames.take(FRAMES_AHEAD) {
        if next.session_id() == frame.session_id() {
            return None;
        }
        if let Some(checksum) = proven(&next) {
            return Some(checksum);
        }
    }
    None
}

/// Returns the content according to the index of the segment. A private archive writes dense indexes and no checksums.
fn indexed_field<S: Storage>(window: &Window<S>, position: i64) -> SessionField {
    let stream = window.stream();
    let (id, base) = (stream.recording_id(), stream.segment_base(position));
    let Ok(Some(index)) = IndexFile::open(window.storage(), id, base, Access::Read) else {
        return SessionField::Unknown;
    };
    match (index.header().form, index.recorder()) {
        (IndexForm::Dense, _) => SessionField::SessionId,
        (IndexForm::Sparse, Some(recorder)) => recorder.session_field,
        (IndexForm::Sparse, None) => SessionField::Unknown,
    }
}
