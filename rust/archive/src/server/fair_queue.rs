//! [`FairQueue`]: a bounded queue in which the sources take turns, and in each source its streams.
//!
//! A source that adds many items delays only its own items. If the queue is full, the source with the most waiting
//! bytes loses its newest item. So a source with few items always has room.

use std::collections::VecDeque;

use super::authentication::{ClientOrigin, ClientSource};

/// Items that wait, in the order in which their sources are served.
#[derive(Debug)]
pub(super) struct FairQueue<T> {
    sources: VecDeque<SourceQueue<T>>,
    limits: FairLimits,
    cost: usize,
}

/// Maximum sums of the costs of waiting items.
#[derive(Debug, Clone, Copy)]
pub(super) struct FairLimits {
    /// Of all items.
    pub total: usize,
    /// Of the items of one source.
    pub source: usize,
}

#[derive(Debug)]
struct SourceQueue<T> {
    source: ClientSource,
    streams: VecDeque<StreamQueue<T>>,
    cost: usize,
}

#[derive(Debug)]
struct StreamQueue<T> {
    image_id: i64,
    items: VecDeque<(usize, T)>,
    cost: usize,
}

impl<T> FairQueue<T> {
    pub const fn new(limits: FairLimits) -> Self {
        Self {
            sources: VecDeque::new(),
            limits,
            cost: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// Adds an item. Returns the number of items that were dropped because of the limits.
    pub fn push(&mut self, origin: &ClientOrigin, cost: usize, item: T) -> usize {
        let at = self.source_at(&origin.source);
        self.sources[at].push(origin.image_id, cost, item);
        self.cost += cost;
        let mut dropped = 0;
        while self.sources[at].cost > self.limits.source {
            self.drop_newest(at);
            dropped += 1;
        }
        while self.cost > self.limits.total {
            let costliest = (0..self.sources.len()).max_by_key(|at| self.sources[*at].cost);
            let Some(costliest) = costliest else { break };
            self.drop_newest(costliest);
            dropped += 1;
        }
        debug_assert!(
            self.cost <= self.limits.total,
            "a queue with a limit of {} must not keep items that cost {}",
            self.limits.total,
            self.cost
        );
        self.remove_empty();
        dropped
    }

    /// Removes and returns the next item that is ready. Its source, and its stream in the source, then wait until all
    /// others had their turn.
    pub fn pop(&mut self, mut is_ready: impl FnMut(&ClientSource, &T) -> bool) -> Option<T> {
        for at in 0..self.sources.len() {
            let SourceQueue {
                source, streams, ..
            } = &self.sources[at];
            let found = streams.iter().enumerate().find_map(|(stream_at, stream)| {
                let item_at = stream
                    .items
                    .iter()
                    .position(|(_, item)| is_ready(source, item))?;
                Some((stream_at, item_at))
            });
            if let Some((stream_at, item_at)) = found {
                return self.take(at, stream_at, item_at);
            }
        }
        None
    }

    /// Removes the items for which `is_kept` returns `false`. Returns their number.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&T) -> bool) -> usize {
        let mut removed = 0;
        for source in &mut self.sources {
            for stream in &mut source.streams {
                let mut freed = 0;
                stream.items.retain(|(cost, item)| {
                    let is_kept = is_kept(item);
                    if !is_kept {
                        freed += cost;
                        removed += 1;
                    }
                    is_kept
                });
                stream.cost -= freed;
                source.cost -= freed;
                self.cost -= freed;
            }
        }
        self.remove_empty();
        removed
    }

    fn source_at(&mut self, source: &ClientSource) -> usize {
        let found = self.sources.iter().position(|it| it.source == *source);
        found.unwrap_or_else(|| {
            self.sources.push_back(SourceQueue {
                source: source.clone(),
                streams: VecDeque::new(),
                cost: 0,
            });
            self.sources.len() - 1
        })
    }

    fn take(&mut self, at: usize, stream_at: usize, item_at: usize) -> Option<T> {
        let mut source = self.sources.remove(at)?;
        let mut stream = source.streams.remove(stream_at)?;
        let (cost, item) = stream.items.remove(item_at)?;
        stream.cost -= cost;
        source.cost -= cost;
        self.cost -= cost;
        if !stream.items.is_empty() {
            source.streams.push_back(stream);
        }
        if !source.streams.is_empty() {
            self.sources.push_back(source);
        }
        Some(item)
    }

    /// Drops the newest item of the stream with the most waiting bytes in a source.
    fn drop_newest(&mut self, at: usize) {
        // Otherwise the loops of `push` would never end.
        debug_assert!(
            self.sources[at].cost > 0,
            "a source without items has nothing to drop"
        );
        let source = &mut self.sources[at];
        let stream = source.streams.iter_mut().max_by_key(|stream| stream.cost);
        if let Some(stream) = stream
            && let Some((cost, _)) = stream.items.pop_back()
        {
            stream.cost -= cost;
            source.cost -= cost;
            self.cost -= cost;
        }
    }

    fn remove_empty(&mut self) {
        for source in &mut self.sources {
            source.streams.retain(|stream| !stream.items.is_empty());
        }
        self.sources.retain(|source| !source.streams.is_empty());
        debug_assert!(
            !self.sources.is_empty() || self.cost == 0,
            "an empty queue must cost nothing, not {}",
            self.cost
        );
    }
}

impl<T> SourceQueue<T> {
    fn push(&mut self, image_id: i64, cost: usize, item: T) {
        let found = self.streams.iter().position(|it| it.image_id == image_id);
        let at = found.unwrap_or_else(|| {
            self.streams.push_back(StreamQueue {
                image_id,
                items: VecDeque::new(),
                cost: 0,
            });
            self.streams.len() - 1
        });
        let stream = &mut self.streams[at];
        stream.items.push_back((cost, item));
        stream.cost += cost;
        self.cost += cost;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(client: i64, image_id: i64) -> ClientOrigin {
        ClientOrigin {
            source: ClientSource::Local(client),
            image_id,
        }
    }

    fn queue() -> FairQueue<i32> {
        FairQueue::new(FairLimits {
            total: 10,
            source: 6,
        })
    }

    fn drained(queue: &mut FairQueue<i32>) -> Vec<i32> {
        std::iter::from_fn(|| queue.pop(|_, _| true)).collect()
    }

    #[test]
    fn sources_take_turns_and_in_a_source_its_streams() {
        let mut queue = queue();
        for (client, image, item) in [
            (1, 1, 10),
            (1, 1, 11),
            (1, 1, 12),
            (1, 2, 20),
            (2, 3, 30),
            (2, 3, 31),
        ] {
            assert_eq!(queue.push(&origin(client, image), 1, item), 0);
        }
        assert_eq!(drained(&mut queue), [10, 30, 20, 31, 11, 12]);
        assert!(queue.is_empty() && queue.cost == 0);
    }

    #[test]
    fn a_full_queue_drops_the_newest_item_of_the_source_and_the_stream_with_the_most_bytes() {
        let mut queue = queue();
        for item in 0..7 {
            let dropped = queue.push(&origin(1, 1), 1, item);
            assert_eq!(dropped, usize::from(item == 6));
        }
        // Another stream of the source has room: the stream with six items loses one.
        assert_eq!(queue.push(&origin(1, 2), 1, 70), 1);
        assert_eq!(queue.push(&origin(2, 3), 3, 80), 0);
        // Another source has room in the full queue.
        assert_eq!(queue.push(&origin(3, 4), 1, 90), 0);
        assert_eq!(queue.push(&origin(4, 5), 2, 100), 2);
        assert_eq!(drained(&mut queue), [0, 80, 90, 100, 70, 1, 2]);
        // An item that exceeds the limits by itself is dropped.
        assert_eq!(queue.push(&origin(1, 1), 11, 5), 1);
        assert!(queue.is_empty() && queue.cost == 0);
    }

    #[test]
    fn items_that_are_not_ready_keep_their_turn_and_removed_items_free_their_room() {
        let mut queue = queue();
        for item in 0..4 {
            queue.push(&origin(item.into(), 1), 2, item);
        }
        assert_eq!(queue.pop(|_, item| *item >= 2), Some(2));
        assert_eq!(
            queue.pop(|source, _| *source == ClientSource::Local(9)),
            None
        );
        assert_eq!(queue.retain(|item| *item != 0), 1);
        assert_eq!(queue.cost, 4);
        assert_eq!(drained(&mut queue), [1, 3]);
    }
}
