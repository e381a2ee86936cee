//! Tests of network publications: sharing, sessions, limits, spies, and the end of publications.

use std::net::SocketAddr;
use std::time::Duration;

use aeron_memory::Words;
use aeron_memory::counters::system::SystemCounter;
use aeron_memory::counters::types;
use aeron_memory::log::ConcurrentAppender;
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{ClientKeepalive, Command};
use aeron_protocol::event::{Event, PublicationError};
use aeron_protocol::frame::{ErrorFrame, StatusMessage};

use crate::conductor::harness::{CLIENT, STREAM, TERM, TICK, TestDriver, WINDOW, names};

const CHANNEL: &str = "aeron:udp?endpoint=localhost:20121";
const SPY: &str = "aeron-spy:aeron:udp?endpoint=localhost:20121";

fn refused(driver: &mut TestDriver, channel: &str, expected: &str) {
    let (code, text) = driver.publication_error(channel, STREAM);
    assert_eq!(code, ErrorCode::GenericError, "{text}");
    assert!(text.contains(expected), "{text}");
}

/// 03-22, 04-44, 04-45, 05-38
#[test]
fn a_channel_with_other_parameters_cannot_share_a_publication() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication(CHANNEL, STREAM);
    let before = driver.object_counters();
    for (option, expected) in [
        (
            "mtu=8k",
            "existing publication has different 'mtu': existing=1408 requested=8192",
        ),
        (
            "term-length=128k",
            "existing publication has different 'term-length': existing=65536 requested=131072",
        ),
        (
            "session-id=77",
            "existing publication has different 'session-id': existing=",
        ),
        (
            "init-term-id=1|term-id=1|term-offset=0",
            "existing publication has different 'init-term-id': existing=",
        ),
        (
            "ssc=true",
            "existing publication has different spies simulate connection: requested=true",
        ),
        (
            "so-sndbuf=64k",
            "so-sndbuf=65536 does not match existing value of OS default",
        ),
    ] {
        refused(&mut driver, &format!("{CHANNEL}|{option}"), expected);
    }
    assert_eq!(driver.object_counters(), before);
    let again = driver.add_publication(&format!("{CHANNEL}|mtu=1408|linger=1s"), STREAM);
    assert_eq!(again.registration_id, publication.registration_id);
    assert_eq!(again.session_id, publication.session_id);
}

/// 04-48, 04-49: `max-resend` and the options of flow control are validated. Unicast ignores flow control.
#[test]
fn invalid_options_of_retransmits_and_flow_control_are_refused() {
    let mut driver = TestDriver::new();
    for count in ["0", "257"] {
        refused(
            &mut driver,
            &format!("{CHANNEL}|max-resend={count}"),
            &format!("invalid max-resend={count}, must be > 0 and <= 256"),
        );
    }
    let group = "aeron:udp?control=localhost:20122|control-mode=dynamic";
    for (flow_control, expected) in [
        ("foo", "Invalid flow control strategy name: foo"),
        ("min,x:1", "unrecognised option"),
        ("tagged,g:5x", "invalid group"),
        ("min,g:/-1", "Group count invalid"),
        ("min,t:abc", "invalid timeout"),
        (
            "max,rrwm:0",
            "invalid flow control retransmit receiver window multiple",
        ),
    ] {
        refused(&mut driver, &format!("{group}|fc={flow_control}"), expected);
        let unicast = format!("{CHANNEL}|fc={flow_control}");
        driver.add_exclusive_publication(&unicast, STREAM);
    }
    driver.add_publication(&format!("{group}|fc=min,g:/1,t:1s"), STREAM);
    assert_eq!(driver.value_of(types::FLOW_CONTROL_RECEIVERS), 0);
    let [receivers] = &driver.records_of(types::FLOW_CONTROL_RECEIVERS)[..] else {
        panic!("expected one counter");
    };
    assert_eq!(receivers.owner_id, -1);
}

