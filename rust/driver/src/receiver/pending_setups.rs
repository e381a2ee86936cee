//! [`PendingSetups`]: SETUP frames that were asked for.
//!
//! A request for one session is answered within a second or forgotten, so that the session's next datagram makes the receiver ask
//! again. A destination whose sender listens at a known control address is asked every second, for any stream.

use std::collections::VecDeque;

use crate::stream::StreamSession;

/// How long an answer may take, and how often a control address is asked, in ns.
pub const PENDING_SETUP_TIMEOUT_NS: i64 = 1_000_000_000;
/// Requests that are remembered; the oldest is forgotten for one more.
pub const MAX_PENDING_SETUPS: usize = 65_536;

/// A request for the SETUP of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingSetup {
    /// Key of the endpoint.
    pub endpoint: usize,
    pub session: StreamSession,
    pub time_ns: i64,
}

/// A destination that is asked again and again.
#[derive(Clone, Copy, Debug)]
struct Periodic {
    destination: usize,
    time_ns: i64,
}

/// The requests of a receiver.
#[derive(Debug, Default)]
pub struct PendingSetups {
    /// Oldest first.
    once: VecDeque<PendingSetup>,
    periodic: Vec<Periodic>,
}

impl PendingSetups {
    /// A session was asked for; answers the request that is forgotten for it, if there are too many.
    pub fn add(&mut self, setup: PendingSetup) -> Option<PendingSetup> {
        let forgotten = if self.once.len() >= MAX_PENDING_SETUPS {
            self.once.pop_front()
        } else {
            None
        };
        self.once.push_back(setup);
        forgotten
    }

    /// The next request that was not answered in time.
    #[inline]
    pub fn next_expired(&mut self, now_ns: i64) -> Option<PendingSetup> {
        let oldest = self.once.front()?;
        if is_over(oldest.time_ns, now_ns) {
            self.once.pop_front()
        } else {
            None
        }
    }

    /// The destination with this key has just been asked, and is to be asked every second.
    pub fn add_periodic(&mut self, destination: usize, now_ns: i64) {
        self.periodic.push(Periodic {
            destination,
            time_ns: now_ns,
        });
    }

    /// The next destination whose turn has come; its next turn is in a second.
    #[inline]
    pub fn next_due(&mut self, now_ns: i64) -> Option<usize> {
        let is_due = |periodic: &&mut Periodic| is_over(periodic.time_ns, now_ns);
        let due = self.periodic.iter_mut().find(is_due)?;
        due.time_ns = now_ns;
        Some(due.destination)
    }

    /// An endpoint is gone.
    pub fn remove_endpoint(&mut self, endpoint: usize) {
        self.once.retain(|setup| setup.endpoint != endpoint);
    }

    /// A destination is gone.
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
    fn the_oldest_request_is_forgotten_for_one_too_many() {
        let mut setups = PendingSetups::default();
        for session_id in 0..MAX_PENDING_SETUPS as i32 {
            assert_eq!(setups.add(setup(session_id, 0)), None);
        }
        assert_eq!(setups.add(setup(-1, 0)), Some(setup(0, 0)));
        assert_eq!(setups.once.len(), MAX_PENDING_SETUPS);
    }

    #[test]
    fn a_destination_is_asked_every_second_until_it_is_gone() {
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
