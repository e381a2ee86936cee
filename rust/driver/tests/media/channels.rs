//! Tests of the resolution of UDP channels: addresses, ports, multicast, canonical forms and tags.

use aeron_driver::media::{ChannelRole, UdpChannel};
use aeron_protocol::ErrorCode::{GenericError, InvalidChannel, UnknownHost};

use super::machine::{
    address, assert_refused, loopback, publication, resolve, resolver, subscription,
};

/// Resolves a channel for a subscription. Panics if the channel is invalid.
fn channel(text: &str) -> UdpChannel {
    subscription(text).unwrap()
}

fn canonical(text: &str) -> String {
    channel(text).canonical_form
}

/// 05-8
#[test]
fn ports_are_decimal_and_at_most_65535() {
    for (endpoint, words) in [
        ("localhost", "port invalid: ''"),
        ("[::1]", "port invalid: ''"),
        ("localhost:", "port invalid: localhost:"),
        ("localhost:12345678", "port invalid: localhost:12345678"),
        ("localhost:http", "port invalid: 'http'"),
        ("localhost:0x10", "port invalid: '0x10'"),
        ("localhost:80x", "port invalid: '80x'"),
        ("localhost:+80", "port invalid: '+80'"),
        ("localhost:65536", "port out of range: '65536'"),
        ("localhost:-1", "port out of range: '-1'"),
        ("[::1]80", "port invalid: ''"),
    ] {
        let result = publication(&format!("aeron:udp?endpoint={endpoint}"));
        assert_refused(result, GenericError, words);
    }
    assert_eq!(
        channel("aeron:udp?endpoint=localhost:65535")
            .remote_data
            .port(),
        65535
    );
}

/// 05-8: as the Java driver.
#[test]
fn an_address_without_a_host_is_the_loopback_address() {
    let of_endpoint = channel("aeron:udp?endpoint=:40134");
    assert_eq!(of_endpoint.remote_data.to_string(), "127.0.0.1:40134");
    let publication = publication("aeron:udp?control=:40137|control-mode=dynamic").unwrap();
    assert_eq!(publication.local_data.to_string(), "127.0.0.1:40137");
    let empty = subscription("aeron:udp?endpoint=[]:40152");
    assert_refused(empty, UnknownHost, "Unable to resolve host=()");
}

/// 05-8
#[test]
fn characters_that_do_not_separate_parameters_are_named() {
    for (endpoint, character) in [("a:1&control=b:2", '&'), ("a:1,b:2", ','), ("a:1&x", '&')] {
        let refused = publication(&format!("aeron:udp?endpoint={endpoint}"));
        let words = format!(
            "invalid format: {endpoint}, '{character}' is not part of an address, and '|' separates parameters"
        );
        assert_refused(refused, InvalidChannel, &words);
    }
    let refused = publication("aeron:udp");
    assert_refused(
        refused,
        InvalidChannel,
        "URIs for UDP must specify endpoint",
    );
}

#[test]
fn ipv6_addresses_need_brackets_and_their_scope_is_ignored() {
    let channel = channel("aeron:udp?endpoint=[fe80::1%eth0]:40123");
    assert_eq!(channel.remote_data.to_string(), "[fe80::1]:40123");
    assert_eq!(channel.canonical_form, "UDP-[::]:0-[fe80::1%eth0]:40123");
    let unbracketed = publication("aeron:udp?endpoint=::1:40123");
    assert_refused(
        unbracketed,
        GenericError,
        "an IPv6 address must be in brackets: ::1",
    );
    let bracketed_v4 = publication("aeron:udp?endpoint=[127.0.0.1]:40123");
    assert_refused(
        bracketed_v4,
        UnknownHost,
        "Unable to resolve host=(127.0.0.1)",
    );
}

#[test]
fn ipv4_is_preferred_and_brackets_select_ipv6() {
    let address = |text| channel(text).remote_data.to_string();
    assert_eq!(address("aeron:udp?endpoint=localhost:1"), "127.0.0.1:1");
    assert_eq!(address("aeron:udp?endpoint=[localhost]:1"), "[::1]:1");
    assert_eq!(address("aeron:udp?endpoint=only-v6:1"), "[fd00::7]:1");
}