/// 04-43, 05-23
#[test]
fn a_session_is_unique_on_its_endpoint_and_stream() {
    let mut driver = TestDriver::new();
    let channel = format!("{CHANNEL}|session-id=77");
    driver.add_exclusive_publication(&channel, STREAM);
    let command = driver.publication_command(CLIENT, &channel, STREAM, true);
    let (code, text) = driver.ask_error(command);
    assert_eq!(code, ErrorCode::InvalidChannel);
    let expected = format!("existing publication has clashing sessionId=77 for streamId={STREAM}");
    assert!(text.contains(&expected), "{text}");
    driver.add_exclusive_publication(&channel, STREAM + 1);
    let elsewhere = "aeron:udp?endpoint=localhost:20122|session-id=77";
    driver.add_exclusive_publication(elsewhere, STREAM);
    refused(
        &mut driver,
        &format!("{CHANNEL}|session-id=2147483648"),
        "session-id=2147483648",
    );
    let first = driver.add_exclusive_publication(CHANNEL, STREAM).session_id;
    let second = driver.add_exclusive_publication(CHANNEL, STREAM).session_id;
    assert_eq!(second, first + 1);
}

/// 05-24
#[test]
fn a_publication_with_the_session_id_of_a_tag_copies_session_id_mtu_and_term_length() {
    let mut driver = TestDriver::new();
    let lender = driver.add_publication(
        &format!("{CHANNEL}|tags=1,77|mtu=2048|term-length=128k"),
        STREAM,
    );
    let other = "aeron:udp?endpoint=localhost:20122|session-id=tag:77";
    let borrower = driver.add_publication(other, STREAM);
    assert_eq!(borrower.session_id, lender.session_id);
    assert_eq!(borrower.log.term_length(), 128 * 1024);
    assert_eq!(borrower.log.framing().mtu_length(), 2048);
    refused(
        &mut driver,
        "aeron:udp?endpoint=localhost:20123|session-id=tag:78",
        "session-id=tag:78 must reference a network publication",
    );
}

/// 04-107
#[test]
fn a_publication_that_has_ended_is_not_shared() {
    let mut driver = TestDriver::new();
    let first = driver.add_publication(CHANNEL, STREAM);
    driver.remove_publication(&first, false);
    let second = driver.add_publication(CHANNEL, STREAM);
    assert_ne!(second.session_id, first.session_id);
    assert_ne!(second.registration_id, first.registration_id);
    let channel = format!("{CHANNEL}|session-id={}", first.session_id);
    let command = driver.publication_command(CLIENT, &channel, STREAM, true);
    assert_eq!(driver.ask_error(command).0, ErrorCode::InvalidChannel);
    driver.advance(60 * TICK);
    assert!(
        driver.publication_log(&first).is_none(),
        "the linger timeout has passed"
    );
    driver.add_exclusive_publication(&channel, STREAM);
}

#[test]
fn a_session_id_can_be_used_again_after_the_linger_of_its_publication() {
    let mut driver = TestDriver::new();
    let channel = format!("{CHANNEL}|session-id=77|linger=0s");
    let first = driver.add_publication(&channel, STREAM);
    driver.remove_publication(&first, false);
    loop {
        let command = driver.publication_command(CLIENT, &channel, STREAM, true);
        if names(&driver.ask(command)) == ["ExclusivePublicationReady"] {
            break;
        }
        driver.advance(TICK);
    }
    assert!(
        driver.publication_log(&first).is_some(),
        "the log is removed one tick after the session is free"
    );
}

#[test]
fn published_data_is_sent_after_the_publisher_has_left() {
    let mut driver = TestDriver::new();
    let (receiver, _) = driver.add_subscription(&format!("{CHANNEL}|rcv-wnd=8k"), STREAM);
    let publication = driver.add_publication(&format!("{CHANNEL}|linger=0s"), STREAM);
    driver.advance(3 * TICK);
    for _ in 0..20 {
        publication.offer(1_000);
    }
    driver.remove_publication(&publication, false);
    driver.advance(20 * TICK);
    let end = publication.log.producer_position();
    assert!(
        driver.value_of(types::SENDER_POSITION) < end,
        "the receiver window is smaller than the published data"
    );
    assert!(driver.publication_log(&publication).is_some());
    let received = driver.images_of(receiver)[0].clone();
    for _ in 0..10 {
        received
            .position
            .set(driver.value_of(types::RECEIVER_POSITION));
        driver.advance(TICK);
    }
    assert_eq!(received.position.get(), end);
    driver.advance(5 * TICK);
    assert!(driver.publication_log(&publication).is_none());
}

