//! How much may be sent again: a multiple of what was sent for the first time, over a sliding second.

/// Bytes that may be sent again within a second, per byte of new data in it.
pub const RETRANSMIT_MULTIPLE: usize = 4;
/// Bytes that may be sent again within a second whatever is new: 1 MiB.
pub const FREE_RETRANSMIT_LENGTH: usize = 1024 * 1024;

/// Time is counted in slots of 2^27 ns (134 ms).
const SLOT_SHIFT: u32 = 27;
/// As many as there are in a second, the current one not counted.
const SLOTS: usize = 9;

/// The bytes of the last second. Cheap enough to be told of every duty cycle.
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
    /// Nothing was sent yet of a publication that starts here.
    pub(super) fn new(start_position: i64) -> Self {
        Budget {
            slots: [Slot::default(); SLOTS],
            current: i64::MIN,
            sender_position: start_position,
        }
    }

    /// The sender is here now; what lies behind it and was not told before is new.
    pub(super) fn on_sender_position(&mut self, sender_position: i64, now_ns: i64) {
        self.advance(now_ns >> SLOT_SHIFT);
        let new = sender_position.saturating_sub(self.sender_position).max(0);
        self.sender_position = self.sender_position.max(sender_position);
        self.slot().new += new as usize;
    }

    /// Bytes that may be sent again now.
    pub(super) fn available(&self) -> usize {
        let new: usize = self.slots.iter().map(|slot| slot.new).sum();
        let resent: usize = self.slots.iter().map(|slot| slot.resent).sum();
        let allowed = new.saturating_mul(RETRANSMIT_MULTIPLE);
        allowed.max(FREE_RETRANSMIT_LENGTH).saturating_sub(resent)
    }

    /// So much was sent again.
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
