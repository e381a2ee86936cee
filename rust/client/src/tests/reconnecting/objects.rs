//! Behaviour of each object without a driver, and with the next one.

use super::*;

#[test]
fn a_publication_is_not_connected_without_a_driver_and_the_same_object_sends_to_the_next() {
    let client = Client::new();
    let subscription = client.subscribe();
    let exclusive = client.publish();
    let shared: Publication = client.aeron.add_publication(CHANNEL, STREAM).unwrap();
    client.run_ms(2);
    assert_eq!(exclusive.offer(b"one"), Ok(64));
    assert_eq!(shared.offer(b"two"), Ok(64));
    client.lose_driver();
    let not_connected = AppendError::NotConnected;
    assert_eq!(
        exclusive.offer(b"x"),
        Err(OfferError::Append(not_connected))
    );
    assert_eq!(shared.offer(b"x"), Err(not_connected));
    assert!(!exclusive.is_closed() && !exclusive.is_connected());
    assert_eq!((exclusive.position(), exclusive.generation()), (Ok(64), 0));
    client.reconnect();
    assert_eq!((exclusive.position(), exclusive.generation()), (Ok(0), 1));
    assert_eq!(exclusive.offer(b"three"), Ok(64));
    assert_eq!(shared.offer(b"four"), Ok(64));
    assert_eq!(received(&subscription), ["one", "two"]);
    client.run_ms(2);
    let mut messages = received(&subscription);
    messages.sort();
    assert_eq!(messages, ["four", "three"]);
    assert_eq!(exclusive.refused().not_connected, 1);
}

#[test]
fn images_of_the_lost_driver_end_before_images_of_the_next_become_available() {
    let client = Client::new();
    let subscription = client.subscribe();
    let publication = client.publish();
    publication.offer(b"old").unwrap();
    client.log.take();
    client.lose_driver();
    assert_eq!(
        client.log.take(),
        ["lost: the process 1 of the MediaDriver has ended"]
    );
    assert_eq!(subscription.image_count(), 1);
    client.reconnect();
    publication.offer(b"new").unwrap();
    assert_eq!(client.log.take(), ["connected again"]);
    assert_eq!(received(&subscription), ["old"]);
    assert_eq!(received(&subscription), [""; 0]);
    client.run_ms(1);
    let session = FIRST_SESSION_ID;
    assert_eq!(
        client.log.take(),
        [
            format!("unavailable {session} at 64"),
            format!("available {session}")
        ]
    );
    assert_eq!(received(&subscription), ["new"]);
}

#[test]
fn an_open_claim_is_aborted_with_its_driver() {
    let client = Client::new();
    let subscription = client.subscribe();
    let publication = client.publish();
    let (claim, other) = (publication.try_claim(3), publication.try_claim(3));
    let claim = claim.unwrap();
    claim.put(0, b"old");
    client.lose_driver();
    assert_eq!(claim.commit(), Err(ClaimAborted));
    client.reconnect();
    assert_eq!(other.unwrap().commit(), Err(ClaimAborted));
    assert_eq!(publication.offer(b"new"), Ok(64));
    assert_eq!(received(&subscription), [""; 0]);
    client.run_ms(1);
    assert_eq!(received(&subscription), ["new"]);
}

#[test]
fn a_counter_keeps_its_value_and_the_next_driver_gets_it() {
    let client = Client::new();
    let counter = client.aeron.add_counter(1001, b"key", "label").unwrap();
    let fixed = client.aeron.add_static_counter(1002, b"", "static", 77);
    let fixed = fixed.unwrap();
    counter.set(5);
    fixed.set(8);
    client.lose_driver();
    assert_eq!(
        (counter.get(), counter.fetch_add(2), fixed.get()),
        (5, 5, 8)
    );
    client.reconnect();
    assert_eq!((counter.get(), fixed.get()), (7, 8));
    let reader = client.aeron.counters_reader();
    let record = reader.record(counter.id()).unwrap();
    assert_eq!((record.type_id, record.value), (1001, 7));
    assert_eq!(
        (&record.key[..3], record.label.as_str()),
        (&b"key"[..], "label")
    );
    assert_eq!(reader.find_by_registration(1002, 77), Some(fixed.id()));
    counter.set(9);
    assert_eq!(reader.value(counter.id()), Some(9));
    assert_eq!(counter.registration_id(), counter.correlation_id());
}