/// 04-103, 04-105, 04-106, 04-184, 04-185, 04-186
#[test]
fn a_closed_publication_lingers_and_leaves_no_resources() {
    let mut driver = TestDriver::new();
    let mapped = driver.system(SystemCounter::BytesMapped);
    let publication = driver.add_publication(&format!("{CHANNEL}|linger=1s"), STREAM);
    let log_length = driver.publication_log(&publication).unwrap().len();
    assert_eq!(
        driver.system(SystemCounter::BytesMapped) - mapped,
        log_length as i64
    );
    driver.remove_publication(&publication, false);
    driver.advance(9 * TICK);
    assert!(driver.publication_log(&publication).is_some());
    assert_eq!(driver.records_of(types::PUBLISHER_LIMIT).len(), 1);
    driver.advance(4 * TICK);
    assert!(driver.publication_log(&publication).is_none());
    assert!(driver.records_of(types::PUBLISHER_LIMIT).is_empty());
    driver.advance(2 * TICK);
    assert_eq!(
        driver.object_counters(),
        0,
        "the endpoint is removed one tick later"
    );
    assert_eq!(driver.system(SystemCounter::BytesMapped), mapped);
}

/// 04-105
#[test]
fn a_unicast_publication_does_not_linger_after_its_receiver_has_left() {
    let mut driver = TestDriver::with(|context| context.status_message_timeout_ns = 20_000_000);
    let (subscription, _) = driver.add_subscription(CHANNEL, STREAM);
    let publication = driver.add_publication(CHANNEL, STREAM);
    driver.advance(2 * TICK);
    driver.remove_subscription(subscription);
    driver.advance(4 * TICK);
    assert!(!publication.is_connected());
    driver.remove_publication(&publication, false);
    driver.advance(5 * TICK);
    assert!(
        driver.publication_log(&publication).is_none(),
        "the publication ends before its linger timeout of 5 s"
    );
}

/// 04-96, 04-153
#[test]
fn a_revoked_publication_ends_for_all_subscribers_at_once() {
    let mut driver = TestDriver::new();
    let (subscription, _) = driver.add_subscription(CHANNEL, STREAM);
    let (spy, _) = driver.add_subscription(SPY, STREAM);
    let publication = driver.add_publication(CHANNEL, STREAM);
    driver.advance(2 * TICK);
    publication.offer(100);
    driver.work();
    assert_eq!(driver.images_of(subscription).len(), 1);
    assert_eq!(driver.images_of(spy).len(), 1);
    driver.remove_publication(&publication, true);
    driver.hear();
    driver.advance(4 * TICK);
    let heard = driver.hear();
    assert_eq!(names(&heard), ["UnavailableImage", "UnavailableImage"]);
    assert_eq!(driver.system(SystemCounter::PublicationsRevoked), 1);
    assert_eq!(driver.system(SystemCounter::PublicationImagesRevoked), 1);
    assert!(!publication.is_connected());
    assert_eq!(publication.limit.get(), publication.log.producer_position());
}

