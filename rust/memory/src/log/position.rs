//! Positions: the location of a byte in a stream, as one number or as a term and an offset.
//!
//! A stream is a sequence of terms. A *position* is the number of bytes from the start of the first term. A *term id*
//! identifies a term and may wrap through 2^31. A *term offset* counts bytes within a term. All functions accept any
//! values, so values from shared memory may be passed unchecked.

use super::LogError;

pub use aeron_layout::frame::{MAX_TERM_LENGTH, MIN_TERM_LENGTH};

/// Number of term buffers of a log: one is written, one may still be read, one is being cleaned.
pub const PARTITION_COUNT: usize = 3;

/// Converter between positions of one stream and terms with offsets. Contains the term length and the first term id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Positions {
    initial_term_id: i32,
    bits: u32,
}

impl Positions {
    /// Creates a converter for terms of `term_length` bytes. The first term has the id `initial_term_id`.
    ///
    /// # Errors
    /// [`LogError::TermLength`] unless `term_length` is a power of two from [`MIN_TERM_LENGTH`] to [`MAX_TERM_LENGTH`].
    pub fn new(term_length: usize, initial_term_id: i32) -> Result<Self, LogError> {
        check_term_length(term_length as i64)?;
        Ok(Self {
            initial_term_id,
            bits: term_length.trailing_zeros(),
        })
    }

    /// Creates a converter for terms of `1 << bits` bytes, which may be fewer than in a real log. The first term has
    /// the id 0.
    #[cfg(loom)]
    pub fn model(bits: u32) -> Self {
        Self {
            initial_term_id: 0,
            bits,
        }
    }

    /// Returns the length of a term in bytes.
    #[inline]
    pub fn term_length(self) -> usize {
        1 << self.bits
    }

    /// Returns the base-two logarithm of the term length: the shift between a position and its term count.
    #[inline]
    pub fn bits_to_shift(self) -> u32 {
        self.bits
    }

    /// Returns the id of the stream's first term.
    #[inline]
    pub fn initial_term_id(self) -> i32 {
        self.initial_term_id
    }

    /// Returns the number of terms before `term_id`; negative for a term id that precedes the first one.
    #[inline]
    pub fn term_count(self, term_id: i32) -> i32 {
        term_id.wrapping_sub(self.initial_term_id)
    }

    /// Returns the position of the byte at `term_offset` of the term `term_id`.
    #[inline]
    pub fn position(self, term_id: i32, term_offset: usize) -> i64 {
        (i64::from(self.term_count(term_id)) << self.bits).wrapping_add(term_offset as i64)
    }

    /// Returns the id of the term that holds `position`.
    #[inline]
    pub fn term_id(self, position: i64) -> i32 {
        self.initial_term_id
            .wrapping_add((position >> self.bits) as i32)
    }

    /// Returns the offset of `position` within its term.
    #[inline]
    pub fn term_offset(self, position: i64) -> usize {
        (position & (self.term_length() as i64 - 1)) as usize
    }

    /// Returns the position of the start of the term that holds `position`.
    #[inline]
    pub fn term_begin(self, position: i64) -> i64 {
        position & -(self.term_length() as i64)
    }

    /// Returns the index (0, 1 or 2) of the partition that holds `position`.
    #[inline]
    pub fn partition(self, position: i64) -> usize {
        ((position as u64 >> self.bits) % PARTITION_COUNT as u64) as usize
    }

    /// Returns the end of the stream: 2^31 terms after its start. A frame may end exactly here.
    #[inline]
    pub fn max_position(self) -> i64 {
        1 << (31 + self.bits)
    }
}

/// Returns the index (0, 1 or 2) of the partition of the term that has `term_count` terms before it.
#[inline]
pub fn partition_of_count(term_count: i32) -> usize {
    (term_count as u32 % PARTITION_COUNT as u32) as usize
}

/// Checks a term length that comes from a file or a user.
pub(super) fn check_term_length(term_length: i64) -> Result<(), LogError> {
    let within = (MIN_TERM_LENGTH as i64..=MAX_TERM_LENGTH as i64).contains(&term_length);
    if within && term_length & (term_length - 1) == 0 {
        Ok(())
    } else {
        Err(LogError::TermLength(term_length))
    }
}

/// A term's tail as the metadata contains it: the term id in the upper 32 bits, the next free offset in the lower 32
/// bits.
///
/// After a claim has crossed the end of the term, the offset exceeds the term length. It stays above the term length
/// until the partition is rotated into its next term.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RawTail(pub i64);

