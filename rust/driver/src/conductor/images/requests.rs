//! [`ImageRequests`]: the queue of image requests from the receiver.
//!
//! A peer can request any number of images, and each costs the driver a file and counters. Therefore the number of
//! requests, their rate and the number in progress are limited. Without the limits, the creation of images could delay
//! clients and running streams.

use std::collections::VecDeque;

use aeron_memory::counters::system::SystemCounter;

use super::Images;
use crate::conductor::outlets::ConductorOutlets;
use crate::error::DriverError;
use crate::receiver::{ForgettableState, ImageRequest, ReceiverCommand};
use crate::resources::Lane;
use crate::stream::StreamSession;

/// Maximum length of the queue. If it is full, a request is dropped, and the next SETUP of the session requests the
/// image again.
pub(super) const MAX_WAITING: usize = 4_096;
/// Maximum number of image logs that the native resource agent creates at a time.
const MAX_IN_PROGRESS: usize = 8;
/// Maximum number of images per second, on average over a long time.
const IMAGES_PER_SECOND: i64 = 1_000;
/// Maximum number of images that may be created at once after a time without requests. For example, a publisher's host
/// may restart with many streams.
const BURST: i64 = 1_024;
/// The part of the allowance (see `allowance_start_ns`) that one image uses, in ns.
const IMAGE_COST_NS: i64 = 1_000_000_000 / IMAGES_PER_SECOND;

/// Maximum age of a request in ns. An image for an older request would begin with a gap, because the stream has
/// continued. The next SETUP of the session requests the image again.
const REQUEST_TIMEOUT_NS: i64 = 2_000_000_000;

/// The queue; see the [module](self).
#[derive(Debug)]
pub(super) struct ImageRequests {
    /// Requests with their time of arrival, oldest first.
    waiting: VecDeque<(i64, Box<ImageRequest>)>,
    /// Start of the allowance in ns. The allowance is the time since this start, but at most the cost of [`BURST`]
    /// images.
    allowance_start_ns: i64,
}

impl ImageRequests {
    /// Creates an empty queue with the full allowance.
    pub(super) fn new(now_ns: i64) -> Self {
        Self {
            waiting: VecDeque::new(),
            allowance_start_ns: now_ns - BURST * IMAGE_COST_NS,
        }
    }

    /// Returns the number of waiting requests.
    pub(super) fn count(&self) -> usize {
        self.waiting.len()
    }

    /// Adds a request, or returns it if the queue is full.
    pub(super) fn push(
        &mut self,
        request: Box<ImageRequest>,
        now_ns: i64,
    ) -> Result<(), Box<ImageRequest>> {
        if self.waiting.len() >= MAX_WAITING {
            return Err(request);
        }
        debug_assert!(
            self.waiting
                .back()
                .is_none_or(|(time_ns, _)| *time_ns <= now_ns),
            "the requests are not in the order of their times, so the first one is not the oldest"
        );
        self.waiting.push_back((now_ns, request));
        Ok(())
    }

    /// Removes and returns the next request if the request is too old.
    pub(super) fn pop_expired(&mut self, now_ns: i64) -> Option<Box<ImageRequest>> {
        let (time_ns, _) = self.waiting.front()?;
        if now_ns - time_ns <= REQUEST_TIMEOUT_NS {
            return None;
        }
        let (_, request) = self.waiting.pop_front()?;
        Some(request)
    }

    /// Removes and returns the next request, if the allowance covers it.
    pub(super) fn pop(&mut self, now_ns: i64) -> Option<Box<ImageRequest>> {
        let start_ns = self.allowance_start_ns.max(now_ns - BURST * IMAGE_COST_NS);
        if self.waiting.is_empty() || now_ns - start_ns < IMAGE_COST_NS {
            return None;
        }
        self.allowance_start_ns = start_ns + IMAGE_COST_NS;
        debug_assert!(
            self.allowance_start_ns <= now_ns,
            "the image at {now_ns} costs more than the allowance, which now begins at {}",
            self.allowance_start_ns
        );
        self.waiting.pop_front().map(|(_, request)| request)
    }

    pub(super) fn clear(&mut self) {
        self.waiting.clear();
    }
}