/// 04-110, 04-111
#[test]
fn a_spy_reads_sent_data_and_holds_back_the_limit_until_the_end_of_the_stream() {
    let mut driver = TestDriver::new();
    let (spy, _) = driver.add_subscription(SPY, STREAM);
    let publication = driver.add_publication(CHANNEL, STREAM);
    driver.advance(2 * TICK);
    assert!(
        !publication.is_connected(),
        "a spy alone does not make the publication connected"
    );
    let (receiver, _) = driver.add_subscription(CHANNEL, STREAM);
    driver.advance(3 * TICK);
    assert!(publication.is_connected());
    let spied = driver.images_of(spy)[0].clone();
    let received = driver.images_of(receiver)[0].clone();
    assert_eq!(spied.correlation_id, publication.registration_id);
    while publication.limit.get() > publication.log.producer_position() + 4_096 {
        publication.offer(2_000);
    }
    driver.work();
    received.position.set(publication.log.producer_position());
    driver.advance(TICK);
    assert_eq!(publication.limit.get(), WINDOW, "the spy has read nothing");
    spied.position.set(4_096);
    driver.work();
    assert_eq!(publication.limit.get(), 4_096 + WINDOW);
    driver.remove_publication(&publication, false);
    driver.hear();
    driver.advance(2 * TICK);
    assert!(names(&driver.hear()).is_empty(), "the spy still reads");
    spied.position.set(publication.log.producer_position());
    driver.advance(2 * TICK);
    let heard = driver.hear();
    let of_the_spy = heard.iter().any(|heard| match heard.event() {
        Event::UnavailableImage(image) => {
            image.subscription_registration_id == spy && image.channel == SPY.as_bytes()
        }
        _ => false,
    });
    assert!(of_the_spy, "{:?}", names(&heard));
}

#[test]
fn a_spy_finds_its_channel_by_tag() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication(&format!("{CHANNEL}|tags=9"), STREAM);
    let (_, images) = driver.add_subscription("aeron-spy:aeron:udp?tags=9", STREAM);
    assert_eq!(images[0].correlation_id, publication.registration_id);
    assert!(
        driver
            .add_subscription("aeron-spy:aeron:udp?tags=8", STREAM)
            .1
            .is_empty()
    );
    let other_session = format!(
        "{SPY}|session-id={}",
        publication.session_id.wrapping_add(1)
    );
    assert!(driver.add_subscription(&other_session, STREAM).1.is_empty());
}

/// 01-77
#[test]
fn a_revoked_publication_is_not_connected_again_by_receivers_that_do_not_know_of_the_revocation() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication(CHANNEL, STREAM);
    driver.add_publication(CHANNEL, STREAM);
    driver.add_subscription(CHANNEL, STREAM);
    driver.advance(5 * TICK);
    assert!(publication.is_connected());
    driver.remove_publication(&publication, true);
    driver.advance(TICK);
    for _ in 0..1_000 {
        driver.step_with(|| assert!(!publication.is_connected()));
    }
}

/// 04-109
#[test]
fn spies_count_like_receivers_if_they_simulate_a_connection() {
    let mut driver = TestDriver::new();
    let (spy, _) = driver.add_subscription(SPY, STREAM);
    let publication = driver.add_publication(&format!("{CHANNEL}|ssc=true"), STREAM);
    assert!(publication.is_connected());
    driver.work();
    let spied = driver.images_of(spy)[0].clone();
    let sender_position = || driver.records_of(types::SENDER_POSITION)[0].value;
    assert_eq!(sender_position(), 0);
    publication.offer(1_000);
    spied.position.set(publication.log.producer_position());
    driver.advance(TICK);
    assert_eq!(
        driver.records_of(types::SENDER_POSITION)[0].value,
        publication.log.producer_position()
    );
    assert_eq!(
        driver.value_of(types::SENDER_LIMIT),
        publication.log.producer_position()
    );
    driver.remove_subscription(spy);
    driver.advance(2 * TICK);
    assert!(!publication.is_connected());
}

