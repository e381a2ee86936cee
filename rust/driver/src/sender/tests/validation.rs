//! Tests of unvalidated destinations: the number of bytes that the sender sends to them, and the messages that validate
//! them.

use std::net::SocketAddr;

use aeron_protocol::frame::{Nak, Rttm, StatusMessage};

use super::rig::*;
use crate::sender::DestinationControl;
use crate::sender::validation::AMPLIFICATION_LIMIT;

const FRAME: i64 = 1_056;
/// Length in bytes of a status message without feedback.
const MESSAGE_LENGTH: usize = 36;

fn victim() -> SocketAddr {
    address("127.0.0.1:7001")
}

/// A running stream. A validated receiver at [`peer`] consumes all data.
///
/// All other status messages have the source address [`victim`]. Either a second receiver at this address sends them,
/// or an attacker who forges the address.
struct Running {
    rig: Rig,
    publication: Publication,
    heard_from_victim: usize,
    sent_to_victim: usize,
}

impl Running {
    fn new() -> Self {
        let mut rig = Rig::new();
        let (endpoint, _) = rig.mdc(DestinationControl::Dynamic);
        let mut publication = rig.publication(endpoint);
        rig.connect(&publication);
        publication.offer(1_000);
        rig.settle();
        rig.status(&publication, RECEIVER, FRAME, WINDOW);
        rig.sent();
        Self {
            rig,
            publication,
            heard_from_victim: 0,
            sent_to_victim: 0,
        }
    }

    fn hear_victim(&mut self, message: &StatusMessage<'_>) {
        self.rig
            .hear_from(victim(), self.publication.control, message);
        self.heard_from_victim += MESSAGE_LENGTH;
    }

    /// Delivers a status message with this position from a receiver at the victim's address.
    fn victim_at(&mut self, position: i64) {
        let message = self.publication.status_message(1, position, WINDOW);
        self.hear_victim(&message);
    }

    /// Publishes messages of 1,000 bytes, one each millisecond.
    fn publish(&mut self, count: usize) {
        for _ in 0..count {
            self.publication.offer(1_000);
            self.rig.after(MS);
            let position = self.publication.position();
            self.rig
                .status(&self.publication, RECEIVER, position, WINDOW);
        }
    }

    /// Returns the datagrams that were sent to the victim since the last call.
    fn seen(&mut self) -> Vec<Seen> {
        let sent = self.rig.sent();
        let meant: Vec<_> = sent
            .into_iter()
            .filter(|sent| sent.to == victim())
            .collect();
        self.sent_to_victim += meant.iter().map(|sent| sent.bytes.len()).sum::<usize>();
        meant.iter().map(understood).collect()
    }

    /// Returns the challenges that were sent to the victim since the last call.
    fn challenges(&mut self) -> Vec<Rttm> {
        let challenge = |seen: Seen| match seen {
            Seen::Rttm(rttm) if rttm.is_request => Some(rttm),
            _ => None,
        };
        self.seen().into_iter().filter_map(challenge).collect()
    }

    fn answer(&mut self, from: SocketAddr, challenge: &Rttm) {
        let answer = Rttm {
            is_request: false,
            ..*challenge
        };
        let mut datagram = [0; Rttm::LENGTH];
        answer.encode(&mut datagram);
        self.hear(from, Rttm::LENGTH);
        self.rig.datagram(from, self.publication.control, &datagram);
    }

    fn hear(&mut self, from: SocketAddr, length: usize) {
        if from == victim() {
            self.heard_from_victim += length;
        }
    }

    fn data(&mut self) -> Vec<i64> {
        let position = |seen: &Seen| match seen {
            Seen::Data(position, _) => Some(*position),
            _ => None,
        };
        self.seen().iter().filter_map(position).collect()
    }

    fn assert_bounded(&mut self) {
        self.seen();
        let (sent, heard) = (self.sent_to_victim, self.heard_from_victim);
        assert!(sent > 0, "nothing was sent");
        assert!(
            sent <= AMPLIFICATION_LIMIT * heard,
            "{sent} bytes for {heard}"
        );
    }
}

