//! How the next driver gets the resources of a client.

use super::*;

#[test]
fn commands_without_a_driver_wait_for_the_next_driver() {
    let client = Client::new();
    client.lose_driver();
    let mut publication = client
        .aeron
        .async_add_exclusive_publication(CHANNEL, STREAM)
        .unwrap();
    let mut subscription = client
        .aeron
        .async_add_subscription(CHANNEL, STREAM)
        .unwrap();
    client.run_ms(50);
    assert!(publication.poll().unwrap().is_none() && subscription.poll().unwrap().is_none());
    client.reconnect();
    let (publication, subscription) = (publication.wait().unwrap(), subscription.wait().unwrap());
    client.run_ms(2);
    assert!(publication.offer(b"on").is_ok());
    assert_eq!(received(&subscription), ["on"]);
}

#[test]
fn a_command_without_a_response_is_sent_to_the_next_driver() {
    let client = Client::new();
    client.directory.driver().mute();
    let mut publication = client.aeron.async_add_publication(CHANNEL, STREAM).unwrap();
    let mut session = client.aeron.async_next_session_id(STREAM).unwrap();
    client.lose_driver();
    client.reconnect();
    assert_eq!(publication.wait().unwrap().generation(), 0);
    assert_eq!(session.wait().unwrap(), 4242);
}

#[test]
fn an_operation_never_takes_the_result_of_a_command_to_the_next_driver() {
    let client = Client::new();
    let mut first = client.aeron.async_add_publication(CHANNEL, 200).unwrap();
    // The response has come, but the application has not fetched it.
    client.run_ms(3);
    client.lose_driver();
    client.directory.restart();
    client.run_ms(200);
    let mut second = client.aeron.async_add_publication(CHANNEL, 999).unwrap();
    let mut cancelled = client.aeron.async_add_publication(CHANNEL, 300).unwrap();
    assert!(cancelled.cancel());
    assert_eq!(first.wait().unwrap().stream_id(), 200);
    assert_eq!(second.wait().unwrap().stream_id(), 999);
    client.run_ms(20);
    assert_eq!(lock(&client.reports).len(), 1);
}

#[test]
fn an_operation_of_a_lost_driver_can_be_cancelled_without_harm_to_the_restoration() {
    let client = Client::with(|context| context.driver_timeout_ms = 2_000);
    let (publication, subscription) = (client.publish(), client.subscribe());
    let mut pending: Vec<_> = (0..6)
        .map(|stream| client.aeron.async_add_publication(CHANNEL, stream).unwrap())
        .collect();
    client.run_ms(3);
    client.lose_driver();
    client.directory.restart();
    while !client.aeron.has_driver() {
        client.run_ms(1);
    }
    pending.iter_mut().for_each(|operation| {
        operation.cancel();
    });
    client.run_ms(5_000);
    assert_eq!(lock(&client.reports).len(), 1);
    assert_eq!(publication.generation(), 1);
    drop(subscription);
}

#[test]
fn a_resource_that_is_refused_until_the_end_closes_without_another_loss() {
    for driver_timeout_ms in 200..230 {
        let client = Client::with(|context| context.driver_timeout_ms = driver_timeout_ms);
        let closing = client
            .aeron
            .add_publication(crate::testing::CLOSING_CHANNEL, 7)
            .unwrap();
        client.lose_driver();
        client.directory.restart();
        client.directory.driver().keep_closing(usize::MAX);
        client.run_ms(900);
        assert!(closing.is_closed());
        let losses = client.log.take();
        let losses = losses.iter().filter(|line| line.starts_with("lost"));
        assert_eq!(losses.count(), 1, "driver timeout {driver_timeout_ms} ms");
    }
}

#[test]
fn a_response_channel_names_the_subscription_in_the_next_driver() {
    let client = Client::new();
    // The next driver gives its ids in another order.
    let unused = client.aeron.add_subscription(CHANNEL, 1).unwrap();
    let responses = client
        .aeron
        .add_subscription("aeron:udp?control-mode=response|control=a:1", 2)
        .unwrap();
    drop(unused);
    let channel = format!(
        "aeron:udp?endpoint=b:2|response-correlation-id={}",
        responses.registration_id()
    );
    let requests = client.aeron.add_publication(&channel, 3).unwrap();
    let response = client
        .aeron
        .add_publication(
            "aeron:udp?control-mode=response|response-correlation-id=9999",
            4,
        )
        .unwrap();
    for _ in 0..2 {
        client.lose_driver();
        client.reconnect();
        assert!(!requests.is_closed() && requests.channel() == channel);
        let added = client.directory.driver().bodies(0x01);
        let text = String::from_utf8_lossy(&added[0]).into_owned();
        let id = responses.registration_id();
        assert!(
            text.contains(&format!("response-correlation-id={id}")),
            "{text}"
        );
    }
    // The image of the request has ended, so the response publication has no use.
    assert!(response.is_closed());
    let reports = lock(&client.reports);
    assert!(reports[0].outage < Duration::from_millis(500));
    let refusal = text::<()>(Err(reports[0].refused[0].clone()));
    assert!(refusal.contains("has ended with its driver"), "{refusal}");
}

