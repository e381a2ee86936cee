//! [`LoomWords`]: memory for the model checker. Compiled only with `--cfg loom`.
//!
//! Each declared word is a loom atomic, unless it is declared as unwatched. [`ModelLayout`] lists which words are
//! 64-bit cells and which are 32-bit cells (see "Mixed sizes" in [`crate::words`]). A [`Weakness`] makes one access
//! weaker than the algorithm requires. If a model passes even with the weakness, the model does not test that ordering.

use std::ops::Range;
use std::sync::Arc;

use loom::sync::atomic::{AtomicI32, AtomicI64, Ordering, fence};

use crate::words::Words;

/// The words of a model. Offsets are in bytes from the start of the memory.
#[derive(Clone, Debug)]
pub struct ModelLayout {
    len: usize,
    narrow: Vec<Range<usize>>,
    unwatched: Vec<Range<usize>>,
    wide: Vec<usize>,
}

impl ModelLayout {
    /// Creates a layout of `len` bytes without any word.
    pub fn new(len: usize) -> Self {
        Self {
            len,
            narrow: Vec::new(),
            unwatched: Vec::new(),
            wide: Vec::new(),
        }
    }

    /// Adds 32-bit cells for a range of bytes.
    pub fn narrow(mut self, range: Range<usize>) -> Self {
        self.narrow.push(range);
        self
    }

    /// Adds 32-bit words that loom does not check. If one checked word of an area is enough to show an error, declare
    /// the other words of the area with this method. Each checked word multiplies the number of executions that loom
    /// explores.
    pub fn unwatched(mut self, range: Range<usize>) -> Self {
        self.unwatched.push(range);
        self
    }

    /// Adds a 64-bit cell.
    pub fn wide(mut self, offset: usize) -> Self {
        self.wide.push(offset);
        self
    }

    /// Returns the zeroed memory. Call it inside the model.
    pub fn build(&self) -> LoomWords {
        let mut cells: Vec<Cell> = (0..self.len / 4).map(|_| Cell::Absent).collect();
        for offset in self
            .unwatched
            .iter()
            .flat_map(|range| range.clone().step_by(4))
        {
            cells[offset / 4] = Cell::Unwatched(std::sync::atomic::AtomicI32::new(0));
        }
        for offset in self
            .narrow
            .iter()
            .flat_map(|range| range.clone().step_by(4))
        {
            cells[offset / 4] = Cell::Narrow(AtomicI32::new(0));
        }
        for offset in &self.wide {
            assert!(offset.is_multiple_of(8), "wide cell at {offset}");
            cells[offset / 4] = Cell::Wide(AtomicI64::new(0));
        }
        LoomWords {
            cells: cells.into(),
            base: 0,
            len: self.len,
            weakness: None,
        }
    }
}

enum Cell {
    Absent,
    Unwatched(std::sync::atomic::AtomicI32),
    Narrow(AtomicI32),
    Wide(AtomicI64),
}

/// One kind of access that [`LoomWords`] performs with relaxed ordering, or one kind of fence that it leaves out.
/// Offsets count from the start of the whole memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Weakness {
    /// Acquire loads in the range.
    Acquire(Range<usize>),
    /// Release stores in the range.
    Release(Range<usize>),
    /// Read-modify-writes in the range.
    ReadModifyWrite(Range<usize>),
    /// Release fences do nothing.
    ReleaseFence,
    /// Acquire fences do nothing.
    AcquireFence,
    /// Full fences do nothing.
    FullFence,
}

/// Words that loom checks. Clones and slices refer to the same cells.
#[derive(Clone)]
pub struct LoomWords {
    cells: Arc<[Cell]>,
    base: usize,
    len: usize,
    weakness: Option<Weakness>,
}

impl LoomWords {
    /// Returns the same memory for a thread with a weakened access.
    pub fn weakened(&self, weakness: Weakness) -> Self {
        Self {
            weakness: Some(weakness),
            ..self.clone()
        }
    }

    fn cell(&self, offset: usize) -> &Cell {
        assert!(
            offset.is_multiple_of(4) && offset + 4 <= self.len,
            "word at {offset} is misaligned or outside the {} bytes",
            self.len
        );
        &self.cells[(self.base + offset) / 4]
    }

