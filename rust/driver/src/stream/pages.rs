//! [`Pages`]: keeps track of the allocated pages of a sparse log.
//!
//! If the file system cannot provide a page, the system kills a process that touches the page. A publisher below its
//! limit may append a message of the maximum length. Several publishers may do so at the same time, and subscribers
//! read the frame header after these messages. The file system must therefore have room for bytes after
//! the limit: the *reserve* for [`PUBLISHERS_AT_ONCE`] messages of the maximum length.
//!
//! Messages of the maximum length are longer than the first window of a long term, and hardly any program sends such
//! messages. Therefore, only a part of the reserve is allocated: as many bytes as the window has. The rest is promised:
//! the native resource agent does not use these bytes for any other log. After the window has grown, the whole reserve
//! is allocated.
//!
//! Three cases are not covered. More than [`PUBLISHERS_AT_ONCE`] publishers may append a message of the maximum length
//! at the same time. A foreign client's `offerBlock` may append a block up to the end of its term. Another program may
//! use promised bytes of the file system.
//!
//! Only the driver fills an image, and it drops data after the limit. The reserve of an image is therefore one page.

use aeron_memory::log::position::PARTITION_COUNT;

/// Unit of allocation in bytes: the usual page size of file systems.
const PAGE_LENGTH: i64 = 4096;
/// Pages are requested in steps of this number of bytes, or in steps of a term if the term is shorter.
const STEP: i64 = 1024 * 1024;
/// Number of messages of the maximum length for which there is room after a limit. One thread can append one such
/// message after its check of the limit. Room for two such messages is also room for a thousand threads with messages
/// of a thousandth of that length.
const PUBLISHERS_AT_ONCE: i64 = 2;
/// Number of terms in a log. A stream uses the terms in turn. One pass over all terms is a lap.
const LAP: i64 = PARTITION_COUNT as i64;

/// A part of a log to allocate, in bytes from the start of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    pub offset: usize,
    pub length: usize,
}

/// The allocated pages of a log; see the [module](self).
#[derive(Debug)]
pub struct Pages {
    lap_length: i64,
    /// Requests end one page after a multiple of this length.
    step: i64,
    /// Distance from a limit to the end of the bytes that publishers below the limit may touch.
    reserve: i64,
    /// The allocated part of the reserve: the distance from a limit to the end of the pages.
    reach: i64,
    /// Position up to which all pages from the start position are allocated; `i64::MAX` if the whole log is allocated.
    end: i64,
    /// Position of the end of the first lap over the three terms. If the pages up to this position are allocated, the
    /// log is complete.
    complete: i64,
    state: PagesState,
    is_failure_reported: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PagesState {
    Idle,
    /// Waits for the replies to a request that ends at the position `end`.
    Asked {
        end: i64,
    },
    /// The file system is full; the next tick repeats the request.
    Failed,
}

impl Pages {
    /// Creates the pages of a log with its first frame at `start_position`.
    ///
    /// Publishers append messages of up to `max_framed_length`. If `sparse` is false, all pages are allocated.
    pub fn for_publishers(
        sparse: bool,
        start_position: i64,
        term_length: i64,
        max_framed_length: i64,
    ) -> Self {
        let reserve = PUBLISHERS_AT_ONCE * max_framed_length + PAGE_LENGTH;
        Self::new(sparse, start_position, term_length, reserve)
    }

    /// Sets the length of the allocated part of the reserve for a window of this length.
    pub fn fit_reach(&mut self, window: i64) {
        debug_assert!(
            window >= 0,
            "a window of {window} bytes would take the page after the limit away"
        );
        self.reach = self.reserve.min(window + PAGE_LENGTH);
    }

    /// Returns the number of bytes after the allocated pages that are promised to publishers.
    pub fn promise(&self) -> usize {
        (self.reserve - self.reach) as usize
    }

