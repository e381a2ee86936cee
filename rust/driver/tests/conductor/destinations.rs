//! Tests of the destinations of publications and subscriptions.

use std::net::SocketAddr;

use aeron_memory::counters::types;
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{Command, Destination, RemoveDestinationById};
use aeron_protocol::event::Event;

use crate::conductor::harness::{CLIENT, Heard, STREAM, TICK, TestDriver, names};

const MDC: &str = "aeron:udp?control-mode=manual|control=localhost:20130";
const MDS: &str = "aeron:udp?control-mode=manual";

fn destination<'a>(driver: &mut TestDriver, id: i64, channel: &'a str) -> Destination<'a> {
    Destination {
        client_id: CLIENT,
        correlation_id: driver.next_id(),
        registration_correlation_id: id,
        channel: channel.as_bytes(),
    }
}

fn add(driver: &mut TestDriver, id: i64, channel: &str) -> i64 {
    let command = destination(driver, id, channel);
    let heard = driver.ask(Command::AddDestination(command));
    assert_eq!(names(&heard), ["OperationSuccess"]);
    command.correlation_id
}

fn add_receive(driver: &mut TestDriver, id: i64, channel: &str) -> Vec<Heard> {
    let command = Command::AddRcvDestination(destination(driver, id, channel));
    driver.ask(command)
}

fn remove_receive(driver: &mut TestDriver, id: i64, channel: &str) -> Vec<Heard> {
    let command = Command::RemoveRcvDestination(destination(driver, id, channel));
    driver.ask(command)
}

/// 04-64, 04-65, 05-39
#[test]
fn a_send_destination_without_an_endpoint_or_with_options_of_the_channel_is_refused() {
    let mut driver = TestDriver::new();
    let id = driver.add_publication(MDC, STREAM).registration_id;
    for (channel, code, expected) in [
        (
            "aeron-spy:aeron:udp?endpoint=localhost:20131",
            ErrorCode::InvalidChannel,
            "Aeron spies are invalid as send destinations",
        ),
        ("nonsense", ErrorCode::InvalidChannel, ""),
        (
            "aeron:ipc",
            ErrorCode::GenericError,
            "incorrect URI format for destination",
        ),
        (
            "aeron:udp?control=localhost:20131",
            ErrorCode::GenericError,
            "incorrect URI format for destination",
        ),
        (
            "aeron:udp?endpoint=localhost:0",
            ErrorCode::GenericError,
            "endpoint has port=0 for send destination: channel=",
        ),
        (
            "aeron:udp?endpoint=localhost:20131|rcv-wnd=64k",
            ErrorCode::InvalidChannel,
            "destinations must not contain the key: rcv-wnd",
        ),
        (
            "aeron:udp?endpoint=localhost:20131|control-mode=response",
            ErrorCode::InvalidChannel,
            "destinations may not specify control-mode=response",
        ),
    ] {
        let command = Command::AddDestination(destination(&mut driver, id, channel));
        let (answered, text) = driver.ask_error(command);
        assert_eq!(answered, code, "{channel}: {text}");
        assert!(text.contains(expected), "{text}");
    }
    add(&mut driver, id, "aeron:udp?endpoint=localhost:20131");
    add(
        &mut driver,
        id,
        "aeron:udp?endpoint=localhost:20131|tags=abc",
    );
    assert_eq!(driver.value_of(types::MDC_DESTINATIONS), 2);
}

/// 04-66: a destination with an unknown host name is accepted. Data is sent to it after the name resolves.
#[test]
fn a_destination_with_an_unknown_host_receives_data_after_the_name_resolves() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication(MDC, STREAM);
    add(
        &mut driver,
        publication.registration_id,
        "aeron:udp?endpoint=later.example:20131",
    );
    assert_eq!(driver.value_of(types::MDC_DESTINATIONS), 1);
    driver.advance(10 * TICK);
    assert!(driver.network.memory.take_sent().is_empty());
    driver.names.set("later.example", Some("127.0.0.9"));
    driver.advance(70 * TICK);
    let sent = driver.network.memory.take_sent();
    let to: SocketAddr = "127.0.0.9:20131".parse().unwrap();
    assert!(!sent.is_empty() && sent.iter().all(|sent| sent.to == to));
}

