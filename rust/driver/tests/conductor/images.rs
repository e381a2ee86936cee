//! Tests of network images: creation, the control frames to the source, and the end.

use aeron_driver::MAX_IMAGES;
use aeron_memory::Words;
use aeron_memory::counters::system::SystemCounter;
use aeron_memory::counters::types;
use aeron_memory::loss_report;
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{Command, RejectImage};
use aeron_protocol::event::Event;
use aeron_protocol::frame::{ControlFrame, FrameType, flags};

use crate::conductor::harness::{CLIENT, Image, STREAM, TERM, TICK, TestDriver, WINDOW, names};
use crate::conductor::source::{SESSION, Source, Told};

const CHANNEL: &str = "aeron:udp?endpoint=localhost:20121";
const PORT: u16 = 20121;

const EOS: u8 = flags::UNFRAGMENTED | flags::END_OF_STREAM;

/// Adds a subscription with an image of a source that begins at `position`.
fn joined(driver: &mut TestDriver, channel: &str, position: i64) -> (i64, Source, Image) {
    let (subscription, _) = driver.add_subscription(channel, STREAM);
    let source = Source::new(PORT);
    source.setup(driver, position);
    driver.work();
    let images = driver.images_of(subscription);
    assert_eq!(images.len(), 1, "{:?}", driver.errors());
    (subscription, source, images[0].clone())
}

/// Advances the time while the source sends heartbeats at `position`.
fn live(driver: &mut TestDriver, source: &Source, position: i64, ticks: u32) {
    for _ in 0..ticks {
        source.heartbeat(driver, position, flags::UNFRAGMENTED);
        driver.advance(TICK);
    }
}

fn told(position: i64) -> Told {
    Told {
        position,
        window: WINDOW as i32,
        is_end_of_stream: false,
    }
}

/// 03-32, 04-141, 04-142, 02-48
#[test]
fn a_setup_creates_an_image_that_begins_at_the_current_position_of_the_stream() {
    let mut driver = TestDriver::new();
    let (subscription, _) = driver.add_subscription(CHANNEL, STREAM);
    let source = Source::new(PORT);
    source.setup(&driver, TERM + 4096);
    driver.work();
    let heard = driver.hear();
    let Event::AvailableImage(event) = heard[0].event() else {
        panic!("{:?}", names(&heard));
    };
    let file = format!("/aeron/images/{}.logbuffer", event.correlation_id);
    assert_eq!(event.log_file_name, file.as_bytes());
    assert_eq!(event.source_identity, b"127.0.0.1:9999");
    assert_eq!(event.session_id, SESSION);
    let image = driver.images_of(subscription)[0].clone();
    assert_eq!(image.position.get(), TERM + 4096);
    for type_id in [types::RECEIVER_HWM, types::RECEIVER_POSITION] {
        assert_eq!(driver.value_of(type_id), TERM + 4096);
    }
    assert_eq!(source.told(&driver), [told(TERM + 4096)]);
    let label = &driver.records_of(types::SUBSCRIBER_POSITION)[0].label;
    let expected = format!(
        "sub-pos: {subscription} 77 {STREAM} {CHANNEL} @{}",
        TERM + 4096
    );
    assert_eq!(*label, expected);
}

/// 02-58, 04-143, 04-142
#[test]
fn the_position_in_status_messages_is_the_position_of_the_slowest_subscriber() {
    let mut driver = TestDriver::new();
    let (_, source, first) = joined(&mut driver, CHANNEL, 0);
    let (second, _) = driver.add_subscription(CHANNEL, STREAM);
    let second = driver.images_of(second)[0].clone();
    for position in (0..16_384).step_by(1024) {
        source.data(&driver, position, 1024, 1);
    }
    driver.work();
    assert_eq!(driver.value_of(types::RECEIVER_POSITION), 16_384);
    source.told(&driver);
    first.position.set(16_384);
    driver.work();
    assert!(source.told(&driver).is_empty());
    second.position.set(8_192);
    driver.work();
    assert!(
        source.told(&driver).is_empty(),
        "a status message is sent only after a quarter of the window"
    );
    second.position.set(9_216);
    driver.work();
    assert_eq!(source.told(&driver), [told(9_216)]);
    driver.advance(3 * TICK);
    assert_eq!(
        source.told(&driver),
        [told(9_216)],
        "the status message is repeated after 200 ms"
    );
}

