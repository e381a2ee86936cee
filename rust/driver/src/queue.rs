//! Bounded queues of commands from one agent to another.
//!
//! The queue itself is lock-free and holds [`CAPACITY`] commands. A producer that finds it full counts that, keeps the command in
//! a backlog of its own and delivers it later, in order: nothing is lost, and agents that share a thread cannot wait for each other.
//!
//! Removals and releases are never refused: each of them ends an object that exists. The commands that make objects are bounded
//! where they begin. If a queue has no [room](QueueProducer::has_room), the receiver drops SETUP frames. If a backlog is
//! [long](QueueProducer::is_overloaded), the conductor takes no command of a client.

use std::collections::VecDeque;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use rtrb::{Consumer, Producer, PushError, RingBuffer};

/// Commands that fit before the producer has to keep them.
pub const CAPACITY: usize = 1024;

/// Commands in a backlog with which its owner should take on nothing new. Thousands of images that end at once are fewer.
pub const MAX_BACKLOG: usize = 64 * CAPACITY;

/// The sending end.
pub struct QueueProducer<T> {
    queue: Producer<T>,
    backlog: VecDeque<T>,
    failed_offers: AtomicCounter<SharedBuffer>,
}

/// The receiving end.
pub type QueueConsumer<T> = Consumer<T>;

/// A queue whose full moments are counted in `failed_offers`.
pub fn queue<T>(
    failed_offers: AtomicCounter<SharedBuffer>,
) -> (QueueProducer<T>, QueueConsumer<T>) {
    let (queue, consumer) = RingBuffer::new(CAPACITY);
    (
        QueueProducer {
            queue,
            backlog: VecDeque::new(),
            failed_offers,
        },
        consumer,
    )
}

impl<T> QueueProducer<T> {
    /// Sends a command, now or as soon as there is room.
    pub fn send(&mut self, command: T) {
        self.backlog.push_back(command);
        self.flush();
    }

    /// Delivers what did not fit before. To be called once per duty cycle; answers the number of commands delivered.
    pub fn flush(&mut self) -> usize {
        let mut delivered = 0;
        while let Some(command) = self.backlog.pop_front() {
            if let Err(PushError::Full(command)) = self.queue.push(command) {
                self.backlog.push_front(command);
                self.failed_offers.fetch_add(1);
                break;
            }
            delivered += 1;
        }
        delivered
    }

    /// Counts a command that is not sent because there is no room for it.
    pub fn count_refusal(&self) {
        self.failed_offers.fetch_add(1);
    }

    /// Whether the backlog has reached [`MAX_BACKLOG`].
    pub fn is_overloaded(&self) -> bool {
        self.backlog.len() >= MAX_BACKLOG
    }

    /// Whether the next command would be delivered at once.
    pub fn has_room(&self) -> bool {
        self.backlog.is_empty() && !self.queue.is_full()
    }
}
