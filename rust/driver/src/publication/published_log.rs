//! [`PublishedLog`]: the log that IPC and network publications have in common. Publishers append up to a limit, and
//! the conductor cleans consumed parts.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_memory::log::frame::Framing;
use aeron_memory::log::{LogBuffers, LogMetadata};
use aeron_protocol::uri::PublicationParams;

use super::PublicationConfig;
use crate::stream::{ManagedLog, PageRequest, Pages};

/// The counters of a publication that clients read.
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

/// Length in bytes of the first window of a publication with a sparse log, unless the usual window is shorter.
const FIRST_WINDOW_LENGTH: i64 = 4 * 1024 * 1024;
/// Number of bytes that publishers can append as soon as they see a subscriber; less if the window is shorter. The
/// pages of these bytes are allocated before the client gets the response to its command, so the number is small.
const FIRST_ROOM: i64 = 1024 * 1024;
/// Factor between the published bytes and the window, until the window has its usual length. Publishers therefore have
/// twice the pages that they have filled, and do not wait for consumers while the window grows.
const WINDOW_GROWTH: i64 = 2;

/// The log of a publication and the limit of its publishers.
#[derive(Debug)]
pub struct PublishedLog {
    managed: ManagedLog,
    counters: PublisherCounters,
    start_position: i64,
    /// The window after enough was published.
    usual_window: i64,
    /// The current window.
    window: i64,
    /// Value of the limit counter.
    limit: i64,
    gate: Gate,
}

/// Pages to allocate for publishers, and the number of bytes after these pages that remain reserved for the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublisherPages {
    pub pages: PageRequest,
    pub promise: usize,
    /// Whether a client waits for the pages.
    pub is_awaited: bool,
}

/// The first pages of a new log, and the number of bytes after these pages that remain reserved for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FirstPages {
    pub pages: Vec<PageRequest>,
    pub promise: usize,
}

impl FirstPages {
    /// Returns the first pages of a sparse log with these parameters.
    pub fn of(params: &PublicationParams, start_position: i64) -> Self {
        let term_length = params.term_length as usize;
        let max_framed_length = Framing::new(params.mtu_length.into(), term_length)
            .expect("the MTU is validated")
            .max_framed_length();
        let mut pages = Pages::for_publishers(
            true,
            start_position,
            i64::from(params.term_length),
            max_framed_length as i64,
        );
        let room = FIRST_ROOM.min(params.window_length.into());
        pages.fit_reach(room);
        FirstPages {
            pages: pages.allocate_at_once(start_position + room),
            promise: pages.promise(),
        }
    }
}

/// The gate that decides whether publishers see that they have subscribers.
///
/// Publishers must have room first. Otherwise, the first offers of a connected publisher would fail with back pressure,
/// although no subscriber is slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gate {
    /// There are no subscribers.
    Closed,
    /// There are subscribers. The gate opens when the limit reaches this position.
    OpensAt(i64),
    Open,
}