impl RawTail {
    /// Creates the tail of the term `term_id` whose next free byte is at `term_offset` (below 2^32).
    #[inline]
    pub fn new(term_id: i32, term_offset: usize) -> Self {
        debug_assert!(
            u32::try_from(term_offset).is_ok(),
            "the offset {term_offset} does not fit into the lower 32 bits of a tail"
        );
        Self((i64::from(term_id) << 32) | (term_offset as i64 & 0xFFFF_FFFF))
    }

    /// Returns the id of the term.
    #[inline]
    pub fn term_id(self) -> i32 {
        (self.0 >> 32) as i32
    }

    /// Returns the offset as stored, which may exceed the term length.
    #[inline]
    pub fn unclamped_offset(self) -> usize {
        (self.0 & 0xFFFF_FFFF) as usize
    }

    /// Returns the offset of the next free byte; `term_length` if the term is full.
    #[inline]
    pub fn offset(self, term_length: usize) -> usize {
        self.unclamped_offset().min(term_length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn positions_convert_to_terms_and_back_for_negative_and_wrapping_term_ids_01_58() {
        for initial in [0, 7, -9, i32::MAX, i32::MIN] {
            for length in [MIN_TERM_LENGTH, MAX_TERM_LENGTH] {
                let positions = Positions::new(length, initial).unwrap();
                for count in [0, 1, 2, 3, 1000, i32::MAX] {
                    let term_id = initial.wrapping_add(count);
                    let position = positions.position(term_id, 96);
                    assert_eq!(position, i64::from(count) * length as i64 + 96);
                    assert_eq!(positions.term_id(position), term_id);
                    assert_eq!(positions.term_offset(position), 96);
                    assert_eq!(positions.term_begin(position), position - 96);
                    assert_eq!(positions.partition(position), count as usize % 3);
                    assert_eq!(partition_of_count(count), count as usize % 3);
                }
            }
        }
    }

    #[test]
    fn the_maximum_position_is_the_end_of_2_to_the_31_terms_01_58() {
        let positions = Positions::new(MIN_TERM_LENGTH, 5).unwrap();
        assert_eq!(positions.max_position(), 140_737_488_355_328);
        let last_term = 5i32.wrapping_add(i32::MAX);
        assert_eq!(
            positions.position(last_term, MIN_TERM_LENGTH),
            positions.max_position()
        );
        let positions = Positions::new(MAX_TERM_LENGTH, 5).unwrap();
        assert_eq!(positions.max_position(), 1 << 61);
    }

    #[test]
    fn a_raw_tail_keeps_a_negative_term_id_and_clamps_an_overrun_offset() {
        let tail = RawTail::new(-3, 66_528);
        assert_eq!(tail.term_id(), -3);
        assert_eq!(tail.offset(65_536), 65_536);
        assert_eq!(tail.unclamped_offset(), 66_528);
        assert_eq!(RawTail::new(i32::MIN, 0).0, i64::MIN);
        assert_eq!(RawTail::new(100, 256).offset(65_536), 256);
    }

    #[test]
    fn term_lengths_out_of_range_or_not_a_power_of_two_are_refused_01_55() {
        for wrong in [0, 1, 65_535, 65_537, 3 << 16, MAX_TERM_LENGTH * 2] {
            let error = Positions::new(wrong, 0).unwrap_err();
            assert!(error.to_string().contains(&wrong.to_string()));
        }
        assert!(check_term_length(-65_536).is_err());
        assert!(check_term_length(i64::from(i32::MIN)).is_err());
    }

    proptest! {
        #[test]
        fn any_position_converts_to_term_and_offset_and_back(initial: i32, bits in 16u32..=30, position in 0i64..1 << 46) {
            let positions = Positions::new(1 << bits, initial).unwrap();
            let joined = positions.position(positions.term_id(position), positions.term_offset(position));
            prop_assert_eq!(joined, position);
        }

        #[test]
        fn hostile_positions_never_leave_the_log(initial: i32, bits in 16u32..=30, position: i64, term_id: i32) {
            let positions = Positions::new(1 << bits, initial).unwrap();
            prop_assert!(positions.partition(position) < PARTITION_COUNT);
            prop_assert!(positions.term_offset(position) < positions.term_length());
            positions.position(term_id, usize::MAX);
        }
    }
}
