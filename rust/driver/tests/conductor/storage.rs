//! Tests of logs and of the space that logs use.

use std::time::Duration;

use aeron_memory::counters::system::SystemCounter;
use aeron_memory::counters::types;
use aeron_protocol::ErrorCode;
use aeron_protocol::frame::flags;

use crate::conductor::harness::{CLIENT, STREAM, TERM, TICK, TestDriver, WINDOW, names};
use crate::conductor::source::Source;

const CHANNEL: &str = "aeron:udp?endpoint=localhost:20121";
const LOG_LENGTH: u64 = 3 * TERM as u64 + 4096;

/// 04-58, 03-57: the part about IPC.
#[test]
fn a_log_without_enough_free_space_is_refused() {
    let mut driver = TestDriver::new();
    driver.logs.set_usable_space(LOG_LENGTH - 1);
    let command = driver.publication_command(CLIENT, "aeron:ipc", STREAM, false);
    let (code, text) = driver.ask_error(command);
    assert_eq!(code, ErrorCode::StorageSpace);
    let expected = format!(
        "insufficient usable storage for new log of length={LOG_LENGTH} usable={} in /aeron",
        LOG_LENGTH - 1
    );
    assert!(
        text.starts_with("(-12) insufficient storage space\n"),
        "{text}"
    );
    assert!(text.contains(&expected), "{text}");
    assert_eq!(
        (driver.logs.count(), driver.cnc.counters().records().count()),
        (0, 46)
    );
}

#[test]
fn all_refusals_for_lack_of_space_are_one_entry_in_the_error_log() {
    let mut driver = TestDriver::with(|context| context.perform_storage_checks = false);
    for space in 0..5 {
        driver.logs.set_usable_space(space);
        let (code, text) = driver.publication_error("aeron:ipc", STREAM);
        assert_eq!(code, ErrorCode::StorageSpace);
        assert!(text.contains("registrationId="), "{text}");
    }
    assert_eq!(driver.errors().len(), 1, "{:?}", driver.errors());
    assert!(!driver.errors()[0].contains("registrationId="));
    let mut driver = TestDriver::new();
    for space in 0..5 {
        driver.logs.set_usable_space(LOG_LENGTH - 1 - space);
        let (_, text) = driver.publication_error("aeron:ipc", STREAM);
        assert!(text.contains("usable="), "{text}");
    }
    assert_eq!(driver.errors().len(), 1, "{:?}", driver.errors());
}

/// 04-58, 03-57, 03-59
#[test]
fn a_network_publication_without_enough_free_space_is_refused_and_leaves_no_resource() {
    let mut driver = TestDriver::new();
    driver.logs.set_usable_space(LOG_LENGTH - 1);
    let (code, text) = driver.publication_error(CHANNEL, STREAM);
    assert_eq!(code, ErrorCode::StorageSpace);
    let expected =
        format!("insufficient usable storage for new log of length={LOG_LENGTH} usable=");
    assert!(text.contains(&expected), "{text}");
    assert_eq!((driver.logs.count(), driver.object_counters()), (0, 0));
    assert!(driver.network.opened().is_empty());
    assert!(driver.heartbeat(CLIENT).is_none());
}

/// 04-58
#[test]
fn an_image_without_enough_free_space_is_created_by_a_later_setup() {
    let mut driver = TestDriver::new();
    let (subscription, _) = driver.add_subscription(CHANNEL, STREAM);
    driver.logs.set_usable_space(LOG_LENGTH - 1);
    let source = Source::new(20121);
    source.setup(&driver, 0);
    driver.work();
    assert!(driver.errors()[0].contains("insufficient usable storage"));
    assert_eq!(driver.logs.count(), 0);
    // Later attempts find different amounts of free space, but share one entry of the error log.
    for missing in 2..10 {
        driver.logs.set_usable_space(LOG_LENGTH - missing);
        source.setup(&driver, 0);
        driver.work();
    }
    assert_eq!(driver.errors().len(), 1, "{:?}", driver.errors());
    assert_eq!(driver.system(SystemCounter::Errors), 9);
    driver.logs.set_usable_space(10 * LOG_LENGTH);
    source.setup(&driver, 0);
    driver.work();
    assert_eq!(driver.images_of(subscription).len(), 1);
}

