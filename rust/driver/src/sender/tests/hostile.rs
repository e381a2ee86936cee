//! Property test with arbitrary control frames. The sender must send the published messages in order, and never beyond
//! the limit.

use aeron_memory::Words;
use aeron_protocol::frame::{ErrorFrame, Nak, ResponseSetup, Rttm, StatusMessage};
use proptest::collection::vec;
use proptest::prelude::*;

use super::rig::*;

#[derive(Clone, Debug)]
enum Step {
    Offer(usize),
    Wait(i64),
    /// SETUP flag, end-of-stream flag, position, window, receiver id.
    Status(bool, bool, Place, i32, i64),
    /// Position and length.
    Nak(Place, i32),
    Refusal(i64, Option<i64>),
    Rttm(bool, i64),
    ResponseSetup(i32),
    Garbage(Vec<u8>),
    /// Sets how many more datagrams the socket accepts.
    Room(Option<usize>),
}

/// A position in the stream.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// At this distance in bytes from the sender position, often at the beginning of a frame.
    Near(i64),
    /// A term id and a term offset.
    Any(i32, i32),
}

impl Place {
    fn resolve(self, publication: &Publication) -> (i32, i32) {
        let positions = publication.log.positions();
        match self {
            Place::Any(term_id, term_offset) => (term_id, term_offset),
            Place::Near(distance) => {
                let position = publication.position() + distance;
                let term_offset = positions.term_offset(position);
                (positions.term_id(position), term_offset as i32)
            }
        }
    }
}

/// Length of the frame of most messages.
const FRAME: i64 = 1_056;

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        6 => (-20..3_i64).prop_map(|frames| Place::Near(FRAME * frames)),
        2 => (-2_000..2_000_i64).prop_map(|frames| Place::Near(32 * frames)),
        1 => any::<(i32, i32)>().prop_map(|(term_id, offset)| Place::Any(term_id, offset)),
    ]
}

fn length() -> impl Strategy<Value = i32> {
    prop_oneof![6 => 0..8_000, 2 => 0..TERM as i32, 1 => any::<i32>()]
}

fn message_length() -> impl Strategy<Value = usize> {
    prop_oneof![5 => Just(1_000_usize), 1 => 0..5_000_usize]
}

fn step() -> impl Strategy<Value = Step> {
    let status = (
        prop::bool::weighted(0.1),
        prop::bool::weighted(0.1),
        place(),
        length(),
        0..5_i64,
    );
    prop_oneof![
        6 => message_length().prop_map(Step::Offer),
        3 => (0..300 * MS).prop_map(Step::Wait),
        6 => status.prop_map(|(s, e, p, w, r)| Step::Status(s, e, p, w, r)),
        6 => (place(), length()).prop_map(|(place, length)| Step::Nak(place, length)),
        1 => (0..5_i64, any::<Option<i64>>()).prop_map(|(r, g)| Step::Refusal(r, g)),
        1 => any::<(bool, i64)>().prop_map(|(q, e)| Step::Rttm(q, e)),
        1 => any::<i32>().prop_map(Step::ResponseSetup),
        2 => vec(any::<u8>(), 0..80).prop_map(Step::Garbage),
        1 => proptest::option::of(0..6_usize).prop_map(Step::Room),
    ]
}

fn datagram(step: &Step, publication: &Publication) -> Option<Vec<u8>> {
    let mut bytes = vec![0; 128];
    let (session_id, stream_id) = (SESSION, STREAM);
    let length = match step {
        Step::Status(wants_setup, is_end_of_stream, place, window, receiver_id) => {
            let (term_id, offset) = place.resolve(publication);
            let message = StatusMessage {
                wants_setup: *wants_setup,
                is_end_of_stream: *is_end_of_stream,
                session_id,
                stream_id,
                consumption_term_id: term_id,
                consumption_term_offset: offset,
                receiver_window: *window,
                receiver_id: *receiver_id,
                feedback: &[],
            };
            message.encode(&mut bytes)
        }
        Step::Nak(place, length) => {
            let (term_id, term_offset) = place.resolve(publication);
            let nak = Nak {
                session_id,
                stream_id,
                term_id,
                term_offset,
                length: *length,
            };
            nak.encode(&mut bytes)
        }
        Step::Refusal(receiver_id, group_tag) => ErrorFrame {
            session_id,
            stream_id,
            receiver_id: *receiver_id,
            group_tag: *group_tag,
            error_code: 13,
            error_text: b"no",
        }
        .encode(&mut bytes),
        Step::Rttm(is_request, echo_timestamp_ns) => Rttm {
            is_request: *is_request,
            session_id,
            stream_id,
            echo_timestamp_ns: *echo_timestamp_ns,
            reception_delta_ns: 0,
            receiver_id: 0,
        }
        .encode(&mut bytes),
        Step::ResponseSetup(response_session_id) => ResponseSetup {
            session_id,
            stream_id,
            response_session_id: *response_session_id,
        }
        .encode(&mut bytes),
        Step::Garbage(bytes) => return Some(bytes.clone()),
        Step::Offer(_) | Step::Wait(_) | Step::Room(_) => return None,
    };
    bytes.truncate(length);
    Some(bytes)
}

/// Checks the sent datagrams: each equals the log at its position, fits into the MTU and ends at or before the sender
/// position.
///
/// If a GSO batch was not sent completely, some datagrams may end after the sender position, but not after the limit.
fn check(rig: &Rig, publication: &Publication, last: i64, may_be_short: bool) {
    let position = publication.position();
    assert!((last..=publication.appender.position()).contains(&position));
    assert!(position <= publication.limit());
    let end = if may_be_short {
        publication.limit()
    } else {
        position
    };
    for sent in rig.sent() {
        let is_data = sent.bytes[6] <= 1 && sent.bytes[..4] != [0; 4];
        if !is_data {
            continue;
        }
        let header = header(&sent.bytes);
        let begin = publication
            .log
            .positions()
            .position(header.term_id, header.term_offset as usize);
        assert!(begin >= 0 && begin + sent.bytes.len() as i64 <= end);
        let mut written = vec![0; sent.bytes.len()];
        let term = publication.log.term_at(begin);
        term.copy_out(header.term_offset as usize, &mut written);
        assert_eq!(sent.bytes, written);
        assert!(sent.bytes.len() as i64 <= MTU);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn only_published_data_is_sent_and_only_up_to_the_limit(steps in vec(step(), 1..120)) {
        let mut rig = Rig::new();
        let mut publication = rig.connected();
        let (mut last, mut may_be_short) = (0, false);
        for step in &steps {
            match step {
                // Publishers stay within half a term of the sender position. Otherwise they would overwrite data that
                // may still be retransmitted.
                Step::Offer(length) if publication.appender.position() - last < TERM / 2 => {
                    publication.offer(*length);
                }
                Step::Offer(_) => {}
                Step::Wait(time_ns) => {
                    rig.after(*time_ns);
                }
                Step::Room(room) => {
                    may_be_short = room.is_some();
                    rig.network.set_room(*room);
                }
                said => {
                    let bytes = datagram(said, &publication).expect("a datagram");
                    rig.network.deliver(peer(), publication.control, &bytes);
                }
            }
            rig.cycle();
            check(&rig, &publication, last, may_be_short);
            last = publication.position();
        }
    }
}
