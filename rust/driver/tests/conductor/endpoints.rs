//! Tests of endpoints: sharing, parameters that must match, and closing.

use aeron_memory::counters::types;
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{Command, RemoveSubscription};
use aeron_protocol::event::Event;

use crate::conductor::harness::{CLIENT, STREAM, TICK, TestDriver};

const CHANNEL: &str = "aeron:udp?endpoint=localhost:20121";

fn refused(driver: &mut TestDriver, channel: &str, expected: &str) {
    let (code, text) = driver.publication_error(channel, STREAM);
    assert_eq!(code, ErrorCode::GenericError, "{text}");
    assert!(text.contains(expected), "{text}");
}

/// 04-54
#[test]
fn channels_with_the_same_canonical_form_share_an_endpoint_unless_their_tags_differ() {
    let mut driver = TestDriver::new();
    let endpoints = |driver: &TestDriver| driver.records_of(types::SEND_CHANNEL_STATUS).len();
    driver.add_publication(&format!("{CHANNEL}|tags=1"), STREAM);
    driver.add_publication(&format!("{CHANNEL}|mtu=2048"), STREAM + 1);
    assert_eq!(endpoints(&driver), 1);
    driver.add_publication(&format!("{CHANNEL}|tags=2"), STREAM);
    assert_eq!(endpoints(&driver), 2);
    driver.add_publication("aeron:udp?endpoint=127.0.0.1:20121", STREAM);
    assert_eq!(
        endpoints(&driver),
        3,
        "channels are compared by the host name as written, not by its address"
    );
}

/// 04-52, 04-53, 05-19
#[test]
fn a_channel_with_only_a_tag_refers_to_the_channel_with_this_tag() {
    let mut driver = TestDriver::new();
    refused(
        &mut driver,
        "aeron:udp?tags=5",
        "URI must have explicit control, endpoint, or be manual control-mode when original: channel=",
    );
    driver.add_publication(&format!("{CHANNEL}|tags=5"), STREAM);
    driver.add_publication("aeron:udp?tags=5", STREAM + 1);
    assert_eq!(driver.records_of(types::SEND_CHANNEL_STATUS).len(), 1);
    refused(
        &mut driver,
        "aeron:udp?tags=5|endpoint=localhost:20122",
        "matching tag 5 has mismatched endpoint or control",
    );
    refused(
        &mut driver,
        "aeron:udp?tags=5|control-mode=manual",
        "matching tag 5 has mismatched control-mode",
    );
    driver.add_subscription("aeron:udp?tags=21", STREAM);
    let bound = driver.records_of(types::LOCAL_SOCKET_ADDRESS);
    let label = &bound.last().unwrap().label;
    assert!(label.starts_with("rcv-local-sockaddr: "), "{label}");
    assert!(label.contains(" 0.0.0.0:4"), "{label}");
}

/// 04-56, 05-14
#[test]
fn an_address_that_cannot_be_bound_is_refused_and_leaves_no_resource() {
    let mut driver = TestDriver::new();
    driver.add_subscription(CHANNEL, STREAM);
    let before = driver.object_counters();
    let occupied = "aeron:udp?endpoint=127.0.0.1:20121";
    assert_eq!(
        driver.subscription_error(occupied, STREAM).0,
        ErrorCode::GenericError
    );
    let foreign = "aeron:udp?endpoint=203.0.113.5:20121";
    let (code, text) = driver.subscription_error(foreign, STREAM);
    assert_eq!(code, ErrorCode::GenericError);
    assert!(text.starts_with("(99) "), "{text}");
    assert!(text.contains("failed to bind(203.0.113.5:20121)"), "{text}");
    let control = "aeron:udp?control=203.0.113.5:20121|control-mode=dynamic";
    let (code, _) = driver.publication_error(control, STREAM);
    assert_eq!(code, ErrorCode::GenericError);
    driver.advance(3 * TICK);
    assert_eq!(driver.object_counters(), before);
    assert_eq!(driver.network.opened().len(), 1);
}

/// Removes a subscription and runs only the conductor, so that the receiver still has the endpoint's socket.
fn begin_to_close(driver: &mut TestDriver, registration_id: i64) {
    let correlation_id = driver.next_id();
    driver.send(Command::RemoveSubscription(RemoveSubscription {
        client_id: CLIENT,
        correlation_id,
        registration_id,
    }));
    driver.conductor_cycle();
}