#[test]
fn the_error_for_an_unknown_host_has_its_own_code_and_names_the_parameter() {
    let error = publication("aeron:udp?endpoint=nobody:40123").unwrap_err();
    assert_eq!(error.code(), UnknownHost);
    for words in [
        "(-9) unknown host\n",
        "Unable to resolve host=(nobody): (-2) Name or service not known\n",
        "Unresolved - endpoint=nobody:40123, name-and-port=nobody:40123\n",
        "failed to parse channel: aeron:udp?endpoint=nobody:40123\n",
    ] {
        assert!(error.text().contains(words), "{error}");
    }
    let control = publication("aeron:udp?control=nobody:1|control-mode=dynamic");
    assert_refused(control, UnknownHost, "Unresolved - control=nobody:1");
    let long = format!("aeron:udp?endpoint={}:1", "h".repeat(384));
    assert_refused(
        publication(&long),
        GenericError,
        "384 bytes exceeds the limit of 383",
    );
}

/// 05-10, 04-39, 04-41: a publication may use port 0 only if its destinations are known by other means.
#[test]
fn only_subscriptions_and_publications_with_destinations_may_use_port_zero() {
    let words = "endpoint has port=0 for publication: channel=aeron:udp?endpoint=localhost:0";
    assert_refused(
        publication("aeron:udp?endpoint=localhost:0"),
        GenericError,
        words,
    );
    for accepted in [
        "aeron:udp?endpoint=localhost:0|control=localhost:1|control-mode=dynamic",
        "aeron:udp?endpoint=localhost:0|control-mode=manual",
        "aeron:udp?control=localhost:0|control-mode=dynamic",
    ] {
        assert!(publication(accepted).is_ok(), "{accepted}");
    }
    assert!(subscription("aeron:udp?endpoint=localhost:0").is_ok());
    let control = "aeron:udp?control=localhost:0|endpoint=localhost:1";
    let words = format!("control has port=0 for subscription: channel={control}");
    assert_refused(subscription(control), GenericError, &words);
    assert_refused(
        resolve(control, ChannelRole::ReceiveDestination),
        GenericError,
        &words,
    );
    assert!(publication(control).is_ok());
}

/// 05-15, 04-40
#[test]
fn a_channel_must_have_an_address_or_a_way_to_get_destinations() {
    let dynamic = publication("aeron:udp?endpoint=localhost:1|control-mode=dynamic");
    let words = "explicit control expected with dynamic control mode";
    assert_refused(dynamic, InvalidChannel, words);
    let words =
        "URIs for UDP must specify endpoint, control, tags, or control-mode=manual/response";
    assert_refused(publication("aeron:udp?mtu=1408"), InvalidChannel, words);
    let alone = "aeron:udp?control=localhost:1";
    let words = format!(
        "'control' parameter requires that either 'endpoint' or 'control-mode' is specified, channel={alone}"
    );
    assert_refused(publication(alone), GenericError, &words);
    assert!(subscription(alone).is_ok());
    assert!(publication(&format!("{alone}|control-mode=none")).is_ok());
}

#[test]
fn channels_of_ipc_and_of_spies_are_not_network_channels() {
    let ipc = subscription("aeron:ipc");
    assert_refused(ipc, InvalidChannel, "UDP channels must use UDP URIs");
    let spy = "aeron-spy:aeron:udp?endpoint=localhost:1";
    assert_refused(
        publication(spy),
        InvalidChannel,
        "invalid URI scheme or transport",
    );
    let spied = resolve(spy, ChannelRole::Spy).unwrap();
    assert_eq!(spied.text, "aeron:udp?endpoint=localhost:1");
    assert_eq!(
        spied.canonical_form,
        canonical("aeron:udp?endpoint=localhost:1")
    );
}

