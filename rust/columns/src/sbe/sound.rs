//! Finds the messages that no row can hold.

use std::ops::Range;

use super::SbeColumns;
use super::budget::Budget;

/// Messages that are decoded at a time. If all of them are sound, none is decoded alone.
const AT_ONCE: usize = 1024;

/// Search for the messages that no row can hold: it halves the messages that cannot be decoded together.
struct Search<'a> {
    columns: &'a SbeColumns,
    selected: &'a [usize],
    bytes: &'a [u8],
    begin: usize,
    ends: &'a [usize],
    budget: Budget,
    sound: Vec<bool>,
}

impl SbeColumns {
    /// Returns, for each message, whether the columns can hold it, together with the sound messages before it. The
    /// messages are one after the other in `bytes`, the first begins at `begin`.
    pub(super) fn sound(
        &self,
        bytes: &[u8],
        begin: usize,
        ends: &[usize],
        columns: &[usize],
    ) -> Vec<bool> {
        let mut search = Search {
            columns: self,
            selected: columns,
            bytes,
            begin,
            ends,
            budget: Budget::default(),
            sound: Vec::with_capacity(ends.len()),
        };
        for first in (0..ends.len()).step_by(AT_ONCE) {
            search.judge(first..ends.len().min(first + AT_ONCE));
        }
        search.sound
    }
}

impl Search<'_> {
    fn judge(&mut self, messages: Range<usize>) {
        let begin = match messages.start.checked_sub(1) {
            None => self.begin,
            Some(before) => self.ends[before],
        };
        let ends = self.ends[messages.clone()].iter().copied();
        let count = messages.len();
        let decoded =
            self.columns
                .decode_within(self.budget, self.bytes, begin, ends, self.selected);
        match decoded {
            Ok(decoded) => {
                self.budget = decoded.budget;
                self.sound.resize(messages.end, true);
            }
            Err(_) if count == 1 => self.sound.push(false),
            Err(_) => {
                let middle = messages.start + count / 2;
                self.judge(messages.start..middle);
                self.judge(middle..messages.end);
            }
        }
    }
}
