//! [`Admission`]: decides when the archive serves a connect request.
//!
//! A connect request costs the driver a publication, a counter and perhaps a socket, and the archive a session. Before
//! it passes, it costs only some bytes in a [`FairQueue`]. Requests over the network and requests of this machine have
//! separate limits, so that a flood of one kind does not affect the other.

use std::collections::HashMap;
use std::hash::Hash;

use super::authentication::{ClientOrigin, ClientSource};
use super::fair_queue::{FairLimits, FairQueue};

/// Maximum number of sessions of clients on the network.
pub(super) const NETWORK_SLOTS: usize = 768;
/// Maximum number of sessions of clients on this machine.
pub(super) const LOCAL_SLOTS: usize = 256;
/// Maximum number of sessions of one image that are not connected or not authenticated yet.
const MAX_UNFINISHED_OF_IMAGE: usize = 16;
/// Maximum number of such sessions with the same response address.
const MAX_UNFINISHED_OF_ADDRESS: usize = 4;
/// Maximum number of such sessions with response addresses. Anybody can name the address of another host in a request,
/// and the driver sends SETUPs to it.
const MAX_UNFINISHED_ADDRESSED: usize = 256;
/// Maximum number of such sessions of one source. One host with many images leaves slots for other hosts.
const MAX_UNFINISHED_OF_SOURCE: usize = 128;
/// Interval at which a request passes during a flood, in nanoseconds: 64 requests each second.
const INTERVAL_NS: i64 = 1_000_000_000 / 64;
/// Number of requests that pass at once after a pause.
const BURST: i64 = 16;
/// Limits of the waiting requests, in bytes.
const WAITING: FairLimits = FairLimits {
    total: 256 * 1024,
    source: 128 * 1024,
};
/// Bytes that a waiting request takes in addition to its message.
const WAITING_OVERHEAD: usize = 128;
/// Interval at which the waiting requests are examined, in nanoseconds.
const EXAMINATION_INTERVAL_NS: i64 = 2_000_000;

/// A connect request that waits for its turn, or has passed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConnectTicket {
    /// Where the request comes from.
    pub origin: ClientOrigin,
    /// Endpoint of the response channel; `None` if the responses go to the sender of the request, or stay on this
    /// machine.
    pub address: Option<Box<str>>,
}

/// Admission of the clients on the network, and of the clients on this machine.
#[derive(Debug)]
pub(super) struct Admission<T> {
    network: Door<T>,
    local: Door<T>,
}

#[derive(Debug)]
struct Door<T> {
    slots: usize,
    /// Number of sessions that have not ended.
    open: usize,
    unfinished_of_image: HashMap<i64, usize>,
    unfinished_of_address: HashMap<Box<str>, usize>,
    /// Number of unfinished sessions with a response address.
    addressed: usize,
    unfinished_of_source: HashMap<ClientSource, usize>,
    waiting: FairQueue<Waiting<T>>,
    /// A request passes only at or after this time. A pause lets this time fall back by a burst.
    next_ns: i64,
    examined_ns: i64,
}

#[derive(Debug)]
struct Waiting<T> {
    ticket: ConnectTicket,
    deadline_ns: i64,
    request: T,
}

impl<T> Admission<T> {
    pub fn new(now_ns: i64) -> Self {
        Self {
            network: Door::new(NETWORK_SLOTS, now_ns),
            local: Door::new(LOCAL_SLOTS, now_ns),
        }
    }

    /// Adds a request of `length` bytes. It is dropped if it has not passed at `deadline_ns`. Returns the number of
    /// requests that were dropped, because too many requests are waiting.
    pub fn add(
        &mut self,
        ticket: ConnectTicket,
        length: usize,
        deadline_ns: i64,
        request: T,
    ) -> usize {
        let door = self.door(&ticket.origin.source);
        let origin = ticket.origin.clone();
        let waiting = Waiting {
            ticket,
            deadline_ns,
            request,
        };
        door.waiting
            .push(&origin, WAITING_OVERHEAD + length, waiting)
    }

