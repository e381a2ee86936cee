//! Tests of padding in the middle of a term. The padding comes from aborted claims, and from claims that were unblocked
//! after their publisher had died.
//!
//! Each claim contains frame headers of the same stream. If bytes of a claim were sent, they would therefore look like
//! frames.

use std::collections::BTreeMap;

use aeron_memory::Words;
use aeron_memory::log::frame::{HEADER_LENGTH, aligned_length};
use aeron_memory::log::unblock::unblock;

use super::rig::*;
use crate::media::transport::MAX_GSO_BATCH_DATAGRAMS;

const TERM_LENGTH: i64 = 16 * TERM;

/// The way in which a claim ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Committed,
    Aborted,
    Unblocked,
}

const PADDED: [End; 2] = [End::Aborted, End::Unblocked];

/// Claims `length` bytes, fills them with frame headers, and ends the claim.
fn claim(publication: &mut Publication, length: usize, end: End) {
    let log = publication.log.clone();
    let begin = loop {
        let position = publication.appender.position();
        let Ok(claim) = publication.appender.try_claim(i64::MAX, length) else {
            continue; // The term is full: the next one begins.
        };
        let framed = aligned_length(length + HEADER_LENGTH) as i64;
        let begin = claim.position() - framed;
        assert!(begin >= position);
        claim.put(0, &false_frames(publication.session_id, begin, length));
        match end {
            End::Committed => drop(claim.commit()),
            End::Aborted => claim.abort(),
            End::Unblocked => drop(claim.detach()),
        }
        break begin;
    };
    if end == End::Unblocked {
        assert!(unblock(&log, begin));
    }
}

/// Returns a payload of `length` bytes for a frame at `begin`.
///
/// The payload has a frame header at every position where a frame could begin.
fn false_frames(session_id: i32, begin: i64, length: usize) -> Vec<u8> {
    let mut payload = Vec::new();
    while payload.len() < length {
        let at = begin + (HEADER_LENGTH + payload.len()) as i64;
        let header = aeron_protocol::frame::DataHeader {
            frame_length: HEADER_LENGTH as i32,
            flags: 0xC0,
            is_padding: false,
            term_offset: (at % TERM_LENGTH) as i32,
            session_id,
            stream_id: STREAM,
            term_id: INITIAL_TERM + (at / TERM_LENGTH) as i32,
            reserved_value: 0,
        };
        let mut bytes = [0; HEADER_LENGTH];
        header.encode(&mut bytes);
        payload.extend(bytes);
    }
    payload.truncate(length);
    payload
}

/// End positions of the received frames, by start position.
#[derive(Default)]
struct Arrived(BTreeMap<i64, i64>);

impl Arrived {
    /// Adds the frames of a datagram. Checks that each frame has the bytes of the log.
    fn take(&mut self, publication: &Publication, datagram: &[u8]) {
        let first = header(datagram);
        if first.is_heartbeat(datagram.len()) {
            return;
        }
        let positions = publication.log.positions();
        let mut position = positions.position(first.term_id, first.term_offset as usize);
        let mut rest = datagram;
        while !rest.is_empty() {
            let frame = header(rest);
            let aligned = aligned_length(frame.frame_length as usize);
            let sent = if frame.is_padding {
                HEADER_LENGTH
            } else {
                aligned
            };
            let mut written = vec![0; sent];
            let term = publication.log.term_at(position);
            term.copy_out(positions.term_offset(position), &mut written);
            assert_eq!(rest[..sent], written, "frame at {position}");
            assert!(
                aligned == sent || rest.len() == sent,
                "padding ends a datagram"
            );
            self.0.insert(position, position + aligned as i64);
            position += aligned as i64;
            rest = &rest[sent..];
        }
    }

    /// Returns the position and the length of the first gap before `end`; `None` if there is no gap.
    fn first_gap(&self, end: i64) -> Option<(i64, i64)> {
        let mut position = 0;
        while let Some(next) = self.0.get(&position) {
            position = *next;
        }
        let after = self.0.range(position..).next();
        (position < end).then(|| (position, after.map_or(end, |(begin, _)| *begin) - position))
    }
}

fn publication(rig: &mut Rig, max_gso_batch_datagrams: usize) -> Publication {
    publication_with_window(rig, max_gso_batch_datagrams, TERM_LENGTH as i32 / 2)
}

