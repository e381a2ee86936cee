//! [`FetchCache`]: which files of fetched segments stay on the disk.

use std::collections::VecDeque;

/// A fetched segment: recording id and base.
pub type FetchedSegment = (i64, i64);

/// The fetched segments on the disk, in the order of their last use. The least recently used one is at the front.
#[derive(Debug)]
pub struct FetchCache {
    max_bytes: u64,
    bytes: u64,
    /// Bytes of the fetches in progress.
    fetching_bytes: u64,
    segments: VecDeque<Held>,
}

/// A fetched segment, the CRC-32C of its bytes, and its length.
type Held = (FetchedSegment, u32, u64);

impl FetchCache {
    /// Creates an empty cache of at most `max_bytes`. The latest segment stays even if it alone exceeds this limit.
    #[must_use]
    pub fn new(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            bytes: 0,
            fetching_bytes: 0,
            segments: VecDeque::new(),
        }
    }

    /// Begins a fetch of `length` bytes, if all fetches in progress together with this one have at most `max_bytes`. If
    /// no other fetch is in progress, the fetch always begins. Returns whether the fetch has begun.
    pub fn begin(&mut self, length: u64) -> bool {
        let bytes = self.fetching_bytes.saturating_add(length);
        let is_allowed = self.fetching_bytes == 0 || bytes <= self.max_bytes;
        if is_allowed {
            self.fetching_bytes = bytes;
        }
        is_allowed
    }

    /// Ends a fetch of `length` bytes.
    pub fn end(&mut self, length: u64) {
        self.fetching_bytes = self.fetching_bytes.saturating_sub(length);
    }

    /// Returns the bytes of the fetches in progress.
    #[must_use]
    pub fn fetching_bytes(&self) -> u64 {
        self.fetching_bytes
    }

    /// Removes the least recently used segment and returns it: the caller deletes its file. Returns `None` if the cache
    /// is empty.
    pub fn remove_oldest(&mut self) -> Option<FetchedSegment> {
        let (segment, _, length) = self.segments.pop_front()?;
        self.bytes -= length;
        Some(segment)
    }

    /// Returns whether the segment is on the disk. If it is, it counts as the latest one from now on.
    pub fn touch(&mut self, segment: FetchedSegment) -> bool {
        let at = self.segments.iter().position(|(held, ..)| *held == segment);
        let found = at.and_then(|at| self.segments.remove(at));
        self.segments.extend(found);
        found.is_some()
    }

    /// Returns whether the cache can keep two segments of this length.
    #[must_use]
    pub fn has_room_for_two(&self, length: u64) -> bool {
        self.max_bytes / 2 >= length
    }

    /// Adds a segment with the CRC-32C of its bytes. Returns the segments to be deleted.
    pub fn add(
        &mut self,
        segment: FetchedSegment,
        crc32c: u32,
        length: u64,
    ) -> Vec<FetchedSegment> {
        if self.touch(segment) {
            return Vec::new();
        }
        self.segments.push_back((segment, crc32c, length));
        self.bytes += length;
        let mut displaced = Vec::new();
        while self.bytes > self.max_bytes && self.segments.len() > 1 {
            displaced.extend(self.remove_oldest());
        }
        displaced
    }

    /// Removes each segment for which `is_valid(segment, crc32c)` returns false. Returns the removed segments: the
    /// caller deletes their files.
    pub fn retain(
        &mut self,
        is_valid: impl Fn(FetchedSegment, u32) -> bool,
    ) -> Vec<FetchedSegment> {
        let mut removed = Vec::new();
        self.segments.retain(|(segment, crc32c, length)| {
            let is_kept = is_valid(*segment, *crc32c);
            if !is_kept {
                self.bytes -= length;
                removed.push(*segment);
            }
            is_kept
        });
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_fetches_in_progress_are_bounded_and_one_is_always_allowed(
            max_bytes in 0_u64..500,
            steps in prop::collection::vec((1_u64..200, any::<bool>()), 1..40),
        ) {
            let mut cache = FetchCache::new(max_bytes);
            let mut running = Vec::new();
            for (length, is_end) in steps {
                if is_end && let Some(ended) = running.pop() {
                    cache.end(ended);
                } else if cache.begin(length) {
                    running.push(length);
                } else {
                    prop_assert!(!running.is_empty());
                }
                let bytes: u64 = running.iter().sum();
                prop_assert_eq!(cache.fetching_bytes(), bytes);
                prop_assert!(running.len() <= 1 || bytes <= max_bytes);
            }
        }

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
                    for displaced in cache.add(segment, 0, length) {
                        prop_assert_ne!(displaced, segment);
                        held.retain(|(held, _)| *held != displaced);
                    }
                }
                let bytes: u64 = held.iter().map(|(_, length)| length).sum();
                prop_assert!(bytes <= max_bytes || held.len() == 1);
            }
        }
    }

    #[test]
    fn a_segment_with_other_bytes_is_removed_and_its_room_is_free_again() {
        let mut cache = FetchCache::new(100);
        assert!(cache.add((1, 0), 7, 50).is_empty());
        assert!(cache.add((1, 64), 8, 50).is_empty());
        assert_eq!(cache.retain(|_, crc32c| crc32c != 7), [(1, 0)]);
        assert!(!cache.touch((1, 0)));
        assert!(cache.touch((1, 64)));
        assert!(cache.add((1, 0), 9, 50).is_empty());
    }
}