/// 04-143, 05-21: the part about the receiver window.
#[test]
fn the_receiver_window_is_the_window_of_the_channel_but_at_most_half_a_term() {
    for (option, window) in [("|rcv-wnd=16k", 16_384), ("|rcv-wnd=64k", WINDOW)] {
        let mut driver = TestDriver::new();
        let (_, source, _) = joined(&mut driver, &format!("{CHANNEL}{option}"), 0);
        assert_eq!(source.told(&driver)[0].window, window as i32);
    }
}

/// 04-146, 04-147, 04-150: missing bytes are requested with a NAK and added to the loss report.
#[test]
fn missing_data_is_requested_and_reported() {
    let mut driver = TestDriver::new();
    let (_, source, _) = joined(&mut driver, CHANNEL, 0);
    source.heard(&driver);
    source.data(&driver, 1024, 1024, 1);
    driver.work();
    assert_eq!(driver.value_of(types::RECEIVER_HWM), 2048);
    assert_eq!(driver.value_of(types::RECEIVER_POSITION), 0);
    driver.advance(TICK);
    let heard = source.heard(&driver);
    let naks: Vec<_> = heard
        .iter()
        .filter_map(|frame| match ControlFrame::decode(frame) {
            Ok(Some(ControlFrame::Nak(nak))) => Some((nak.term_id, nak.term_offset, nak.length)),
            _ => None,
        })
        .collect();
    assert!(!naks.is_empty());
    assert!(naks.iter().all(|nak| *nak == (5, 0, 1024)));
    assert_eq!(
        driver.value_of(types::RECEIVER_NAKS_SENT),
        naks.len() as i64
    );
    source.data(&driver, 0, 1024, 1);
    driver.work();
    assert_eq!(driver.value_of(types::RECEIVER_POSITION), 2048);
    let [report] = &loss_report::read(&driver.loss_report)[..] else {
        panic!("expected one entry in the loss report");
    };
    assert_eq!(
        (report.observation_count, report.total_bytes_lost),
        (1, 1024)
    );
    assert_eq!(report.image.channel, CHANNEL);
    assert_eq!(report.image.source, "127.0.0.1:9999");
}

#[test]
fn an_image_can_join_a_stream_shortly_before_the_end_of_the_log() {
    for before_the_end in [32, 1024, 8 * 1024] {
        let mut driver = TestDriver::new();
        let position = 3 * TERM - before_the_end;
        let (_, source, _) = joined(&mut driver, CHANNEL, position);
        driver.advance(3 * TICK);
        let told_last = *source.told(&driver).last().unwrap();
        assert_eq!(
            told_last,
            told(position),
            "the window extends beyond the end of the log into the first term buffer"
        );
        source.data(&driver, position, 32, 1);
        source.data(&driver, 3 * TERM, 1024, 1);
        driver.work();
        assert_eq!(driver.value_of(types::RECEIVER_HWM), 3 * TERM + 1024);
    }
}

/// 04-149, 02-81
#[test]
fn gaps_of_an_unreliable_stream_are_filled_and_not_requested() {
    let mut driver = TestDriver::new();
    let (_, source, image) = joined(&mut driver, &format!("{CHANNEL}|reliable=false"), 0);
    source.heard(&driver);
    source.data(&driver, 1024, 1024, 1);
    driver.work();
    assert_eq!(driver.value_of(types::RECEIVER_POSITION), 2048);
    assert_eq!(driver.system(SystemCounter::LossGapFills), 1);
    assert_eq!(driver.system(SystemCounter::NaksSent), 0);
    let log = driver.image_log(&image);
    assert_eq!(log.term(0).load_i32_acquire(0), 1024);
}