/// 04-67
#[test]
fn destinations_are_removed_by_address_or_by_the_command_that_added_them() {
    let mut driver = TestDriver::new();
    let id = driver.add_publication(MDC, STREAM).registration_id;
    add(&mut driver, id, "aeron:udp?endpoint=localhost:20131");
    let second = add(&mut driver, id, "aeron:udp?endpoint=localhost:20132");
    let remove = destination(&mut driver, id, "aeron:udp?endpoint=127.0.0.1:20131");
    for _ in 0..2 {
        let heard = driver.ask(Command::RemoveDestination(remove));
        assert_eq!(names(&heard), ["OperationSuccess"]);
        assert_eq!(driver.value_of(types::MDC_DESTINATIONS), 1);
    }
    for _ in 0..2 {
        let correlation_id = driver.next_id();
        let heard = driver.ask(Command::RemoveDestinationById(RemoveDestinationById {
            client_id: CLIENT,
            correlation_id,
            resource_registration_id: id,
            destination_registration_id: second,
        }));
        assert_eq!(names(&heard), ["OperationSuccess"]);
        assert_eq!(driver.value_of(types::MDC_DESTINATIONS), 0);
    }
}

/// 04-71, 05-40, 05-42
#[test]
fn a_receive_destination_belongs_to_a_subscription_with_manual_control() {
    let mut driver = TestDriver::new();
    let (plain, _) = driver.add_subscription("aeron:udp?endpoint=localhost:20140", STREAM);
    let (subscription, _) = driver.add_subscription(MDS, STREAM);
    let udp = "aeron:udp?endpoint=localhost:20141";
    for (id, channel, code) in [
        (12345, udp, ErrorCode::UnknownSubscription),
        (plain, udp, ErrorCode::InvalidChannel),
        (subscription, "nonsense", ErrorCode::InvalidChannel),
        (
            subscription,
            "aeron:udp?endpoint=localhost:20141|mtu=1408",
            ErrorCode::InvalidChannel,
        ),
        (
            subscription,
            "aeron:udp?endpoint=localhost:20141|control=localhost:0",
            ErrorCode::GenericError,
        ),
        (
            subscription,
            "aeron:udp?endpoint=localhost:20140",
            ErrorCode::GenericError,
        ),
    ] {
        let command = Command::AddRcvDestination(destination(&mut driver, id, channel));
        let (answered, text) = driver.ask_error(command);
        assert_eq!(answered, code, "{channel}: {text}");
    }
    for channel in [
        udp,
        "aeron:ipc?mtu=1408",
        "aeron-spy:aeron:udp?endpoint=localhost:20149",
    ] {
        let heard = add_receive(&mut driver, subscription, channel);
        assert_eq!(names(&heard), ["OperationSuccess"], "{channel}");
    }
    driver.advance(TICK);
    let bound = driver.records_of(types::LOCAL_SOCKET_ADDRESS);
    assert_eq!(bound.len(), 2);
    assert!(
        bound[1].label.ends_with("127.0.0.1:20141"),
        "{}",
        bound[1].label
    );
    for _ in 0..2 {
        let heard = remove_receive(&mut driver, subscription, udp);
        assert_eq!(names(&heard), ["OperationSuccess"]);
        assert_eq!(driver.records_of(types::LOCAL_SOCKET_ADDRESS).len(), 1);
    }
}

#[test]
fn a_receive_destination_uses_the_buffer_lengths_and_timestamps_of_its_subscription() {
    let mut driver = TestDriver::new();
    let channel = format!("{MDS}|so-rcvbuf=256k|so-sndbuf=512k|media-rcv-ts-offset=reserved");
    let (subscription, _) = driver.add_subscription(&channel, STREAM);
    add_receive(
        &mut driver,
        subscription,
        "aeron:udp?endpoint=localhost:20141|channel-rcv-ts-offset=0",
    );
    let opened = driver.network.opened();
    let spec = opened.last().unwrap();
    assert_eq!(spec.receive_buffer_length, 256 << 10);
    assert_eq!(spec.send_buffer_length, 512 << 10);
    assert!(spec.receive_timestamps);
    let (other, _) = driver.add_subscription(MDS, STREAM + 1);
    add_receive(
        &mut driver,
        other,
        "aeron:udp?endpoint=localhost:20142|media-rcv-ts-offset=reserved",
    );
    assert!(!driver.network.opened().last().unwrap().receive_timestamps);
}