/// 03-35, 04-57, 05-20: while an endpoint closes, adding a subscription to its channel fails with a temporary error.
#[test]
fn adding_a_subscription_to_a_closing_endpoint_is_a_temporary_error() {
    let mut driver = TestDriver::new();
    let (subscription, _) = driver.add_subscription(CHANNEL, STREAM);
    let errors = driver.errors();
    begin_to_close(&mut driver, subscription);
    let add = driver.subscription_command(CLIENT, CHANNEL, STREAM);
    driver.hear();
    driver.send(add);
    driver.conductor_cycle();
    // First the native resource agent resolves the channel. Then the conductor searches for the endpoint.
    driver.resource_cycle();
    driver.conductor_cycle();
    let heard = driver.hear();
    let refusal = heard.iter().find_map(|heard| match heard.event() {
        Event::Error(error) => Some((error.error_code, error.error_message.to_vec())),
        _ => None,
    });
    let (code, text) = refusal.expect("an error, because the socket is not closed yet");
    assert_eq!(code, ErrorCode::ResourceTemporarilyUnavailable);
    let text = String::from_utf8(text).unwrap();
    let expected = "found in CLOSING state, please retry";
    assert!(text.contains(expected), "{text}");
    assert_eq!(driver.errors(), errors);
}

/// 03-35, 04-57, 05-20
#[test]
fn an_endpoint_is_opened_again_as_soon_as_its_agent_has_closed_it() {
    let mut driver = TestDriver::new();
    let before = driver.object_counters();
    for _ in 0..3 {
        let (subscription, _) = driver.add_subscription(CHANNEL, STREAM);
        // The time does not advance, so there is no timer tick between the commands.
        driver.remove_subscription(subscription);
        assert_eq!(driver.object_counters(), before);
    }
    let control = "aeron:udp?control=localhost:20122|control-mode=response";
    for channel in [control, "aeron:udp?control-mode=manual"] {
        let (subscription, _) = driver.add_subscription(channel, STREAM);
        driver.remove_subscription(subscription);
        driver.add_subscription(channel, STREAM);
    }
}

/// 04-57, 05-20
#[test]
fn a_send_endpoint_is_opened_again_as_soon_as_the_sender_has_closed_it() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication(CHANNEL, STREAM);
    driver.remove_publication(&publication, true);
    let endpoints = |driver: &TestDriver| driver.records_of(types::SEND_CHANNEL_STATUS).len();
    let mut steps = 0;
    while endpoints(&driver) == 1 && driver.value_of(types::SEND_CHANNEL_STATUS) == 1 {
        driver.step();
        steps += 1;
        assert!(
            steps < 60_000,
            "the endpoint still exists 60 s after the removal of its publication"
        );
    }
    // The last publication and the endpoint are removed in the same step.
    assert_eq!(endpoints(&driver), 0);
    driver.add_publication(CHANNEL, STREAM);
}

/// 04-55, 05-36
#[test]
fn a_publication_may_set_only_the_buffer_lengths_that_its_endpoint_has() {
    let mut driver = TestDriver::with(|context| context.socket_rcvbuf = 128 * 1024);
    driver.add_publication(CHANNEL, STREAM);
    refused(
        &mut driver,
        &format!("{CHANNEL}|so-sndbuf=64k"),
        "so-sndbuf=65536 does not match existing value of OS default: existingChannel=",
    );
    refused(
        &mut driver,
        &format!("{CHANNEL}|so-rcvbuf=64k"),
        "so-rcvbuf=65536 does not match existing value of 131072: existingChannel=",
    );
    for accepted in ["", "|so-rcvbuf=128k", "|so-rcvbuf=0", "|so-sndbuf=0"] {
        driver.add_publication(&format!("{CHANNEL}{accepted}"), STREAM);
    }
    let other = "aeron:udp?endpoint=localhost:20122|so-sndbuf=64k";
    driver.add_publication(other, STREAM);
    driver.add_publication("aeron:udp?endpoint=localhost:20122", STREAM);
    refused(
        &mut driver,
        "aeron:udp?endpoint=localhost:20122|so-sndbuf=128k|so-rcvbuf=64k",
        "so-rcvbuf=65536 does not match existing value of 131072: existingChannel=",
    );
    refused(
        &mut driver,
        "aeron:udp?endpoint=localhost:20122|so-sndbuf=128k",
        "so-sndbuf=131072 does not match existing value of 65536: existingChannel=",
    );
}

/// 04-55, 05-36
#[test]
fn a_publication_may_set_the_configured_send_buffer_length() {
    let mut driver = TestDriver::with(|context| context.socket_sndbuf = 64 * 1024);
    driver.add_publication(CHANNEL, STREAM);
    driver.add_publication(&format!("{CHANNEL}|so-sndbuf=64k"), STREAM);
    refused(
        &mut driver,
        &format!("{CHANNEL}|so-sndbuf=128k"),
        "so-sndbuf=131072 does not match existing value of 65536: existingChannel=",
    );
}

