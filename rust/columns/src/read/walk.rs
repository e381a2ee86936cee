//! [`Walk`]: walks over the frames of a range, and stages their messages for record batches.

use aeron_memory::log::frame::flags;

use super::BATCH_LENGTH;
use super::format::PayloadDecoder;
use super::frames::Frames;
use super::malformed::{Malformed, MalformedPolicy, Mode};
use super::row_error::RowReadError;
use super::staged::{MessageStart, StagedMessages};

/// Walks over the frames of a range, and stages their messages.
pub(super) struct Walk<F> {
    frames: F,
    /// Messages that begin at this position or later do not belong to the range.
    to: i64,
    is_at_end: bool,
    pub(super) staged: StagedMessages,
    /// Number of rows that are enough for a record batch.
    pub(super) row_limit: usize,
    /// Number of rows at which a message is split.
    split_limit: usize,
    reads_payloads: bool,
    /// Least and greatest length of payloads that are one row, without a call for each message.
    one_row: (usize, usize),
}

impl<F: Frames> Walk<F> {
    pub(super) fn new(frames: F, to: i64, payload: &dyn PayloadDecoder) -> Self {
        Self {
            frames,
            to,
            is_at_end: false,
            staged: StagedMessages::default(),
            reads_payloads: payload.reads_payloads(),
            one_row: payload.one_row_lengths(),
            row_limit: payload.row_limit(),
            split_limit: match payload.rows_are_slices() {
                true => payload.row_limit(),
                false => usize::MAX,
            },
        }
    }

    /// Returns the start position of the first message that was not taken.
    ///
    /// After the last message, this is the end of the range, or the start of a message without an end.
    pub(super) fn position(&self) -> i64 {
        let staged = self.staged.first_begin();
        staged
            .unwrap_or_else(|| self.frames.position())
            .min(self.to)
    }

    /// Removes all staged messages, and stages new ones until there are enough for a record batch, or no more frames.
    pub(super) fn fill(
        &mut self,
        payload: &dyn PayloadDecoder,
        judge: &mut MalformedPolicy,
    ) -> Result<(), RowReadError<F::Error>> {
        if self.is_at_end {
            // A message without an end stays staged, because `position` returns the start of this message.
            return Ok(());
        }
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

    /// Processes one frame. Returns `false` if no more messages belong to the range.
    #[inline(always)]
    fn step(
        &mut self,
        payload: &dyn PayloadDecoder,
        judge: &mut MalformedPolicy,
    ) -> Result<bool, RowReadError<F::Error>> {
        let is_behind = self.frames.position() >= self.to;
        if is_behind && !self.staged.is_open() {
            return Ok(false);
        }
        let Some(frame) = self.frames.next_frame().map_err(RowReadError::Frames)? else {
            return Ok(false);
        };
        if frame.is_padding {
            // Frames after padding do not continue an open message: the publisher did not complete the message.
            self.staged.abandon();
            return Ok(true);
        }
        let frame_flags = frame.flags;
        if frame_flags & flags::BEGIN != 0 {
            if is_behind {
                return Ok(false);
            }
            self.staged.begin(MessageStart {
                position: frame.position,
                reserved_value: frame.reserved_value,
                flags: frame_flags,
            });
        } else if !self.staged.is_open() {
            return Ok(true);
        }
        let bytes = match self.reads_payloads {
            true => frame.payload,
            false => &[],
        };
        let end_position = frame.end_position;
        if let Err(position) = self.staged.append(bytes) {
            let recording_id = judge.recording_id;
            return Err(RowReadError::TooLong {
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
        payload: &dyn PayloadDecoder,
        judge: &mut MalformedPolicy,
    ) -> Result<(), Malformed> {
        let length = self.staged.open_payload().len();
        if (self.one_row.0..=self.one_row.1).contains(&length) {
            self.staged.end_row(end_position);
            return Ok(());
        }
        match payload.rows(self.staged.open_payload()) {
            Ok(Some(rows)) if rows > 0 => {
                self.staged.end_rows(end_position, rows, self.split_limit)
            }
            Ok(rows) => {
                self.staged.abandon();
                judge.counts.skipped += u64::from(rows.is_none());
            }
            Err(reason) => {
                judge.judge(1, end_position, reason)?;
                match judge.mode {
                    Mode::Permissive => self.staged.end_malformed(end_position),
                    _ => self.staged.abandon(),
                }
            }
        }
        Ok(())
    }
}