/// 04-87, 04-88, 04-89, 04-90
#[test]
fn an_untethered_spy_that_is_too_slow_is_unlinked_and_rejoins_if_its_channel_allows_it() {
    for rejoins in [true, false] {
        let mut driver = TestDriver::with(|context| {
            context.untethered_window_limit_timeout_ns = 500_000_000;
            context.untethered_linger_timeout_ns = Some(300_000_000);
            context.untethered_resting_timeout_ns = 500_000_000;
        });
        let spy = format!("{SPY}|tether=false|rejoin={rejoins}");
        let (spy, _) = driver.add_subscription(&spy, STREAM);
        let (receiver, _) = driver.add_subscription(CHANNEL, STREAM);
        let publication = driver.add_publication(CHANNEL, STREAM);
        driver.advance(3 * TICK);
        let received = driver.images_of(receiver)[0].clone();
        let spied = driver.images_of(spy)[0].clone();
        while publication.limit.get() > publication.log.producer_position() + 4_096 {
            publication.offer(2_000);
        }
        driver.work();
        received.position.set(publication.log.producer_position());
        driver.hear();
        driver.advance(7 * TICK);
        assert_eq!(names(&driver.hear()), ["UnavailableImage"]);
        assert_eq!(
            publication.limit.get(),
            WINDOW,
            "the subscriber may still read during its linger time"
        );
        driver.advance(4 * TICK);
        let sent = driver.value_of(types::SENDER_POSITION);
        assert_eq!(publication.limit.get(), sent + WINDOW);
        driver.advance(7 * TICK);
        let back = driver.hear();
        if rejoins {
            let images = driver.images(&back);
            assert_eq!(images[0].position.id(), spied.position.id());
            assert_eq!(images[0].position.get(), sent);
        } else {
            assert!(names(&back).is_empty());
            assert_eq!(driver.records_of(types::SUBSCRIBER_POSITION).len(), 1);
        }
    }
}

/// 04-86, 04-108
#[test]
fn the_log_is_clean_up_to_the_limit_of_publishers() {
    let mut driver = TestDriver::new();
    let (receiver, _) = driver.add_subscription(CHANNEL, STREAM);
    let publication = driver.add_publication(CHANNEL, STREAM);
    driver.advance(3 * TICK);
    let received = driver.images_of(receiver)[0].clone();
    let mut next_check = 0;
    while publication.log.producer_position() < 8 * TERM {
        let producer = publication.log.producer_position();
        let limit = publication.limit.get();
        for position in (next_check.max(producer)..limit).step_by(32) {
            let offset = publication.log.positions().term_offset(position);
            let term = publication.log.term_at(position);
            assert_eq!(term.load_i32_acquire(offset), 0, "{position}");
        }
        next_check = limit;
        if limit > producer + 4_096 {
            publication.try_offer(2_000);
        }
        driver.work();
        received
            .position
            .set(driver.value_of(types::RECEIVER_POSITION));
        driver.work();
    }
}

/// 04-112, 02-36: a receiver's error frame causes one event for the clients, even if the receiver repeats the frame.
#[test]
fn the_rejection_of_a_publication_by_a_receiver_is_announced_once() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication(CHANNEL, STREAM);
    let receiver: SocketAddr = "127.0.0.1:20121".parse().unwrap();
    let sender = driver.network.memory.take_sent()[0].from;
    let (session_id, stream_id, receiver_id) = (publication.session_id, STREAM, 4711);
    let mut bytes = [0; 128];
    let status = StatusMessage {
        wants_setup: false,
        is_end_of_stream: false,
        session_id,
        stream_id,
        consumption_term_id: publication.log.positions().initial_term_id(),
        consumption_term_offset: 0,
        receiver_window: WINDOW as i32,
        receiver_id,
        feedback: &[],
    };
    let length = status.encode(&mut bytes);
    driver
        .network
        .memory
        .deliver(receiver, sender, &bytes[..length]);
    driver.advance(TICK);
    assert!(publication.is_connected());
    driver.hear();
    let refusal = ErrorFrame {
        session_id,
        stream_id,
        receiver_id,
        group_tag: Some(7),
        error_code: 4242,
        error_text: b"bad customer",
    };
    let length = refusal.encode(&mut bytes);
    for _ in 0..3 {
        driver
            .network
            .memory
            .deliver(receiver, sender, &bytes[..length]);
        driver.advance(TICK);
    }
    let heard = driver.hear();
    assert_eq!(names(&heard), ["PublicationError"]);
    let expected = PublicationError {
        registration_id: publication.registration_id,
        destination_registration_id: -1,
        session_id,
        stream_id,
        receiver_id,
        group_tag: 7,
        source_address: Some(receiver),
        error_code: 4242,
        error_message: b"bad customer",
    };
    assert_eq!(heard[0].event(), Event::PublicationError(expected));
    let line = format!(
        "onPublicationError: registrationId={}, destinationRegistrationId=-1, sessionId={session_id}, \
         streamId={STREAM}, receiverId=4711, groupId=7, errorCode=4242, errorMessage=bad customer\n",
        publication.registration_id
    );
    assert_eq!(driver.errors(), [line]);
    assert!(!publication.is_connected());
}

