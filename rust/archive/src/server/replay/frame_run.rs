//! [`FrameRun`]: recorded frames, made ready for the publication of a replay.

use aeron_layout::Layout;
use aeron_layout::frame::DataHeaderLayout;
use aeron_memory::log::frame::{HEADER_LENGTH, offset};

use crate::checksum::Checksum;
use crate::frame::{FrameFault, FrameRules};

/// Bytes of session id and stream id in a header.
const IDS_LENGTH: usize = offset::TERM_ID - offset::SESSION_ID;

/// Session and stream of a replay, as they stand in the header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplayIds([u8; IDS_LENGTH]);

impl ReplayIds {
    /// The ids of a publication.
    pub fn new(session_id: i32, stream_id: i32) -> Self {
        let mut bytes = [0; IDS_LENGTH];
        let (session, stream) = bytes.split_at_mut(offset::STREAM_ID - offset::SESSION_ID);
        session.copy_from_slice(&session_id.to_le_bytes());
        stream.copy_from_slice(&stream_id.to_le_bytes());
        Self(bytes)
    }
}

/// Frames that follow each other: a block of data, then a frame of padding. Either may be missing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FrameRun {
    /// Bytes of the block.
    pub data_length: usize,
    /// Length of the padding with its header, as the frame says; 0 if there is none.
    pub padding_length: usize,
}

/// Why a recorded frame cannot be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunFault {
    /// The first frame is not one of the recording.
    Frame(FrameFault),
    /// A frame does not have its checksum.
    Checksum {
        /// Position of the frame.
        position: i64,
    },
}

/// How the frames of a recording are checked and changed for a replay.
#[derive(Debug, Clone, Copy)]
pub(super) struct FrameRewrite {
    /// What the frames must look like.
    pub rules: FrameRules,
    /// Checksum that the field of the session id holds, if it is verified.
    pub checksum: Option<Checksum>,
    /// What the fields of session and stream become.
    pub ids: ReplayIds,
}

impl FrameRewrite {
    /// Finds the run at the start of `bytes`, which stand at `position` of the recording, and puts the ids of the replay into its frames
    /// of data.
    ///
    /// The run ends with the frame that reaches `limit`, with padding, or before bytes that are not a complete frame.
    ///
    /// # Errors
    /// [`RunFault`]; no part of the run may be used then.
    pub fn take_run(
        &self,
        position: i64,
        limit: i64,
        bytes: &mut [u8],
    ) -> Result<FrameRun, RunFault> {
        let mut run = FrameRun::default();
        while let Some(rest) = bytes.get_mut(run.data_length..) {
            let begin = position + run.data_length as i64;
            if rest.is_empty() || begin >= limit {
                break;
            }
            let frame = match self.rules.check(begin, rest) {
                Ok(frame) => frame,
                Err(FrameFault::Incomplete { .. }) => break,
                Err(_) if run.data_length > 0 => break,
                Err(fault) => return Err(RunFault::Frame(fault)),
            };
            if frame.is_padding() {
                run.padding_length = frame_length(frame.bytes());
                break;
            }
            if let Some(checksum) = self.checksum
                && checksum.verify(&frame).is_err()
            {
                return Err(RunFault::Checksum { position: begin });
            }
            let length = frame.bytes().len();
            rest[offset::SESSION_ID..][..IDS_LENGTH].copy_from_slice(&self.ids.0);
            run.data_length += length;
        }
        Ok(run)
    }
}

impl FrameRun {
    /// Whether not even one frame is complete.
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }
}

/// The length in the header of a checked frame, which is at least that of the header.
fn frame_length(frame: &[u8]) -> usize {
    DataHeaderLayout::first_in(frame)
        .and_then(|header| usize::try_from(header.header.frame_length.get()).ok())
        .unwrap_or(HEADER_LENGTH)
}