/// 04-55, 05-36
#[test]
fn a_subscription_conflicts_only_if_it_or_the_driver_sets_a_different_length() {
    let mut driver = TestDriver::new();
    driver.add_subscription(&format!("{CHANNEL}|so-sndbuf=64k"), STREAM);
    // Neither this channel nor the configuration sets the length of the send buffer, so there is no conflict.
    driver.add_subscription(CHANNEL, STREAM);
    driver.add_subscription(&format!("{CHANNEL}|so-rcvbuf=128k"), STREAM);
    for (option, expected) in [
        (
            "so-sndbuf=128k",
            "so-sndbuf=131072 does not match existing value of 65536",
        ),
        (
            "so-rcvbuf=256k",
            "so-rcvbuf=262144 does not match existing value of 131072",
        ),
        (
            "so-sndbuf=128k|so-rcvbuf=256k",
            "so-sndbuf=131072 does not match existing value of 65536",
        ),
    ] {
        let (code, text) = driver.subscription_error(&format!("{CHANNEL}|{option}"), STREAM);
        assert_eq!(code, ErrorCode::GenericError);
        assert!(text.contains(expected), "{text}");
    }
    let larger = "aeron:udp?endpoint=localhost:20122|so-rcvbuf=256k";
    driver.add_subscription(larger, STREAM);
    // The configuration's default of 128 KiB for the receive buffer counts as if the channel had set it.
    let (_, text) = driver.subscription_error("aeron:udp?endpoint=localhost:20122", STREAM);
    let expected = "so-rcvbuf=131072 does not match existing value of 262144";
    assert!(text.contains(expected), "{text}");
}

/// 04-183: publications that share a send endpoint must set the same timestamp offsets. The same applies to
/// subscriptions that share a receive endpoint.
#[test]
fn channels_of_one_endpoint_must_have_equal_timestamp_offsets() {
    let mut driver = TestDriver::new();
    driver.add_publication(&format!("{CHANNEL}|channel-snd-ts-offset=0"), STREAM);
    refused(
        &mut driver,
        &format!("{CHANNEL}|channel-snd-ts-offset=8"),
        "option conflicts with existing subscription: channel-snd-ts-offset=8",
    );
    driver.add_subscription(&format!("{CHANNEL}|channel-rcv-ts-offset=0"), STREAM);
    for other in [
        "",
        "|channel-rcv-ts-offset=8",
        "|media-rcv-ts-offset=reserved",
    ] {
        let (code, text) = driver.subscription_error(&format!("{CHANNEL}{other}"), STREAM + 1);
        assert_eq!(code, ErrorCode::GenericError);
        let expected = "option conflicts with existing subscription: ";
        assert!(text.contains(expected), "{text}");
    }
}

/// 04-50, 05-37: subscriptions to the same streams must have the same values of `reliable` and `rejoin`.
#[test]
fn subscriptions_that_share_an_image_must_have_equal_options() {
    let mut driver = TestDriver::new();
    driver.add_subscription(CHANNEL, STREAM);
    for (other, expected) in [
        ("|reliable=false", "reliable=false"),
        ("|rejoin=false", "rejoin=false"),
    ] {
        let (code, text) = driver.subscription_error(&format!("{CHANNEL}{other}"), STREAM);
        assert_eq!(code, ErrorCode::GenericError);
        let expected = format!("option conflicts with existing subscription: {expected}");
        assert!(text.contains(&expected), "{text}");
        driver.add_subscription(
            &format!("{CHANNEL}{other}"),
            STREAM + 1 + other.len() as i32,
        );
        driver.add_subscription(&format!("{CHANNEL}{other}|session-id=7"), STREAM);
        let subscription = driver.add_subscription(CHANNEL, STREAM).0;
        driver.remove_subscription(subscription);
        driver.advance(TICK);
        // A second subscription to the same session is also compared with the first.
        let (code, _) = driver.subscription_error(&format!("{CHANNEL}|session-id=7"), STREAM);
        assert_eq!(code, ErrorCode::GenericError);
        return_to_one(&mut driver);
    }
}

/// Replaces the driver by a new driver with one subscription.
fn return_to_one(driver: &mut TestDriver) {
    *driver = TestDriver::new();
    driver.add_subscription(CHANNEL, STREAM);
}

/// 04-51, 05-21: the part about the receiver window.
#[test]
fn a_receiver_window_longer_than_the_receive_buffer_is_refused() {
    let mut driver = TestDriver::new();
    let (code, text) = driver.subscription_error(&format!("{CHANNEL}|rcv-wnd=256k"), STREAM);
    assert_eq!(code, ErrorCode::GenericError);
    let expected = "Initial window greater than SO_RCVBUF for channel: rcv-wnd=262144 so-rcvbuf=131072 channel=";
    assert!(text.contains(expected), "{text}");
    driver.add_subscription(&format!("{CHANNEL}|rcv-wnd=256k|so-rcvbuf=256k"), STREAM);
}

