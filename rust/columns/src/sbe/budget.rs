//! [`Budget`]: the bytes that columns may take beyond those of their messages.
//!
//! Fields that are newer than a message, group entries without bytes, and values that are repeated for entries take
//! memory, but no bytes of the message. Without a limit, a short message could ask for any memory.

use aeron_sbe::plan::{SbeField, SbeKind};
use aeron_sbe::schema::{SbeConstant, SbePresence};

/// Most bytes of nulls and empty rows that columns may add, besides [`ADDED_PER_BYTE`].
pub(super) const MAX_ADDED: usize = 256 << 20;
/// Most bytes of repeated values in all columns, besides [`ADDED_PER_BYTE`].
const MAX_REPEATED: usize = 1 << 30;
/// Bytes that columns may add for each byte of the messages.
const ADDED_PER_BYTE: usize = 16;
/// Bytes for a row or an absent element: indexes, offsets and bits of validity.
pub(super) const EMPTY_ROW: usize = 64;
/// Most bytes of a number, an offset or a key.
const WIDEST: usize = 16;

/// Bytes that the columns of one call may still add.
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    added: usize,
    repeated: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            added: MAX_ADDED,
            repeated: MAX_REPEATED,
        }
    }
}

impl Budget {
    /// Allows more bytes for messages of this length.
    pub(super) fn grow(&mut self, length: usize) {
        let more = length.saturating_mul(ADDED_PER_BYTE);
        self.added = self.added.saturating_add(more);
        self.repeated = self.repeated.saturating_add(more);
    }

    /// Takes `count` nulls or empty rows of this length. The error is a reason.
    pub(super) fn add(&mut self, count: usize, length: usize) -> Result<(), String> {
        let left = self.added.checked_sub(count.saturating_mul(length));
        self.added = left.ok_or_else(|| {
            format!(
                "fields that are newer than their messages, entries without bytes, and constants add more than \
                 {MAX_ADDED} bytes to the columns: read fewer columns, or fewer messages at once"
            )
        })?;
        Ok(())
    }

    /// Takes the bytes of repeated values. The error is a reason.
    pub(super) fn repeat(&mut self, length: usize) -> Result<(), String> {
        let left = self.repeated.checked_sub(length);
        self.repeated = left.ok_or_else(|| {
            format!(
                "the values of messages, repeated for their entries, take more than {MAX_REPEATED} bytes: read fewer \
                 columns, or fewer messages at once"
            )
        })?;
        Ok(())
    }
}

/// Returns the bytes that a null or a constant of a field takes in its column, at most.
pub(super) fn null_length(field: &SbeField) -> usize {
    match &field.kind {
        SbeKind::Bytes { count, .. } => WIDEST + count,
        SbeKind::Numbers { count, .. } => WIDEST + WIDEST * count,
        SbeKind::Set { choices, .. } => WIDEST + choices.choices.len(),
        SbeKind::Struct(composite) => {
            let members = composite.members.iter().map(null_length);
            WIDEST + members.sum::<usize>()
        }
        _ => match &field.constant {
            Some(SbeConstant::Text(text)) => WIDEST + text.len(),
            _ => WIDEST,
        },
    }
}

/// Returns the bytes that the constant members of a field's composites take in its column for each row.
pub(super) fn constant_length(field: &SbeField) -> usize {
    let SbeKind::Struct(composite) = &field.kind else {
        return 0;
    };
    let length = |member: &SbeField| match member.presence {
        SbePresence::Constant => null_length(member),
        _ => constant_length(member),
    };
    composite.members.iter().map(length).sum()
}
