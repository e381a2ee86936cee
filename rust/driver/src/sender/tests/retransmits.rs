//! Tests of retransmits after NAKs.

use aeron_memory::counters::system::SystemCounter;
use aeron_memory::log::clean::clean;
use aeron_protocol::frame::Nak;

use super::rig::*;
use crate::sender::DestinationControl;

/// Returns a connected publication that has sent `count` messages of one frame of 1056 bytes each.
fn sent(rig: &mut Rig, count: usize) -> Publication {
    let mut publication = rig.connected();
    for _ in 0..count {
        publication.offer(1_000);
        rig.status(&publication, RECEIVER, publication.position(), WINDOW);
    }
    rig.settle();
    rig.sent();
    assert_eq!(publication.position(), publication.appender.position());
    publication
}

/// 02-39, 04-114
#[test]
fn a_nak_causes_a_retransmit_at_once_in_datagrams_of_at_most_the_mtu() {
    let mut rig = Rig::new();
    let publication = sent(&mut rig, 8);
    rig.nak(&publication, 1_056, 3 * 1_056);
    assert_eq!(rig.data(), [(1056, 1056), (2112, 1056), (3168, 1056)]);
    assert_eq!(rig.count(SystemCounter::NaksReceived), 1);
    assert_eq!(publication.counters.naks_received.get(), 1);
    assert_eq!(rig.count(SystemCounter::RetransmitsSent), 1);
    assert_eq!(rig.count(SystemCounter::RetransmittedBytes), 3 * 1056);
    assert_eq!(
        publication.position(),
        8 * 1056,
        "the sender position does not move"
    );
}

/// 02-40, 04-115
#[test]
fn a_repeated_nak_is_ignored_for_10_ms() {
    let mut rig = Rig::new();
    let publication = sent(&mut rig, 8);
    rig.nak(&publication, 0, 1_056);
    rig.now_ns += 9 * MS;
    rig.nak(&publication, 0, 1_056);
    assert_eq!(rig.data().len(), 1);
    rig.after(2 * MS);
    rig.nak(&publication, 0, 1_056);
    assert_eq!(rig.data().len(), 1);
    assert_eq!(rig.count(SystemCounter::NaksReceived), 3);
    assert_eq!(rig.count(SystemCounter::RetransmitsSent), 2);
}

/// 02-41, 04-119
#[test]
fn a_nak_for_another_range_of_a_unicast_stream_causes_a_retransmit_at_once() {
    let mut rig = Rig::new();
    let publication = sent(&mut rig, 8);
    for position in [0, 2_112, 4_224] {
        rig.nak(&publication, position, 1_056);
    }
    assert_eq!(rig.data(), [(0, 1056), (2112, 1056), (4224, 1056)]);
    assert_eq!(rig.count(SystemCounter::RetransmitOverflow), 0);
}

/// 02-42, 04-119
#[test]
fn in_a_group_naks_for_more_ranges_than_the_limit_are_counted_as_overflow() {
    let mut rig = Rig::new();
    let (endpoint, _) = rig.mdc(DestinationControl::Dynamic);
    let options = Options {
        max_resend: Some(2),
        ..Options::default()
    };
    let mut publication = rig.publication_with(endpoint, options);
    rig.connect(&publication);
    for _ in 0..8 {
        publication.offer(1_000);
    }
    rig.settle();
    rig.sent();
    for i in 0..5 {
        rig.nak(&publication, i * 1_056, 1_056);
    }
    assert_eq!(rig.data(), [(0, 1056), (1056, 1056)]);
    assert_eq!(rig.count(SystemCounter::RetransmitOverflow), 3);
    rig.after(11 * MS);
    rig.nak(&publication, 4 * 1_056, 1_056);
    assert_eq!(rig.data(), [(4 * 1056, 1056)]);
}

