//! Bounded queues of commands from one agent to another.
//!
//! The queue is lock-free and holds [`CAPACITY`] commands. If the queue is full, the producer increments a counter and
//! stores the command in a backlog. Later it delivers the backlog in order. No command is lost, and agents that share a
//! thread cannot block each other.
//!
//! Commands that remove or release an object are never refused, because their number is limited by the number of
//! objects. Commands that create objects are limited at their source. If a queue has no
//! [room](QueueProducer::has_room), the receiver drops SETUP frames. If a backlog is
//! [long](QueueProducer::is_overloaded), the conductor executes no commands of clients.

use std::collections::VecDeque;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use rtrb::{Consumer, Producer, PushError, RingBuffer};

/// Number of commands in a queue before the producer uses its backlog.
pub const CAPACITY: usize = 1024;

/// Length of a backlog at which the producer is overloaded. Even thousands of images that end at once cause fewer
/// commands.
pub const MAX_BACKLOG: usize = 64 * CAPACITY;

/// The sending end of a queue, with the backlog.
pub struct QueueProducer<T> {
    queue: Producer<T>,
    backlog: VecDeque<T>,
    failed_offers: AtomicCounter<SharedBuffer>,
}

/// The receiving end of a queue.
pub type QueueConsumer<T> = Consumer<T>;

/// Creates a queue. The counter `failed_offers` counts the attempts to add a command while the queue was full.
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
    /// Puts a command into the queue if the queue has room, else into the backlog.
    pub fn send(&mut self, command: T) {
        // Always through the backlog: otherwise a command could overtake an older one that waits there.
        self.backlog.push_back(command);
        self.flush();
    }

    /// Moves commands from the backlog to the queue.
    ///
    /// Returns the number of commands moved. Call this method once in each duty cycle.
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

    /// Counts a command that the caller drops because the queue is full.
    pub fn count_refusal(&self) {
        self.failed_offers.fetch_add(1);
    }

    /// Returns whether the backlog has reached [`MAX_BACKLOG`].
    pub fn is_overloaded(&self) -> bool {
        self.backlog.len() >= MAX_BACKLOG
    }

    /// Returns whether the next command would go directly into the queue.
    pub fn has_room(&self) -> bool {
        self.backlog.is_empty() && !self.queue.is_full()
    }
}