    fn narrow(&self, offset: usize) -> &AtomicI32 {
        match self.cell(offset) {
            Cell::Narrow(cell) => cell,
            Cell::Wide(_) => panic!("32-bit access to the 64-bit cell at {offset}"),
            Cell::Absent | Cell::Unwatched(_) => panic!("the model has no word at {offset}"),
        }
    }

    fn wide(&self, offset: usize) -> &AtomicI64 {
        match self.cell(offset) {
            Cell::Wide(cell) => cell,
            _ => panic!("the model has no 64-bit cell at {offset}"),
        }
    }

    fn load_i64(&self, offset: usize, ordering: Ordering) -> i64 {
        if let Cell::Wide(cell) = self.cell(offset) {
            return cell.load(ordering);
        }
        let low = self.narrow(offset).load(ordering);
        let high = self.narrow(offset + 4).load(Ordering::Relaxed);
        i64::from(high) << 32 | i64::from(low as u32)
    }

    fn store_i64(&self, offset: usize, value: i64, ordering: Ordering) {
        if let Cell::Wide(cell) = self.cell(offset) {
            return cell.store(value, ordering);
        }
        self.narrow(offset + 4)
            .store((value >> 32) as i32, Ordering::Relaxed);
        self.narrow(offset).store(value as i32, ordering);
    }

    fn acquire(&self, offset: usize) -> Ordering {
        match &self.weakness {
            Some(Weakness::Acquire(range)) if range.contains(&(self.base + offset)) => {
                Ordering::Relaxed
            }
            _ => Ordering::Acquire,
        }
    }

    fn release(&self, offset: usize) -> Ordering {
        match &self.weakness {
            Some(Weakness::Release(range)) if range.contains(&(self.base + offset)) => {
                Ordering::Relaxed
            }
            _ => Ordering::Release,
        }
    }

    fn read_modify_write(&self, offset: usize) -> (Ordering, Ordering) {
        match &self.weakness {
            Some(Weakness::ReadModifyWrite(range)) if range.contains(&(self.base + offset)) => {
                (Ordering::Relaxed, Ordering::Relaxed)
            }
            _ => (Ordering::SeqCst, Ordering::SeqCst),
        }
    }

    /// Returns the bytes of the 32-bit cell that contains `offset`.
    fn load_part(&self, offset: usize, ordering: Ordering) -> [u8; 4] {
        match self.cell(offset & !3) {
            Cell::Unwatched(cell) => cell.load(ordering),
            _ => self.narrow(offset & !3).load(ordering),
        }
        .to_le_bytes()
    }

    /// Replaces some bytes of the 32-bit cell that contains `offset`. The other bytes of the cell belong to the same
    /// writer.
    fn store_part(&self, offset: usize, bytes: &[u8], ordering: Ordering) {
        let mut word = [0; 4];
        if bytes.len() < 4 {
            word = self.load_part(offset, Ordering::Relaxed);
        }
        word[offset & 3..(offset & 3) + bytes.len()].copy_from_slice(bytes);
        let word = i32::from_le_bytes(word);
        match self.cell(offset & !3) {
            Cell::Unwatched(cell) => cell.store(word, ordering),
            _ => self.narrow(offset & !3).store(word, ordering),
        }
    }

    /// Calls `visit(offset, length)` for each piece of a range of bytes that lies within one 32-bit cell.
    fn pieces(&self, offset: usize, len: usize, mut visit: impl FnMut(usize, usize)) {
        assert!(
            offset + len <= self.len,
            "{len} bytes at {offset} exceed the {} bytes of the memory",
            self.len
        );
        let mut at = offset;
        while at < offset + len {
            let piece = (4 - (at & 3)).min(offset + len - at);
            visit(at, piece);
            at += piece;
        }
    }
}

impl Words for LoomWords {
    fn len(&self) -> usize {
        self.len
    }

    fn slice(&self, offset: usize, len: usize) -> Self {
        assert!(offset.is_multiple_of(8) && offset + len <= self.len);
        Self {
            base: self.base + offset,
            len,
            ..self.clone()
        }
    }

    fn load_u8_relaxed(&self, offset: usize) -> u8 {
        self.load_part(offset, Ordering::Relaxed)[offset & 3]
    }

