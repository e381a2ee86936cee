//! [`MessageSource`]: provides the bytes of a message.

use crate::words::Words;

/// The bytes of one message, written from front to back.
pub trait MessageSource {
    /// Returns the number of bytes not yet written.
    fn remaining(&self) -> usize;

    /// Writes the next `length` bytes (at most [`remaining`](Self::remaining)) to `term` at `offset`.
    fn give<W: Words>(&mut self, length: usize, term: &W, offset: usize);
}

impl MessageSource for &[u8] {
    #[inline(always)]
    fn remaining(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn give<W: Words>(&mut self, length: usize, term: &W, offset: usize) {
        let (now, later) = self.split_at(length);
        term.copy_in(offset, now);
        *self = later;
    }
}

/// A message in several parts.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// The rest of the current part.
    current: &'a [u8],
    later: &'a [&'a [u8]],
    remaining: usize,
}

impl<'a> Parts<'a> {
    /// Creates a message from parts, joined in order. Parts may be empty.
    pub fn new(parts: &'a [&'a [u8]]) -> Self {
        Self {
            current: &[],
            later: parts,
            remaining: parts
                .iter()
                .fold(0, |sum, part| sum.saturating_add(part.len())),
        }
    }
}

impl MessageSource for Parts<'_> {
    #[inline]
    fn remaining(&self) -> usize {
        self.remaining
    }

    fn give<W: Words>(&mut self, length: usize, term: &W, offset: usize) {
        debug_assert!(
            length <= self.remaining,
            "the message has only {} of {length} bytes left",
            self.remaining
        );
        let mut given = 0;
        while given < length {
            while self.current.is_empty() {
                (self.current, self.later) = (self.later[0], &self.later[1..]);
            }
            let piece = self.current.len().min(length - given);
            self.current.give(piece, term, offset + given);
            given += piece;
        }
        self.remaining -= length;
    }
}
