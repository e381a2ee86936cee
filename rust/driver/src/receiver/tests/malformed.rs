//! Tests with the malformed datagrams for the data socket. The test vectors contain the recommended result of each
//! datagram.

use aeron_memory::counters::system::SystemCounter;
use aeron_memory::log::gap;
use aeron_protocol::frame::{DataHeader, Setup};

use super::rig::*;
use crate::media::malformed::{Case, wanted_count};

/// Join position of the image in some cases.
const LATE_JOIN: i64 = 39_968;

/// Counters that a case may change, with their names in the test vectors.
const COUNTERS: [(SystemCounter, &str); 5] = [
    (SystemCounter::InvalidPackets, "Invalid packets"),
    (SystemCounter::Errors, "Errors"),
    (SystemCounter::HeartbeatsReceived, "Heartbeats received"),
    (SystemCounter::FlowControlOverRuns, "Flow control over runs"),
    (
        SystemCounter::FlowControlUnderRuns,
        "Flow control under runs",
    ),
];

fn cases() -> impl Iterator<Item = Case<'static>> {
    Case::all("receiver data socket")
}

fn is_dropped(case: Case<'_>) -> bool {
    case.text("recommended").starts_with("drop")
}

fn wanted(case: Case<'_>) -> &str {
    match case.text("recommended") {
        "as observed" => case.text("expected"),
        "as 1.53" => case.text("expected_1_53"),
        dropped => {
            assert!(dropped.starts_with("drop") && dropped.contains("Invalid packets +1"));
            "Invalid packets +1"
        }
    }
}

/// Returns the expected position after the case: the number after `name <before>->`. `None` if the position does not
/// change.
fn wanted_position(wanted: &str, name: &str) -> Option<i64> {
    let (_, rest) = wanted.split_once(name)?;
    let (_, after) = rest.split_once("->")?;
    let end = after.find(|c: char| !c.is_ascii_digit());
    after[..end.unwrap_or(after.len())].parse().ok()
}

/// An image and its join position.
struct Joined {
    image: Image,
    join: i64,
}

impl Joined {
    /// Returns the high-water mark, and the position up to which the stream is complete.
    fn positions(&self) -> (i64, i64) {
        let high_water_mark = self.image.high_water_mark();
        let term = self.image.log.term(0);
        let scanned = gap::scan(term, 0, self.join as usize, high_water_mark as usize);
        (
            high_water_mark,
            scanned.expect("a sound log").complete as i64,
        )
    }

    fn bytes(&self) -> Vec<u8> {
        let terms = (0..3).map(|count| self.image.bytes(count * TERM as i64, TERM));
        terms.flatten().collect()
    }
}

/// Creates the initial state of a case. Returns the image of the case, if the case has one.
fn arrange(case: Case<'_>, rig: &mut Rig, endpoint: &Endpoint) -> Option<Joined> {
    let precondition = case.text("precondition");
    if precondition.starts_with("subscription") {
        return None;
    }
    let join = match precondition.contains("offset 39968") {
        true => LATE_JOIN,
        false => 0,
    };
    let session_id = case.session_id();
    let setup = Setup {
        session_id,
        ..setup_at(join)
    };
    let image = rig.image(endpoint, setup);
    if precondition.contains("then 64 byte DATA") {
        let header = DataHeader {
            session_id,
            ..header_at(0)
        };
        rig.deliver(endpoint, &data_of(header, 64));
    }
    Some(Joined { image, join })
}

/// 02-54, 02-55, 02-84, 02-103 to 02-105, 02-107, 02-108, 04-129, 04-130, 04-192, 04-193
#[test]
fn every_malformed_datagram_has_the_recommended_result() {
    let mut tried = 0;
    for case in cases() {
        tried += 1;
        check(case);
    }
    assert_eq!(tried, 84);
}

fn check(case: Case<'_>) {
    let (name, wanted) = (case.text("name"), wanted(case));
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let joined = arrange(case, &mut rig, &endpoint);
    let before = joined.as_ref().map(Joined::positions);
    for datagram in case.datagrams() {
        rig.deliver(&endpoint, &datagram);
    }
    for (counter, text) in COUNTERS {
        assert_eq!(
            rig.count(counter),
            wanted_count(wanted, text),
            "{text} in {name}: {wanted}"
        );
    }
    let moved = before.map(|(high_water_mark, complete)| {
        (
            wanted_position(wanted, "rcv-hwm").unwrap_or(high_water_mark),
            wanted_position(wanted, "rcv-pos").unwrap_or(complete),
        )
    });
    let after = joined.as_ref().map(Joined::positions);
    assert_eq!(after, moved, "positions in {name}: {wanted}");
    let is_created = wanted.contains("image created");
    let requests = rig.image_requests().len();
    assert_eq!(requests, usize::from(is_created), "images in {name}");
    let answer = match rig.sent().as_slice() {
        [] => "",
        [Seen::SetupRequest(..)] => "1 x SM0x80",
        [Seen::Rttm(rttm)] if !rttm.is_request => "1 x RTTM0x00",
        other => panic!("{other:?} in {name}"),
    };
    // No NAK is sent here: the conductor reports gaps to the receiver, and this test has no conductor.
    let wanted_answer = wanted.split("sent back: ").nth(1).unwrap_or_default();
    let wanted_answer = wanted_answer.split(';').next().unwrap_or_default();
    let is_nak = wanted_answer.contains("NAK");
    assert_eq!(answer, if is_nak { "" } else { wanted_answer }, "{name}");
    rig.image(
        &endpoint,
        Setup {
            session_id: -1,
            ..setup()
        },
    );
}

/// 02-107, 02-109
#[test]
fn an_invalid_datagram_does_not_change_the_log_or_the_time_of_the_last_packet() {
    for case in cases().filter(|case| is_dropped(*case)) {
        let mut rig = Rig::new();
        let endpoint = rig.subscribed(UNICAST);
        let Some(joined) = arrange(case, &mut rig, &endpoint) else {
            continue;
        };
        let status = &joined.image.status;
        let before = (joined.bytes(), status.time_of_last_packet_ns());
        rig.now_ns += MS;
        for datagram in case.datagrams() {
            rig.deliver(&endpoint, &datagram);
        }
        let after = (joined.bytes(), status.time_of_last_packet_ns());
        assert!(after == before, "{}", case.text("name"));
    }
}