/// 05-12, 04-42
#[test]
fn multicast_data_groups_are_odd_and_the_control_group_is_the_next_without_carry() {
    let control = |group: &str| {
        let channel = channel(&format!("aeron:udp?endpoint={group}:9|interface=localhost"));
        assert!(channel.is_multicast && channel.has_group_semantics() && !channel.is_mdc());
        channel.remote_control.to_string()
    };
    assert_eq!(control("224.0.1.1"), "224.0.1.2:9");
    assert_eq!(control("239.255.255.255"), "239.255.255.0:9");
    assert_eq!(control("[ff02::1]"), "[ff02::2]:9");
    assert_eq!(control("[ff02::1:ff]"), "[ff02::1:0]:9");
    assert_eq!(control("group"), "224.10.9.8:9");
    for even in ["224.0.1.2", "[ff02::2]"] {
        let channel = format!("aeron:udp?endpoint={even}:9|interface=localhost");
        let words = "Multicast data address must be odd";
        assert_refused(publication(&channel), GenericError, words);
        assert_refused(subscription(&channel), GenericError, words);
    }
}

#[test]
fn multicast_groups_are_joined_on_the_interface_and_compared_by_address() {
    let mut machine = loopback();
    machine.push(address(4, "eth0", "10.0.0.5", 24));
    let mut resolver = resolver(machine);
    let mut resolve = |text: &str| {
        resolver
            .resolve(text.as_bytes(), ChannelRole::Subscription)
            .unwrap()
    };
    let by_default = resolve("aeron:udp?endpoint=224.10.9.7:9");
    assert_eq!(by_default.interface.index, 4);
    assert_eq!(by_default.canonical_form, "UDP-10.0.0.5:0-224.10.9.7:9");
    let others = [
        "group:9|interface=10.0.0.0/24",
        "group:9|interface={eth0}",
        "group:9|interface=0.0.0.0/0",
    ];
    for other in others {
        let other = resolve(&format!("aeron:udp?endpoint={other}"));
        assert_eq!(other.canonical_form, by_default.canonical_form);
    }
    let looped = resolve("aeron:udp?endpoint=group:9|interface=localhost");
    assert_eq!(
        (
            looped.interface.index,
            looped.local_data.to_string().as_str()
        ),
        (1, "127.0.0.1:0")
    );
}

#[test]
fn multicast_does_not_use_the_control_address_but_checks_it() {
    let text = "aeron:udp?endpoint=224.10.9.7:9|interface=localhost|control=";
    let channel = channel(&format!("{text}localhost:5"));
    assert!(channel.control.is_none());
    assert_eq!(
        channel.receiver_control_address(),
        Some(channel.remote_control)
    );
    assert_refused(
        subscription(&format!("{text}nobody:5")),
        UnknownHost,
        "nobody",
    );
}

#[test]
fn a_receiver_sends_to_the_control_address_in_the_channel_or_to_the_source() {
    let given = channel("aeron:udp?endpoint=localhost:1|control=peer:2");
    assert_eq!(
        given.receiver_control_address(),
        Some("10.0.0.7:2".parse().unwrap())
    );
    assert_eq!(given.local_control.to_string(), "10.0.0.7:2");
    assert_eq!(
        channel("aeron:udp?endpoint=localhost:1").receiver_control_address(),
        None
    );
}

/// 05-17
#[test]
fn the_canonical_form_contains_names_as_written_and_no_other_parameters() {
    let name = canonical("aeron:udp?endpoint=localhost:1");
    assert_ne!(name, canonical("aeron:udp?endpoint=127.0.0.1:1"));
    assert_ne!(name, canonical("aeron:udp?endpoint=LOCALHOST:1"));
    assert_ne!(
        name,
        canonical("aeron:udp?endpoint=localhost:1|interface=localhost")
    );
    assert_ne!(
        name,
        canonical("aeron:udp?endpoint=localhost:1|control=localhost:2")
    );
    for others in [
        "mtu=4096|alias=a",
        "tags=3",
        "ttl=7|control-mode=manual",
        "session-id=5",
    ] {
        assert_eq!(
            name,
            canonical(&format!("aeron:udp?{others}|endpoint=localhost:1"))
        );
    }
}