#[test]
fn on_a_full_file_system_an_image_stores_data_only_on_allocated_pages() {
    let mut driver = TestDriver::new();
    let (subscription, _) = driver.add_subscription(CHANNEL, STREAM);
    let source = Source::new(20121);
    source.setup(&driver, 0);
    driver.work();
    let image = driver.images_of(subscription)[0].clone();
    driver.logs.set_usable_space(0);
    source.told(&driver);
    let mut position = 0;
    // The source sends all data that the window allows.
    let mut end = WINDOW;
    for _ in 0..20 {
        while position + 1024 <= end {
            source.data(&driver, position, 1024, 1);
            position += 1024;
        }
        source.heartbeat(&driver, position, flags::UNFRAGMENTED);
        driver.advance(TICK);
        image
            .position
            .set(driver.value_of(types::RECEIVER_POSITION));
        driver.advance(3 * TICK);
        let told = source.told(&driver);
        end = told
            .last()
            .map_or(end, |told| told.position + i64::from(told.window));
    }
    assert!((WINDOW..TERM).contains(&position), "{position}");
    assert_eq!(driver.value_of(types::RECEIVER_POSITION), position);
    assert_eq!(driver.system(SystemCounter::FlowControlOverRuns), 0);
    assert_eq!(driver.errors().len(), 1, "{:?}", driver.errors());
    // Data after the window is dropped, because its page might not be allocated.
    source.data(&driver, position + 4096, 1024, 1);
    driver.work();
    assert_eq!(driver.system(SystemCounter::FlowControlOverRuns), 1);
    driver.logs.set_usable_space(100 * LOG_LENGTH);
    source.heartbeat(&driver, position, flags::UNFRAGMENTED);
    driver.advance(5 * TICK);
    let told = source.told(&driver);
    assert_eq!(i64::from(told.last().unwrap().window), WINDOW);
}

/// 04-58
#[test]
fn little_free_space_causes_only_a_warning() {
    let mut driver =
        TestDriver::with(|context| context.low_file_store_warning_threshold = 10_000_000);
    driver.logs.set_usable_space(10_000_001);
    driver.add_publication("aeron:ipc", STREAM);
    assert_eq!(driver.errors().len(), 0);
    driver.add_publication("aeron:ipc", STREAM + 1);
    driver.add_publication("aeron:ipc", STREAM + 2);
    assert_eq!(driver.errors().len(), 1);
    assert!(
        driver.errors()[0].contains("space is running low"),
        "{:?}",
        driver.errors()
    );
}

#[test]
fn storage_checks_can_be_turned_off() {
    let mut driver = TestDriver::with(|context| context.perform_storage_checks = false);
    driver.logs.set_usable_space(8192);
    driver.add_publication("aeron:ipc", STREAM);
    let command = driver.publication_command(CLIENT, "aeron:ipc", STREAM + 1, false);
    assert_eq!(driver.ask_error(command).0, ErrorCode::StorageSpace);
    assert_eq!(driver.logs.count(), 1);
}

#[test]
fn a_publication_without_subscribers_allocates_no_window() {
    let mut driver = TestDriver::new();
    driver.logs.set_usable_space(LOG_LENGTH);
    driver.add_publication("aeron:ipc", STREAM);
    driver.advance(Duration::from_secs(1));
    driver.logs.set_usable_space(0);
    driver.add_subscription("aeron:ipc", STREAM);
    assert_eq!(driver.errors().len(), 1);
}

#[test]
fn on_a_full_file_system_publishers_wait_and_continue_when_there_is_space() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let (_, images) = driver.add_subscription("aeron:ipc", STREAM);
    driver.work();
    assert_eq!(publication.limit.get(), WINDOW);
    driver.logs.set_usable_space(0);
    while publication.log.producer_position() < WINDOW {
        publication.offer(1_000);
    }
    images[0].position.set(publication.log.producer_position());
    driver.advance(Duration::from_secs(5));
    assert!(
        (WINDOW..TERM).contains(&publication.limit.get()),
        "the limit stays within the allocated pages"
    );
    assert_eq!(driver.errors().len(), 1, "{:?}", driver.errors());
    assert!(
        driver.errors()[0].contains("failed to allocate pages of log"),
        "{:?}",
        driver.errors()
    );
    driver.advance(Duration::from_secs(60));
    assert_eq!(driver.system(SystemCounter::Errors), 1);
    driver.logs.set_usable_space(10 * LOG_LENGTH);
    driver.advance(Duration::from_secs(1));
    assert!(publication.limit.get() > TERM);
}

/// Channels of publications, with the channels of their subscribers.
const ROUTES: [(&str, &str); 3] = [
    ("aeron:ipc", "aeron:ipc"),
    (CHANNEL, CHANNEL),
    (
        "aeron:udp?endpoint=localhost:20121|ssc=true",
        "aeron-spy:aeron:udp?endpoint=localhost:20121",
    ),
];