fn publication_with_window(
    rig: &mut Rig,
    max_gso_batch_datagrams: usize,
    window: i32,
) -> Publication {
    rig.network
        .set_max_gso_batch_datagrams(max_gso_batch_datagrams);
    let endpoint = rig.unicast();
    let options = Options {
        term_length: TERM_LENGTH,
        ..Options::default()
    };
    let publication = rig.publication_with(endpoint, options);
    rig.status(&publication, RECEIVER, 0, window);
    rig.settle();
    rig.sent();
    publication
}

/// Asserts that every published frame arrives although `is_lost` drops datagrams, which must then be retransmitted.
fn assert_all_arrives(rig: &mut Rig, publication: &Publication, mut is_lost: impl FnMut() -> bool) {
    let end = publication.appender.position();
    let mut arrived = Arrived::default();
    rig.settle();
    loop {
        for sent in rig.sent() {
            if !is_lost() {
                arrived.take(publication, &sent.bytes);
            }
        }
        let Some((position, length)) = arrived.first_gap(end) else {
            break;
        };
        rig.after(20 * MS);
        rig.nak(publication, position, length as i32);
    }
    assert_eq!(publication.position(), end);
}

#[test]
fn frames_after_an_aborted_or_unblocked_claim_of_any_length_are_sent_unchanged() {
    for max_gso_batch_datagrams in [1, MAX_GSO_BATCH_DATAGRAMS] {
        for end in PADDED {
            let mut rig = Rig::new();
            let mut publication = publication(&mut rig, max_gso_batch_datagrams);
            for length in (0..=MTU as usize - HEADER_LENGTH).step_by(7) {
                claim(&mut publication, length, end);
                claim(&mut publication, 4, End::Committed);
            }
            assert_all_arrives(&mut rig, &publication, || false);
        }
    }
}

#[test]
fn claims_that_almost_fill_a_datagram_are_sent_unchanged_among_aborted_claims() {
    for max_gso_batch_datagrams in [1, MAX_GSO_BATCH_DATAGRAMS] {
        let mut rig = Rig::new();
        let mut publication = publication(&mut rig, max_gso_batch_datagrams);
        for number in 0..100 {
            let end = if number % 5 == 3 {
                End::Aborted
            } else {
                End::Committed
            };
            claim(&mut publication, 1_300, end);
        }
        assert_all_arrives(&mut rig, &publication, || false);
    }
}

#[test]
fn no_message_is_lost_if_two_of_ten_small_claims_are_aborted() {
    for max_gso_batch_datagrams in [1, MAX_GSO_BATCH_DATAGRAMS] {
        let mut rig = Rig::new();
        let mut publication = publication(&mut rig, max_gso_batch_datagrams);
        for number in 0..2_000 {
            let end = if number % 10 < 2 {
                End::Aborted
            } else {
                End::Committed
            };
            claim(&mut publication, 4, end);
        }
        assert_all_arrives(&mut rig, &publication, || false);
    }
}

#[test]
fn retransmitted_data_next_to_padding_is_unchanged() {
    for seed in 0..40 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut rig = Rig::new();
        let max_gso_batch_datagrams = if seed % 2 == 0 {
            1
        } else {
            MAX_GSO_BATCH_DATAGRAMS
        };
        let mut publication = publication(&mut rig, max_gso_batch_datagrams);
        let longest = random.usize(1..1_376);
        while publication.appender.position() < 200_000 {
            let end = match random.u32(0..4) {
                0 => End::Aborted,
                1 => End::Unblocked,
                _ => End::Committed,
            };
            claim(&mut publication, random.usize(0..=longest), end);
        }
        assert_all_arrives(&mut rig, &publication, || random.u32(0..10) == 0);
    }
}

/// The next term after the padding is in a different part of the memory.
#[test]
fn streams_with_aborted_claims_continue_in_the_next_term() {
    let mut rig = Rig::new();
    let mut publication = publication(&mut rig, MAX_GSO_BATCH_DATAGRAMS);
    let mut arrived = Arrived::default();
    for number in 0..2_000 {
        let end = if number % 3 == 0 {
            End::Aborted
        } else {
            End::Committed
        };
        claim(&mut publication, 1_000 + number % 300, end);
        rig.status(
            &publication,
            RECEIVER,
            publication.position(),
            TERM_LENGTH as i32 / 2,
        );
        rig.settle();
        for sent in rig.sent() {
            arrived.take(&publication, &sent.bytes);
        }
    }
    let end = publication.appender.position();
    assert!(end > 2 * TERM_LENGTH);
    assert_eq!(arrived.first_gap(end), None);
}

