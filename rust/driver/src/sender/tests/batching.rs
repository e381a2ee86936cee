//! Tests of the batch wait: small messages in quick succession share a datagram.

use super::rig::*;

const WAIT_NS: i64 = 20 * US;

/// Runs duty cycles, one each microsecond, until something is sent.
///
/// Returns the number of duty cycles and the lengths of the datagrams.
fn cycles_until_sent(rig: &mut Rig) -> (usize, Vec<usize>) {
    for cycles in 1..1_000 {
        let worked = rig.after(US);
        let lengths: Vec<usize> = rig.data().iter().map(|it| it.1).collect();
        if !lengths.is_empty() {
            return (cycles, lengths);
        }
        assert!(worked > 0, "a waiting sender must not idle");
    }
    panic!("nothing is sent");
}

fn busy(rig: &mut Rig) -> Publication {
    let mut publication = rig.connected();
    offer(&mut publication, 3);
    rig.cycle();
    rig.sent();
    publication
}

fn offer(publication: &mut Publication, count: usize) {
    for _ in 0..count {
        publication.offer(32);
    }
}

fn rig() -> Rig {
    Rig::with(|context| context.sender_batch_wait_ns = WAIT_NS)
}

#[test]
fn the_default_batch_wait_is_20_us() {
    assert_eq!(crate::Context::default().sender_batch_wait_ns, WAIT_NS);
}

#[test]
fn the_first_message_after_a_pause_is_sent_in_the_next_duty_cycle() {
    let mut rig = rig();
    let mut publication = rig.connected();
    offer(&mut publication, 1);
    assert_eq!(cycles_until_sent(&mut rig), (1, vec![64]));
    rig.now_ns += WAIT_NS;
    offer(&mut publication, 2);
    assert_eq!(cycles_until_sent(&mut rig), (1, vec![128]));
}

#[test]
fn small_messages_in_quick_succession_wait_until_20_us_after_the_last_datagram() {
    let mut rig = rig();
    let mut publication = busy(&mut rig);
    offer(&mut publication, 1);
    for _ in 0..4 {
        rig.after(US);
        offer(&mut publication, 1);
    }
    assert_eq!(
        cycles_until_sent(&mut rig),
        (16, vec![5 * 64]),
        "the wait ends 20 us after the last datagram"
    );
}

#[test]
fn a_full_datagram_never_waits() {
    let mut rig = rig();
    let mut publication = busy(&mut rig);
    offer(&mut publication, 50);
    let full = vec![1408, 1408];
    assert_eq!(
        cycles_until_sent(&mut rig),
        (1, full),
        "the last 6 messages wait"
    );
    assert_eq!(
        publication.position() + 6 * 64,
        publication.appender.position()
    );
    offer(&mut publication, 16);
    assert_eq!(cycles_until_sent(&mut rig), (1, vec![1408]));
    publication.offer(1_000);
    publication.offer(1_000);
    assert_eq!(
        cycles_until_sent(&mut rig),
        (1, vec![1056]),
        "the first message does not wait, because the second does not fit beside it"
    );
}

#[test]
fn a_lone_message_that_follows_a_lone_message_does_not_wait() {
    let mut rig = rig();
    let mut publication = rig.connected();
    for _ in 0..5 {
        offer(&mut publication, 1);
        assert_eq!(
            cycles_until_sent(&mut rig),
            (1, vec![64]),
            "a ping-pong of requests and responses is not delayed"
        );
    }
    offer(&mut publication, 2);
    let (cycles, lengths) = cycles_until_sent(&mut rig);
    assert_eq!(
        (cycles, lengths),
        (20, vec![128]),
        "two messages may be the beginning of a stream"
    );
}

#[test]
fn the_batch_wait_can_be_turned_off() {
    let mut rig = Rig::with(|context| context.sender_batch_wait_ns = 0);
    let mut publication = busy(&mut rig);
    offer(&mut publication, 2);
    assert_eq!(cycles_until_sent(&mut rig), (1, vec![128]));
}

#[test]
fn a_publication_does_not_wait_only_because_another_publication_is_busy() {
    let mut rig = rig();
    let mut busy = busy(&mut rig);
    let endpoint = rig.unicast();
    let options = Options {
        session_id: SESSION + 1,
        ..Options::default()
    };
    let mut quiet = rig.publication_with(endpoint, options);
    rig.connect(&quiet);
    offer(&mut busy, 2);
    offer(&mut quiet, 2);
    rig.after(US);
    assert_eq!((quiet.position(), busy.position()), (128, 192));
}
