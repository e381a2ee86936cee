//! Tests of a publication and a subscription of one driver that are connected over the network.

use aeron_memory::Words;

use aeron_memory::counters::system::SystemCounter;

use crate::conductor::harness::{STREAM, TERM, TICK, TestDriver};

const CHANNEL: &str = "aeron:udp?endpoint=localhost:20121|term-length=64k";

#[test]
fn published_data_arrives_in_the_log_of_an_image_02_48() {
    let mut driver = TestDriver::new();
    let (subscription, images) = driver.add_subscription(CHANNEL, STREAM);
    assert!(images.is_empty());
    let publication = driver.add_publication(CHANNEL, STREAM);
    let [image] = &driver.images_of(subscription)[..] else {
        panic!("expected one image");
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

/// Sends 20 terms of messages at 2 % loss. Returns the driver, the first byte of each sent message, and the first byte
/// of each received message.
fn transfer_under_loss(reliable: bool) -> (TestDriver, Vec<u8>, Vec<u8>) {
    let mut driver = TestDriver::with(|context| {
        context.udp_channel_incoming_interceptors = "loss".into();
        let arguments = "rate=0.02|seed=7|recv-msg-mask=0x2";
        context.udp_channel_transport_bindings_loss_args = arguments.into();
    });
    let channel = format!("{CHANNEL}|reliable={reliable}");
    let (subscription, _) = driver.add_subscription(&channel, STREAM);
    let publication = driver.add_publication(CHANNEL, STREAM);
    driver.advance(5 * TICK);
    let image = driver.images_of(subscription)[0].clone();
    let log = driver.image_log(&image);
    let (mut sent, mut received) = (Vec::new(), Vec::new());
    let mut next = 0u8;
    while image.position.get() < 20 * TERM {
        if publication.limit.get() > publication.log.producer_position() + 2_048
            && publication.offer_bytes(&[next; 1_000])
        {
            sent.push(next);
            next = next.wrapping_add(1);
        }
        driver.step();
        let mut cursor = log.cursor(image.position.get()).unwrap();
        while let Some(fragment) = cursor.next_fragment().unwrap() {
            received.push(fragment.to_vec()[0]);
        }
        image.position.set(cursor.position());
    }
    (driver, sent, received)
}

/// 04-191
#[test]
fn a_reliable_stream_is_complete_in_spite_of_loss() {
    let (driver, sent, received) = transfer_under_loss(true);
    assert_eq!(received, sent[..received.len()]);
    assert!(driver.system(SystemCounter::RetransmitsSent) > 10);
    assert_eq!(driver.system(SystemCounter::LossGapFills), 0);
}

/// 04-191
#[test]
fn an_unreliable_stream_continues_in_spite_of_loss() {
    let (driver, sent, received) = transfer_under_loss(false);
    assert!(received.len() > sent.len() * 9 / 10 && received.len() < sent.len() - 10);
    assert_eq!(driver.system(SystemCounter::NaksSent), 0);
    assert!(driver.system(SystemCounter::LossGapFills) > 10);
}