/// When a publication becomes connected, its limit is already a whole window ahead; with a long window, 1 MiB ahead.
#[test]
fn a_connected_publisher_has_room() {
    for (channel, subscribed) in ROUTES {
        let mut driver = TestDriver::new();
        let publication = driver.add_publication(channel, STREAM);
        for _ in 0..2 {
            let position = publication.log.producer_position();
            let command = driver.subscription_command(CLIENT, subscribed, STREAM);
            let subscription = command.correlation_id();
            driver.send(command);
            let mut steps = 0;
            while !publication.is_connected() {
                driver.step_with(|| {
                    let has_room = publication.limit.get() >= position + WINDOW;
                    assert!(has_room || !publication.is_connected(), "{channel}");
                });
                steps += 1;
                assert!(steps < 1_000, "{channel}: the publication is not connected");
            }
            publication.offer(1_000);
            driver.advance(TICK);
            for image in driver.images_of(subscription) {
                image.position.set(publication.log.producer_position());
            }
            driver.advance(TICK);
            driver.remove_subscription(subscription);
            driver.advance(Duration::from_secs(20));
            assert!(!publication.is_connected(), "{channel}");
        }
    }
}

/// A publisher that appends before the publication is connected does not prevent the connection.
#[test]
fn a_publication_becomes_connected_even_if_its_publisher_has_already_appended() {
    const MIB: i64 = 1024 * 1024;
    for (channel, subscribed) in ROUTES {
        let mut driver = TestDriver::new();
        let separator = if channel.contains('?') { '|' } else { '?' };
        let publication =
            driver.add_publication(&format!("{channel}{separator}term-length=64m"), STREAM);
        let command = driver.subscription_command(CLIENT, subscribed, STREAM);
        let subscription = command.correlation_id();
        driver.send(command);
        for _ in 0..1_000 {
            driver.step_with(|| {});
            if publication.is_connected() {
                break;
            }
            while publication.log.producer_position() < publication.limit.get() {
                publication.try_offer(MIB as usize);
            }
            for image in driver.images_of(subscription) {
                image.position.set(publication.log.producer_position());
            }
        }
        assert!(publication.is_connected(), "{channel}");
        let position = publication.log.producer_position();
        assert!(position <= 48 * MIB, "{channel}: {position}");
    }
}

/// 04-197: the image follows the response to the command that adds its subscription or its publication. No other event
/// is between them, although more commands follow. Publishers then have room for 1 MiB.
#[test]
fn an_image_directly_follows_the_response_and_the_next_offer_succeeds() {
    const MIB: i64 = 1024 * 1024;
    for (channel, subscribed) in [ROUTES[0], ROUTES[2]] {
        let separator = if channel.contains('?') { '|' } else { '?' };
        for term_length in [64 * 1024, MIB, 64 * MIB, 1024 * MIB] {
            let channel = format!("{channel}{separator}term-length={term_length}");
            let end = term_length - 4096;
            for parameters in [
                "sparse=true".to_owned(),
                // The first pages are on both sides of the end of the log.
                format!("init-term-id=1|term-id=3|term-offset={end}"),
                "sparse=false".to_owned(),
            ] {
                // Longer logs have too many pages for this test.
                if parameters == "sparse=false" && term_length > MIB {
                    continue;
                }
                for is_subscribed_first in [false, true] {
                    let channel = format!("{channel}|{parameters}");
                    check_image_after_response(&channel, subscribed, is_subscribed_first);
                }
            }
        }
    }
}

fn check_image_after_response(channel: &str, subscribed: &str, is_subscribed_first: bool) {
    const MIB: i64 = 1024 * 1024;
    let mut driver = TestDriver::new();
    // The client and its counter for heartbeats exist.
    driver.add_subscription("aeron:ipc", STREAM + 1);
    let first = match is_subscribed_first {
        true => driver.subscription_command(CLIENT, subscribed, STREAM),
        false => driver.publication_command(CLIENT, channel, STREAM, true),
    };
    driver.send(first);
    driver.work();
    let heard_first = driver.hear();
    for command in [
        match is_subscribed_first {
            true => driver.publication_command(CLIENT, channel, STREAM, true),
            false => driver.subscription_command(CLIENT, subscribed, STREAM),
        },
        driver.publication_command(CLIENT, "aeron:ipc", STREAM + 2, true),
        driver.publication_command(CLIENT, "aeron:ipc", STREAM + 3, true),
    ] {
        driver.send(command);
    }
    let mut heard = Vec::new();
    while names(&heard)
        .last()
        .is_none_or(|name| name != "AvailableImage")
    {
        driver.duty_cycle();
        heard.extend(driver.hear());
        assert!(heard.len() < 6, "{channel}: {:?}", names(&heard));
    }
    let response = &heard[heard.len() - 2];
    let publication = match is_subscribed_first {
        true => driver.publication_in(response),
        false => {
            assert_eq!(names(std::slice::from_ref(response)), ["SubscriptionReady"]);
            driver.publication_in(&heard_first[0])
        }
    };
    let publication = publication.expect(channel);
    let image = &driver.images(&heard)[0];
    assert_eq!(image.correlation_id, publication.registration_id);
    assert!(publication.is_connected(), "{channel}");
    let room = publication.limit.get() - publication.log.producer_position();
    let window = i64::from(
        publication
            .log
            .metadata()
            .description()
            .publication_window_length,
    );
    assert!(room >= window.min(MIB), "{channel}: {room}");
    publication.offer(1_000);
}

