//! Tests of the insertion of datagrams into the log.

use aeron_memory::counters::system::SystemCounter;
use aeron_protocol::frame::{DataHeader, Setup};

use super::rig::*;
use crate::receiver::*;

fn runs(rig: &Rig) -> (i64, i64) {
    (
        rig.count(SystemCounter::FlowControlOverRuns),
        rig.count(SystemCounter::FlowControlUnderRuns),
    )
}

/// 02-66, 04-146
#[test]
fn datagrams_are_inserted_at_their_positions_in_any_order() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    let [first, second, third] = [data(0, 64), data(64, 96), data(160, 128)];
    rig.deliver(&endpoint, &third);
    assert_eq!(image.high_water_mark(), 288);
    assert_eq!(image.bytes(0, 160), [0; 160]);
    rig.deliver(&endpoint, &first);
    rig.deliver(&endpoint, &second);
    assert_eq!(image.high_water_mark(), 288);
    assert_eq!(image.bytes(0, 288), [first, second, third].concat());
}

#[test]
fn several_frames_in_a_datagram_become_readable_together() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    let datagram = [data(0, 64), data(64, 96), padding(160, 640)].concat();
    rig.deliver(&endpoint, &datagram);
    assert_eq!(image.bytes(0, datagram.len()), datagram);
    assert_eq!(image.high_water_mark(), 800);
    assert_eq!(
        rig.count(SystemCounter::BytesReceived) as usize,
        datagram.len() + 40,
        "the bytes of the SETUP are counted too"
    );
}

/// 04-195
#[test]
fn padding_raises_the_high_water_mark_by_its_whole_length() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let at = TERM as i64 - 4096;
    let image = rig.image(&endpoint, setup_at(at));
    rig.deliver(&endpoint, &padding(at, 4096));
    assert_eq!(image.high_water_mark(), TERM as i64);
    rig.deliver(&endpoint, &data(TERM as i64, 64));
    assert_eq!(image.bytes(TERM as i64, 64), data(TERM as i64, 64));
}

/// 02-65, 04-145
#[test]
fn a_duplicate_does_not_change_the_log_or_the_counters() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    rig.deliver(&endpoint, &data(0, 64));
    let other = DataHeader {
        reserved_value: 7,
        ..header_at(0)
    };
    rig.deliver(&endpoint, &data_of(other, 64));
    assert_eq!(image.bytes(0, 64), data(0, 64));
    assert_eq!(runs(&rig), (0, 0));
}

/// 02-64, 04-144
#[test]
fn data_more_than_half_a_term_beyond_the_last_status_message_is_an_over_run() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    let half = TERM as i64 / 2;
    rig.deliver(&endpoint, &data(half - 32, 64));
    rig.deliver(&endpoint, &padding(half, 96));
    rig.deliver(&endpoint, &heartbeat(half + 32));
    assert_eq!(runs(&rig), (3, 0));
    assert!(image.is_empty());
    assert_eq!(image.high_water_mark(), 0);
    rig.deliver(&endpoint, &data(half - 64, 64));
    assert_eq!((image.high_water_mark(), runs(&rig)), (half, (3, 0)));
    image.status.schedule_status_message(64, WINDOW);
    rig.cycle();
    rig.deliver(&endpoint, &data(half, 64));
    assert_eq!((image.high_water_mark(), runs(&rig)), (half + 64, (3, 0)));
}

/// 04-195, 04-196: each frame length with each remainder of a term that is too short for the frame.
#[test]
fn the_padding_of_a_term_is_accepted_if_its_header_is_within_the_limits() {
    const HEADER: i64 = DataHeader::LENGTH as i64;
    const MTU: i64 = 1408;
    let (term, half) = (TERM as i64, TERM as i64 / 2);
    for frame_length in (HEADER..=MTU).step_by(32) {
        for remainder in (HEADER..frame_length).step_by(32) {
            let at = term - remainder;
            // The limit is the end of the padding, of its header, or of the last message.
            for (limit, is_accepted) in [(term, true), (at + HEADER, true), (at, false)] {
                let by_window = (limit - half, i64::MAX);
                let by_pages = (at - half / 2, limit);
                for (join, allocated_end) in [by_window, by_pages] {
                    let mut rig = Rig::new();
                    let endpoint = rig.subscribed(UNICAST);
                    let options = Options {
                        allocated_end,
                        ..Options::default()
                    };
                    let image = rig.image_with(&endpoint, setup_at(join), options);
                    let message = data(at - frame_length, frame_length as usize);
                    let padding = padding(at, remainder as usize);
                    // The sender sends both in one datagram if they fit.
                    let is_together = frame_length + HEADER <= MTU;
                    if is_together {
                        rig.deliver(&endpoint, &[message.clone(), padding].concat());
                    } else {
                        rig.deliver(&endpoint, &message);
                        rig.deliver(&endpoint, &padding);
                    }
                    let end = match is_accepted {
                        true => term,
                        false if is_together => join,
                        false => at,
                    };
                    assert_eq!(image.high_water_mark(), end, "{remainder} {limit}");
                    assert_eq!(runs(&rig), (i64::from(!is_accepted), 0));
                    let received = image.bytes(at - frame_length, message.len());
                    assert_eq!(received == message, is_accepted || !is_together);
                    let rest = (remainder - HEADER) as usize;
                    assert_eq!(image.bytes(at + HEADER, rest), vec![0; rest]);
                }
            }
        }
    }
}

