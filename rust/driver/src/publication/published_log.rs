//! What every publication has: a log that publishers fill up to a limit, and that is cleaned behind its consumers.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::log::unblock::unblock;
use aeron_memory::log::{LogBuffers, LogMetadata};

use super::PublicationConfig;
use crate::stream::{ManagedLog, PageRequest, Pages};

/// The counters that clients see of every publication.
#[derive(Debug)]
pub struct PublisherCounters {
    pub position: AtomicCounter<SharedBuffer>,
    pub limit: AtomicCounter<SharedBuffer>,
}

impl PublisherCounters {
    pub fn ids(&self) -> [i32; 2] {
        [self.position.id(), self.limit.id()]
    }
}

/// The first window of a publication, or its usual window if that is shorter, in bytes.
const FIRST_WINDOW_LENGTH: i64 = 4 * 1024 * 1024;
/// The window has this many times the bytes that were published, until it has its usual length. So publishers get twice the pages
/// that they have filled, and do not wait for consumers while the window grows.
const WINDOW_GROWTH: i64 = 2;

/// The log of a publication, and how far its publishers may go.
#[derive(Debug)]
pub struct PublishedLog {
    managed: ManagedLog,
    counters: PublisherCounters,
    start_position: i64,
    /// The window once enough was published.
    usual_window: i64,
    /// The window now.
    window: i64,
    /// The value of the limit counter.
    limit: i64,
    gate: Gate,
}

/// Pages to allocate for publishers, and the bytes to keep free for the log after them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublisherPages {
    pub pages: PageRequest,
    pub promise: usize,
}

/// Whether publishers may see that they have subscribers. Not before they were given a window: who is told of a connection offers
/// once, and takes back pressure for a slow consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    /// There are no subscribers.
    Closed,
    /// The window that was wanted first ends here, and is not there yet.
    OpensAt(i64),
    Open,
}

impl PublishedLog {
    /// The log of a publication with this configuration, with its counters at the start position.
    pub fn new(
        log: LogBuffers<SharedBuffer>,
        counters: PublisherCounters,
        config: &PublicationConfig,
    ) -> Self {
        let start_position = config.start_position;
        counters.position.set(start_position);
        counters.limit.set(start_position);
        let mut pages = Pages::for_publishers(
            config.is_sparse,
            start_position,
            log.term_length() as i64,
            log.framing().max_framed_length() as i64,
        );
        let window = match config.is_sparse {
            true => config.window_length.min(FIRST_WINDOW_LENGTH),
            false => config.window_length,
        };
        pages.fit_reach(window);
        Self {
            managed: ManagedLog::new(log, pages, start_position),
            counters,
            start_position,
            usual_window: config.window_length,
            window,
            limit: start_position,
            gate: Gate::Closed,
        }
    }

    pub fn log(&self) -> &LogBuffers<SharedBuffer> {
        self.managed.log()
    }

    pub fn metadata(&self) -> &LogMetadata<SharedBuffer> {
        self.managed.metadata()
    }

    pub fn term_length(&self) -> i64 {
        self.managed.term_length()
    }

    pub fn counters(&self) -> &PublisherCounters {
        &self.counters
    }

    pub fn is_revoked(&self) -> bool {
        self.metadata().is_publication_revoked()
    }

    pub fn producer_position(&self) -> i64 {
        self.log().producer_position()
    }

    /// Tells clients how far the publishers are, and lets the window grow with them.
    pub fn update_publisher_position(&mut self) -> i64 {
        let producer_position = self.producer_position();
        if self.counters.position.get() != producer_position {
            self.counters.position.set(producer_position);
            self.grow_window(producer_position);
        }
        producer_position
    }

    fn grow_window(&mut self, producer_position: i64) {
        let published = producer_position - self.start_position;
        let grown = published.saturating_mul(WINDOW_GROWTH);
        if self.window < self.usual_window && grown > self.window {
            self.window = grown.min(self.usual_window);
            self.managed.pages.fit_reach(self.window);
        }
    }

    /// Bytes beyond the slowest consumer that publishers may have now.
    pub fn window(&self) -> i64 {
        self.window
    }

    /// Whether a subscriber that joins at `position` finds the publishers connected: they have, or can be given, their window.
    pub fn is_ready(&self, position: i64) -> bool {
        let limit = position + self.window;
        self.is_open() || self.managed.pages.allowed_limit(limit) >= limit
    }

