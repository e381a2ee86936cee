//! Tests of sending data: the content of datagrams, the window, and sockets that do not accept all data.

use aeron_memory::counters::system::SystemCounter;

use super::rig::*;
use crate::sender::Response;

#[test]
fn no_data_is_sent_before_the_first_status_message_02_13() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let mut publication = rig.publication(endpoint);
    publication.offer(100);
    rig.run(300 * MS);
    assert_eq!(rig.data(), []);
    assert_eq!((publication.position(), publication.limit()), (0, 0));
    rig.status(&publication, RECEIVER, 0, WINDOW);
    rig.cycle();
    assert_eq!(rig.data(), [(0, 160)]);
}

/// 02-25, 04-98
#[test]
fn small_messages_share_a_datagram() {
    let mut rig = Rig::new();
    let mut publication = rig.connected();
    for _ in 0..30 {
        publication.offer(64);
    }
    rig.settle();
    let sent = rig.data();
    assert_eq!(sent, [(0, 1344), (1344, 1344), (2688, 192)]);
    assert_eq!(publication.position(), 2880);
    assert_eq!(
        rig.count(SystemCounter::BytesSent),
        2880 + 32,
        "the data and a heartbeat"
    );
}

/// 02-26, 04-98
#[test]
fn no_datagram_exceeds_the_mtu_or_leaves_its_term() {
    let mut rig = Rig::new();
    let mut publication = rig.connected();
    let mut at = 0;
    for length in (0..3_000).cycle().step_by(97).take(300) {
        publication.offer(length);
        rig.status(&publication, RECEIVER, publication.position(), WINDOW);
        for (position, length) in rig.data() {
            assert!(length as i64 <= MTU);
            assert!(position == at || position % TERM == 0, "in order");
            assert_eq!(position / TERM, (position + length as i64 - 1) / TERM);
            at = position + length as i64;
        }
    }
    assert!(at > 2 * TERM);
}

/// 02-27, 04-97
#[test]
fn padding_is_sent_as_a_header_and_the_position_advances_by_its_whole_length() {
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
    rig.cycle();
    assert_eq!(rig.data(), [(TERM - 480, 96 + 32)]);
    assert_eq!(publication.position(), TERM);
    rig.cycle();
    assert_eq!(rig.data(), [(TERM, 1056)]);
    assert_eq!(publication.position(), TERM + 1056);
}

#[test]
fn a_long_message_is_sent_in_fragments_of_the_mtu_02_28() {
    let mut rig = Rig::new();
    let mut publication = rig.connected();
    publication.offer(3 * 1376 + 100);
    rig.settle();
    let sent = rig.sent();
    let frames: Vec<(i32, u8)> = sent
        .iter()
        .map(|sent| (header(&sent.bytes).frame_length, header(&sent.bytes).flags))
        .collect();
    assert_eq!(frames, [(1408, 0x80), (1408, 0), (1408, 0), (132, 0x40)]);
    assert!(sent.iter().all(|sent| sent.to == peer()));
}

/// 02-24, 04-100, 04-101
#[test]
fn data_never_exceeds_the_window_and_a_frame_that_does_not_fit_is_counted_once() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let mut publication = rig.publication(endpoint);
    rig.status(&publication, RECEIVER, 0, 3_040);
    for _ in 0..4 {
        publication.offer(992);
    }
    rig.run(50 * MS);
    assert_eq!(rig.data(), [(0, 1024), (1024, 1024)]);
    assert_eq!((publication.position(), publication.limit()), (2048, 3_040));
    assert_eq!(publication.counters.back_pressure_events.get(), 1);
    assert_eq!(rig.count(SystemCounter::SenderFlowControlLimits), 1);
    rig.status(&publication, RECEIVER, 2_048, 1_024);
    rig.run(50 * MS);
    assert_eq!(rig.data(), [(2048, 1024)]);
    assert_eq!(publication.position(), publication.limit());
    assert_eq!(publication.counters.back_pressure_events.get(), 2);
    assert_eq!(rig.count(SystemCounter::SenderFlowControlLimits), 2);
}