/// 02-43, 04-120
#[test]
fn a_retransmit_ends_at_the_end_of_the_term_or_of_the_sent_data() {
    let mut rig = Rig::new();
    let publication = sent(&mut rig, 70);
    let term_end = 62 * 1056 + 64;
    assert!(publication.position() > TERM && term_end == TERM);
    rig.nak(&publication, 61 * 1_056, (TERM - 61 * 1_056) as i32);
    assert_eq!(rig.data(), [(61 * 1056, 1056 + 32)]);
    // A NAK for a range that ends beyond the sender position causes a retransmit only up to the sender position.
    rig.nak(&publication, publication.position() - 1_056, 20_000);
    assert_eq!(rig.data().len(), 1);
}

/// 02-44, 04-118
#[test]
fn bytes_that_were_not_sent_yet_are_not_retransmitted() {
    let mut rig = Rig::new();
    let mut publication = sent(&mut rig, 8);
    rig.status(&publication, RECEIVER, publication.position(), 0);
    rig.run(20 * MS);
    // The log has bytes after the limit, which only flow control may release.
    let position = publication.position();
    for _ in 0..40 {
        publication.offer(1_000);
    }
    rig.settle();
    rig.sent();
    let sent_to = publication.position();
    assert!(sent_to > position && sent_to < publication.appender.position());
    rig.nak(&publication, sent_to, 1_056);
    rig.nak(&publication, sent_to + 1_056, 1_056);
    rig.nak(&publication, 2 * TERM, 1_056);
    assert_eq!(rig.data(), []);
    assert_eq!(rig.count(SystemCounter::NaksReceived), 3);
    assert_eq!(rig.count(SystemCounter::RetransmitsSent), 0);
}

/// Long batches are sent at once. The log is cleaned, except for the last term length before the sender position.
///
/// Every datagram that receivers may request must nevertheless be complete.
#[test]
fn any_datagram_of_long_batches_is_retransmitted_after_earlier_parts_of_the_log_were_cleaned() {
    for mtu_length in [1_408, 8_192] {
        let mut rig = Rig::new();
        let endpoint = rig.unicast();
        let options = Options {
            mtu_length,
            ..Options::default()
        };
        let mut publication = rig.publication_with(endpoint, options);
        rig.connect(&publication);
        let (mut cleaned, mut sent) = (0, Vec::new());
        while publication.position() < 3 * TERM {
            let position = publication.position();
            while publication.appender.position() < position + TERM / 2 {
                publication.offer(1_000);
            }
            rig.status(&publication, RECEIVER, position, (TERM / 2) as i32);
            rig.settle();
            sent.extend(rig.data());
            let position = publication.position();
            while cleaned < position - TERM {
                cleaned = clean(&publication.log, cleaned, position - TERM);
            }
            sent.retain(|(begin, _)| *begin >= position - TERM / 2 - TERM / 8);
            for datagram in &sent {
                rig.after(11 * MS);
                rig.nak(&publication, datagram.0, datagram.1 as i32);
                assert_eq!(rig.data(), [*datagram], "mtu {mtu_length}");
            }
        }
    }
}

/// 02-44, 04-118
#[test]
fn bytes_more_than_five_eighths_of_a_term_old_are_not_retransmitted() {
    let mut rig = Rig::new();
    let publication = sent(&mut rig, 70);
    let oldest = publication.position() - TERM / 2 - TERM / 8;
    let first = (oldest + 1_055) / 1_056 * 1_056;
    rig.nak(&publication, first - 1_056, 1_056);
    assert_eq!(rig.data(), []);
    rig.after(20 * MS);
    rig.nak(&publication, first, 1_056);
    assert_eq!(rig.data(), [(first, 1056)]);
}

#[test]
fn bytes_before_the_start_position_are_not_retransmitted_02_44() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let options = Options {
        start_position: TERM,
        ..Options::default()
    };
    let mut publication = rig.publication_with(endpoint, options);
    rig.connect(&publication);
    publication.offer(1_000);
    rig.settle();
    rig.sent();
    rig.nak(&publication, TERM - 1_056, 1_056);
    assert_eq!(rig.data(), []);
}