/// 04-139, 04-140, 05-38
#[test]
fn each_setup_of_a_stream_with_datagrams_longer_than_the_window_is_refused() {
    let mut driver = TestDriver::new();
    let (subscription, _) = driver.add_subscription(&format!("{CHANNEL}|rcv-wnd=1024"), STREAM);
    for mtu_length in [1408, 1408, 1440, 2048] {
        let source = Source::new(PORT).with_mtu(mtu_length);
        source.setup(&driver, 0);
        driver.work();
    }
    assert!(driver.images_of(subscription).is_empty());
    // The MTU is in the text only if it is the MTU of this driver.
    let [own, other] = &driver.errors()[..] else {
        panic!("{:?}", driver.errors());
    };
    assert!(
        own.contains("mtuLength=1408 > initialWindowLength=1024"),
        "{own}"
    );
    assert!(
        other.contains("mtuLength > initialWindowLength=1024"),
        "{other}"
    );
    assert_eq!(driver.system(SystemCounter::Errors), 4);
    assert!(driver.records_of(types::RECEIVER_HWM).is_empty());
    assert_eq!(driver.logs.count(), 0);
}

/// 04-164
#[test]
fn an_unknown_congestion_control_is_an_error_when_an_image_is_created() {
    let mut driver = TestDriver::new();
    let (subscription, _) = driver.add_subscription(&format!("{CHANNEL}|cc=foo"), STREAM);
    Source::new(PORT).setup(&driver, 0);
    driver.work();
    assert!(driver.images_of(subscription).is_empty());
    assert_eq!(driver.errors().len(), 1);
    assert!(driver.errors()[0].contains("foo"), "{:?}", driver.errors());
    assert_eq!(driver.logs.count(), 0);
}

/// 04-165
#[test]
fn cubic_congestion_control_shows_its_round_trip_and_window() {
    let mut driver = TestDriver::new();
    joined(&mut driver, &format!("{CHANNEL}|cc=cubic"), 0);
    let indicators = driver.records_of(types::PER_IMAGE_INDICATOR);
    let names: Vec<_> = indicators
        .iter()
        .map(|record| record.label.split(':').next().unwrap())
        .collect();
    assert_eq!(names, ["rcv-cc-cubic-rtt", "rcv-cc-cubic-wnd"]);
    assert_eq!(indicators[1].value, 10 * 1408);
    assert_eq!(indicators[1].owner_id, -1);
}

/// 04-157
#[test]
fn a_second_subscriber_joins_at_the_position_of_the_slowest_subscriber() {
    let mut driver = TestDriver::new();
    let (_, source, first) = joined(&mut driver, CHANNEL, 0);
    source.data(&driver, 0, 1024, 1);
    source.data(&driver, 1024, 1024, 1);
    driver.work();
    first.position.set(1024);
    let (second, images) = driver.add_subscription(CHANNEL, STREAM);
    assert_eq!(images[0].subscription_id, second);
    assert_eq!(images[0].position.get(), 1024);
}

/// 04-162, 04-163: the client of the first subscription owns the counters of an image. The first subscription also
/// decides whether the log is sparse.
#[test]
fn the_first_subscription_owns_the_counters_of_an_image_and_decides_about_sparse_pages() {
    let mut driver = TestDriver::new();
    driver.living = vec![CLIENT, 2];
    driver.add_subscription_for(2, &format!("{CHANNEL}|sparse=false"), STREAM);
    driver.add_subscription_for(CLIENT, CHANNEL, STREAM);
    Source::new(PORT).setup(&driver, 0);
    driver.work();
    for type_id in [
        types::RECEIVER_HWM,
        types::RECEIVER_POSITION,
        types::RECEIVER_NAKS_SENT,
    ] {
        let record = &driver.records_of(type_id)[0];
        assert_eq!(record.owner_id, 2);
        assert!(record.label.ends_with("|sparse=false"), "{}", record.label);
    }
    let id = driver.records_of(types::RECEIVER_HWM)[0].registration_id;
    assert!(!driver.image_description(id).sparse);
}

