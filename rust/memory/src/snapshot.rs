//! [`Snapshot`]: a few values that one thread changes together and other threads read consistently, without locks.
//!
//! The writer increments the first change number, stores the values, and sets the second change number to the first. A
//! reader loads the second number, the values and the first number. If the numbers are equal, the values belong
//! together. If not, the writer was active, and a newer row will be available in a moment.

use crate::buffer::SharedBuffer;
use crate::words::Words;

const BEGIN: usize = 0;
const END: usize = 8;
const VALUES: usize = 16;

/// A row of `N` values with one writer and any number of readers.
#[derive(Clone, Debug)]
pub struct Snapshot<W, const N: usize> {
    words: W,
}

/// A consistent row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<const N: usize> {
    /// Number of the row: the count of published rows up to this row; 0 for the initial row.
    pub change_number: i64,
    /// The values.
    pub values: [i64; N],
}

impl<const N: usize> Snapshot<SharedBuffer, N> {
    /// Creates a row on the heap with `values`.
    pub fn new(values: [i64; N]) -> Self {
        let snapshot = Self::attach(SharedBuffer::heap(VALUES + 8 * N));
        snapshot.words.store_i64s_relaxed(VALUES, values);
        snapshot
    }
}

impl<W: Words, const N: usize> Snapshot<W, N> {
    /// Opens the row in `words`: 16 bytes plus 8 for each value, initially zero.
    pub fn attach(words: W) -> Self {
        assert!(words.len() >= VALUES + 8 * N);
        Self { words }
    }

    /// Replaces the row. Only one thread may call this method.
    pub fn publish(&self, values: [i64; N]) {
        let change_number = self.words.load_i64_relaxed(BEGIN).wrapping_add(1);
        // BEGIN is stored before the values and END after them: a reader with equal numbers has the values of one row.
        self.words.store_i64_relaxed(BEGIN, change_number);
        self.words.fence_release();
        self.words.store_i64s_relaxed(VALUES, values);
        self.words.store_i64_release(END, change_number);
    }

    /// Returns the number of the row that [`read`](Self::read) would return.
    #[inline]
    pub fn change_number(&self) -> i64 {
        self.words.load_i64_acquire(END)
    }

    /// Returns the row, unless it is being replaced at this moment.
    #[inline]
    pub fn read(&self) -> Option<Row<N>> {
        let change_number = self.change_number();
        let values = std::array::from_fn(|i| self.words.load_i64_relaxed(VALUES + 8 * i));
        self.words.fence_acquire();
        let is_whole = self.words.load_i64_relaxed(BEGIN) == change_number;
        is_whole.then_some(Row {
            change_number,
            values,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_the_last_published_values() {
        let snapshot = Snapshot::new([7, -1]);
        let row = |change_number, values| {
            Some(Row {
                change_number,
                values,
            })
        };
        assert_eq!(snapshot.read(), row(0, [7, -1]));
        snapshot.publish([8, 2]);
        snapshot.publish([9, i64::MIN]);
        assert_eq!(snapshot.change_number(), 2);
        assert_eq!(snapshot.read(), row(2, [9, i64::MIN]));
    }

    #[test]
    fn a_row_that_is_being_replaced_is_not_returned() {
        let snapshot = Snapshot::new([7]);
        snapshot.words.store_i64_relaxed(BEGIN, 1);
        assert_eq!(snapshot.read(), None);
    }
}