#[test]
fn an_address_with_a_constant_position_is_sent_at_most_120_times_its_bytes() {
    assert_eq!(AMPLIFICATION_LIMIT, 120);
    let mut stream = Running::new();
    let position = stream.publication.position();
    for count in 1..=30 {
        stream.victim_at(position);
        stream.publish(10);
        stream.assert_bounded();
        let allowed = AMPLIFICATION_LIMIT * stream.heard_from_victim;
        assert!(
            count != 3 || stream.sent_to_victim > allowed / 2,
            "the allowance is used"
        );
    }
    stream.publish(300);
    stream.rig.run(4_000 * MS);
    stream.assert_bounded();
}

#[test]
fn an_address_that_only_requests_setups_has_the_limit_and_is_not_challenged() {
    let mut stream = Running::new();
    for _ in 0..5 {
        let request = stream.publication.setup_request(1);
        stream.hear_victim(&request);
        stream.publish(300);
        assert_eq!(stream.challenges(), []);
        stream.assert_bounded();
    }
}

#[test]
fn a_destination_is_sent_all_data_without_a_challenge_while_its_allowance_lasts() {
    let mut stream = Running::new();
    stream.victim_at(stream.publication.position());
    stream.publish(3);
    let seen = stream.seen();
    let is_data = |it: &Seen| matches!(it, Seen::Data(..));
    assert!(seen.len() == 3 && seen.iter().all(is_data), "{seen:?}");
}

#[test]
fn a_setup_is_sent_even_if_data_has_used_up_the_allowance() {
    let mut stream = Running::new();
    let request = stream.publication.setup_request(1);
    stream.hear_victim(&request);
    stream.publish(199);
    let is_setup = |it: &Seen| matches!(it, Seen::Setup(..));
    assert!(stream.seen().iter().any(is_setup));
}

#[test]
fn the_streams_of_an_endpoint_share_the_allowance_of_an_address() {
    let mut rig = Rig::new();
    let (endpoint, _) = rig.mdc(DestinationControl::Dynamic);
    let with_session = |session_id| Options {
        session_id,
        ..Options::default()
    };
    let mut publications: Vec<_> = (0..20)
        .map(|session_id| rig.publication_with(endpoint, with_session(session_id)))
        .collect();
    let mut heard = 0;
    for publication in &publications {
        let message = publication.status_message(1, 0, WINDOW);
        rig.hear_from(victim(), endpoint.control, &message);
        heard += MESSAGE_LENGTH;
    }
    for _ in 0..20 {
        publications.iter_mut().for_each(|it| it.offer(1_000));
        rig.run(200 * MS);
    }
    let sent: usize = rig.sent().iter().map(|sent| sent.bytes.len()).sum();
    let allowed = AMPLIFICATION_LIMIT * heard;
    assert!(sent > allowed / 2 && sent <= allowed, "{sent} of {allowed}");
}

#[test]
fn a_receiver_without_allowance_is_challenged_and_gets_the_missed_data_after_its_response() {
    let mut stream = Running::new();
    let join = stream.publication.position();
    stream.publish(3);
    stream.victim_at(join);
    stream.publish(6);
    let challenge = stream.challenges()[0];
    assert_eq!(
        (
            challenge.session_id,
            challenge.stream_id,
            challenge.receiver_id
        ),
        (SESSION, STREAM, 1)
    );
    stream.answer(victim(), &challenge);
    let sent = stream.rig.sent();
    assert!(
        sent.iter().all(|sent| sent.to == victim()),
        "only this receiver gets the missed data"
    );
    let bytes: usize = sent.iter().map(|sent| sent.bytes.len()).sum();
    assert_eq!(bytes as i64, 9 * FRAME);
    assert!(matches!(understood(&sent[0]), Seen::Data(at, _) if at == join));
    stream.publish(30);
    assert_eq!(stream.data().len(), 30);
}

#[test]
fn a_validated_receiver_is_sent_no_more_than_its_window_at_once() {
    let mut stream = Running::new();
    let join = stream.publication.position();
    let window = 4 * FRAME as i32;
    let message = stream.publication.status_message(1, join, window);
    stream.hear_victim(&message);
    stream.publish(10);
    let challenge = stream.challenges()[0];
    stream.answer(victim(), &challenge);
    assert_eq!(stream.data().len(), 4);
}