/// 02-29, 04-102
#[test]
fn a_full_socket_does_not_change_the_position_and_is_counted() {
    let mut rig = Rig::new();
    let mut publication = rig.connected();
    for _ in 0..8 {
        publication.offer(1_000);
    }
    rig.network.set_room(Some(5));
    rig.cycle();
    assert_eq!(rig.data().len(), 5, "a part of the batch was sent");
    assert_eq!(publication.position(), 0);
    assert_eq!(rig.count(SystemCounter::ShortSends), 1);
    rig.network.set_room(None);
    rig.cycle();
    assert_eq!(rig.data().len(), 8, "the whole batch is repeated");
    assert_eq!(publication.position(), 8 * 1056);
    assert_eq!(rig.count(SystemCounter::ShortSends), 1);
}

#[test]
fn gso_batches_that_were_sent_completely_are_not_sent_again() {
    let mut rig = Rig::new();
    let mut publication = rig.connected();
    rig.network.set_max_gso_batch_datagrams(1);
    for _ in 0..4 {
        publication.offer(1_000);
    }
    rig.network.set_room(Some(3));
    rig.cycle();
    assert_eq!(publication.position(), 3 * 1056);
    assert_eq!(rig.count(SystemCounter::ShortSends), 1);
    rig.network.set_room(None);
    rig.cycle();
    let positions: Vec<i64> = rig.data().iter().map(|it| it.0).collect();
    assert_eq!(positions, [0, 1056, 2112, 3168]);
}

#[test]
fn a_failed_send_is_recorded_and_repeated() {
    let mut rig = Rig::new();
    let mut publication = rig.connected();
    publication.offer(100);
    rig.network
        .fail_sends(Some(std::io::ErrorKind::PermissionDenied));
    rig.cycle();
    rig.cycle();
    assert_eq!(publication.position(), 0);
    let errors = rig.errors();
    assert_eq!(errors.len(), 1, "one distinct entry: {errors:?}");
    assert!(errors[0].0.contains("failed to send data"));
    rig.network.fail_sends(None);
    rig.cycle();
    assert_eq!(rig.data(), [(0, 160)]);
}

#[test]
fn without_segmentation_the_datagrams_of_a_duty_cycle_are_limited_04_99() {
    for max in [1, 4, 16] {
        let mut rig = Rig::with(|context| context.network_publication_max_messages_per_send = max);
        let mut publication = rig.connected();
        rig.network.set_max_gso_batch_datagrams(1);
        for _ in 0..40 {
            publication.offer(600);
        }
        rig.cycle();
        assert_eq!(rig.data().len(), max as usize);
    }
}

#[test]
fn a_client_that_writes_invalid_frames_into_its_log_stops_only_its_own_stream() {
    use aeron_memory::Words;
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let mut broken = rig.publication(endpoint);
    let mut whole = rig.publication_with(
        endpoint,
        Options {
            session_id: SESSION + 1,
            ..Options::default()
        },
    );
    rig.connect(&broken);
    rig.connect(&whole);
    broken.offer(100);
    broken.log.term(0).store_i32_relaxed(0, i32::MAX);
    whole.offer(100);
    for _ in 0..5 {
        rig.cycle();
    }
    assert_eq!((broken.position(), whole.position()), (0, 160));
    let errors = rig.errors();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].1, 1, "the error is recorded once");
    assert!(errors[0].0.contains("sessionId=77"), "{errors:?}");
}

#[test]
fn the_log_is_not_read_before_a_publisher_has_written() {
    let mut rig = Rig::new();
    let mut publication = rig.connected();
    // If the sender read the log, this frame would cause an error. The sender must not read the log yet, because
    // pages may not exist before publishers request them.
    use aeron_memory::Words;
    publication.log.term(0).store_i32_relaxed(0, i32::MAX);
    rig.run(20 * MS);
    assert_eq!(rig.errors(), []);
    publication.log.term(0).store_i32_relaxed(0, 0);
    publication.offer(10);
    rig.cycle();
    assert_eq!(publication.position(), 64);
}

