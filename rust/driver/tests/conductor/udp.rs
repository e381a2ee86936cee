//! A publication and a subscription of one driver that meet on the network.

use aeron_memory::Words;

use crate::harness::{STREAM, TestDriver};

const CHANNEL: &str = "aeron:udp?endpoint=localhost:20121|term-length=64k";

#[test]
fn what_is_published_arrives_in_the_log_of_an_image_02_48() {
    let mut driver = TestDriver::new();
    let (subscription, images) = driver.add_subscription(CHANNEL, STREAM);
    assert!(images.is_empty());
    let publication = driver.add_publication(CHANNEL, STREAM);
    let [image] = &driver.images_of(subscription)[..] else {
        panic!("one image");
    };
    assert_eq!(image.subscription_id, subscription);
    assert_eq!(image.session_id, publication.session_id);
    driver.work();
    assert!(publication.is_connected());
    publication.offer(100);
    driver.work();
    let log = driver.image_log(image);
    assert_eq!(log.term(0).load_i32_acquire(0), 132);
}
