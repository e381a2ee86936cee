//! [`FetchCache`]: which files of fetched segments stay on the disk.

use std::collections::VecDeque;

/// A fetched segment: recording id and base.
pub type FetchedSegment = (i64, i64);

/// The fetched segments on the disk, in the order of their last use. The least recently used one is at the front.
#[derive(Debug)]
pub struct FetchCache {
    max_bytes: u64,
    bytes: u64,
    segments: VecDeque<(FetchedSegment, u64)>,
}

impl FetchCache {
    /// Creates an empty cache of at most `max_bytes`. The latest segment stays even if it alone exceeds this limit.
    #[must_use]
    pub fn new(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            bytes: 0,
            segments: VecDeque::new(),
        }
    }

    /// Returns whether the segment is on the disk. If it is, it counts as the latest one from now on.
    pub fn touch(&mut self, segment: FetchedSegment) -> bool {
        let at = self.segments.iter().position(|(held, _)| *held == segment);
        let found = at.and_then(|at| self.segments.remove(at));
        self.segments.extend(found);
        found.is_some()
    }

    /// Returns whether the cache can keep two segments of this length.
    #[must_use]
    pub fn has_room_for_two(&self, length: u64) -> bool {
        self.max_bytes / 2 >= length
    }

    /// Adds a segment. Returns the segments to be deleted.
    pub fn add(&mut self, segment: FetchedSegment, length: u64) -> Vec<FetchedSegment> {
        if self.touch(segment) {
            return Vec::new();
        }
        self.segments.push_back((segment, length));
        self.bytes += length;
        let mut displaced = Vec::new();
        while self.bytes > self.max_bytes
            && self.segments.len() > 1
            && let Some((segment, length)) = self.segments.pop_front()
        {
            self.bytes -= length;
            displaced.push(segment);
        }
        displaced
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_cache_is_bounded_and_keeps_the_latest_segment(
            max_bytes in 0_u64..500,
            uses in prop::collection::vec((0_i64..6, 1_u64..200), 1..40),
        ) {
            let mut cache = FetchCache::new(max_bytes);
            let mut held: Vec<(FetchedSegment, u64)> = Vec::new();
            for (base, length) in uses {
                let segment = (1, base);
                let is_held = held.iter().any(|(held, _)| *held == segment);
                prop_assert_eq!(cache.touch(segment), is_held);
                if !is_held {
                    held.push((segment, length));
                    for displaced in cache.add(segment, length) {
                        prop_assert_ne!(displaced, segment);
                        held.retain(|(held, _)| *held != displaced);
                    }
                }
                let bytes: u64 = held.iter().map(|(_, length)| length).sum();
                prop_assert!(bytes <= max_bytes || held.len() == 1);
            }
        }
    }
}