#[test]
fn messages_of_a_destination_have_timestamps_at_the_offsets_of_the_subscription() {
    for (subscribed, destination, is_stamped) in [
        ("|channel-rcv-ts-offset=0", "", true),
        ("", "|channel-rcv-ts-offset=0", false),
        (
            "|channel-rcv-ts-offset=8",
            "|channel-rcv-ts-offset=0",
            false,
        ),
    ] {
        let mut driver = TestDriver::new();
        let (subscription, _) = driver.add_subscription(&format!("{MDS}{subscribed}"), STREAM);
        let udp = "aeron:udp?endpoint=localhost:20151";
        add_receive(&mut driver, subscription, &format!("{udp}{destination}"));
        let publication = driver.add_publication(udp, STREAM);
        driver.advance(TICK);
        publication.offer(16);
        driver.advance(TICK);
        let image = driver.images_of(subscription).remove(0);
        let log = driver.image_log(&image);
        let first = log.cursor(0).unwrap().next_fragment().unwrap().unwrap();
        // Each byte of a message is 7. Timestamps are 0, because the test's clock for timestamps always returns 0.
        let is_zero = first.to_vec()[..8] == [0; 8];
        assert_eq!(
            is_zero,
            is_stamped,
            "{subscribed} {destination}: {:?}",
            first.to_vec()
        );
    }
}

#[test]
fn the_address_counter_of_a_destination_has_the_registration_id_of_the_subscription() {
    let mut driver = TestDriver::new();
    let (subscription, _) = driver.add_subscription(MDS, STREAM);
    add_receive(
        &mut driver,
        subscription,
        "aeron:udp?endpoint=localhost:20141",
    );
    let [bound] = &driver.records_of(types::LOCAL_SOCKET_ADDRESS)[..] else {
        panic!("expected one address");
    };
    assert_eq!(bound.registration_id, subscription);
}

/// 04-72
#[test]
fn the_response_for_a_local_destination_comes_before_the_events_for_its_images() {
    let mut driver = TestDriver::new();
    let spied = "aeron:udp?endpoint=localhost:20150";
    let (subscription, _) = driver.add_subscription(MDS, STREAM);
    let ipc = driver.add_publication("aeron:ipc", STREAM).registration_id;
    let udp = driver.add_publication(spied, STREAM).registration_id;
    for (channel, publication) in [
        ("aeron:ipc".to_owned(), ipc),
        (format!("aeron-spy:{spied}"), udp),
    ] {
        let heard = add_receive(&mut driver, subscription, &channel);
        assert_eq!(names(&heard), ["OperationSuccess", "AvailableImage"]);
        let images = driver.images(&heard);
        assert_eq!(images[0].correlation_id, publication);
        assert_eq!(images[0].subscription_id, subscription);
        let heard = remove_receive(&mut driver, subscription, &channel);
        assert_eq!(names(&heard), ["OperationSuccess", "UnavailableImage"]);
        match heard[1].event() {
            Event::UnavailableImage(image) => {
                assert_eq!(image.correlation_id, publication);
                assert_eq!(image.channel, channel.as_bytes());
            }
            event => panic!("{event:?}"),
        }
        let command =
            Command::RemoveRcvDestination(destination(&mut driver, subscription, &channel));
        assert_eq!(driver.ask_error(command).0, ErrorCode::UnknownSubscription);
    }
}

/// 04-74
#[test]
fn one_stream_that_arrives_at_two_destinations_is_one_image_with_two_transports() {
    let mut driver = TestDriver::new();
    let (subscription, _) = driver.add_subscription(MDS, STREAM);
    add_receive(
        &mut driver,
        subscription,
        "aeron:udp?endpoint=localhost:20151",
    );
    add_receive(
        &mut driver,
        subscription,
        "aeron:udp?endpoint=localhost:20152",
    );
    let publication = driver.add_publication(MDC, STREAM);
    add(
        &mut driver,
        publication.registration_id,
        "aeron:udp?endpoint=localhost:20151",
    );
    add(
        &mut driver,
        publication.registration_id,
        "aeron:udp?endpoint=localhost:20152",
    );
    driver.advance(10 * TICK);
    let [image] = &driver.images_of(subscription)[..] else {
        panic!("expected one image");
    };
    let image = image.clone();
    assert!(publication.is_connected());
    publication.offer(100);
    driver.advance(5 * TICK);
    let metadata = driver.image_log(&image).metadata().clone();
    assert_eq!(metadata.active_transport_count(), 2);
    remove_receive(
        &mut driver,
        subscription,
        "aeron:udp?endpoint=localhost:20152",
    );
    driver.advance(5 * TICK);
    assert_eq!(metadata.active_transport_count(), 1);
}