#[test]
fn publications_take_turns_in_sending_first() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let mut publications: Vec<Publication> = (0..3)
        .map(|i| {
            let options = Options {
                session_id: SESSION + i,
                ..Options::default()
            };
            rig.publication_with(endpoint, options)
        })
        .collect();
    for publication in &publications {
        rig.connect(publication);
    }
    let mut first = Vec::new();
    for _ in 0..6 {
        publications.iter_mut().for_each(|it| it.offer(10));
        rig.cycle();
        let sent = rig.sent();
        assert_eq!(sent.len(), 3);
        first.push(header(&sent[0].bytes).session_id - SESSION);
    }
    let expected: Vec<i32> = (0..6).map(|i| (first[0] + i) % 3).collect();
    assert_eq!(first, expected, "each publication is first in its turn");
}

#[test]
fn spies_count_like_receivers_if_the_channel_asks_for_it_04_109() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let options = Options {
        spies_simulate_connection: true,
        ..Options::default()
    };
    let mut publication = rig.publication_with(endpoint, options);
    rig.settle();
    publication.status.set_has_spies(true);
    publication
        .status
        .update_connection(publication.log.metadata());
    assert!(publication.is_connected());
    publication.offer(100);
    rig.sent();
    publication.status.set_max_spy_position(160);
    rig.cycle();
    assert_eq!((publication.position(), publication.limit()), (160, 160));
    assert_eq!(rig.data(), [], "there is no receiver");
    // A receiver replaces the spy.
    rig.status(&publication, RECEIVER, 160, WINDOW);
    publication.offer(100);
    publication.status.set_max_spy_position(320);
    rig.cycle();
    assert_eq!(rig.data(), [(160, 160)]);
}

#[test]
fn spies_alone_do_not_connect_a_publication_by_default_04_110() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let publication = rig.publication(endpoint);
    publication.status.set_has_spies(true);
    publication.status.set_max_spy_position(160);
    rig.run(20 * MS);
    publication
        .status
        .update_connection(publication.log.metadata());
    assert!(!publication.is_connected());
    assert_eq!(publication.position(), 0);
}

#[test]
fn the_send_time_is_written_at_the_offset_in_the_channel() {
    let mut rig = Rig::new();
    let to_peer = crate::sender::Peer {
        name: None,
        address: peer(),
        is_multicast: false,
        is_connected: false,
    };
    let endpoint = rig.endpoint(crate::sender::Destinations::One(to_peer), Some(-8));
    let mut publication = rig.publication(endpoint);
    rig.connect(&publication);
    publication.offer(100);
    publication.offer(100);
    rig.cycle();
    let sent = rig.sent();
    for message in [&sent[0].bytes[..], &sent[0].bytes[160..]] {
        assert_eq!(header(message).reserved_value, 1_234_567_890_000_000_000);
    }
    assert_eq!(sent[0].to, peer(), "a socket need not be connected");
}

/// 02-90, 04-171
#[test]
fn a_response_publication_sends_nothing_until_the_requester_asks_for_responses() {
    let mut rig = Rig::new();
    let endpoint = rig.endpoint(crate::sender::Destinations::PerPublication, None);
    let response = Response::Given {
        response_correlation_id: 55,
    };
    let options = Options {
        response,
        ..Options::default()
    };
    let mut publication = rig.publication_with(endpoint, options);
    publication.offer(100);
    rig.run(300 * MS);
    rig.status(&publication, RECEIVER, 0, WINDOW);
    rig.run(300 * MS);
    assert_eq!(rig.sent(), [], "not requested yet");
    assert_eq!(publication.position(), 0);
    let asking = address("127.0.0.1:6000");
    let request = publication.setup_request(RECEIVER);
    rig.hear_from(asking, publication.control, &request);
    rig.run(120 * MS);
    let sent = rig.sent();
    assert!(sent.iter().all(|sent| sent.to == asking));
    assert!(sent.iter().any(|sent| sent.bytes[6] == 5), "a SETUP");
    assert!(sent.iter().any(|sent| sent.bytes.len() == 160), "the data");
}
