//! [`BoundedQueue`]: what waits for the application, with a limit.

use std::collections::VecDeque;

/// A queue that loses its oldest element when it is full.
#[derive(Debug)]
pub(super) struct BoundedQueue<T> {
    elements: VecDeque<T>,
    limit: usize,
    pushed: u64,
    lost: u64,
}

impl<T> BoundedQueue<T> {
    /// An empty queue for up to `limit` elements, at least one.
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

    /// Elements that were ever pushed.
    pub(super) const fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Elements that were lost because the queue was full.
    pub(super) const fn lost(&self) -> u64 {
        self.lost
    }
}
