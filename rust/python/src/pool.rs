//! [`Pool`]: the memory of dropped batches, for later batches.

use std::sync::{Mutex, Weak};

use aeron_client::Batch as Messages;

/// Maximum number of dropped batches whose memory a subscription keeps for later batches.
const POOLED_BATCHES: usize = 4;
/// Maximum payload of a batch whose memory is kept, in bytes.
const POOLED_LENGTH: usize = 16 << 20;

/// Memory of dropped batches, for reuse. Thread-safe. No call waits for the lock: in a forked child, the lock may be
/// held by a thread that the child does not have.
#[derive(Default)]
pub struct Pool(Mutex<Vec<Messages>>);

impl Pool {
    /// Returns an empty batch, with pooled memory if there is some.
    pub fn take(&self) -> Messages {
        let pooled = self.0.try_lock().ok().and_then(|mut free| free.pop());
        let mut messages = pooled.unwrap_or_default();
        messages.clear();
        messages
    }

    pub fn give_back(&self, messages: Messages) {
        if let Ok(mut free) = self.0.try_lock()
            && free.len() < POOLED_BATCHES
            && messages.data().len() <= POOLED_LENGTH
        {
            free.push(messages);
        }
    }
}

/// Messages whose memory returns to the pool when the last reference is dropped.
pub struct PooledMessages {
    messages: Messages,
    pool: Weak<Pool>,
}

impl PooledMessages {
    pub fn new(messages: Messages, pool: Weak<Pool>) -> Self {
        Self { messages, pool }
    }

    pub fn messages(&self) -> &Messages {
        &self.messages
    }
}

impl Drop for PooledMessages {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.give_back(std::mem::take(&mut self.messages));
        }
    }
}
