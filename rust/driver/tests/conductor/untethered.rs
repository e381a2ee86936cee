//! Tests of untethered subscribers.

use std::time::Duration;

use aeron_memory::counters::types;

use crate::conductor::harness::{Image, Publication, STREAM, TestDriver, WINDOW, names};

const CHANNEL: &str = "aeron:ipc?untethered-window-limit-timeout=500ms|untethered-linger-timeout=700ms|\
    untethered-resting-timeout=900ms";

/// Returns a publication with two subscribers. The first is tethered, and the second has the channel `untethered`.
///
/// The window is full. Only the first subscriber has read the data.
fn blocked(untethered: &str) -> (TestDriver, Publication, Image, Image) {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication(CHANNEL, STREAM);
    let (_, tethered) = driver.add_subscription("aeron:ipc", STREAM);
    let (_, untethered) = driver.add_subscription(untethered, STREAM);
    driver.work();
    while publication.log.producer_position() < publication.limit.get() {
        publication.offer(1_000);
    }
    tethered[0]
        .position
        .set(publication.log.producer_position());
    driver.work();
    (
        driver,
        publication,
        tethered[0].clone(),
        untethered[0].clone(),
    )
}

/// 04-87
#[test]
fn a_tethered_subscriber_holds_back_the_publisher_without_a_time_limit() {
    let (mut driver, publication, ..) = blocked("aeron:ipc");
    driver.advance(Duration::from_secs(60));
    assert_eq!(publication.limit.get(), WINDOW);
    assert_eq!(names(&driver.hear()), [""; 0]);
}

/// 04-87, 04-88
#[test]
fn an_untethered_subscriber_is_unlinked_rests_and_rejoins_with_its_counter() {
    let (mut driver, publication, _, image) = blocked("aeron:ipc?tether=false");
    driver.advance(Duration::from_millis(400));
    assert_eq!(names(&driver.hear()), [""; 0]);
    driver.advance(Duration::from_millis(300));
    assert_eq!(names(&driver.hear()), ["UnavailableImage"]);
    assert_eq!(publication.limit.get(), WINDOW);
    driver.advance(Duration::from_millis(900));
    assert!(publication.limit.get() > WINDOW);
    driver.advance(Duration::from_millis(1_000));
    let heard = driver.hear();
    assert_eq!(names(&heard), ["AvailableImage"]);
    let again = &driver.images(&heard)[0];
    assert_eq!(
        (again.correlation_id, again.position.id()),
        (image.correlation_id, image.position.id())
    );
    assert_eq!(again.position.get(), publication.log.producer_position());
}

/// 04-89
#[test]
fn an_untethered_subscriber_that_does_not_rejoin_loses_its_counter() {
    let (mut driver, publication, tethered, _) = blocked("aeron:ipc?tether=false|rejoin=false");
    driver.advance(Duration::from_secs(10));
    assert_eq!(names(&driver.hear()), ["UnavailableImage"]);
    assert_eq!(
        driver.counters_of(types::SUBSCRIBER_POSITION),
        [tethered.position.id()]
    );
    assert!(publication.limit.get() > WINDOW);
}

#[test]
fn an_untethered_subscriber_that_keeps_up_stays_linked() {
    let (mut driver, publication, _, image) = blocked("aeron:ipc?tether=false");
    image
        .position
        .set(publication.log.producer_position() - WINDOW / 2);
    driver.advance(Duration::from_secs(10));
    assert_eq!(names(&driver.hear()), [""; 0]);
}

/// 04-90
#[test]
fn a_resting_subscriber_neither_holds_back_nor_connects_the_publication() {
    let (mut driver, publication, tethered, resting) = blocked("aeron:ipc?tether=false");
    driver.advance(Duration::from_millis(1_600));
    assert_eq!(resting.position.get(), 0);
    let end = publication.log.producer_position();
    assert_eq!(publication.limit.get(), end + WINDOW);
    assert!(publication.is_connected());
    driver.remove_subscription(tethered.subscription_id);
    assert!(!publication.is_connected());
    driver.work();
    assert_eq!(publication.limit.get(), end);
}