/// 04-197: the pages that a new subscriber needs are there before the response to the command that adds it.
#[test]
fn a_subscriber_of_a_consumed_stream_finds_room() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc?term-length=16m", STREAM);
    for _ in 0..40 {
        let (subscription, images) = driver.add_subscription("aeron:ipc", STREAM);
        assert!(publication.is_connected());
        while publication.log.producer_position() < publication.limit.get() {
            publication.try_offer(512 * 1024);
        }
        images[0].position.set(publication.log.producer_position());
        driver.work();
        driver.remove_subscription(subscription);
    }
    assert!(publication.log.producer_position() > 40 * 1024 * 1024);
}

#[test]
fn the_first_message_of_a_long_term_allocates_little_space() {
    const MIB: u64 = 1024 * 1024;
    for (channel, subscribed) in ROUTES {
        let mut driver = TestDriver::new();
        let separator = if channel.contains('?') { '|' } else { '?' };
        let channel = format!("{channel}{separator}term-length=1g");
        let before = driver.logs.usable_space_left();
        let publication = driver.add_publication(&channel, STREAM);
        let command = driver.subscription_command(CLIENT, subscribed, STREAM);
        driver.send(command);
        for _ in 0..1_000 {
            driver.step();
            if publication.is_connected() {
                break;
            }
        }
        publication.offer(1_000);
        driver.advance(10 * TICK);
        let taken = before - driver.logs.usable_space_left();
        assert!(taken < 16 * MIB, "{channel}: {taken}");
    }
}

#[test]
fn the_window_grows_to_its_usual_length_while_subscribers_do_not_read() {
    const MIB: usize = 1024 * 1024;
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc?term-length=64m", STREAM);
    driver.add_subscription("aeron:ipc", STREAM);
    let mut limits = Vec::new();
    while limits.last() != Some(&publication.limit.get()) {
        limits.push(publication.limit.get());
        while publication.log.producer_position() < publication.limit.get() {
            publication.try_offer(MIB);
        }
        driver.work();
    }
    assert_eq!(limits[0], 4 * MIB as i64);
    assert_eq!(limits.last(), Some(&(32 * MIB as i64)), "{limits:?}");
}

/// While there is no space for the first window, the publication is connected and its limit is 0.
#[test]
fn without_space_for_the_first_window_publishers_are_connected_and_get_back_pressure() {
    for (channel, subscribed) in [ROUTES[0], ROUTES[2]] {
        let mut driver = TestDriver::new();
        let publication = driver.add_publication(channel, STREAM);
        driver.logs.set_usable_space(0);
        driver.add_subscription(subscribed, STREAM);
        driver.work();
        assert!(publication.is_connected(), "{channel}");
        assert_eq!(publication.limit.get(), 0, "{channel}");
        assert_eq!(driver.errors().len(), 1, "{:?}", driver.errors());
        driver.logs.set_usable_space(LOG_LENGTH);
        driver.advance(TICK);
        assert_eq!(publication.limit.get(), WINDOW, "{channel}");
    }
}

#[test]
fn a_log_that_is_not_sparse_is_allocated_completely() {
    let mut driver = TestDriver::new();
    driver.logs.set_usable_space(LOG_LENGTH);
    let publication = driver.add_publication("aeron:ipc?sparse=false", STREAM);
    driver.add_subscription("aeron:ipc", STREAM);
    driver.advance(Duration::from_secs(1));
    assert_eq!(publication.limit.get(), WINDOW);
    assert!(!publication.log.metadata().description().sparse);
    assert_eq!(names(&driver.hear()), [""; 0]);
}

/// 04-185, 04-186, 01-47: the bytes of a log are counted when the log is mapped, and subtracted when it is deleted.
#[test]
fn the_mapped_bytes_of_a_log_are_counted_until_the_log_is_removed() {
    let mut driver = TestDriver::new();
    let before = driver.system(SystemCounter::BytesMapped);
    let publication = driver.add_publication("aeron:ipc", STREAM);
    driver.add_subscription("aeron:ipc", STREAM);
    assert_eq!(
        driver.system(SystemCounter::BytesMapped) - before,
        LOG_LENGTH as i64
    );
    driver.remove_publication(&publication, false);
    driver.advance(Duration::from_secs(1));
    assert_eq!(driver.system(SystemCounter::BytesMapped), before);
    assert!(driver.publication_log(&publication).is_none());
}