/// A subscriber reads the header after a padding frame. Only the first header of a term is on a page that exists from
/// the beginning.
#[test]
fn padding_inside_a_term_must_end_on_an_allocated_page() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let options = Options {
        allocated_end: 4096,
        ..Options::default()
    };
    let image = rig.image_with(&endpoint, setup(), options);
    rig.deliver(&endpoint, &padding(4064, 64));
    rig.deliver(&endpoint, &padding(4064, TERM - 4064 - 32));
    assert_eq!((image.high_water_mark(), runs(&rig)), (0, (2, 0)));
    rig.deliver(&endpoint, &padding(4064, TERM - 4064));
    assert_eq!((image.high_water_mark(), runs(&rig)), (TERM as i64, (2, 0)));
}

/// The log has no padding frame that leads to the end of the duplicate, so the bytes up to its end are not scanned.
#[test]
fn a_duplicate_with_a_longer_padding_does_not_raise_the_high_water_mark_beyond_the_limits() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let options = Options {
        allocated_end: 4096,
        ..Options::default()
    };
    let image = rig.image_with(&endpoint, setup(), options);
    rig.deliver(&endpoint, &data(0, 64));
    rig.deliver(&endpoint, &padding(0, TERM));
    assert_eq!(image.high_water_mark(), 4096);
}

/// 02-65, 04-144
#[test]
fn data_before_the_last_status_message_is_an_under_run() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let at = 2 * TERM as i64 + 640;
    let image = rig.image(&endpoint, setup_at(at));
    rig.deliver(&endpoint, &data(at - 64, 64));
    rig.deliver(&endpoint, &data(at - 32, 64));
    assert_eq!(runs(&rig), (0, 2));
    assert!(image.is_empty());
    assert_eq!(image.high_water_mark(), at);
}

/// Data that ends at most one window before the position of the last status message keeps its source active, so
/// status messages continue. Such data does not keep the stream active.
#[test]
fn late_data_within_one_window_keeps_its_source_active_but_not_the_stream() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let at = 2 * TERM as i64;
    let image = rig.image(&endpoint, setup_at(at));
    let begin_ns = image.status.time_of_last_packet_ns();
    rig.after(4 * SECOND);
    rig.deliver(&endpoint, &data(at - WINDOW, 64));
    rig.deliver(&endpoint, &data(at - WINDOW - 128, 64));
    assert_eq!(image.status.time_of_last_packet_ns(), begin_ns);
    rig.sent();
    rig.after(4 * SECOND);
    assert_eq!(rig.sent().len(), 1, "a status message after 8 s");
    rig.deliver(&endpoint, &data(at - WINDOW - 128, 64));
    rig.after(2 * SECOND);
    assert_eq!(rig.sent(), []);
}

#[test]
fn data_before_the_initial_term_is_ignored() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    let early = DataHeader {
        term_id: INITIAL_TERM - 1,
        ..header_at(0)
    };
    rig.deliver(&endpoint, &data_of(early, 64));
    assert!(image.is_empty());
    assert_eq!(runs(&rig), (0, 0));
    assert_eq!(rig.count(SystemCounter::InvalidPackets), 0);
}

#[test]
fn data_is_inserted_after_the_term_id_has_wrapped() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let setup = Setup {
        initial_term_id: i32::MAX,
        active_term_id: i32::MIN,
        ..setup()
    };
    let image = rig.image(&endpoint, setup);
    let header = DataHeader {
        term_id: i32::MIN,
        ..header_at(0)
    };
    rig.deliver(&endpoint, &data_of(header, 64));
    assert_eq!(image.high_water_mark(), TERM as i64 + 64);
    assert_eq!(image.bytes(TERM as i64, 64), data_of(header, 64));
}

/// 02-67
#[test]
fn a_heartbeat_raises_the_high_water_mark() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    rig.after(MS);
    rig.deliver(&endpoint, &heartbeat(640));
    rig.deliver(&endpoint, &heartbeat(320));
    assert_eq!(image.high_water_mark(), 640);
    assert_eq!(image.status.time_of_last_packet_ns(), rig.now_ns);
    assert_eq!(rig.count(SystemCounter::HeartbeatsReceived), 2);
    assert!(image.is_empty());
}