/// 05-18
#[test]
fn channels_with_port_zero_have_a_unique_canonical_form_unless_they_have_a_tag() {
    let mut resolver = resolver(loopback());
    let mut canonical = |text: &str, role| {
        resolver
            .resolve(text.as_bytes(), role)
            .unwrap()
            .canonical_form
    };
    let (subscription, destination) = (ChannelRole::Subscription, ChannelRole::ReceiveDestination);
    let open = "aeron:udp?endpoint=localhost:0";
    assert_eq!(canonical(open, subscription), "UDP-0.0.0.0:0-localhost:0-0");
    assert_eq!(canonical(open, subscription), "UDP-0.0.0.0:0-localhost:0-1");
    assert_eq!(canonical(open, destination), "UDP-0.0.0.0:0-localhost:0");
    let tagged = "aeron:udp?endpoint=localhost:0|tags=7";
    assert_eq!(
        canonical(tagged, subscription),
        "UDP-0.0.0.0:0-localhost:0#7"
    );
    let multicast = "aeron:udp?endpoint=224.0.1.1:0|interface=localhost";
    assert_eq!(
        canonical(multicast, subscription),
        "UDP-127.0.0.1:0-224.0.1.1:0"
    );
    let manual = "aeron:udp?control-mode=manual";
    assert_eq!(canonical(manual, subscription), "UDP-0.0.0.0:0-0.0.0.0:0-2");
}

#[test]
fn a_tag_refers_to_the_channel_with_this_tag_if_the_parameters_match() {
    let existing = channel("aeron:udp?endpoint=localhost:1|tags=7");
    let matches = |text: &str| channel(text).matches_tag(&existing, existing.data_addresses());
    assert_eq!(matches("aeron:udp?tags=7"), Ok(true));
    assert_eq!(matches("aeron:udp?tags=7|endpoint=127.0.0.1:1"), Ok(true));
    assert_eq!(matches("aeron:udp?tags=8|endpoint=localhost:1"), Ok(false));
    assert_eq!(matches("aeron:udp?endpoint=localhost:1"), Ok(false));
    let other = "aeron:udp?tags=7|endpoint=localhost:2";
    let words = format!(
        "matching tag 7 has mismatched endpoint or control: {other} <> {}",
        existing.text
    );
    assert_refused(matches(other), GenericError, &words);
    let manual = matches("aeron:udp?tags=7|control-mode=manual");
    assert_refused(
        manual,
        GenericError,
        "matching tag 7 has mismatched control-mode: ",
    );
}

#[test]
fn a_channel_without_a_tag_shares_the_endpoint_of_a_channel_with_a_tag() {
    let existing = channel("aeron:udp?endpoint=localhost:1|tags=7");
    let matches = |text: &str| channel(text).matches_canonical_form(&existing);
    assert!(matches("aeron:udp?endpoint=localhost:1"));
    assert!(matches("aeron:udp?endpoint=localhost:1|tags=7"));
    assert!(!matches("aeron:udp?endpoint=localhost:1|tags=8"));
    assert!(!matches("aeron:udp?endpoint=localhost:2"));
}

#[test]
fn a_publication_with_only_an_unknown_tag_is_refused() {
    let check = |text: &str| publication(text).unwrap().check_original_publication();
    let words = "URI must have explicit control, endpoint, or be manual control-mode when original: channel=aeron:udp?tags=7";
    assert_refused(check("aeron:udp?tags=7"), GenericError, words);
    for accepted in [
        "aeron:udp?tags=7|endpoint=localhost:1",
        "aeron:udp?tags=7|control=localhost:1|control-mode=dynamic",
        "aeron:udp?tags=7|control-mode=manual",
        "aeron:udp?endpoint=localhost:1",
    ] {
        assert_eq!(check(accepted), Ok(()), "{accepted}");
    }
}