/// 04-155, 04-184
#[test]
fn an_image_without_a_remaining_subscription_drains_and_ends() {
    let mut driver = TestDriver::with(|context| context.image_liveness_timeout_ns = 1_000_000_000);
    let (subscription, source, image) = joined(&mut driver, CHANNEL, 0);
    driver.remove_subscription(subscription);
    assert!(driver.records_of(types::SUBSCRIBER_POSITION).is_empty());
    live(&mut driver, &source, 0, 5);
    assert_eq!(driver.records_of(types::RECEIVER_HWM).len(), 1);
    live(&mut driver, &source, 0, 13);
    assert_eq!(driver.object_counters(), 0);
    assert!(driver.image_memory(&image).is_none());
}

/// 04-156
#[test]
fn a_new_subscription_during_the_drain_of_an_image_gets_a_new_image() {
    let mut driver = TestDriver::new();
    let (subscription, source, first) = joined(&mut driver, CHANNEL, 0);
    let (_other_stream, _) = driver.add_subscription(CHANNEL, STREAM + 1);
    driver.remove_subscription(subscription);
    live(&mut driver, &source, 0, 2);
    let (again, images) = driver.add_subscription(CHANNEL, STREAM);
    assert!(images.is_empty());
    source.setup(&driver, 2048);
    driver.work();
    let [second] = &driver.images_of(again)[..] else {
        panic!("expected one image");
    };
    assert_ne!(second.correlation_id, first.correlation_id);
    assert_eq!(second.position.get(), 2048);
}

/// 04-151, 04-152, 02-61, 02-68
#[test]
fn an_image_ends_after_the_end_of_its_stream_once_all_data_is_read() {
    let mut driver = TestDriver::new();
    let (_, source, image) = joined(&mut driver, CHANNEL, 0);
    source.data(&driver, 0, 1024, 1);
    source.heartbeat(&driver, 1024, EOS);
    driver.hear();
    driver.advance(3 * TICK);
    let metadata = driver.image_log(&image).metadata().clone();
    assert_eq!(metadata.end_of_stream_position(), 1024);
    driver.advance(20 * TICK);
    assert!(names(&driver.hear()).is_empty(), "a subscriber still reads");
    let told = source.told(&driver);
    assert!(told.iter().filter(|told| told.is_end_of_stream).count() > 5);
    image.position.set(1024);
    driver.advance(2 * TICK);
    assert_eq!(names(&driver.hear()), ["UnavailableImage"]);
    source.told(&driver);
    driver.advance(5 * TICK);
    assert!(source.told(&driver).is_empty());
}

/// 04-151, 02-61: the duration of the announcement.
#[test]
fn status_messages_announce_the_end_of_an_image_for_a_second() {
    let mut driver = TestDriver::new();
    let (_, source, _) = joined(&mut driver, CHANNEL, 0);
    source.heartbeat(&driver, 0, EOS);
    driver.work();
    driver.hear();
    source.told(&driver);
    driver.advance(10 * TICK);
    assert!(names(&driver.hear()).is_empty());
    driver.advance(4 * TICK);
    assert_eq!(names(&driver.hear()), ["UnavailableImage"]);
    let told = source.told(&driver);
    assert!((4..=7).contains(&told.len()), "{}", told.len());
    assert!(told[1..].iter().all(|told| told.is_end_of_stream));
}