    /// Requests and records the pages for `limit` as if they were allocated at once. Returns the requests.
    ///
    /// Two requests are needed if the pages extend beyond the end of the log.
    pub fn allocate_at_once(&mut self, limit: i64) -> Vec<PageRequest> {
        let mut requests = Vec::new();
        while let Some(request) = self.request(limit) {
            self.on_allocated(request.length);
            requests.push(request);
        }
        requests
    }

    /// Creates the pages of an image's log that begins at `start_position`.
    ///
    /// The part `first`, from [`first_request`](Self::first_request), must be allocated already. If `sparse` is false,
    /// all pages are allocated.
    pub fn for_image(
        sparse: bool,
        start_position: i64,
        term_length: i64,
        first: PageRequest,
    ) -> Self {
        let mut pages = Self::new(sparse, start_position, term_length, PAGE_LENGTH);
        pages.end = pages.end.saturating_add(first.length as i64);
        // `on_allocated` recognises a complete log only after a further request.
        debug_assert!(
            pages.is_complete() || pages.end < pages.complete,
            "the first {} bytes of an image are its whole log",
            first.length
        );
        pages
    }

    /// Returns the part of an image's log that must be allocated for the first `window` bytes from `start_position`.
    pub fn first_request(start_position: i64, term_length: i64, window: i64) -> PageRequest {
        let first_page = start_position & !(PAGE_LENGTH - 1);
        let lap_length = LAP * term_length;
        let offset = first_page % lap_length;
        let end = (start_position + window + 2 * PAGE_LENGTH) & !(PAGE_LENGTH - 1);
        PageRequest {
            offset: offset as usize,
            length: (end - first_page).min(lap_length - offset) as usize,
        }
    }

    /// Returns the first page of each term of an image's log, without the terms that begin in the part `first`.
    ///
    /// A padding frame at the end of a term may arrive before the pages of the next term are allocated. Subscribers
    /// then read the header of the first frame of the next term.
    pub fn term_heads(term_length: i64, first: PageRequest) -> impl Iterator<Item = PageRequest> {
        let first = first.offset..first.offset + first.length;
        (0..PARTITION_COUNT)
            .map(move |partition| partition * term_length as usize)
            .filter(move |offset| !first.contains(offset))
            .map(|offset| PageRequest {
                offset,
                length: PAGE_LENGTH as usize,
            })
    }

    fn new(sparse: bool, start_position: i64, term_length: i64, reserve: i64) -> Self {
        let first_page = start_position & !(PAGE_LENGTH - 1);
        let lap_length = LAP * term_length;
        Pages {
            lap_length,
            step: term_length.min(STEP),
            reserve,
            reach: reserve,
            end: if sparse { first_page } else { i64::MAX },
            complete: first_page.saturating_add(lap_length),
            state: PagesState::Idle,
            is_failure_reported: false,
        }
    }

    /// Returns whether all pages of the log are allocated.
    pub fn is_complete(&self) -> bool {
        self.end == i64::MAX
    }

    /// Returns the position up to which all pages are allocated.
    pub fn end(&self) -> i64 {
        self.end
    }

    /// Returns the highest limit up to `limit` that writers may get.
    pub fn allowed_limit(&self, limit: i64) -> i64 {
        limit.min(self.end - self.reach)
    }

    /// Returns the pages to request so that writers can get `limit`. `None` if the pages are allocated, or while a
    /// request is pending or has failed.
    pub fn request(&mut self, limit: i64) -> Option<PageRequest> {
        let needed = limit.saturating_add(self.reach);
        if self.state != PagesState::Idle || needed <= self.end {
            return None;
        }
        let lap_end = self.end - self.end % self.lap_length + self.lap_length;
        let step_end = (needed - PAGE_LENGTH).saturating_add(self.step - 1) & !(self.step - 1);
        let end = step_end
            .saturating_add(PAGE_LENGTH)
            .min(lap_end)
            .min(self.complete);
        debug_assert!(
            end > self.end,
            "a request from {} to {end} asks for no pages, and would never be answered",
            self.end
        );
        self.state = PagesState::Asked { end };
        Some(PageRequest {
            offset: (self.end % self.lap_length) as usize,
            length: (end - self.end) as usize,
        })
    }