    /// Returns the next request that passes. Its session has a slot until [`end`](Self::end).
    pub fn next(&mut self, now_ns: i64) -> Option<(ConnectTicket, T)> {
        self.local
            .next(now_ns)
            .or_else(|| self.network.next(now_ns))
    }

    /// Ends an examination, and drops the requests that have waited too long. Returns their number.
    pub fn drop_expired(&mut self, now_ns: i64) -> usize {
        self.local.drop_expired(now_ns) + self.network.drop_expired(now_ns)
    }

    /// Notes that the session of a request is connected and authenticated. Other requests may then pass.
    pub fn finish(&mut self, ticket: &ConnectTicket) {
        self.door(&ticket.origin.source).finish(ticket);
    }

    /// Frees the slot of a session that has ended.
    pub fn end(&mut self, ticket: &ConnectTicket) {
        debug_assert!(
            self.door(&ticket.origin.source).open > 0,
            "more control sessions have ended than were admitted"
        );
        self.door(&ticket.origin.source).open -= 1;
    }

    fn door(&mut self, source: &ClientSource) -> &mut Door<T> {
        match source {
            ClientSource::Address(_) => &mut self.network,
            ClientSource::Local(_) => &mut self.local,
        }
    }
}

impl<T> Door<T> {
    fn new(slots: usize, now_ns: i64) -> Self {
        Self {
            slots,
            open: 0,
            unfinished_of_image: HashMap::new(),
            unfinished_of_address: HashMap::new(),
            addressed: 0,
            unfinished_of_source: HashMap::new(),
            waiting: FairQueue::new(WAITING),
            next_ns: now_ns.saturating_sub((BURST - 1) * INTERVAL_NS),
            examined_ns: now_ns.saturating_sub(EXAMINATION_INTERVAL_NS),
        }
    }

    fn is_due(&self, now_ns: i64) -> bool {
        !self.waiting.is_empty()
            && now_ns.saturating_sub(self.examined_ns) >= EXAMINATION_INTERVAL_NS
    }

    fn next(&mut self, now_ns: i64) -> Option<(ConnectTicket, T)> {
        if !self.is_due(now_ns) || self.open >= self.slots || now_ns < self.next_ns {
            return None;
        }
        let Self {
            unfinished_of_image,
            unfinished_of_address,
            addressed,
            unfinished_of_source,
            waiting,
            ..
        } = self;
        let passed = waiting.pop(|source, waiting| {
            let ConnectTicket { origin, address } = &waiting.ticket;
            let address = address.as_deref();
            count(unfinished_of_source, source) < MAX_UNFINISHED_OF_SOURCE
                && count(unfinished_of_image, &origin.image_id) < MAX_UNFINISHED_OF_IMAGE
                && address.is_none_or(|address| {
                    *addressed < MAX_UNFINISHED_ADDRESSED
                        && count(unfinished_of_address, address) < MAX_UNFINISHED_OF_ADDRESS
                })
        })?;
        let Waiting {
            ticket, request, ..
        } = passed;
        let earliest_ns = now_ns.saturating_sub((BURST - 1) * INTERVAL_NS);
        self.next_ns = self.next_ns.max(earliest_ns).saturating_add(INTERVAL_NS);
        self.open += 1;
        let ConnectTicket { origin, address } = &ticket;
        *self.unfinished_of_image.entry(origin.image_id).or_default() += 1;
        *self
            .unfinished_of_source
            .entry(origin.source.clone())
            .or_default() += 1;
        if let Some(address) = address {
            self.addressed += 1;
            *self
                .unfinished_of_address
                .entry(address.clone())
                .or_default() += 1;
        }
        debug_assert!(
            self.addressed <= self.open,
            "{} unfinished sessions have an address, but only {} sessions are open",
            self.addressed,
            self.open
        );
        Some((ticket, request))
    }