/// 04-153, 02-69
#[test]
fn a_revoked_stream_ends_at_once() {
    let mut driver = TestDriver::new();
    let (_, source, image) = joined(&mut driver, CHANNEL, 0);
    source.data(&driver, 0, 1024, 1);
    source.heartbeat(&driver, 1024, EOS | flags::REVOKED);
    driver.hear();
    driver.advance(3 * TICK);
    assert_eq!(names(&driver.hear()), ["UnavailableImage"]);
    assert_eq!(driver.system(SystemCounter::PublicationImagesRevoked), 1);
    let log = driver.image_log(&image);
    assert!(log.metadata().is_publication_revoked());
}

/// 04-154, 02-72: an image without data ends after the image liveness timeout. With `rejoin`, a later SETUP creates a
/// new image.
#[test]
fn a_silent_stream_ends_and_gets_a_new_image_only_if_its_subscriptions_rejoin() {
    for rejoins in [true, false] {
        let mut driver =
            TestDriver::with(|context| context.image_liveness_timeout_ns = 1_000_000_000);
        let channel = format!("{CHANNEL}|rejoin={rejoins}");
        let (subscription, source, _) = joined(&mut driver, &channel, 0);
        driver.hear();
        driver.advance(9 * TICK);
        assert!(names(&driver.hear()).is_empty());
        driver.advance(14 * TICK);
        assert_eq!(names(&driver.hear()), ["UnavailableImage"]);
        source.setup(&driver, 4096);
        driver.work();
        let images = driver.images_of(subscription);
        assert_eq!(images.len(), if rejoins { 2 } else { 1 });
    }
}

/// 04-160, 04-161, 02-71
#[test]
fn a_rejected_image_stores_no_data_and_its_source_receives_the_reason() {
    let mut driver = TestDriver::with(|context| context.image_liveness_timeout_ns = 1_000_000_000);
    let (subscription, source, image) = joined(&mut driver, CHANNEL, 0);
    let reject = |reason: &'static [u8], id| {
        Command::RejectImage(RejectImage {
            client_id: CLIENT,
            correlation_id: 5,
            image_correlation_id: id,
            position: 0,
            reason,
        })
    };
    let (code, _) = driver.ask_error(reject(&[b'x'; 1024], image.correlation_id));
    assert_eq!(code, ErrorCode::GenericError);
    let (code, text) = driver.ask_error(reject(b"no", 12345));
    assert_eq!(code, ErrorCode::GenericError);
    assert!(
        text.contains("Unable to resolve image for correlationId=12345"),
        "{text}"
    );
    let heard = driver.ask(reject(b"bad customer", image.correlation_id));
    assert_eq!(names(&heard), ["OperationSuccess"]);
    assert_eq!(driver.system(SystemCounter::ImagesRejected), 1);
    source.heard(&driver);
    source.data(&driver, 0, 1024, 1);
    live(&mut driver, &source, 1024, 10);
    assert_eq!(driver.value_of(types::RECEIVER_POSITION), 0);
    let frames = source.heard(&driver);
    assert!((3..=6).contains(&frames.len()), "{}", frames.len());
    assert_eq!(
        driver.system(SystemCounter::ErrorFramesSent),
        frames.len() as i64
    );
    for type_of_frame in crate::conductor::source::types(&frames) {
        assert_eq!(type_of_frame, FrameType::Error);
    }
    assert!(frames[0].ends_with(b"bad customer"));
    driver.hear();
    live(&mut driver, &source, 1024, 14);
    let heard = driver.hear();
    assert_eq!(names(&heard), ["UnavailableImage"]);
    source.setup(&driver, 1024);
    driver.work();
    assert_eq!(
        driver.images_of(subscription).len(),
        2,
        "after the end of a rejected image, a new image of the stream is possible"
    );
}