    /// Records that the next `length` bytes of the request are allocated.
    pub fn on_allocated(&mut self, length: usize) {
        let PagesState::Asked { end } = self.state else {
            return;
        };
        debug_assert!(
            self.end.saturating_add(length as i64) <= end,
            "{length} bytes are allocated from {} on, but pages were requested only to {end}",
            self.end
        );
        self.is_failure_reported = false;
        self.end = end.min(self.end + length as i64);
        if self.end == end {
            self.state = PagesState::Idle;
        }
        if self.end == self.complete {
            self.end = i64::MAX;
        }
    }

    /// Records that the rest of the request cannot be allocated.
    ///
    /// Returns `true` for the first failure since the last success.
    pub fn on_failure(&mut self) -> bool {
        debug_assert!(
            matches!(self.state, PagesState::Asked { .. }),
            "an allocation failed that was not requested: {:?}",
            self.state
        );
        self.state = PagesState::Failed;
        !std::mem::replace(&mut self.is_failure_reported, true)
    }

    /// Returns whether the last request failed and was not repeated yet.
    pub fn has_failed(&self) -> bool {
        self.state == PagesState::Failed
    }

    /// Allows the repetition of a failed request.
    pub fn retry(&mut self) {
        if self.state == PagesState::Failed {
            self.state = PagesState::Idle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: i64 = 16 * 1024 * 1024;
    const MAX_FRAMED: i64 = 2 * 1024 * 1024 + 64;
    const RESERVE: i64 = PUBLISHERS_AT_ONCE * MAX_FRAMED + PAGE_LENGTH;

    fn pages(start_position: i64) -> Pages {
        Pages::for_publishers(true, start_position, TERM, MAX_FRAMED)
    }

    #[test]
    fn pages_are_requested_in_steps_beyond_the_limit_and_its_reserve() {
        for limit in [32, STEP, TERM - RESERVE - PAGE_LENGTH, TERM, 2 * TERM] {
            let mut pages = pages(0);
            assert!(pages.allowed_limit(limit) < 0);
            let requests = pages.allocate_at_once(limit);
            let allocated: usize = requests.iter().map(|r| r.length).sum();
            let needed = limit + RESERVE;
            assert!((needed..needed + STEP + PAGE_LENGTH).contains(&(allocated as i64)));
            assert_eq!(pages.allowed_limit(limit), limit);
        }
    }

    #[test]
    fn the_reserve_is_allocated_up_to_the_length_of_the_window_and_the_rest_is_promised() {
        let mut pages = pages(0);
        for (window, reach) in [
            (STEP, STEP + PAGE_LENGTH),
            (2 * RESERVE, RESERVE),
            (RESERVE, RESERVE),
        ] {
            pages.fit_reach(window);
            assert_eq!(pages.promise() as i64, RESERVE - reach);
            pages.allocate_at_once(window);
            assert_eq!(pages.allowed_limit(window), window);
        }
    }

    #[test]
    fn an_image_that_joins_near_the_end_of_its_log_requests_the_rest_of_its_window() {
        const WINDOW: i64 = 128 * 1024;
        for (start, needs_more) in [
            (0, false),
            (LAP * TERM - 480, true),
            (LAP * TERM - WINDOW, true),
        ] {
            let first = Pages::first_request(start, TERM, WINDOW);
            let mut pages = Pages::for_image(true, start, TERM, first);
            assert_eq!(
                pages.allowed_limit(start + WINDOW) < start + WINDOW,
                needs_more
            );
            let requests = pages.allocate_at_once(start + WINDOW);
            let offsets: Vec<usize> = requests.iter().map(|request| request.offset).collect();
            assert_eq!(offsets, if needs_more { vec![0] } else { vec![] });
            assert_eq!(pages.allowed_limit(start + WINDOW), start + WINDOW);
        }
    }

    #[test]
    fn an_image_has_the_first_page_of_each_term_from_the_beginning() {
        for (start, expected) in [
            (0, [1, 2].as_slice()),
            (TERM - 4096, &[0, 2]),
            (TERM / 2, &[0, 1, 2]),
        ] {
            let first = Pages::first_request(start, TERM, 128 * 1024);
            let heads: Vec<_> = Pages::term_heads(TERM, first).collect();
            let expected = expected.iter().map(|term| PageRequest {
                offset: term * TERM as usize,
                length: PAGE_LENGTH as usize,
            });
            assert_eq!(heads, expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn each_part_of_a_request_raises_the_limit() {
        let mut pages = pages(0);
        let request = pages.request(TERM).unwrap();
        pages.on_allocated(8 * 1024 * 1024);
        assert_eq!(pages.allowed_limit(TERM), 8 * 1024 * 1024 - RESERVE);
        assert!(
            pages.request(TERM).is_none(),
            "the rest is already requested"
        );
        pages.on_allocated(request.length - 8 * 1024 * 1024);
        assert_eq!(pages.allowed_limit(TERM), TERM);
    }

    #[test]
    fn one_lap_over_the_terms_allocates_each_byte_once_for_every_start_position() {
        for start in [0, 4096 + 32, TERM - 32, 7 * TERM + 64] {
            let mut pages = pages(start);
            let mut bytes = vec![0u8; 3 * TERM as usize / 32];
            for limit in (start..start + 4 * TERM).step_by(3 << 20) {
                for request in pages.allocate_at_once(limit) {
                    assert!(request.offset + request.length <= 3 * TERM as usize);
                    bytes[request.offset / 32..][..request.length / 32]
                        .iter_mut()
                        .for_each(|count| *count += 1);
                }
            }
            assert!(bytes.iter().all(|count| *count == 1));
            assert_eq!(pages.allowed_limit(i64::MAX / 2), i64::MAX / 2);
        }
    }

    #[test]
    fn a_failure_is_reported_once_and_the_request_is_repeated_only_after_retry() {
        let mut pages = pages(0);
        pages.request(1).unwrap();
        assert!(pages.request(1).is_none());
        assert!(pages.on_failure());
        assert!(pages.request(1).is_none());
        pages.retry();
        assert!(pages.request(1).is_some());
        assert!(!pages.on_failure());
        assert!(pages.allowed_limit(1) < 0);
    }

    #[test]
    fn a_log_that_is_not_sparse_requests_no_pages() {
        let mut pages = Pages::for_publishers(false, 0, TERM, MAX_FRAMED);
        assert_eq!(pages.request(i64::MAX), None);
        assert_eq!(pages.allowed_limit(12345), 12345);
    }

    #[test]
    fn an_image_can_receive_its_first_window_at_once_and_requests_more_in_small_steps() {
        for start in [0, 3 * TERM - 4096, 5 * TERM + 96] {
            let window = 128 * 1024;
            let first = Pages::first_request(start, TERM, window);
            let mut pages = Pages::for_image(true, start, TERM, first);
            let in_lap = start + window < 3 * TERM || start > 3 * TERM;
            assert_eq!(
                pages.allowed_limit(start + window) == start + window,
                in_lap,
                "the first request does not wrap around the end of the log"
            );
            let mut bytes = vec![0u8; 3 * TERM as usize / 32];
            let mut count = |request: PageRequest| {
                bytes[request.offset / 32..][..request.length / 32]
                    .iter_mut()
                    .for_each(|count| *count += 1);
            };
            count(first);
            for limit in (start..start + 4 * TERM).step_by(100 << 10) {
                for request in pages.allocate_at_once(limit) {
                    assert!(request.length as i64 <= STEP + PAGE_LENGTH);
                    count(request);
                }
            }
            assert!(bytes.iter().all(|count| *count == 1));
        }
    }
}
