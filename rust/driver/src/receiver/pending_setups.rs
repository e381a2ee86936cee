//! [`PendingSetups`]: requests for SETUP frames that have not arrived yet.
//!
//! A request for one session is forgotten after a second. The session's next datagram then causes another request. If
//! the channel of a destination contains the sender's control address, the receiver requests the SETUP of any session
//! from this address every second.

use std::collections::VecDeque;

use crate::stream::StreamSession;

/// Timeout of a request, and the interval of requests to a control address, in ns.
pub const PENDING_SETUP_TIMEOUT_NS: i64 = 1_000_000_000;
/// Maximum number of remembered requests. At the maximum, a new request replaces the oldest request.
pub const MAX_PENDING_SETUPS: usize = 65_536;

/// A request for the SETUP of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingSetup {
    /// Key of the endpoint.
    pub endpoint: usize,
    pub session: StreamSession,
    pub time_ns: i64,
}

/// A destination that sends a request to its sender at each interval.
#[derive(Clone, Copy, Debug)]
struct Periodic {
    destination: usize,
    time_ns: i64,
}

/// The pending requests of a receiver.
#[derive(Debug, Default)]
pub struct PendingSetups {
    /// Requests for single sessions, oldest first.
    once: VecDeque<PendingSetup>,
    periodic: Vec<Periodic>,
}

impl PendingSetups {
    /// Returns the number of requests.
    pub fn count(&self) -> usize {
        self.once.len() + self.periodic.len()
    }

    /// Adds the request for a session. If there are too many, returns the request that was forgotten.
    pub fn add(&mut self, setup: PendingSetup) -> Option<PendingSetup> {
        debug_assert!(
            self.once
                .back()
                .is_none_or(|newest| newest.time_ns <= setup.time_ns),
            "the requests are not in the order of their times, so the first one is not the oldest"
        );
        let forgotten = if self.once.len() >= MAX_PENDING_SETUPS {
            self.once.pop_front()
        } else {
            None
        };
        self.once.push_back(setup);
        forgotten
    }

    /// Removes and returns the next request that has timed out.
    #[inline]
    pub fn next_expired(&mut self, now_ns: i64) -> Option<PendingSetup> {
        let oldest = self.once.front()?;
        if is_over(oldest.time_ns, now_ns) {
            self.once.pop_front()
        } else {
            None
        }
    }

    /// Adds a destination that has just sent a request to its sender. The next request is due after a second.
    pub fn add_periodic(&mut self, destination: usize, now_ns: i64) {
        debug_assert!(
            self.periodic
                .iter()
                .all(|periodic| periodic.destination != destination),
            "destination {destination} sends periodic requests already"
        );
        self.periodic.push(Periodic {
            destination,
            time_ns: now_ns,
        });
    }

    /// Returns the next destination for which a request is due, and schedules the destination's next request.
    #[inline]
    pub fn next_due(&mut self, now_ns: i64) -> Option<usize> {
        let is_due = |periodic: &&mut Periodic| is_over(periodic.time_ns, now_ns);
        let due = self.periodic.iter_mut().find(is_due)?;
        due.time_ns = now_ns;
        Some(due.destination)
    }

    /// Removes the requests of an endpoint.
    pub fn remove_endpoint(&mut self, endpoint: usize) {
        self.once.retain(|setup| setup.endpoint != endpoint);
    }

    /// Removes the periodic request of a destination.
    pub fn remove_destination(&mut self, destination: usize) {
        self.periodic
            .retain(|periodic| periodic.destination != destination);
    }
}

fn is_over(time_ns: i64, now_ns: i64) -> bool {
    now_ns > time_ns + PENDING_SETUP_TIMEOUT_NS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup(session_id: i32, time_ns: i64) -> PendingSetup {
        PendingSetup {
            endpoint: 0,
            session: StreamSession {
                stream_id: 1001,
                session_id,
            },
            time_ns,
        }
    }

    #[test]
    fn a_request_expires_after_more_than_a_second() {
        let mut setups = PendingSetups::default();
        setups.add(setup(1, 0));
        setups.add(setup(2, 1));
        assert_eq!(setups.next_expired(PENDING_SETUP_TIMEOUT_NS), None);
        let now_ns = PENDING_SETUP_TIMEOUT_NS + 1;
        assert_eq!(setups.next_expired(now_ns), Some(setup(1, 0)));
        assert_eq!(setups.next_expired(now_ns), None);
    }

    #[test]
    fn a_request_above_the_limit_replaces_the_oldest_request() {
        let mut setups = PendingSetups::default();
        for session_id in 0..MAX_PENDING_SETUPS as i32 {
            assert_eq!(setups.add(setup(session_id, 0)), None);
        }
        assert_eq!(setups.add(setup(-1, 0)), Some(setup(0, 0)));
        assert_eq!(setups.once.len(), MAX_PENDING_SETUPS);
    }

    #[test]
    fn a_destination_sends_a_request_every_second_until_it_is_removed() {
        let mut setups = PendingSetups::default();
        setups.add_periodic(7, 0);
        assert_eq!(setups.next_due(PENDING_SETUP_TIMEOUT_NS), None);
        assert_eq!(setups.next_due(PENDING_SETUP_TIMEOUT_NS + 1), Some(7));
        assert_eq!(setups.next_due(PENDING_SETUP_TIMEOUT_NS + 2), None);
        assert_eq!(setups.next_due(3 * PENDING_SETUP_TIMEOUT_NS), Some(7));
        setups.remove_destination(7);
        assert_eq!(setups.next_due(i64::MAX), None);
    }
}