#[test]
fn a_heartbeat_more_than_a_term_late_is_an_under_run() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let at = 2 * TERM as i64;
    rig.image(&endpoint, setup_at(at));
    rig.deliver(&endpoint, &heartbeat(at - TERM as i64));
    assert_eq!(runs(&rig), (0, 0));
    rig.deliver(&endpoint, &heartbeat(at - TERM as i64 - 32));
    assert_eq!(runs(&rig), (0, 1));
    assert_eq!(rig.count(SystemCounter::HeartbeatsReceived), 1);
}

/// A store to a page that the file system cannot provide would kill the process.
#[test]
fn no_data_is_stored_beyond_the_allocated_pages() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let options = Options {
        allocated_end: 4096,
        ..Options::default()
    };
    let image = rig.image_with(&endpoint, setup(), options);
    rig.deliver(&endpoint, &data(4064, 64));
    rig.deliver(&endpoint, &padding(4064, 64));
    rig.deliver(&endpoint, &heartbeat(4128));
    assert!(image.is_empty());
    assert_eq!((image.high_water_mark(), runs(&rig)), (0, (3, 0)));
    image.status.set_allocated_end(8192);
    rig.deliver(&endpoint, &data(4064, 64));
    assert_eq!(image.high_water_mark(), 4128);
}

/// 02-53
#[test]
fn a_setup_for_an_existing_image_has_no_effect_except_to_keep_its_source_active() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    let other = Setup {
        term_length: 4 * TERM as i32,
        term_offset: 1280,
        ..setup()
    };
    for _ in 0..3 {
        rig.after(4 * SECOND);
        rig.deliver(&endpoint, &encoded(|out| other.encode(out)));
    }
    assert!(rig.events().is_empty());
    assert_eq!(image.high_water_mark(), 0);
    assert_eq!(rig.sent().len(), 3, "status messages continue");
}

/// 04-159
#[test]
fn data_from_another_address_is_received_and_the_first_source_gets_the_control_frames() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    rig.deliver_from(address("127.0.0.1:9999"), &endpoint, &data(0, 64));
    assert_eq!(image.high_water_mark(), 64);
    rig.after(201 * MS);
    let status = Seen::Status(0, WINDOW as i32, false);
    assert_eq!(rig.sent_to(), [(sender(), status)]);
}

/// 02-89
#[test]
fn several_destinations_fill_one_image_and_each_source_gets_control_frames() {
    let mut rig = Rig::new();
    let first = rig.subscribed(UNICAST);
    let second = rig.add_destination(&first, "aeron:udp?endpoint=127.0.0.1:24011");
    let group = rig.add_destination(&first, MULTICAST);
    let image = rig.image(&first, setup());
    let other = address("127.0.0.1:9002");
    rig.deliver(&first, &data(0, 64));
    rig.deliver_from(other, &second, &data(0, 64));
    rig.deliver_from(other, &second, &data(64, 64));
    rig.deliver_from(other, &group, &data(128, 64));
    let all = [data(0, 64), data(64, 64), data(128, 64)].concat();
    assert_eq!(image.bytes(0, 192), all);
    rig.sent();
    image.status.report_missing(INITIAL_TERM, 192, 64);
    rig.after(201 * MS);
    let told: Vec<_> = rig.sent_to().into_iter().map(|(to, _)| to).collect();
    let control = address("224.20.30.42:24002");
    assert_eq!(told, [sender(), other, control, sender(), other, control]);
    assert_eq!(rig.count(SystemCounter::NaksSent), 3);
    assert_eq!(image.naks_sent.get(), 3);
    assert_eq!(image.log.metadata().active_transport_count(), 3);
    rig.command(ReceiverCommand::RemoveDestination {
        endpoint: first.id,
        destination: second.destination,
    });
    assert_eq!(image.log.metadata().active_transport_count(), 2);
}

#[test]
fn status_messages_go_to_the_control_address_of_a_new_destination_before_a_frame_arrives() {
    let mut rig = Rig::new();
    let first = rig.subscribed(UNICAST);
    rig.image(&first, setup());
    rig.add_destination(&first, "aeron:udp?endpoint=127.0.0.1:24011");
    rig.add_destination(&first, MULTICAST);
    rig.after(201 * MS);
    let told: Vec<_> = rig.sent_to().into_iter().map(|(to, _)| to).collect();
    assert_eq!(told, [sender(), address("224.20.30.42:24002")]);
}

#[test]
fn the_receive_time_is_written_into_every_message() {
    let mut rig = Rig::new();
    let channel = format!("{UNICAST}|channel-rcv-ts-offset=8|media-rcv-ts-offset=reserved");
    let endpoint = rig.subscribed(&channel);
    let image = rig.image(&endpoint, setup());
    rig.deliver(&endpoint, &[data(0, 64), data(64, 64)].concat());
    for message in [image.bytes(0, 64), image.bytes(64, 64)] {
        assert_eq!(message[40..48], EPOCH_NS.to_le_bytes());
        assert_eq!(
            message[24..32],
            [0; 8],
            "the network in memory returns 0 as the time"
        );
    }
}
