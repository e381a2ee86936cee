//! Session ids for publications on channels that do not set a session id.

use std::ops::RangeInclusive;

/// Allocates session ids in ascending order and skips a reserved range.
#[derive(Debug)]
pub struct SessionIds {
    next: i32,
    reserved: RangeInclusive<i32>,
}

impl SessionIds {
    /// Creates an allocator that starts at `first` and never allocates an id in `reserved`.
    pub fn new(first: i32, reserved: RangeInclusive<i32>) -> Self {
        SessionIds {
            next: first,
            reserved,
        }
    }

    /// Returns the next id that is neither reserved nor in use. The next call starts its search after the returned id.
    pub fn allocate(&mut self, is_in_use: impl Fn(i32) -> bool) -> i32 {
        loop {
            let candidate = if self.reserved.contains(&self.next) {
                self.reserved.end().wrapping_add(1)
            } else {
                self.next
            };
            self.next = candidate.wrapping_add(1);
            if !is_in_use(candidate) {
                return candidate;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_increase_by_one_and_skip_reserved_and_used_ids_03_15_04_61() {
        let mut ids = SessionIds::new(-4, -1..=1000);
        let mut allocate = || ids.allocate(|id| id == -3 || id == 1001);
        assert_eq!(
            [allocate(), allocate(), allocate(), allocate()],
            [-4, -2, 1002, 1003]
        );
    }

    #[test]
    fn session_ids_wrap_at_the_end_of_their_range() {
        let mut ids = SessionIds::new(i32::MAX, -1..=1000);
        assert_eq!(ids.allocate(|_| false), i32::MAX);
        assert_eq!(ids.allocate(|_| false), i32::MIN);
    }

    #[test]
    fn after_a_reserved_range_that_ends_at_the_largest_id_the_smallest_id_follows() {
        let mut ids = SessionIds::new(0, -1..=i32::MAX);
        assert_eq!(ids.allocate(|_| false), i32::MIN);
    }
}
