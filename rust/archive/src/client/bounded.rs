//! [`BoundedQueue`]: a queue of limited length for messages that the application has not taken yet.

use std::collections::VecDeque;

/// A queue that drops its oldest element if it is full and a new element is added.
#[derive(Debug)]
pub(super) struct BoundedQueue<T> {
    elements: VecDeque<T>,
    limit: usize,
    pushed: u64,
    lost: u64,
}

impl<T> BoundedQueue<T> {
    /// Creates an empty queue for up to `limit` elements. `limit` is at least 1.
    pub(super) const fn new(limit: usize) -> Self {
        Self {
            elements: VecDeque::new(),
            limit,
            pushed: 0,
            lost: 0,
        }
    }

    pub(super) fn push(&mut self, element: T) {
        if self.elements.len() == self.limit {
            self.elements.pop_front();
            self.lost += 1;
        }
        self.pushed += 1;
        self.elements.push_back(element);
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        self.elements.pop_front()
    }

    /// Returns the number of elements that were pushed since the queue was created.
    pub(super) const fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Returns the number of elements that were dropped because the queue was full.
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }
}