#[test]
fn a_message_that_is_being_appended_when_the_driver_closes_is_not_padded() {
    let mut driver = TestDriver::new();
    driver.add_subscription(CHANNEL, STREAM);
    let publication = driver.add_publication(CHANNEL, STREAM);
    driver.advance(3 * TICK);
    let appender = ConcurrentAppender::new(publication.log.clone());
    let claim = appender.try_claim(publication.limit.get(), 100).unwrap();
    publication.claim(100);
    driver.request_close();
    for _ in 0..50 {
        driver.step();
    }
    claim.commit();
    for _ in 0..200 {
        driver.step();
    }
    assert_eq!(
        driver.system(SystemCounter::UnblockedPublications),
        1,
        "only the abandoned claim is unblocked"
    );
    assert_eq!(
        driver.value_of(types::SENDER_POSITION),
        publication.log.producer_position()
    );
}

#[test]
fn a_closing_driver_drains_even_if_clients_continue_to_send_commands() {
    let mut driver = TestDriver::new();
    driver.add_subscription(CHANNEL, STREAM);
    let publication = driver.add_publication(CHANNEL, STREAM);
    driver.advance(3 * TICK);
    driver.request_close();
    let mut cycles = 0;
    while publication.log.metadata().end_of_stream_position() == i64::MAX {
        let keepalive = Command::ClientKeepalive(ClientKeepalive {
            client_id: CLIENT,
            correlation_id: 0,
        });
        driver.send(keepalive);
        driver.duty_cycle();
        cycles += 1;
        assert!(cycles < 10, "the publication was not ended");
    }
}

#[test]
fn a_slow_command_delays_the_drain_of_a_closing_driver_by_at_most_half_a_second() {
    let mut driver = TestDriver::new();
    driver.add_subscription(CHANNEL, STREAM);
    let publication = driver.add_publication(CHANNEL, STREAM);
    driver.advance(3 * TICK);
    let command = driver.publication_command(CLIENT, "aeron:ipc", STREAM, false);
    driver.send(command);
    driver.request_close();
    let end = || publication.log.metadata().end_of_stream_position();
    driver.advance_without_resources(Duration::from_millis(450));
    assert_eq!(end(), i64::MAX);
    driver.advance_without_resources(Duration::from_millis(100));
    assert_eq!(end(), publication.log.producer_position());
}

/// 04-82, 04-83
#[test]
fn a_claim_of_a_dead_publisher_is_padded_if_it_blocks_a_shared_publication() {
    let mut driver = TestDriver::with(|context| {
        context.publication_unblock_timeout_ns = 1_000_000_000;
        context.client_liveness_timeout_ns = 900_000_000;
    });
    driver.add_subscription(CHANNEL, STREAM);
    let publication = driver.add_publication(CHANNEL, STREAM);
    driver.advance(3 * TICK);
    publication.claim(100);
    driver.advance(9 * TICK);
    assert_eq!(driver.system(SystemCounter::UnblockedPublications), 0);
    driver.advance(5 * TICK);
    assert_eq!(driver.system(SystemCounter::UnblockedPublications), 1);
    assert_eq!(
        driver.value_of(types::SENDER_POSITION),
        publication.log.producer_position()
    );
}