    /// The stream ends where it is now.
    pub fn end_stream(&mut self) -> i64 {
        let producer_position = self.producer_position();
        self.set_limit(producer_position);
        self.metadata()
            .set_end_of_stream_position(producer_position);
        producer_position
    }

    pub fn limit(&self) -> i64 {
        self.limit
    }

    pub fn set_limit(&mut self, limit: i64) {
        self.limit = limit;
        self.counters.limit.set(limit);
    }

    /// Whether publishers may see their subscribers: they were given a window, or there is no memory for it.
    pub fn is_open(&self) -> bool {
        self.gate == Gate::Open
    }

    /// Publishers should have `wanted`, and have `limit`; answers whether that opens the gate.
    pub fn opens(&mut self, wanted: i64, limit: i64) -> bool {
        let at = match self.gate {
            Gate::Open => return false,
            Gate::OpensAt(at) => at,
            Gate::Closed => wanted,
        };
        self.gate = if limit >= at {
            Gate::Open
        } else {
            Gate::OpensAt(at)
        };
        self.is_open()
    }

    /// Publishers may see their subscribers from now on.
    pub fn open(&mut self) {
        self.gate = Gate::Open;
    }

    /// Publishers do not see subscribers until they are given a window again.
    pub fn close(&mut self) {
        self.gate = Gate::Closed;
    }

    /// The highest limit up to `limit` that publishers may have: there are pages, and they are clean.
    pub fn allowed_limit(&self, limit: i64) -> i64 {
        self.managed
            .pages
            .allowed_limit(limit)
            .min(self.managed.clean_limit())
    }

    /// Cleans up to `target`, at most the rest of one term and a part of the next.
    pub fn clean_to(&mut self, target: i64) {
        self.managed.clean_to(target);
    }

    /// A position that another process wrote, held to what a position of this stream can be.
    pub fn sanitize(&self, position: i64) -> i64 {
        self.managed.sanitize(position, self.producer_position())
    }

    /// Whether there is nothing to allocate any more.
    pub fn has_all_pages(&self) -> bool {
        self.managed.pages.is_complete()
    }

    /// The pages to allocate if the slowest consumer is at `position`; some way ahead, so that publishers do not wait for pages.
    pub fn page_request(&mut self, position: i64) -> Option<PublisherPages> {
        let limit = position + self.window + self.window / 4;
        let pages = self.managed.pages.request(limit)?;
        Some(PublisherPages {
            pages,
            promise: self.managed.pages.promise(),
        })
    }

    /// The next `length` bytes of what was asked for are allocated.
    pub fn on_pages_allocated(&mut self, length: usize) {
        self.managed.pages.on_allocated(length);
    }

    /// There are no more pages for now; true for the first failure since something was allocated.
    pub fn on_pages_missing(&mut self) -> bool {
        self.managed.pages.on_failure()
    }

    /// Lets a failed request for pages be made again.
    pub fn retry_pages(&mut self) {
        self.managed.pages.retry();
    }
}

/// What was appended and not consumed yet.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    pub consumer_position: i64,
    pub producer_position: i64,
}

/// Notices that a publisher died in the middle of a frame: the consumers stand still although there is something behind.
#[derive(Debug)]
pub struct BlockedPublisher {
    last_consumer_position: i64,
    time_of_last_movement_ns: i64,
}

impl BlockedPublisher {
    pub fn new(consumer_position: i64, now_ns: i64) -> Self {
        Self {
            last_consumer_position: consumer_position,
            time_of_last_movement_ns: now_ns,
        }
    }

    /// Unblocks `log` when its consumers have been standing at their position for longer than `timeout_ns`. Returns whether
    /// anything was unblocked.
    pub fn unblock_if_stuck(
        &mut self,
        log: &PublishedLog,
        backlog: Backlog,
        now_ns: i64,
        timeout_ns: i64,
    ) -> bool {
        let Backlog {
            consumer_position,
            producer_position,
        } = backlog;
        let consumer_term_count = consumer_position >> log.log().positions().bits_to_shift();
        let is_behind = i64::from(log.metadata().active_term_count()) != consumer_term_count
            || producer_position > consumer_position;
        if consumer_position != self.last_consumer_position || !is_behind {
            self.last_consumer_position = consumer_position;
            self.time_of_last_movement_ns = now_ns;
            return false;
        }
        now_ns - self.time_of_last_movement_ns > timeout_ns && unblock(log.log(), consumer_position)
    }
}
