//! Which pages of a sparse log exist.
//!
//! A store to a page that the file system cannot provide kills the process that stores. So the limit of a publisher never enters
//! a term before the pages of the whole term are allocated: a publisher below the limit may append a message, or pad, up to the
//! term's end, and any number of publishers may do so at once.

/// A part of a log to allocate, in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRequest {
    pub offset: usize,
    pub length: usize,
}

/// The positions whose pages exist; see the [module](self).
#[derive(Debug)]
pub struct Pages {
    term_length: i64,
    /// Everything from the start position to here is allocated; `i64::MAX` when all of the log is.
    end: i64,
    /// The end of the last lap over the three terms.
    complete: i64,
    state: State,
    is_failure_reported: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    /// Waiting for the answer to a request that ends here.
    Asked {
        end: i64,
    },
    /// The file system is full; the next tick tries again.
    Failed,
}

impl Pages {
    /// The pages of a log whose first frame goes to `start_position`; a log that is not sparse has them all.
    pub fn new(sparse: bool, start_position: i64, term_length: i64) -> Self {
        let end = if sparse { start_position } else { i64::MAX };
        Pages {
            term_length,
            end,
            complete: start_position.saturating_add(3 * term_length),
            state: State::Idle,
            is_failure_reported: false,
        }
    }

    /// Up to here nobody dies of a store.
    pub fn end(&self) -> i64 {
        self.end
    }

    /// The highest limit up to `limit` that may be given to publishers.
    pub fn allowed_limit(&self, limit: i64) -> i64 {
        if self.term_end(limit) <= self.end {
            limit
        } else {
            limit.min(self.term_begin(self.end))
        }
    }

    /// What to ask for so that `limit` can be given to publishers; nothing while an answer is missing or the last one was no.
    pub fn request(&mut self, limit: i64) -> Option<PageRequest> {
        if self.state != State::Idle || self.term_end(limit) <= self.end {
            return None;
        }
        let end = (self.term_begin(self.end) + self.term_length).min(self.complete);
        self.state = State::Asked { end };
        Some(PageRequest {
            offset: (self.end % (3 * self.term_length)) as usize,
            length: (end - self.end) as usize,
        })
    }

    /// Takes the answer to a request; true for the first failure since something was allocated.
    pub fn on_answer(&mut self, is_allocated: bool) -> bool {
        let State::Asked { end } = self.state else {
            return false;
        };
        if !is_allocated {
            self.state = State::Failed;
            return !std::mem::replace(&mut self.is_failure_reported, true);
        }
        self.state = State::Idle;
        self.is_failure_reported = false;
        self.end = if end >= self.complete { i64::MAX } else { end };
        false
    }

    /// Lets a failed request be made again.
    pub fn retry(&mut self) {
        if self.state == State::Failed {
            self.state = State::Idle;
        }
    }

    /// The end of the last term that holds positions below `limit`.
    fn term_end(&self, limit: i64) -> i64 {
        self.term_begin(limit.saturating_add(self.term_length - 1))
    }

    fn term_begin(&self, position: i64) -> i64 {
        position & !(self.term_length - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERM: i64 = 16 * 1024 * 1024;

    fn allocate_for(pages: &mut Pages, limit: i64) -> Vec<PageRequest> {
        let mut requests = Vec::new();
        while let Some(request) = pages.request(limit) {
            requests.push(request);
            pages.on_answer(true);
        }
        requests
    }

    #[test]
    fn a_limit_waits_for_all_pages_of_its_term() {
        let mut pages = Pages::new(true, 0, TERM);
        assert_eq!(pages.allowed_limit(100), 0);
        let request = PageRequest {
            offset: 0,
            length: TERM as usize,
        };
        assert_eq!(allocate_for(&mut pages, 100), [request]);
        assert_eq!(pages.allowed_limit(100), 100);
        assert_eq!(pages.allowed_limit(TERM), TERM);
        assert_eq!(pages.allowed_limit(TERM + 1), TERM);
    }

    #[test]
    fn one_lap_over_the_terms_allocates_each_byte_once_wherever_it_starts() {
        for start in [0, 4096 + 32, TERM - 32, 7 * TERM + 64] {
            let mut pages = Pages::new(true, start, TERM);
            let mut bytes = vec![0u8; 3 * TERM as usize / 32];
            for request in allocate_for(&mut pages, i64::MAX) {
                assert!(request.offset + request.length <= 3 * TERM as usize);
                bytes[request.offset / 32..][..request.length / 32]
                    .iter_mut()
                    .for_each(|count| *count += 1);
            }
            assert!(bytes.iter().all(|count| *count == 1));
            assert_eq!(pages.allowed_limit(i64::MAX / 2), i64::MAX / 2);
        }
    }

    #[test]
    fn a_failure_is_reported_once_and_repeated_only_when_told() {
        let mut pages = Pages::new(true, 0, TERM);
        pages.request(1).unwrap();
        assert!(pages.request(1).is_none());
        assert!(pages.on_answer(false));
        assert!(pages.request(1).is_none());
        pages.retry();
        assert!(pages.request(1).is_some());
        assert!(!pages.on_answer(false));
        assert_eq!(pages.allowed_limit(1), 0);
    }

    #[test]
    fn a_log_that_is_not_sparse_needs_nothing() {
        let mut pages = Pages::new(false, 0, TERM);
        assert_eq!(pages.request(i64::MAX), None);
        assert_eq!(pages.allowed_limit(12345), 12345);
    }
}