impl PublishedLog {
    /// Creates the log of a publication, with its counters at the start position.
    pub fn new(
        log: LogBuffers<SharedBuffer>,
        counters: PublisherCounters,
        config: &PublicationConfig,
    ) -> Self {
        debug_assert!(
            config.window_length > 0,
            "publishers never have room in a window of {} bytes",
            config.window_length
        );
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
        pages.fit_reach(FIRST_ROOM.min(window));
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

    /// Updates the position counter and grows the window. Returns the producer position.
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

    /// Returns the current window: the maximum distance of publishers from the slowest consumer, in bytes.
    pub fn window(&self) -> i64 {
        self.window
    }

    /// Returns the limit that publishers must have before they see a subscriber at `position`.
    fn first_limit(&self, position: i64) -> i64 {
        debug_assert!(
            position >= self.start_position,
            "a subscriber at {position} is before the start position {}",
            self.start_position
        );
        position + FIRST_ROOM.min(self.window)
    }

    /// Returns whether publishers have room as soon as a subscriber joins at `position`, or whether there is no memory
    /// for room.
    pub fn is_ready(&self, position: i64) -> bool {
        let limit = self.first_limit(position);
        let pages = &self.managed.pages;
        self.is_open() || pages.allowed_limit(limit) >= limit || pages.has_failed()
    }

    /// Records whether the [first pages](FirstPages) were allocated when the log was created.
    ///
    /// Returns `true` if they were not.
    pub fn on_first_pages(&mut self, are_allocated: bool) -> bool {
        let limit = self.first_limit(self.start_position);
        if are_allocated {
            self.managed.pages.allocate_at_once(limit);
            return false;
        }
        self.managed.pages.request(limit);
        self.on_pages_missing()
    }

    /// Ends the stream at the producer position. Returns the producer position.
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

    /// Returns whether publishers may see their subscribers: publishers have room, or there is no memory for room.
    pub fn is_open(&self) -> bool {
        self.gate == Gate::Open
    }

    /// Opens the gate if `limit` gives publishers room, or if there is no memory for room. `position` is the position
    /// of the slowest consumer. Returns whether the gate has just opened.
    pub fn opens(&mut self, position: i64, limit: i64) -> bool {
        let at = match self.gate {
            Gate::Open => return false,
            Gate::OpensAt(at) => at,
            Gate::Closed => self.first_limit(position),
        };
        self.gate = if limit >= at || self.managed.pages.has_failed() {
            Gate::Open
        } else {
            Gate::OpensAt(at)
        };
        self.is_open()
    }

    /// Closes the gate: publishers see no subscribers until they have room again.
    pub fn close(&mut self) {
        self.gate = Gate::Closed;
    }

    /// Returns the highest limit up to `limit` for which all pages are allocated and clean.
    pub fn allowed_limit(&self, limit: i64) -> i64 {
        self.managed
            .pages
            .allowed_limit(limit)
            .min(self.managed.clean_limit())
    }

    /// Cleans the log up to `target`, but at most the rest of one term and a part of the next term.
    pub fn clean_to(&mut self, target: i64) {
        self.managed.clean_to(target);
    }

    /// Clamps a position that another process wrote to the possible positions of this stream.
    pub fn sanitize(&self, position: i64) -> i64 {
        self.managed.sanitize(position, self.producer_position())
    }

    /// Returns whether all pages of the log are allocated.
    pub fn has_all_pages(&self) -> bool {
        self.managed.pages.is_complete()
    }

    /// Returns the pages to allocate if the slowest consumer is at `position`.
    ///
    /// The requested pages extend beyond the window, so that publishers do not wait for pages.
    pub fn page_request(&mut self, position: i64) -> Option<PublisherPages> {
        self.request(position + self.window + self.window / 4, false)
    }

    /// Returns the pages to allocate before a subscriber joins at `position`.
    pub fn first_page_request(&mut self, position: i64) -> Option<PublisherPages> {
        self.request(self.first_limit(position), true)
    }

    fn request(&mut self, limit: i64, is_awaited: bool) -> Option<PublisherPages> {
        let pages = self.managed.pages.request(limit)?;
        Some(PublisherPages {
            pages,
            promise: self.managed.pages.promise(),
            is_awaited,
        })
    }

    /// Records that the next `length` bytes of the page request are allocated.
    pub fn on_pages_allocated(&mut self, length: usize) {
        self.managed.pages.on_allocated(length);
    }

    /// Records that the page request failed for now. Returns `true` for the first failure since the last success.
    pub fn on_pages_missing(&mut self) -> bool {
        self.managed.pages.on_failure()
    }

    /// Allows the repetition of a failed request for pages.
    pub fn retry_pages(&mut self) {
        self.managed.pages.retry();
    }
}

/// The range of the log that was appended but not consumed.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    pub consumer_position: i64,
    pub producer_position: i64,
}

/// Detects a publisher that died in the middle of a frame. In this case, consumers do not advance although the log
/// contains later data.
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

    /// Returns whether the consumers of `log` have not advanced for longer than `timeout_ns` although there is a
    /// backlog.
    pub fn is_stuck(
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
        debug_assert!(
            now_ns >= self.time_of_last_movement_ns,
            "the last movement at {} is later than now, {now_ns}",
            self.time_of_last_movement_ns
        );
        now_ns - self.time_of_last_movement_ns > timeout_ns
    }
}