#[test]
fn a_destination_is_added_when_the_next_driver_has_its_publication() {
    let client = Client::new();
    let manual = "aeron:udp?control-mode=manual";
    let others: Vec<_> = (0..3)
        .map(|stream| client.aeron.add_publication(manual, stream).unwrap())
        .collect();
    let publication = client.aeron.add_publication(manual, 9).unwrap();
    let subscription = client.aeron.add_subscription(manual, 9).unwrap();
    publication
        .add_destination("aeron:udp?endpoint=old:1")
        .unwrap();
    client.lose_driver();
    let channel = "aeron:udp?endpoint=new:1";
    let mut added = publication.async_add_destination(channel).unwrap();
    let mut received = subscription.async_add_destination(channel).unwrap();
    let mut removed = publication
        .async_remove_destination("aeron:udp?endpoint=old:1")
        .unwrap();
    client.directory.restart();
    for _ in 0..300 {
        client.run_ms(1);
        added.poll().unwrap();
        received.poll().unwrap();
        removed.poll().unwrap();
    }
    assert!(added.is_finished() && received.is_finished() && removed.is_finished());
    let driver = client.directory.driver();
    let ids: Vec<i64> = [0x07, 0x08, 0x0C]
        .into_iter()
        .flat_map(|type_id| driver.bodies(type_id))
        .map(|body| i64::from_ne_bytes(body[16..24].try_into().unwrap()))
        .collect();
    let (publication_id, subscription_id) = (
        publication.registration_id(),
        subscription.registration_id(),
    );
    // The old destination, the new one, the removal, and the destination of the subscription.
    assert_eq!(
        ids,
        [
            publication_id,
            publication_id,
            publication_id,
            subscription_id
        ]
    );
    drop(others);
}

#[test]
fn a_command_fails_if_no_driver_comes_within_the_driver_timeout() {
    let client = Client::with(|context| context.driver_timeout_ms = 200);
    client.lose_driver();
    let mut publication = client.aeron.async_add_publication(CHANNEL, STREAM).unwrap();
    client.run_ms(250);
    assert_eq!(
        text(publication.poll().map(|_| ())),
        "1000: no response from MediaDriver within 200ms"
    );
    assert!(!client.aeron.is_closed());
}

#[test]
fn resources_that_are_closed_without_a_driver_are_not_added_to_the_next() {
    let client = Client::new();
    let (publication, subscription) = (client.publish(), client.subscribe());
    let counter = client.aeron.add_counter(1001, b"", "counter").unwrap();
    client.lose_driver();
    publication.close();
    drop(subscription);
    counter.close();
    client.reconnect();
    assert_eq!(client.directory.driver().sent(), [0; 0]);
    assert!(publication.is_closed() && counter.is_closed());
    assert_eq!(
        publication.offer(b"x"),
        Err(OfferError::Append(AppendError::Closed))
    );
}

#[test]
fn a_resource_that_is_closed_while_the_next_driver_adds_it_is_removed_again() {
    let client = Client::new();
    let publication = client.publish();
    client.lose_driver();
    client.directory.restart();
    client.directory.driver().mute();
    client.run_ms(300);
    publication.close();
    client.directory.driver().unmute();
    client.run_ms(5);
    let sent = client.directory.driver().sent();
    // ADD_EXCLUSIVE_PUBLICATION and REMOVE_PUBLICATION
    assert_eq!(sent, [0x03, 0x02]);
}

#[test]
fn a_driver_that_refuses_a_resource_closes_only_this_resource() {
    let client = Client::with(|context| context.driver_timeout_ms = 500);
    let subscription = client.subscribe();
    let publication = client.publish();
    let closing = client
        .aeron
        .add_publication(crate::testing::CLOSING_CHANNEL, 7)
        .unwrap();
    client.lose_driver();
    client.directory.restart();
    client.directory.driver().keep_closing(usize::MAX);
    client.run_ms(900);
    assert!(client.aeron.has_driver() && closing.is_closed());
    assert!(publication.offer(b"on").is_ok() && !subscription.is_closed());
    let report = client.report();
    assert_eq!(report.refused.len(), 1);
    assert!(text::<()>(Err(report.refused[0].clone())).contains("refused by the driver"));
    assert!(text(client.aeron.add_publication(REFUSED_CHANNEL, 1).map(|_| ())).contains("refused"));
}

#[test]
fn a_refusal_that_is_temporary_delays_the_resource() {
    let client = Client::new();
    let closing = client
        .aeron
        .add_publication(crate::testing::CLOSING_CHANNEL, 7)
        .unwrap();
    client.lose_driver();
    client.directory.restart();
    client.directory.driver().keep_closing(3);
    client.run_ms(500);
    assert!(!closing.is_closed() && closing.generation() == 1);
    assert_eq!(client.report().refused.len(), 0);
}

#[test]
fn a_second_loss_before_all_resources_are_restored_is_one_outage() {
    let client = Client::new();
    let subscription = client.subscribe();
    let publication = client.publish();
    publication.offer(b"old").unwrap();
    client.lose_driver();
    client.directory.restart();
    client.directory.driver().mute();
    client.run_ms(300);
    client.directory.kill();
    client.run_ms(100);
    client.directory.restart();
    client.run_ms(600);
    assert_eq!(lock(&client.reports).len(), 1);
    assert_eq!(client.report().streams.len(), 2);
    assert_eq!(received(&subscription), ["old"]);
    assert!(publication.offer(b"new").is_ok());
    client.run_ms(2);
    assert_eq!(received(&subscription), ["new"]);
}

#[test]
fn a_driver_that_ends_at_once_and_takes_its_logs_along_closes_no_publication() {
    let client = Client::new();
    let (_subscription, publication) = (client.subscribe(), client.publish());
    client.lose_driver();
    client.directory.restart();
    client.directory.driver().hide_logs();
    client.run_ms(300);
    assert!(client.aeron.has_driver() && !publication.is_closed());
    client.lose_driver();
    client.reconnect();
    assert!(publication.offer(b"on").is_ok());
}