    fn drop_expired(&mut self, now_ns: i64) -> usize {
        if !self.is_due(now_ns) {
            return 0;
        }
        self.examined_ns = now_ns;
        self.waiting.retain(|waiting| now_ns < waiting.deadline_ns)
    }

    fn finish(&mut self, ticket: &ConnectTicket) {
        let ConnectTicket { origin, address } = ticket;
        decrement(&mut self.unfinished_of_image, &origin.image_id);
        decrement(&mut self.unfinished_of_source, &origin.source);
        if let Some(address) = address {
            debug_assert!(
                self.addressed > 0,
                "more sessions with an address have finished than were admitted"
            );
            self.addressed -= 1;
            decrement(&mut self.unfinished_of_address, &**address);
        }
    }
}

fn count<K, Q>(counts: &HashMap<K, usize>, key: &Q) -> usize
where
    K: Hash + Eq + std::borrow::Borrow<Q>,
    Q: Hash + Eq + ?Sized,
{
    counts.get(key).copied().unwrap_or(0)
}

fn decrement<K, Q>(counts: &mut HashMap<K, usize>, key: &Q)
where
    K: Hash + Eq + std::borrow::Borrow<Q>,
    Q: Hash + Eq + ?Sized,
{
    debug_assert!(
        counts.contains_key(key),
        "a session has finished that was not counted when it was admitted"
    );
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const S: i64 = 1000 * MS;

    struct Flood {
        admission: Admission<usize>,
        now_ns: i64,
        dropped: usize,
        passed: Vec<(ConnectTicket, usize)>,
    }

    impl Flood {
        fn new() -> Self {
            Self {
                admission: Admission::new(0),
                now_ns: 0,
                dropped: 0,
                passed: Vec::new(),
            }
        }

        fn request(&mut self, source: ClientSource, image_id: i64, address: &str, number: usize) {
            let ticket = ConnectTicket {
                origin: ClientOrigin { source, image_id },
                address: (!address.is_empty()).then(|| address.into()),
            };
            let deadline_ns = self.now_ns + 5 * S;
            self.dropped += self.admission.add(ticket, 100, deadline_ns, number);
        }

        /// Returns the number of requests that pass in a duration.
        fn run(&mut self, duration_ns: i64) -> usize {
            let (end_ns, before) = (self.now_ns + duration_ns, self.passed.len());
            while self.now_ns < end_ns {
                self.now_ns += MS;
                while let Some(passed) = self.admission.next(self.now_ns) {
                    self.passed.push(passed);
                }
                self.dropped += self.admission.drop_expired(self.now_ns);
            }
            self.passed.len() - before
        }

        /// Authenticates the sessions that have passed.
        fn finish_all(&mut self) {
            for (ticket, _) in &self.passed {
                self.admission.finish(ticket);
            }
        }

        fn has_passed(&self, number: usize) -> bool {
            self.passed.iter().any(|(_, passed)| *passed == number)
        }
    }

    fn host(number: usize) -> ClientSource {
        ClientSource::Address(format!("10.0.0.{number}").into())
    }

    /// 07-160
    #[test]
    fn an_image_has_16_unfinished_sessions_and_a_response_address_4() {
        let mut flood = Flood::new();
        for number in 0..100 {
            flood.request(host(1), 1, &format!("victim:{number}"), number);
            flood.request(host(2), 2, "victim:7", 1000 + number);
        }
        flood.run(2 * S);
        let of_image = flood.passed.iter().filter(|(_, number)| *number < 1000);
        assert_eq!(of_image.count(), MAX_UNFINISHED_OF_IMAGE);
        let of_address = flood.passed.iter();
        let of_address = of_address.filter(|it| it.0.address.as_deref() == Some("victim:7"));
        assert_eq!(of_address.count(), MAX_UNFINISHED_OF_ADDRESS);
        assert_eq!(flood.passed.len(), MAX_UNFINISHED_OF_IMAGE + 4);

        flood.finish_all();
        assert!(flood.run(2 * S) > MAX_UNFINISHED_OF_IMAGE);
    }

    /// 07-160: a request can name the address of a host that has not sent it.
    #[test]
    fn all_response_addresses_together_have_256_unfinished_sessions() {
        let mut flood = Flood::new();
        for number in 0..500 {
            let address = format!("victim:{number}");
            flood.request(host(number % 250), number as i64, &address, number);
        }
        // A client whose responses go to the sender of its request waits only for its turn.
        flood.request(host(251), 1000, "", 1000);
        flood.run(4900 * MS);
        let addressed = flood.passed.iter().filter(|it| it.0.address.is_some());
        assert_eq!(addressed.count(), MAX_UNFINISHED_ADDRESSED);
        assert!(flood.has_passed(1000));
        flood.finish_all();
        assert!(flood.run(S) > 0);
    }

    /// 07-160
    #[test]
    fn after_a_burst_64_requests_pass_each_second() {
        let mut flood = Flood::new();
        for number in 0..400 {
            flood.request(host(number % 200), number as i64, "", number);
        }
        assert_eq!(flood.run(MS), BURST as usize);
        assert_eq!(flood.run(4 * S), 4 * 64);
        // A pause does not add to the burst.
        flood.run(60 * S);
        assert_eq!(flood.dropped, 400 - flood.passed.len());
        for number in 500..600 {
            flood.request(host(number), number as i64, "", number);
        }
        assert_eq!(flood.run(4 * MS), BURST as usize);
    }

    /// 07-160
    #[test]
    fn the_network_and_this_machine_have_separate_slots() {
        let mut flood = Flood::new();
        let mut number = 0;
        for _ in 0..NETWORK_SLOTS {
            number += 1;
            flood.request(host(number % 200), number as i64, "", number);
            flood.run(20 * MS);
        }
        assert_eq!(flood.passed.len(), NETWORK_SLOTS);
        flood.request(host(9), 9000, "", 9000);
        flood.request(ClientSource::Local(5), 9001, "", 9001);
        flood.run(5 * S + 10 * MS);
        assert!(!flood.has_passed(9000) && flood.has_passed(9001));
        assert_eq!(flood.dropped, 1);
        flood.finish_all();
        flood.admission.end(&flood.passed[0].0.clone());
        flood.request(host(9), 9002, "", 9002);
        flood.run(10 * MS);
        assert!(flood.has_passed(9002));
    }

    /// 07-161
    #[test]
    fn a_client_passes_soon_beside_50_hosts_that_flood_the_archive() {
        let mut flood = Flood::new();
        let mut number = 10_000;
        let mut flood_for = |flood: &mut Flood, duration_ns: i64| {
            let end_ns = flood.now_ns + duration_ns;
            while flood.now_ns < end_ns {
                for attacker in 0..50 {
                    number += 1;
                    flood.request(host(attacker), attacker as i64, "", number);
                }
                flood.run(25 * MS);
                // A session of a flood ends after five seconds.
                let old = flood.passed.len().saturating_sub(5 * 64);
                for (ticket, _) in flood.passed.drain(..old) {
                    flood.admission.finish(&ticket);
                    flood.admission.end(&ticket);
                }
            }
        };
        flood_for(&mut flood, 20 * S);
        flood.request(host(99), 99, "client:5", 1);
        flood.request(ClientSource::Local(3), 100, "", 2);
        flood_for(&mut flood, S);
        assert!(flood.has_passed(1) && flood.has_passed(2));
        assert!(flood.dropped > 20_000, "{}", flood.dropped);
    }

    #[test]
    fn one_host_with_many_images_leaves_slots_for_others() {
        let mut flood = Flood::new();
        for number in 0..400 {
            flood.request(host(1), number as i64, "", number);
        }
        flood.run(4 * S);
        assert_eq!(flood.passed.len(), MAX_UNFINISHED_OF_SOURCE);
        flood.request(host(2), 5000, "", 5000);
        flood.run(10 * MS);
        assert!(flood.has_passed(5000));
    }
}
