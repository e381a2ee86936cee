//! Shared memory as 32- and 64-bit words.
//!
//! Every algorithm of this crate uses [`Words`] and states at each access which ordering it needs. Two
//! implementations exist:
//!
//! * [`SharedBuffer`](crate::buffer::SharedBuffer), used in production: heap or mapped memory, one machine instruction
//!   per access;
//! * `LoomWords` (only with `--cfg loom`), in which each word is a loom atomic, so that the model checker sees the real
//!   orderings.
//!
//! # Rules
//!
//! * Offsets are in bytes from the start of the buffer. A 32-bit access needs an offset that is a multiple of 4, and a
//!   64-bit access a multiple of 8. An access that is misaligned or out of bounds panics, because it is a bug of the
//!   caller: lengths from another process are validated before they are used as offsets.
//! * Words are little-endian, as are all files of Aeron.
//! * `copy_in`, `copy_out` and `fill_zero` are for bytes that only one side accesses at a time: the writer after its
//!   claim, the reader after it has acquired the positive length. If both sides access the bytes at the same time and
//!   the reader validates its copy afterwards (broadcast), the `_relaxed` copies are used.
//!
//! # Mixed sizes
//!
//! A frame length is a 32-bit word, yet many writers store it as the low half of a 64-bit word. On the supported CPUs
//! an aligned 64-bit store is single-copy atomic for the 32-bit loads inside it. Rust's memory model and loom do not
//! know this rule, so the model assumes less: a place is either *wide* (one 64-bit cell: positions, counters) or
//! *narrow* (32-bit cells). A 64-bit store to a narrow place is a relaxed store of the high half followed by a store of
//! the low half with the requested ordering. A 64-bit load is a load of the low half with the requested ordering
//! followed by a relaxed load of the high half. An algorithm that is correct with these torn accesses is also correct
//! with whole accesses. 32-bit accesses to wide cells, and 64-bit read-modify-writes of narrow cells, panic in the
//! model.

/// Memory shared between threads or processes, accessed in words. See the [module](self) for the rules.
///
/// Clones and slices refer to the same memory and keep it alive.
pub trait Words: Clone + Send + Sync + 'static {
    /// Returns the length in bytes.
    fn len(&self) -> usize;

    /// Whether there are no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the part `[offset, offset + len)` of this memory. `offset` is a multiple of 8.
    fn slice(&self, offset: usize, len: usize) -> Self;

    /// Plain load of a byte.
    fn load_u8_relaxed(&self, offset: usize) -> u8;
    /// Load-acquire of a byte.
    fn load_u8_acquire(&self, offset: usize) -> u8;
    /// Plain store of a byte.
    fn store_u8_relaxed(&self, offset: usize, value: u8);
    /// Store-release of a byte.
    fn store_u8_release(&self, offset: usize, value: u8);
    /// Plain load of a 16-bit field.
    fn load_u16_relaxed(&self, offset: usize) -> u16;
    /// Plain store of a 16-bit field.
    fn store_u16_relaxed(&self, offset: usize, value: u16);

    /// Plain load of a 32-bit word.
    fn load_i32_relaxed(&self, offset: usize) -> i32;
    /// Load-acquire of a 32-bit word.
    fn load_i32_acquire(&self, offset: usize) -> i32;
    /// Plain store of a 32-bit word.
    fn store_i32_relaxed(&self, offset: usize, value: i32);
    /// Store-release of a 32-bit word.
    fn store_i32_release(&self, offset: usize, value: i32);
    /// Adds to a 32-bit word (wrapping, sequentially consistent). Returns the previous value.
    fn fetch_add_i32(&self, offset: usize, delta: i32) -> i32;
    /// Compares and swaps a 32-bit word (sequentially consistent). Returns the previous value, as an error if it was
    /// not `current`.
    fn compare_exchange_i32(&self, offset: usize, current: i32, new: i32) -> Result<i32, i32>;

    /// Plain load of a 64-bit word.
    fn load_i64_relaxed(&self, offset: usize) -> i64;
    /// Load-acquire of a 64-bit word.
    fn load_i64_acquire(&self, offset: usize) -> i64;
    /// Plain store of a 64-bit word.
    fn store_i64_relaxed(&self, offset: usize, value: i64);
    /// Store-release of a 64-bit word.
    fn store_i64_release(&self, offset: usize, value: i64);
    /// Plain stores of consecutive 64-bit words in this order, with only one bounds check.
    #[inline(always)]
    fn store_i64s_relaxed<const N: usize>(&self, offset: usize, values: [i64; N]) {
        for (i, value) in values.into_iter().enumerate() {
            self.store_i64_relaxed(offset + 8 * i, value);
        }
    }
    /// Adds to a 64-bit word (wrapping, sequentially consistent). Returns the previous value.
    fn fetch_add_i64(&self, offset: usize, delta: i64) -> i64;
    /// Compares and swaps a 64-bit word (sequentially consistent). Returns the previous value, as an error if it was
    /// not `current`.
    fn compare_exchange_i64(&self, offset: usize, current: i64, new: i64) -> Result<i64, i64>;

    /// All loads and stores before the fence take effect before all stores after the fence. (This is the "store fence"
    /// of `docs/spec/01-memory-layouts.md`.)
    fn fence_release(&self);
    /// All loads before the fence take effect before all loads and stores after the fence.
    fn fence_acquire(&self);
    /// All loads and stores before the fence take effect before all loads and stores after the fence.
    fn fence_full(&self);

    /// Copies `bytes` into the memory at `offset` (any alignment). No other thread or process may access these bytes at
    /// the same time.
    fn copy_in(&self, offset: usize, bytes: &[u8]);
    /// Copies bytes from `offset` (any alignment) out of the memory. No other thread or process may write these bytes
    /// at the same time.
    fn copy_out(&self, offset: usize, bytes: &mut [u8]);
    /// Like [`copy_in`](Self::copy_in), but with relaxed accesses, for bytes that a reader may read at the same time.
    /// `offset` is a multiple of 4.
    fn copy_in_relaxed(&self, offset: usize, bytes: &[u8]);
    /// Like [`copy_out`](Self::copy_out), but with relaxed accesses, for bytes that a writer may change at the same
    /// time. `offset` is a multiple of 4.
    fn copy_out_relaxed(&self, offset: usize, bytes: &mut [u8]);
    /// Zeroes `len` bytes from `offset` (any alignment). No other thread or process may write these bytes at the same
    /// time.
    fn fill_zero(&self, offset: usize, len: usize);
}

/// Returns `value` rounded up to a multiple of `alignment`, a power of two. The caller ensures that the result does not
/// overflow.
pub const fn align(value: usize, alignment: usize) -> usize {
    (value + alignment - 1) & !(alignment - 1)
}
