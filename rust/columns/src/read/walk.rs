//! The walk over the frames of a range, which stages its messages.

use aeron_memory::log::frame::flags;

use super::frames::Frames;
use super::malformed::{Judge, Malformed};
use super::projection::Payload;
use super::row_error::RowError;
use super::staged::{Beginning, Staged};
use super::{BATCH_LENGTH, BATCH_ROWS};

/// Frames of a range, on their way to messages.
pub(super) struct Walk<F> {
    frames: F,
    /// No message that begins here or later belongs to the range.
    to: i64,
    is_at_end: bool,
    pub(super) staged: Staged,
    /// Rows that are enough for a record batch.
    pub(super) row_limit: usize,
}

impl<F: Frames> Walk<F> {
    pub(super) fn new(frames: F, to: i64, payload: &Payload) -> Self {
        let row_limit = match payload {
            Payload::Records { record_length, .. } => BATCH_ROWS.min(BATCH_LENGTH / record_length),
            _ => BATCH_ROWS,
        };
        Self {
            frames,
            to,
            is_at_end: false,
            staged: Staged::default(),
            row_limit,
        }
    }

    /// Stages messages until there are enough for a record batch, or no more. All that were staged before are forgotten.
    pub(super) fn fill(
        &mut self,
        payload: &Payload,
        judge: &mut Judge,
    ) -> Result<(), RowError<F::Error>> {
        self.staged.clear();
        while !self.is_at_end && !self.is_full() {
            self.is_at_end = !self.step(payload, judge)?;
        }
        Ok(())
    }

    fn is_full(&self) -> bool {
        let bytes = self.staged.values.len();
        !self.staged.is_open() && (self.staged.rows() >= self.row_limit || bytes >= BATCH_LENGTH)
    }

    /// Goes one frame on; false when no more messages belong to the range.
    #[inline(always)]
    fn step(&mut self, payload: &Payload, judge: &mut Judge) -> Result<bool, RowError<F::Error>> {
        let is_behind = self.frames.position() >= self.to;
        if is_behind && !self.staged.is_open() {
            return Ok(false);
        }
        let Some(frame) = self.frames.next_frame().map_err(RowError::Frames)? else {
            return Ok(false);
        };
        if frame.is_padding {
            // What comes behind it is no part of a message from before it: such a message was given up by its publisher.
            self.staged.abandon();
            return Ok(true);
        }
        let frame_flags = frame.flags;
        if frame_flags & flags::BEGIN != 0 {
            if is_behind {
                return Ok(false);
            }
            self.staged.begin(Beginning {
                position: frame.position,
                reserved_value: frame.reserved_value,
                flags: frame_flags,
            });
        } else if !self.staged.is_open() {
            return Ok(true);
        }
        let bytes = match payload {
            Payload::Ignored => &[],
            _ => frame.payload,
        };
        let end_position = frame.end_position;
        if let Err(position) = self.staged.append(bytes) {
            let recording_id = judge.recording_id;
            return Err(RowError::TooLong {
                recording_id,
                position,
            });
        }
        if frame_flags & flags::END != 0 {
            self.end_message(end_position, payload, judge)?;
        }
        Ok(true)
    }

    #[inline(always)]
    fn end_message(
        &mut self,
        end_position: i64,
        payload: &Payload,
        judge: &mut Judge,
    ) -> Result<(), Malformed> {
        let Payload::Records { record_length, .. } = *payload else {
            self.staged.end_row(end_position);
            return Ok(());
        };
        let length = self.staged.open_length();
        if length == record_length {
            self.staged.end_row(end_position);
        } else if length != 0 && length.is_multiple_of(record_length) {
            self.staged
                .end_records(end_position, record_length, self.row_limit);
        } else {
            self.staged.abandon();
            let reason = format!("its {length} bytes are no records of {record_length} bytes");
            judge.judge(1, end_position, reason)?;
        }
        Ok(())
    }
}
