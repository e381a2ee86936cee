//! Tests with malformed control datagrams. The reactions of the C driver to these datagrams were captured.

use super::rig::*;
use crate::media::malformed::{Case, wanted_count};
use aeron_memory::counters::system::SystemCounter;

/// Counters that a case may change, with their names in the test vectors.
const COUNTERS: [(SystemCounter, &str); 7] = [
    (SystemCounter::InvalidPackets, "Invalid packets"),
    (SystemCounter::NaksReceived, "NAKs received"),
    (
        SystemCounter::StatusMessagesReceived,
        "Status Messages received",
    ),
    (
        SystemCounter::StatusMessagesRejected,
        "Status Messages rejected",
    ),
    (SystemCounter::ErrorFramesReceived, "Error Frames received"),
    (SystemCounter::RetransmitsSent, "Retransmits sent"),
    (SystemCounter::Errors, "Errors"),
];

/// Returns the expected result: the result of Aeron 1.52.2 if the case recommends it, else the result of Aeron 1.53.
fn wanted(case: Case<'_>) -> &str {
    match (case.text("recommended"), case.text("expected_1_53")) {
        ("as observed", _) | (_, "same") => case.text("expected"),
        (_, newer) => newer,
    }
}

/// 02-8, 02-30, 02-35, 02-36, 02-38, 02-47, 02-84, 04-116, 04-194
#[test]
fn malformed_control_datagrams_are_counted_or_ignored_and_the_sender_continues() {
    let mut tried = 0;
    for case in Case::all("sender control socket") {
        tried += 1;
        check(case);
    }
    assert!(tried > 50, "{tried} cases");
}

fn check(case: Case<'_>) {
    let name = case.text("name");
    let mut rig = Rig::new();
    let publication = arrange(&mut rig, case.session_id());
    let before = COUNTERS.map(|(counter, _)| rig.count(counter));
    let limit = publication.limit();
    for datagram in case.datagrams() {
        rig.datagram(peer(), publication.control, &datagram);
    }
    rig.now_ns += 101 * MS;
    rig.cycle();
    let wanted = wanted(case);
    for ((counter, text), before) in COUNTERS.into_iter().zip(before) {
        let wanted_count = match counter {
            // The conductor counts the errors of these cases, and this test has no conductor.
            SystemCounter::Errors => 0,
            _ => wanted_count(wanted, text),
        };
        assert_eq!(
            rig.count(counter) - before,
            wanted_count,
            "{text} in {name}: {wanted}"
        );
    }
    let is_limit_moved = wanted.contains("snd-lmt");
    assert_eq!(
        publication.limit() != limit,
        is_limit_moved,
        "limit in {name}"
    );
    let naks = publication.counters.naks_received.get();
    assert_eq!(
        naks,
        wanted_count(wanted, "NAKs received"),
        "naks in {name}"
    );
    let sent = rig.sent();
    let answers = sent.iter().filter(|sent| sent.bytes[..4] != [0; 4]).count();
    assert_eq!(
        answers,
        wanted_answers(wanted),
        "replies in {name}: {wanted}"
    );
    let refusals = rig.events().len();
    assert_eq!(
        refusals,
        usize::from(wanted.contains("PUBERR") || wanted.contains("ERRH"))
    );
    // The sender must continue to handle control frames.
    rig.status(&publication, RECEIVER, publication.position(), 16_384);
    assert!(publication.is_connected(), "{name}");
}

/// Returns the number of frames sent back: the sum of `1 x DATA...`, `1 x SETUP...` and so on after `sent back:`.
fn wanted_answers(wanted: &str) -> usize {
    let answers = wanted.split("sent back: ").nth(1).unwrap_or_default();
    let count = |part: &str| part.trim().split(" x ").next()?.parse::<usize>().ok();
    answers
        .split(';')
        .next()
        .unwrap_or_default()
        .split(',')
        .filter_map(count)
        .sum()
}

/// Returns a publication that has sent 4 frames of 1056 bytes. Its receiver has consumed all frames.
fn arrange(rig: &mut Rig, session_id: i32) -> Publication {
    let endpoint = rig.unicast();
    let options = Options {
        session_id,
        ..Options::default()
    };
    let mut publication = rig.publication_with(endpoint, options);
    rig.status(&publication, RECEIVER, 0, 32_768);
    for _ in 0..4 {
        publication.offer(1_000);
    }
    rig.settle();
    rig.status(&publication, RECEIVER, 4_224, 16_384);
    rig.settle();
    rig.now_ns += 101 * MS;
    rig.settle();
    rig.sent();
    assert_eq!(
        (publication.position(), publication.limit()),
        (4_224, 32_768)
    );
    publication
}