#[test]
fn resources_are_added_to_the_next_driver_in_the_order_of_the_application() {
    let client = Client::new();
    let manual = "aeron:udp?control-mode=manual";
    let publication = client.aeron.add_publication(manual, 1).unwrap();
    let subscription = client.aeron.add_subscription(manual, 2).unwrap();
    let first = publication
        .add_destination("aeron:udp?endpoint=a:1")
        .unwrap();
    publication
        .add_destination("aeron:udp?endpoint=b:2")
        .unwrap();
    publication
        .add_destination("aeron:udp?endpoint=c:3")
        .unwrap();
    publication
        .remove_destination("aeron:udp?endpoint=b:2")
        .unwrap();
    subscription
        .add_destination("aeron:udp?endpoint=d:4")
        .unwrap();
    let counter = client.aeron.add_counter(1001, b"", "counter").unwrap();
    let exclusive = client.aeron.add_exclusive_publication(CHANNEL, 3).unwrap();
    let before: Vec<_> = client.directory.driver().sent();
    client.lose_driver();
    client.reconnect();
    let after = client.directory.driver().sent();
    // ADD_PUBLICATION, two ADD_DESTINATION, ADD_SUBSCRIPTION, ADD_RCV_DESTINATION, ADD_COUNTER,
    // ADD_EXCLUSIVE_PUBLICATION
    let order = |types: &[i32]| types.iter().position(|id| *id == 0x09).is_some();
    assert!(order(&before) && order(&after));
    let count = |types: &[i32], id| types.iter().filter(|found| **found == id).count();
    for id in [0x01, 0x03, 0x04, 0x09, 0x0C] {
        assert_eq!(count(&after, id), 1, "command {id:#x} in {after:?}");
    }
    let destinations = client.directory.driver().bodies(0x07);
    let channels: Vec<_> = destinations
        .iter()
        .map(|body| String::from_utf8_lossy(body).into_owned())
        .collect();
    assert!(channels[0].contains("a:1") && channels[1].contains("c:3"));
    assert_eq!(channels.len(), 2);
    let place = |id| after.iter().position(|found| *found == id).unwrap();
    assert!(place(0x01) < place(0x04) && place(0x04) < place(0x09) && place(0x09) < place(0x03));
    // The id that the application got still names the destination.
    publication.remove_destination_by_id(first).unwrap();
    drop((publication, subscription, counter, exclusive));
}

#[test]
fn the_report_names_the_outage_and_each_stream_of_the_lost_driver() {
    let client = Client::new();
    let subscription = client.subscribe();
    let publication = client.publish();
    let unused = client.aeron.add_publication(CHANNEL, 77).unwrap();
    publication.offer(b"read").unwrap();
    received(&subscription);
    client.lose_driver();
    client.run_ms(480);
    client.reconnect();
    let report = client.report();
    assert_eq!(report.reconnections, 1);
    let outage_ms = report.outage.as_millis();
    assert!((480..700).contains(&outage_ms), "{outage_ms} ms");
    let process_ended = matches!(
        report.cause,
        Error::DriverTimeout(DriverTimeout::ProcessEnded { pid: 1 })
    );
    assert!(process_ended);
    let mut streams: Vec<_> = report
        .streams
        .iter()
        .map(|stream| (stream.stream_id, stream.kind, stream.position))
        .collect();
    streams.sort_by_key(|(stream_id, kind, _)| (*stream_id, *kind == LostStreamKind::Image));
    assert_eq!(
        streams,
        [
            (STREAM, LostStreamKind::ExclusivePublication, 64),
            (STREAM, LostStreamKind::Image, 64),
            (77, LostStreamKind::Publication, 0),
        ]
    );
    drop(unused);
}

#[test]
fn an_exclusive_publication_continues_when_the_writer_of_the_lost_log_is_dropped() {
    let client = Client::new();
    let publication = client.publish();
    let mut writer = publication.writer().unwrap();
    client.lose_driver();
    client.reconnect();
    client.subscribe();
    assert_eq!(writer.offer(b"x"), Err(AppendError::NotConnected));
    let not_connected = OfferError::Append(AppendError::NotConnected);
    assert_eq!(publication.offer(b"x"), Err(not_connected));
    drop(writer);
    client.run_ms(2);
    assert_eq!(publication.offer(b"x"), Ok(64));
}
