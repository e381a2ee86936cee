//! [`QueuedEvents`]: events that wait for the next call of the program, which runs its handlers.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of queued events. If it is exceeded, the oldest event is lost.
const MAX_EVENTS: usize = 1024;

pub struct QueuedEvents<E> {
    queue: Mutex<VecDeque<E>>,
    has_any: AtomicBool,
}

impl<E> Default for QueuedEvents<E> {
    fn default() -> Self {
        Self {
            queue: Mutex::default(),
            has_any: AtomicBool::new(false),
        }
    }
}

impl<E> QueuedEvents<E> {
    fn lock(&self) -> MutexGuard<'_, VecDeque<E>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn push(&self, event: E) {
        let mut events = self.lock();
        if events.len() == MAX_EVENTS {
            events.pop_front();
        }
        events.push_back(event);
        self.has_any.store(true, Ordering::Release);
    }

    pub fn pop(&self) -> Option<E> {
        let mut events = self.lock();
        let event = events.pop_front();
        self.has_any.store(!events.is_empty(), Ordering::Release);
        event
    }

    pub fn has_any(&self) -> bool {
        self.has_any.load(Ordering::Acquire)
    }
}