/// 04-159
#[test]
fn a_stream_from_another_address_is_received_and_its_first_source_gets_the_control_frames() {
    let mut driver = TestDriver::new();
    let (_, source, _) = joined(&mut driver, CHANNEL, 0);
    let mut elsewhere = source.clone();
    elsewhere.address = "127.0.0.1:8888".parse().unwrap();
    elsewhere.data(&driver, 0, 1024, 1);
    driver.work();
    assert_eq!(driver.value_of(types::RECEIVER_POSITION), 1024);
    driver.advance(3 * TICK);
    let sent = driver.network.memory.take_sent();
    assert!(!sent.is_empty() && sent.iter().all(|sent| sent.to == source.address));
}

/// 04-87, 04-88, 04-90
#[test]
fn an_untethered_subscriber_that_is_too_slow_does_not_hold_back_the_others() {
    let mut driver = TestDriver::with(|context| {
        context.untethered_window_limit_timeout_ns = 300_000_000;
        context.untethered_linger_timeout_ns = Some(300_000_000);
        context.untethered_resting_timeout_ns = 300_000_000;
    });
    let (_, source, fast) = joined(&mut driver, CHANNEL, 0);
    let (slow, _) = driver.add_subscription(&format!("{CHANNEL}|tether=false"), STREAM);
    for position in (0..WINDOW).step_by(1024) {
        source.data(&driver, position, 1024, 1);
    }
    driver.work();
    fast.position.set(WINDOW);
    driver.hear();
    live(&mut driver, &source, WINDOW, 5);
    let heard = driver.hear();
    assert_eq!(names(&heard), ["UnavailableImage"]);
    source.told(&driver);
    live(&mut driver, &source, WINDOW, 4);
    assert_eq!(source.told(&driver).last().unwrap().position, WINDOW);
    live(&mut driver, &source, WINDOW, 5);
    let back = driver.hear();
    let images = driver.images(&back);
    assert_eq!(
        (images[0].subscription_id, images[0].position.get()),
        (slow, WINDOW)
    );
}

#[test]
fn images_get_at_most_half_of_the_free_space() {
    let mut driver = TestDriver::new();
    let (subscription, _) = driver.add_subscription(CHANNEL, STREAM);
    driver.logs.set_usable_space(1_000_000);
    for session_id in 1..50 {
        let source = Source::new(PORT).with_session(session_id);
        source.setup(&driver, 0);
        driver.work();
    }
    let images = driver.images_of(subscription).len();
    assert!((5..15).contains(&images), "{images}");
    assert!(driver.logs.usable_space_left() >= 490_000);
    let [error] = &driver.errors()[..] else {
        panic!("{:?}", driver.errors());
    };
    let expected = "images may not take more than half of the free space in /aeron";
    assert!(error.contains(expected), "{error}");
    // The other half of the space is left for publications.
    driver.add_publication("aeron:ipc", STREAM);
}

/// An endpoint has at most 1,024 images. Images that have ended count until the receiver forgets them.
#[test]
fn an_endpoint_has_at_most_1024_images_including_images_that_have_ended() {
    let mut driver = TestDriver::new();
    let (subscription, _) = driver.add_subscription(CHANNEL, STREAM);
    let session = |session_id| Source::new(PORT).with_session(session_id);
    for session_id in 1..=MAX_IMAGES as i32 {
        session(session_id).setup(&driver, 0);
        driver.work();
        session(session_id).heartbeat(&driver, 0, EOS);
    }
    driver.advance(14 * TICK);
    let heard = names(&driver.hear());
    assert_eq!(
        heard
            .iter()
            .filter(|name| *name == "UnavailableImage")
            .count(),
        MAX_IMAGES
    );
    session(-1).setup(&driver, 0);
    driver.work();
    assert_eq!(driver.images_of(subscription).len(), MAX_IMAGES);
    let [error] = &driver.errors()[..] else {
        panic!("{:?}", driver.errors());
    };
    assert!(error.contains("exceeded 1024 images"), "{error}");
    driver.advance(120 * TICK);
    session(-1).setup(&driver, 0);
    driver.work();
    assert_eq!(driver.images_of(subscription).len(), MAX_IMAGES + 1);
}