#[test]
fn a_reply_with_another_timestamp_or_from_another_address_validates_no_destination() {
    let mut stream = Running::new();
    let join = stream.publication.position();
    stream.victim_at(join);
    stream.publish(6);
    let challenge = stream.challenges()[0];
    stream.answer(address("127.0.0.9:7001"), &challenge);
    stream.answer(address("127.0.0.1:7002"), &challenge);
    let guess = Rttm {
        echo_timestamp_ns: challenge.echo_timestamp_ns + 1,
        ..challenge
    };
    stream.answer(victim(), &guess);
    let other = Rttm {
        receiver_id: 2,
        ..challenge
    };
    stream.answer(victim(), &other);
    stream.publish(100);
    stream.assert_bounded();
}

#[test]
fn the_time_between_challenges_doubles_without_a_response() {
    let mut stream = Running::new();
    stream.victim_at(stream.publication.position());
    stream.publish(4);
    let first = stream.challenges().len();
    stream.publish(14);
    assert_eq!(
        (first, stream.challenges().len()),
        (1, 3),
        "after 0, 1, 3 and 7 ms"
    );
}

#[test]
fn a_status_message_beyond_the_join_position_validates_its_address() {
    let mut stream = Running::new();
    let join = stream.publication.position();
    stream.victim_at(join);
    stream.publish(2);
    stream.seen();
    stream.victim_at(join + FRAME);
    stream.publish(20);
    assert_eq!(stream.data().len(), 20);
}

#[test]
fn a_nak_at_the_join_position_validates_its_address() {
    let mut stream = Running::new();
    let join = stream.publication.position();
    stream.victim_at(join);
    stream.publish(2);
    stream.seen();
    stream
        .rig
        .nak_from(victim(), &stream.publication, join, FRAME as i32);
    assert_eq!(stream.data(), [join]);
    stream.publish(20);
    assert_eq!(stream.data().len(), 20);
}

#[test]
fn naks_for_other_positions_or_from_other_addresses_validate_no_destination() {
    let mut stream = Running::new();
    stream.publish(5);
    let join = stream.publication.position();
    let nak = |stream: &mut Running, from, position| {
        stream.hear(from, Nak::LENGTH);
        stream
            .rig
            .nak_from(from, &stream.publication, position, 1_056);
    };
    stream.hear_victim(&stream.publication.setup_request(1));
    nak(&mut stream, victim(), join - FRAME);
    stream.victim_at(join);
    stream.publish(1);
    nak(&mut stream, address("127.0.0.1:7002"), join);
    nak(&mut stream, victim(), join - FRAME);
    let position = stream.publication.position();
    nak(&mut stream, victim(), position);
    stream.publish(100);
    stream.assert_bounded();
}

#[test]
fn messages_from_another_address_do_not_raise_the_allowance_or_validate_a_destination() {
    let mut stream = Running::new();
    let join = stream.publication.position();
    stream.victim_at(join);
    stream.publish(40);
    let elsewhere = address("127.0.0.9:7001");
    for position in [join, join + FRAME] {
        let message = stream.publication.status_message(1, position, WINDOW);
        let control = stream.publication.control;
        stream.rig.hear_from(elsewhere, control, &message);
        stream.publish(20);
    }
    stream.assert_bounded();
}

#[test]
fn a_stream_does_not_wait_for_an_unvalidated_address_if_sends_to_it_fail() {
    let mut rig = Rig::new();
    let (endpoint, _) = rig.mdc(DestinationControl::Dynamic);
    let mut publication = rig.publication(endpoint);
    rig.hear_from(
        victim(),
        endpoint.control,
        &publication.status_message(1, 0, WINDOW),
    );
    publication.offer(1_000);
    rig.network
        .fail_sends(Some(std::io::ErrorKind::PermissionDenied));
    rig.cycle();
    assert_eq!(publication.position(), FRAME);
    assert_eq!(rig.errors().len(), 1);
}