impl Images {
    /// Queues a request of the receiver. If the queue is full, refuses it.
    pub fn on_request(&mut self, request: Box<ImageRequest>, outlets: &mut ConductorOutlets) {
        if let Err(request) = self.requests.push(request, outlets.now_ns) {
            outlets
                .system_counter(SystemCounter::ConductorProxyFails)
                .fetch_add(1);
            refuse(&request, None, outlets);
        }
    }

    /// Drops at most one request that is too old. Returns whether a request was dropped.
    pub fn drop_expired_request(&mut self, outlets: &mut ConductorOutlets) -> bool {
        let expired = self.requests.pop_expired(outlets.now_ns);
        if let Some(request) = &expired {
            refuse(request, None, outlets);
        }
        expired.is_some()
    }

    /// Returns the next request, if another image may be created now.
    pub fn next_request(&mut self, outlets: &ConductorOutlets) -> Option<Box<ImageRequest>> {
        let has_room = self.pending.len() < MAX_IN_PROGRESS
            && outlets.resource_commands.has_room(Lane::Images)
            && outlets.receiver_commands.has_room();
        has_room
            .then(|| self.requests.pop(outlets.now_ns))
            .flatten()
    }
}

/// Returns the stream and session of a request.
pub(super) fn session_of(request: &ImageRequest) -> StreamSession {
    StreamSession {
        stream_id: request.setup.stream_id,
        session_id: request.setup.session_id,
    }
}

/// Refuses a request, so that the receiver may request the image again. Records `error`, if it is set, in the error
/// log.
pub fn refuse(request: &ImageRequest, error: Option<&DriverError>, outlets: &mut ConductorOutlets) {
    if let Some(error) = error {
        outlets.errors.record(error);
    }
    outlets
        .receiver_commands
        .send(ReceiverCommand::RemoveState {
            endpoint: request.endpoint,
            session: session_of(request),
            state: ForgettableState::InitInProgress,
        });
}

#[cfg(test)]
mod tests {
    use aeron_protocol::frame::Setup;

    use super::*;

    fn setup_request() -> Box<ImageRequest> {
        Box::new(ImageRequest {
            endpoint: 1,
            destination: 1,
            setup: Setup {
                session_id: 1,
                stream_id: 1001,
                initial_term_id: 0,
                active_term_id: 0,
                term_offset: 0,
                term_length: 65_536,
                mtu_length: 1_408,
                ttl: 0,
                has_group_semantics: false,
                wants_response: false,
            },
            source_address: ([127, 0, 0, 1], 40_123).into(),
        })
    }

    const SECOND_NS: i64 = 1_000_000_000;

    fn flooded() -> ImageRequests {
        let mut requests = ImageRequests::new(0);
        while requests.push(setup_request(), 0).is_ok() {}
        requests
    }

    fn count(requests: &mut ImageRequests, now_ns: i64) -> i64 {
        std::iter::from_fn(|| requests.pop(now_ns)).count() as i64
    }

    #[test]
    fn a_burst_of_images_is_created_at_once_and_later_images_at_a_limited_rate() {
        let mut requests = flooded();
        assert_eq!(count(&mut requests, 0), BURST);
        assert_eq!(count(&mut requests, SECOND_NS / 2), IMAGES_PER_SECOND / 2);
        assert_eq!(count(&mut requests, SECOND_NS / 2), 0);
        assert_eq!(count(&mut requests, SECOND_NS), IMAGES_PER_SECOND / 2);
    }

    #[test]
    fn a_long_time_without_requests_allows_at_most_one_burst() {
        let mut requests = flooded();
        assert_eq!(count(&mut requests, 100 * SECOND_NS), BURST);
    }

    #[test]
    fn a_request_that_waited_too_long_expires() {
        let mut requests = ImageRequests::new(0);
        requests.push(setup_request(), 0).unwrap();
        requests.push(setup_request(), SECOND_NS).unwrap();
        let now_ns = REQUEST_TIMEOUT_NS;
        assert!(requests.pop_expired(now_ns).is_none());
        assert!(requests.pop_expired(now_ns + 1).is_some());
        assert!(requests.pop_expired(now_ns + 1).is_none());
    }

    #[test]
    fn a_full_queue_refuses_a_request() {
        let mut requests = flooded();
        assert_eq!(requests.waiting.len(), MAX_WAITING);
        assert!(requests.push(setup_request(), 0).is_err());
        requests.pop(0);
        assert!(requests.push(setup_request(), 0).is_ok());
    }
}
