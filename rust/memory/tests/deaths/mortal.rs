//! [`MortalWords`]: memory of a process that dies after a number of stores.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use aeron_memory::{SharedBuffer, Words};

/// Memory that a process shares with others until it dies. Before the first store after its allowance, the process
/// dies: its stack unwinds, and no later store has an effect, not even that of a destructor.
#[derive(Clone)]
pub struct MortalWords {
    words: SharedBuffer,
    life: Arc<Life>,
}

struct Life {
    stores_left: AtomicUsize,
    is_dead: AtomicBool,
}

/// Payload of the unwinding of a dead process.
struct Died;

/// Calls `act` in a process that dies after `stores` stores to `words`. Returns the result of `act`, or `None` if the
/// process died before.
pub fn die_after<T>(
    words: &SharedBuffer,
    stores: usize,
    act: impl FnOnce(MortalWords) -> T,
) -> Option<T> {
    let mortal = MortalWords {
        words: words.clone(),
        life: Arc::new(Life {
            stores_left: AtomicUsize::new(stores),
            is_dead: AtomicBool::new(false),
        }),
    };
    match catch_unwind(AssertUnwindSafe(|| act(mortal))) {
        Ok(result) => Some(result),
        Err(payload) if payload.is::<Died>() => None,
        Err(panic) => resume_unwind(panic),
    }
}

/// Calls `die(stores)` for 0, 1, 2, … until the process survives: then `die` returns `true`. Returns the number of
/// deaths.
pub fn every_death(mut die: impl FnMut(usize) -> bool) -> usize {
    (0..)
        .find(|&stores| die(stores))
        .expect("the process ends after finitely many stores")
}

impl MortalWords {
    /// Whether the process may store. Kills the process if its allowance is used up.
    fn may_store(&self) -> bool {
        if self.life.is_dead.load(Ordering::Relaxed) {
            return false;
        }
        let left = self.life.stores_left.load(Ordering::Relaxed);
        if left == 0 {
            self.life.is_dead.store(true, Ordering::Relaxed);
            resume_unwind(Box::new(Died));
        }
        self.life.stores_left.store(left - 1, Ordering::Relaxed);
        true
    }
}

impl Words for MortalWords {
    fn len(&self) -> usize {
        self.words.len()
    }

    fn slice(&self, offset: usize, len: usize) -> Self {
        Self {
            words: self.words.slice(offset, len),
            life: Arc::clone(&self.life),
        }
    }

    fn load_u8_relaxed(&self, offset: usize) -> u8 {
        self.words.load_u8_relaxed(offset)
    }

    fn load_u8_acquire(&self, offset: usize) -> u8 {
        self.words.load_u8_acquire(offset)
    }

    fn store_u8_relaxed(&self, offset: usize, value: u8) {
        if self.may_store() {
            self.words.store_u8_relaxed(offset, value);
        }
    }

    fn store_u8_release(&self, offset: usize, value: u8) {
        if self.may_store() {
            self.words.store_u8_release(offset, value);
        }
    }

    fn load_u16_relaxed(&self, offset: usize) -> u16 {
        self.words.load_u16_relaxed(offset)
    }

    fn store_u16_relaxed(&self, offset: usize, value: u16) {
        if self.may_store() {
            self.words.store_u16_relaxed(offset, value);
        }
    }

    fn load_i32_relaxed(&self, offset: usize) -> i32 {
        self.words.load_i32_relaxed(offset)
    }

    fn load_i32_acquire(&self, offset: usize) -> i32 {
        self.words.load_i32_acquire(offset)
    }

    fn store_i32_relaxed(&self, offset: usize, value: i32) {
        if self.may_store() {
            self.words.store_i32_relaxed(offset, value);
        }
    }

    fn store_i32_release(&self, offset: usize, value: i32) {
        if self.may_store() {
            self.words.store_i32_release(offset, value);
        }
    }

    fn fetch_add_i32(&self, offset: usize, delta: i32) -> i32 {
        match self.may_store() {
            true => self.words.fetch_add_i32(offset, delta),
            false => self.words.load_i32_relaxed(offset),
        }
    }

    fn compare_exchange_i32(&self, offset: usize, current: i32, new: i32) -> Result<i32, i32> {
        match self.may_store() {
            true => self.words.compare_exchange_i32(offset, current, new),
            false => Err(self.words.load_i32_relaxed(offset)),
        }
    }

    fn load_i64_relaxed(&self, offset: usize) -> i64 {
        self.words.load_i64_relaxed(offset)
    }

    fn load_i64_acquire(&self, offset: usize) -> i64 {
        self.words.load_i64_acquire(offset)
    }

    fn store_i64_relaxed(&self, offset: usize, value: i64) {
        if self.may_store() {
            self.words.store_i64_relaxed(offset, value);
        }
    }

    fn store_i64_release(&self, offset: usize, value: i64) {
        if self.may_store() {
            self.words.store_i64_release(offset, value);
        }
    }

    fn fetch_add_i64(&self, offset: usize, delta: i64) -> i64 {
        match self.may_store() {
            true => self.words.fetch_add_i64(offset, delta),
            false => self.words.load_i64_relaxed(offset),
        }
    }

    fn compare_exchange_i64(&self, offset: usize, current: i64, new: i64) -> Result<i64, i64> {
        match self.may_store() {
            true => self.words.compare_exchange_i64(offset, current, new),
            false => Err(self.words.load_i64_relaxed(offset)),
        }
    }

    fn fence_release(&self) {}

    fn fence_acquire(&self) {}

    fn fence_full(&self) {}

    fn copy_in(&self, offset: usize, bytes: &[u8]) {
        // The process may die with a half of the bytes copied.
        let half = bytes.len() / 2;
        if self.may_store() {
            self.words.copy_in(offset, &bytes[..half]);
        }
        if self.may_store() {
            self.words.copy_in(offset + half, &bytes[half..]);
        }
    }

    fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        self.words.copy_out(offset, bytes);
    }

    fn copy_in_relaxed(&self, offset: usize, bytes: &[u8]) {
        let half = bytes.len() / 8 * 4;
        if self.may_store() {
            self.words.copy_in_relaxed(offset, &bytes[..half]);
        }
        if self.may_store() {
            self.words.copy_in_relaxed(offset + half, &bytes[half..]);
        }
    }

    fn copy_out_relaxed(&self, offset: usize, bytes: &mut [u8]) {
        self.words.copy_out_relaxed(offset, bytes);
    }

    fn fill_zero(&self, offset: usize, len: usize) {
        let half = len / 2;
        if self.may_store() {
            self.words.fill_zero(offset, half);
        }
        if self.may_store() {
            self.words.fill_zero(offset + half, len - half);
        }
    }
}