/// 05-21
#[test]
fn an_mtu_longer_than_the_send_buffer_is_refused() {
    for (configured, options, whose) in [
        (0, "|so-sndbuf=4k", "channel: mtu=8192 so-sndbuf=4096"),
        (4096, "", "context: mtu=8192 so-sndbuf=4096"),
    ] {
        let mut driver = TestDriver::with(|context| context.socket_sndbuf = configured);
        let expected = format!("MTU greater than SO_SNDBUF for {whose}");
        refused(
            &mut driver,
            &format!("{CHANNEL}|mtu=8k{options}"),
            &expected,
        );
    }
    let mut driver = TestDriver::new();
    driver.add_publication(&format!("{CHANNEL}|so-sndbuf=4k"), STREAM);
    refused(
        &mut driver,
        &format!("{CHANNEL}|mtu=8k"),
        "MTU greater than SO_SNDBUF for endpoint: mtu=8192 so-sndbuf=4096",
    );
}

/// 05-13
#[test]
fn only_multicast_sockets_have_a_time_to_live() {
    let mut driver = TestDriver::with(|context| context.multicast_ttl = 3);
    let group = "aeron:udp?endpoint=224.20.30.39:20130|interface=localhost";
    driver.add_publication(group, STREAM);
    driver.add_publication(
        "aeron:udp?endpoint=224.20.30.41:20130|interface=localhost|ttl=7",
        STREAM,
    );
    driver.add_publication(&format!("{CHANNEL}|ttl=7"), STREAM);
    let opened = driver.network.opened();
    let multicast: Vec<_> = opened.iter().map(|spec| spec.multicast).collect();
    let (first, second) = (multicast[0].unwrap(), multicast[1].unwrap());
    assert_eq!((first.ttl, second.ttl), (3, 7));
    assert_eq!(
        first.group.to_string(),
        "224.20.30.40",
        "the socket joins the control address, which is the data address + 1"
    );
    assert_eq!(multicast[2], None);
}

/// 05-44
#[test]
fn ports_come_from_the_configured_range_and_are_free_again_after_use() {
    let mut driver = TestDriver::with(|context| {
        context.receiver_wildcard_port_range = "20500 20501".into();
        context.sender_wildcard_port_range = "20600 20600".into();
    });
    let any = "aeron:udp?endpoint=localhost:0";
    let (first, _) = driver.add_subscription(any, STREAM);
    driver.add_subscription(any, STREAM);
    let ports: Vec<_> = driver
        .network
        .opened()
        .iter()
        .map(|spec| spec.bind.port())
        .collect();
    assert_eq!(ports, [20500, 20501]);
    let (code, text) = driver.subscription_error(any, STREAM);
    assert_eq!(code, ErrorCode::GenericError);
    assert!(
        text.contains("no available ports in range 20500 20501"),
        "{text}"
    );
    driver.remove_subscription(first);
    driver.advance(2 * TICK);
    driver.add_subscription(any, STREAM);
    let control = "aeron:udp?control=localhost:0|control-mode=dynamic";
    let publication = driver.add_publication(control, STREAM);
    assert_eq!(driver.network.opened().last().unwrap().bind.port(), 20600);
    let (_, text) = driver.publication_error(control, STREAM);
    assert!(
        text.contains("no available ports in range 20600 20600"),
        "{text}"
    );
    driver.remove_publication(&publication, true);
    driver.advance(60 * TICK);
    driver.add_publication(control, STREAM);
}

/// 05-9
#[test]
fn an_unknown_host_is_refused_and_other_streams_do_not_wait_for_the_lookup() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let (_, images) = driver.add_subscription("aeron:ipc", STREAM);
    let command = driver.publication_command(
        CLIENT,
        "aeron:udp?endpoint=nowhere.invalid:1234",
        STREAM,
        false,
    );
    driver.send(command);
    driver.conductor_cycle();
    let limit = publication.limit.get();
    for _ in 0..3 {
        images[0].position.set(publication.offer(8_000));
    }
    driver.conductor_cycle();
    assert!(
        publication.limit.get() > limit,
        "other streams continue while the name is being resolved"
    );
    driver.work();
    let (code, text) = driver.publication_error("aeron:udp?endpoint=nowhere.invalid:1234", STREAM);
    assert_eq!(code, ErrorCode::UnknownHost);
    assert!(text.contains("endpoint=nowhere.invalid:1234"), "{text}");
}
