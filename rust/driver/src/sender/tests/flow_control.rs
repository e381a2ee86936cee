//! Tests of flow control in a publication. Other tests check the strategies alone.

use aeron_memory::counters::system::SystemCounter;
use aeron_protocol::frame::ErrorFrame;

use super::rig::*;
use crate::flow_control::{GroupConfig, MinFlowControl};

fn group(rig: &mut Rig, config: GroupConfig) -> (Publication, impl Fn() -> i64 + use<>) {
    let receivers = rig.counter();
    let endpoint = rig.unicast();
    let options = Options {
        flow_control: Box::new(MinFlowControl::new(config, receivers.clone())),
        ..Options::default()
    };
    (rig.publication_with(endpoint, options), move || {
        receivers.get()
    })
}

const ALL: GroupConfig = GroupConfig {
    group_tag: None,
    group_min_size: 0,
    receiver_timeout_ns: 1_000 * MS,
};

/// 04-122, 04-125
#[test]
fn the_slowest_receiver_determines_the_limit_until_it_times_out() {
    let mut rig = Rig::new();
    let (mut publication, receivers) = group(&mut rig, ALL);
    rig.status(&publication, 1, 0, 8_192);
    rig.status(&publication, 2, 0, 4_096);
    rig.cycle();
    assert_eq!(receivers(), 2);
    for _ in 0..10 {
        publication.offer(992);
    }
    rig.settle();
    // The slower receiver has stopped the sender at the end of the receiver's window.
    let limit = publication.limit();
    assert_eq!(limit, 4_096);
    assert_eq!(publication.position(), 4_096);
    for _ in 0..8 {
        rig.run(200 * MS);
        rig.status(&publication, 1, 4_096, 8_192);
    }
    rig.cycle();
    assert_eq!(receivers(), 1);
    assert_eq!(publication.limit(), 4_096 + 8_192);
    assert_eq!(publication.position(), publication.appender.position());
}

#[test]
fn without_the_required_receivers_nothing_is_sent_and_the_publication_is_not_connected_04_123() {
    let mut rig = Rig::new();
    let config = GroupConfig {
        group_min_size: 2,
        ..ALL
    };
    let (mut publication, _) = group(&mut rig, config);
    publication.offer(100);
    rig.status(&publication, 1, 0, WINDOW);
    rig.run(50 * MS);
    assert!(publication.status.has_receivers());
    assert!(!publication.is_connected());
    assert_eq!((publication.limit(), publication.position()), (0, 0));
    rig.status(&publication, 2, 0, WINDOW);
    rig.cycle();
    assert!(publication.is_connected());
    assert_eq!(publication.position(), 160);
    // Receiver 2 times out. A single receiver is not enough.
    rig.run(900 * MS);
    rig.status(&publication, 1, 160, WINDOW);
    rig.run(500 * MS);
    publication
        .status
        .update_connection(publication.log.metadata());
    assert!(!publication.is_connected());
}

#[test]
fn only_receivers_with_the_group_tag_join_the_group_04_124() {
    let mut rig = Rig::new();
    let config = GroupConfig {
        group_tag: Some(7),
        group_min_size: 1,
        ..ALL
    };
    let (publication, receivers) = group(&mut rig, config);
    let (right, wrong) = (7_i64.to_le_bytes(), 8_i64.to_le_bytes());
    let mut message = publication.status_message(1, 0, 4_096);
    for (feedback, registered) in [(&[][..], 0), (&wrong, 0), (&right, 1)] {
        message.feedback = feedback;
        rig.hear(&publication, &message);
        rig.cycle();
        assert_eq!(receivers(), registered);
        assert_eq!(publication.is_connected(), registered > 0);
    }
}

#[test]
fn a_tag_of_a_wrong_length_is_noted_but_not_counted_as_an_error_of_the_driver_04_128() {
    let mut rig = Rig::new();
    let config = GroupConfig {
        group_tag: Some(7),
        ..ALL
    };
    let (publication, receivers) = group(&mut rig, config);
    let mut message = publication.status_message(1, 0, 4_096);
    message.feedback = &[1, 2, 3, 4];
    rig.hear(&publication, &message);
    rig.hear(&publication, &message);
    assert_eq!(receivers(), 0);
    let errors = rig.errors();
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].1, 2);
    assert!(errors[0].0.contains(
        "Received a status message for tagged flow control that did not have 0 or 8 bytes for the group_tag"
    ));
    assert_eq!(rig.count(SystemCounter::Errors), 0);
}

#[test]
fn a_receiver_that_rejects_or_leaves_does_not_hold_back_the_others_04_127() {
    for refuses in [false, true] {
        let mut rig = Rig::new();
        let (publication, receivers) = group(&mut rig, ALL);
        rig.status(&publication, 1, 0, 4_096);
        rig.status(&publication, 2, 0, 8_192);
        rig.cycle();
        assert_eq!((receivers(), publication.limit()), (2, 4_096));
        if refuses {
            let frame = ErrorFrame {
                session_id: SESSION,
                stream_id: STREAM,
                receiver_id: 1,
                group_tag: None,
                error_code: 13,
                error_text: b"",
            };
            let mut datagram = [0; 40];
            frame.encode(&mut datagram);
            rig.datagram(peer(), publication.control, &datagram);
        } else {
            let mut message = publication.status_message(1, 0, 4_096);
            message.is_end_of_stream = true;
            rig.hear(&publication, &message);
        }
        rig.cycle();
        assert_eq!((receivers(), publication.limit()), (1, 8_192));
    }
}

#[test]
fn a_new_receiver_that_lags_by_more_than_a_window_does_not_join_04_126() {
    let mut rig = Rig::new();
    let (mut publication, receivers) = group(&mut rig, ALL);
    rig.status(&publication, 1, 0, WINDOW);
    for _ in 0..20 {
        publication.offer(992);
    }
    rig.settle();
    rig.status(&publication, 1, 20_480, 8_192);
    rig.status(&publication, 2, 0, 8_192);
    assert_eq!(receivers(), 1);
    rig.status(&publication, 2, 20_480 - 8_192, 8_192);
    assert_eq!(receivers(), 2);
}