#[test]
fn the_configured_delay_postpones_the_retransmit_02_45() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let options = Options {
        retransmit_delay_ns: 20 * MS,
        ..Options::default()
    };
    let mut publication = rig.publication_with(endpoint, options);
    rig.connect(&publication);
    publication.offer(1_000);
    rig.settle();
    rig.sent();
    rig.nak(&publication, 0, 1_056);
    let times = rig.times_ms(60, |it| matches!(it, Seen::Data(..)));
    assert_eq!(times, [21]);
    assert_eq!(rig.count(SystemCounter::RetransmitsSent), 1);
}

#[test]
fn padding_is_retransmitted_as_its_header_and_counts_with_its_whole_length_02_46() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let options = Options {
        start_position: TERM - 480,
        ..Options::default()
    };
    let mut publication = rig.publication_with(endpoint, options);
    rig.connect(&publication);
    publication.offer(64);
    publication.offer(1_000);
    rig.settle();
    rig.sent();
    rig.nak(&publication, TERM - 384, 384);
    assert_eq!(rig.data(), [(TERM - 384, 32)]);
    assert_eq!(rig.count(SystemCounter::RetransmittedBytes), 384);
}

/// 02-47, 04-116
#[test]
fn a_nak_for_an_impossible_range_is_counted_as_an_invalid_packet() {
    let mut rig = Rig::new();
    let publication = sent(&mut rig, 8);
    let wrong = [
        (-32, 64),
        (TERM as i32, 32),
        (TERM as i32 - 31, 32),
        (0, -1),
        (1_060, 64),
        (0, i32::MAX),
        (32, TERM as i32),
    ];
    for (term_offset, length) in wrong {
        let nak = Nak {
            session_id: SESSION,
            stream_id: STREAM,
            term_id: INITIAL_TERM,
            term_offset,
            length,
        };
        let mut datagram = [0; Nak::LENGTH];
        nak.encode(&mut datagram);
        rig.datagram(peer(), publication.control, &datagram);
    }
    assert_eq!(rig.data(), []);
    assert_eq!(rig.count(SystemCounter::InvalidPackets), wrong.len() as i64);
    assert_eq!(rig.count(SystemCounter::NaksReceived), 0);
    assert_eq!(publication.counters.naks_received.get(), 0);
}

#[test]
fn a_nak_for_zero_bytes_is_counted_and_ignored_04_117() {
    let mut rig = Rig::new();
    let publication = sent(&mut rig, 8);
    rig.nak(&publication, 0, 0);
    assert_eq!(rig.data(), []);
    assert_eq!(rig.count(SystemCounter::NaksReceived), 1);
    rig.nak(&publication, 0, 1_056);
    assert_eq!(
        rig.data().len(),
        1,
        "the NAK for zero bytes does not delay a valid NAK"
    );
}

#[test]
fn a_nak_for_a_position_within_a_message_that_looks_like_frames_causes_no_retransmit() {
    let mut rig = Rig::new();
    let mut publication = rig.connected();
    // The payload consists of data that looks like frames.
    let mut message = Vec::new();
    for _ in 0..30 {
        let mut frame = [0; 32];
        frame[..4].copy_from_slice(&64_i32.to_le_bytes());
        frame[6] = 1;
        message.extend(frame);
    }
    publication.appender.offer(i64::MAX, &message).unwrap();
    rig.settle();
    rig.sent();
    for position in (32..960).step_by(32) {
        rig.nak(&publication, position, 512);
        rig.after(11 * MS);
    }
    assert_eq!(rig.data(), []);
    assert_eq!(rig.errors(), []);
    assert_eq!(rig.count(SystemCounter::RetransmitsSent), 0);
}

#[test]
fn a_retransmit_that_the_socket_does_not_accept_completely_is_a_short_send() {
    let mut rig = Rig::new();
    let publication = sent(&mut rig, 8);
    rig.network.set_max_gso_batch_datagrams(1);
    rig.network.set_room(Some(1));
    rig.nak(&publication, 0, 3 * 1_056);
    assert_eq!(rig.data(), [(0, 1056)]);
    assert_eq!(rig.count(SystemCounter::ShortSends), 1);
    assert_eq!(rig.count(SystemCounter::RetransmittedBytes), 1056);
}