    fn load_u8_acquire(&self, offset: usize) -> u8 {
        self.load_part(offset, self.acquire(offset))[offset & 3]
    }

    fn store_u8_relaxed(&self, offset: usize, value: u8) {
        self.store_part(offset, &[value], Ordering::Relaxed);
    }

    fn store_u8_release(&self, offset: usize, value: u8) {
        self.store_part(offset, &[value], self.release(offset));
    }

    fn load_u16_relaxed(&self, offset: usize) -> u16 {
        let word = self.load_part(offset, Ordering::Relaxed);
        u16::from_le_bytes([word[offset & 2], word[(offset & 2) + 1]])
    }

    fn store_u16_relaxed(&self, offset: usize, value: u16) {
        self.store_part(offset, &value.to_le_bytes(), Ordering::Relaxed);
    }

    fn load_i32_relaxed(&self, offset: usize) -> i32 {
        self.narrow(offset).load(Ordering::Relaxed)
    }

    fn load_i32_acquire(&self, offset: usize) -> i32 {
        self.narrow(offset).load(self.acquire(offset))
    }

    fn store_i32_relaxed(&self, offset: usize, value: i32) {
        self.narrow(offset).store(value, Ordering::Relaxed);
    }

    fn store_i32_release(&self, offset: usize, value: i32) {
        self.narrow(offset).store(value, self.release(offset));
    }

    fn fetch_add_i32(&self, offset: usize, delta: i32) -> i32 {
        self.narrow(offset)
            .fetch_add(delta, self.read_modify_write(offset).0)
    }

    fn compare_exchange_i32(&self, offset: usize, current: i32, new: i32) -> Result<i32, i32> {
        let (success, failure) = self.read_modify_write(offset);
        self.narrow(offset)
            .compare_exchange(current, new, success, failure)
    }

    fn load_i64_relaxed(&self, offset: usize) -> i64 {
        self.load_i64(offset, Ordering::Relaxed)
    }

    fn load_i64_acquire(&self, offset: usize) -> i64 {
        self.load_i64(offset, self.acquire(offset))
    }

    fn store_i64_relaxed(&self, offset: usize, value: i64) {
        self.store_i64(offset, value, Ordering::Relaxed);
    }

    fn store_i64_release(&self, offset: usize, value: i64) {
        self.store_i64(offset, value, self.release(offset));
    }

    fn fetch_add_i64(&self, offset: usize, delta: i64) -> i64 {
        self.wide(offset)
            .fetch_add(delta, self.read_modify_write(offset).0)
    }

    fn compare_exchange_i64(&self, offset: usize, current: i64, new: i64) -> Result<i64, i64> {
        let (success, failure) = self.read_modify_write(offset);
        self.wide(offset)
            .compare_exchange(current, new, success, failure)
    }

    fn fence_release(&self) {
        if self.weakness != Some(Weakness::ReleaseFence) {
            fence(Ordering::Release);
        }
    }

    fn fence_acquire(&self) {
        if self.weakness != Some(Weakness::AcquireFence) {
            fence(Ordering::Acquire);
        }
    }

    fn fence_full(&self) {
        if self.weakness != Some(Weakness::FullFence) {
            fence(Ordering::SeqCst);
        }
    }

    fn copy_in(&self, offset: usize, bytes: &[u8]) {
        self.pieces(offset, bytes.len(), |at, len| {
            self.store_part(at, &bytes[at - offset..][..len], Ordering::Relaxed);
        });
    }

    fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        self.pieces(offset, bytes.len(), |at, len| {
            let word = self.load_part(at, Ordering::Relaxed);
            bytes[at - offset..][..len].copy_from_slice(&word[at & 3..][..len]);
        });
    }

    fn copy_in_relaxed(&self, offset: usize, bytes: &[u8]) {
        self.copy_in(offset, bytes);
    }

    fn copy_out_relaxed(&self, offset: usize, bytes: &mut [u8]) {
        self.copy_out(offset, bytes);
    }

    fn fill_zero(&self, offset: usize, len: usize) {
        self.pieces(offset, len, |at, len| {
            self.store_part(at, &[0; 4][..len], Ordering::Relaxed);
        });
    }
}
