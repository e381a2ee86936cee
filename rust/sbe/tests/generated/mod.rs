//! Random schemas that follow the rules, and random values for them.
//!
//! All choices come from bytes, so a property shrinks them and a fuzzer changes them.

mod document;
mod values;

#[allow(unused_imports, reason = "each user needs a part of the generator")]
pub use document::{Document, Features};
#[allow(unused_imports, reason = "each user needs a part of the generator")]
pub use values::record;

/// Choices from bytes. After the last byte, all choices are 0.
pub struct Choices<'a> {
    bytes: &'a [u8],
}

impl<'a> Choices<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Returns a number below `limit`, which is from 1 to 256.
    pub fn below(&mut self, limit: usize) -> usize {
        match self.bytes.split_first() {
            Some((byte, rest)) => {
                self.bytes = rest;
                usize::from(*byte) % limit
            }
            None => 0,
        }
    }

    /// Returns true once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    /// Returns one of the items.
    pub fn one_of<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    /// Returns any 64 bits.
    pub fn bits(&mut self) -> u64 {
        (0..8).fold(0, |bits, _| bits << 8 | self.below(256) as u64)
    }
}
