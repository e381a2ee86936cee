//! [`Budget`]: limits retransmits to a multiple of the bytes that were sent for the first time, over a sliding second.

/// Number of bytes that may be retransmitted within a second, for each new byte in that second.
pub const RETRANSMIT_MULTIPLE: usize = 4;
/// Number of bytes that may be retransmitted within a second even without new bytes: 1 MiB.
pub const FREE_RETRANSMIT_LENGTH: usize = 1024 * 1024;

/// Binary logarithm of the length of a slot in ns: a slot has 2^27 ns (134 ms).
const SLOT_SHIFT: u32 = 27;
/// Number of slots in a second, plus the current slot.
const SLOTS: usize = 9;

/// New and retransmitted bytes of the last second. An update takes so little time that every duty cycle can
/// make one.
#[derive(Debug)]
pub(super) struct Budget {
    slots: [Slot; SLOTS],
    current: i64,
    sender_position: i64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    new: usize,
    resent: usize,
}

impl Budget {
    /// Creates the budget of a publication that starts at this position.
    pub(super) fn new(start_position: i64) -> Self {
        Budget {
            slots: [Slot::default(); SLOTS],
            current: i64::MIN,
            sender_position: start_position,
        }
    }

    /// Counts the bytes between the last known sender position and `sender_position` as new.
    pub(super) fn on_sender_position(&mut self, sender_position: i64, now_ns: i64) {
        self.advance(now_ns >> SLOT_SHIFT);
        let new = sender_position.saturating_sub(self.sender_position).max(0);
        self.sender_position = self.sender_position.max(sender_position);
        self.slot().new += new as usize;
    }

    /// Returns the number of bytes that may be retransmitted now.
    pub(super) fn available(&self) -> usize {
        let new: usize = self.slots.iter().map(|slot| slot.new).sum();
        let resent: usize = self.slots.iter().map(|slot| slot.resent).sum();
        let allowed = new.saturating_mul(RETRANSMIT_MULTIPLE);
        allowed.max(FREE_RETRANSMIT_LENGTH).saturating_sub(resent)
    }

    /// Counts retransmitted bytes.
    pub(super) fn on_resent(&mut self, length: usize) {
        self.slot().resent += length;
    }

    fn advance(&mut self, slot: i64) {
        let passed = slot.saturating_sub(self.current).clamp(0, SLOTS as i64);
        for _ in 0..passed {
            self.current += 1;
            *self.slot() = Slot::default();
        }
        self.current = self.current.max(slot);
    }

    fn slot(&mut self) -> &mut Slot {
        &mut self.slots[self.current.rem_euclid(SLOTS as i64) as usize]
    }
}