/// Returns the positions in a claim that have a frame header, but at which no frame begins.
fn false_positions(begin: i64, end: i64) -> impl Iterator<Item = i64> {
    (begin + HEADER_LENGTH as i64..end).step_by(HEADER_LENGTH)
}

#[test]
fn a_nak_for_a_position_within_a_claim_or_message_causes_no_retransmit() {
    for max_gso_batch_datagrams in [1, MAX_GSO_BATCH_DATAGRAMS] {
        for end in [End::Committed, End::Aborted, End::Unblocked] {
            let mut rig = Rig::new();
            let mut publication = publication(&mut rig, max_gso_batch_datagrams);
            for _ in 0..20 {
                claim(&mut publication, 1_000, End::Committed);
                let begin = publication.appender.position();
                claim(&mut publication, 1_000, end);
                let end = publication.appender.position();
                rig.settle();
                rig.after(20 * MS);
                rig.sent();
                for position in false_positions(begin, end) {
                    rig.nak(&publication, position, HEADER_LENGTH as i32);
                    assert_eq!(rig.data(), [], "bytes at {position} of {begin}..{end}");
                    rig.after(20 * MS);
                }
                rig.nak(&publication, begin, 1);
                rig.after(20 * MS);
                rig.nak(&publication, begin, (end - begin) as i32);
                assert_eq!(rig.data().first().map(|data| data.0), Some(begin));
            }
        }
    }
}

#[test]
fn all_frames_of_the_last_half_term_can_be_retransmitted() {
    let mut rig = Rig::new();
    let mut publication = publication(&mut rig, MAX_GSO_BATCH_DATAGRAMS);
    let mut begins = Vec::new();
    for number in 0..4_000 {
        let end = match number % 3 {
            0 => End::Aborted,
            1 => End::Unblocked,
            _ => End::Committed,
        };
        let before = publication.appender.position();
        claim(&mut publication, 16 + number % 1_300, end);
        begins.push(before);
        let position = publication.position();
        rig.status(&publication, RECEIVER, position, TERM_LENGTH as i32 / 2);
        rig.settle();
    }
    rig.sent();
    let end = publication.appender.position();
    assert!(end > 2 * TERM_LENGTH);
    let recent = begins.iter().filter(|it| **it > end - TERM_LENGTH / 2);
    for position in recent {
        rig.nak(&publication, *position, 2048);
        let positions = publication.log.positions();
        let resent = rig.sent().into_iter().map(|sent| header(&sent.bytes));
        let resent: Vec<_> = resent
            .map(|header| positions.position(header.term_id, header.term_offset as usize))
            .collect();
        assert!(resent.contains(position), "{resent:?} without {position}");
        rig.after(1_020 * MS);
        rig.sent();
    }
}

/// Only the header of padding is sent.
///
/// The sender position can therefore pass the limit, and receivers ignore a heartbeat at such a position.
#[test]
fn a_sender_beyond_its_limit_also_sends_heartbeats_at_the_limit() {
    let mut rig = Rig::new();
    let window = 2_000;
    let mut publication = publication_with_window(&mut rig, MAX_GSO_BATCH_DATAGRAMS, window);
    claim(&mut publication, 1_000, End::Committed);
    claim(&mut publication, 1_300, End::Aborted);
    rig.settle();
    let end = publication.appender.position();
    assert_eq!(publication.position(), end);
    assert_eq!(publication.counters.sender_limit.get(), i64::from(window));
    rig.sent();
    rig.after(101 * MS);
    let aligned_limit = 1_984;
    assert_eq!(
        rig.seen(),
        [
            Seen::Heartbeat(0xC0, aligned_limit),
            Seen::Heartbeat(0xC0, end)
        ]
    );
    rig.status(&publication, RECEIVER, end, window);
    rig.sent();
    rig.after(101 * MS);
    assert_eq!(rig.seen(), [Seen::Heartbeat(0xC0, end)]);
}

/// The stream ends at the sender position. The heartbeat at the limit must therefore not have the end-of-stream flag.
#[test]
fn only_the_heartbeat_at_the_sender_position_ends_the_stream() {
    let mut rig = Rig::new();
    let mut publication = publication_with_window(&mut rig, MAX_GSO_BATCH_DATAGRAMS, 1_001);
    claim(&mut publication, 1_300, End::Aborted);
    rig.settle();
    publication.status.set_end_of_stream();
    rig.sent();
    rig.after(101 * MS);
    let end = publication.appender.position();
    assert_eq!(
        rig.seen(),
        [Seen::Heartbeat(0xC0, 992), Seen::Heartbeat(0xE0, end)]
    );
}
