//! Tests of channels as text: valid channels, their printed form, and arbitrary texts.

use aeron_protocol::ErrorCode;
use aeron_protocol::command::MAX_CHANNEL_LENGTH;
use aeron_protocol::uri::{
    ChannelUri, ControlMode, FlowControlStrategy, InitialPosition, Media, NetworkParams,
    PublicationDefaults, PublicationParams, ReceiverGroup, ResponseCorrelation, SessionId,
    SubscriptionParams, Transport,
};
use proptest::prelude::*;

use crate::defaults::{PUBLICATION, SUBSCRIPTION};

fn channel(text: &str) -> ChannelUri {
    ChannelUri::parse(text).unwrap()
}

fn refusal(text: &str) -> String {
    let error = ChannelUri::parse(text).unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidChannel);
    error.message
}

fn publication(text: &str) -> PublicationParams {
    PublicationParams::parse(&channel(text), &PUBLICATION, |_| None).unwrap()
}

fn subscription(text: &str) -> SubscriptionParams {
    SubscriptionParams::parse(&channel(text), &SUBSCRIPTION).unwrap()
}

/// 03-53, 05-3
#[test]
fn a_channel_has_at_most_4095_bytes() {
    let longest = format!("aeron:ipc?alias={}", "x".repeat(MAX_CHANNEL_LENGTH - 16));
    assert_eq!(channel(&longest).to_string(), longest);
    let message = refusal(&format!("{longest}x"));
    assert!(
        message.starts_with("URI length (4096) exceeds max supported length (4095): aeron:ipc?")
    );
}

/// The limit for the length of a channel counts bytes of UTF-8, not characters.
#[test]
fn the_limit_of_a_channel_counts_bytes_and_not_characters() {
    let longest = format!(
        "aeron:ipc?alias={}",
        "é".repeat((MAX_CHANNEL_LENGTH - 15) / 2)
    );
    assert_eq!(longest.len(), MAX_CHANNEL_LENGTH + 1);
    refusal(&longest);
}

/// 05-4
#[test]
fn scheme_media_prefix_and_keys_are_case_sensitive_and_keys_have_any_order() {
    for wrong in [
        "AERON:ipc",
        "aeron:IPC",
        "aeron:Udp?endpoint=a:1",
        "Aeron-spy:aeron:udp?endpoint=a:1",
    ] {
        assert_eq!(
            refusal(wrong),
            format!("invalid URI scheme or transport: {wrong}")
        );
    }
    let odd = channel("aeron:ipc?MTU=7|foo=bar|mtu=2k");
    assert_eq!(odd.get("mtu"), Some("2k"));
    assert_eq!(
        PublicationParams::parse(&odd, &PUBLICATION, |_| None)
            .unwrap()
            .mtu_length,
        2048
    );
    assert_eq!(odd, channel("aeron:ipc?mtu=2k|MTU=7|foo=bar"));
    assert_eq!(odd.to_string(), "aeron:ipc?MTU=7|foo=bar|mtu=2k");
}

#[test]
fn a_key_that_only_starts_like_a_known_key_is_unknown() {
    assert_eq!(publication("aeron:ipc?mtufoo=2k").mtu_length, 1408);
}

#[test]
fn values_may_contain_equals_signs_and_any_letters() {
    let text = "aeron:ipc?alias=a=b?c:d, é ☃";
    assert_eq!(channel(text).get("alias"), Some("a=b?c:d, é ☃"));
    assert_eq!(channel(text).to_string(), text);
}

#[test]
fn values_may_contain_bytes_that_are_not_utf8_but_no_nul() {
    let uri = ChannelUri::from_bytes(b"aeron:ipc?alias=\xE9\xFF|mtu=2k").unwrap();
    assert_eq!(
        (uri.get("mtu"), uri.get("alias")),
        (Some("2k"), Some("\u{FFFD}\u{FFFD}"))
    );
    assert_eq!(
        refusal("aeron:ipc?alias=a\0b"),
        "NUL byte not allowed in URI: index=17"
    );
}

/// 05-6
#[test]
fn the_last_value_of_a_repeated_key_applies_for_six_keys_and_the_first_for_others() {
    for key in [
        "endpoint",
        "interface",
        "control",
        "control-mode",
        "ttl",
        "tags",
    ] {
        assert_eq!(
            channel(&format!("aeron:udp?{key}=1|{key}=2")).get(key),
            Some("2")
        );
    }
    for key in ["mtu", "term-length", "session-id", "alias", "foo"] {
        assert_eq!(
            channel(&format!("aeron:udp?{key}=1|{key}=2")).get(key),
            Some("1")
        );
    }
}

/// 05-7: the rules of the spy prefix that depend only on the text: a spy reads a network channel, and the prefix occurs
/// once.
#[test]
fn a_spy_reads_a_network_channel() {
    let spy = channel("aeron-spy:aeron:udp?endpoint=localhost:40123");
    assert!(spy.is_spy());
    assert_eq!(
        spy.to_string(),
        "aeron-spy:aeron:udp?endpoint=localhost:40123"
    );
    assert_ne!(spy, spy.clone().with_spy(false));
    assert_eq!(
        refusal("aeron-spy:aeron:ipc"),
        "UDP channels must use UDP URIs"
    );
    assert_eq!(
        refusal("aeron-spy:aeron-spy:aeron:udp?endpoint=a:1"),
        "invalid URI scheme or transport: aeron-spy:aeron:udp?endpoint=a:1"
    );
}

/// A driver derives the kind of a channel from the beginning of the text, even if the rest is invalid.
#[test]
fn the_kind_of_a_channel_follows_from_the_start_of_its_text() {
    for (text, transport) in [
        ("aeron:ipc", Transport::Ipc),
        ("aeron:ipcx", Transport::Ipc),
        ("aeron-spy:aeron:ipc", Transport::Spy),
        ("aeron:udp?endpoint=a:1", Transport::Network),
        ("nonsense", Transport::Network),
    ] {
        assert_eq!(Transport::of(text.as_bytes()), transport, "{text}");
    }
}

#[test]
fn incomplete_pairs_are_refused_and_an_empty_last_value_is_absent() {
    for (text, message) in [
        ("aeron:ipc?=v", "empty key not allowed"),
        ("aeron:ipc?a=b|=v", "empty key not allowed"),
        ("aeron:ipc?|a=b", "invalid end of key"),
        ("aeron:ipc?a=b||c=d", "invalid end of key"),
        ("aeron:ipc?a=b|foo|c=d", "invalid end of key"),
        ("aeron:ipc?a=b|foo", "invalid end of key"),
        ("aeron:ipc?a=b|", "invalid end of key"),
        ("aeron:ipc?a=|b=c", "empty value not allowed"),
        ("aeron:ipc?tags=", "empty value not allowed"),
    ] {
        assert_eq!(refusal(text), message, "{text}");
    }
    assert_eq!(channel("aeron:ipc?a=b|mtu="), channel("aeron:ipc?a=b"));
}

#[test]
fn tags_have_two_parts_and_either_part_may_be_absent() {
    for (tags, channel_tag, entity_tag) in [
        ("1", Some(1), None),
        ("1,2", Some(1), Some(2)),
        (",5", None, Some(5)),
        ("5,", Some(5), None),
        ("0,-7", Some(0), Some(-7)),
    ] {
        let uri = channel(&format!("aeron:ipc?tags={tags}"));
        assert!(uri.is_tagged());
        assert_eq!(
            (uri.channel_tag(), uri.entity_tag()),
            (Ok(channel_tag), Ok(entity_tag))
        );
    }
    let bad = channel("aeron:ipc?tags=12abc,3,4");
    assert_eq!(
        bad.channel_tag().unwrap_err().code,
        ErrorCode::InvalidChannel
    );
    assert_eq!(bad.entity_tag().unwrap_err().code, ErrorCode::GenericError);
}

/// If the channel sets no untethered linger timeout, or 0, the window limit timeout applies.
#[test]
fn the_default_of_the_untethered_linger_timeout_is_the_window_limit_timeout() {
    let unstated =
        publication("aeron:ipc?untethered-window-limit-timeout=2s|untethered-linger-timeout=0");
    assert_eq!(unstated.untethered_linger_timeout_ns, 2_000_000_000);
    let stated =
        subscription("aeron:ipc?untethered-linger-timeout=7ms|untethered-resting-timeout=3us");
    assert_eq!(stated.untethered_window_limit_timeout_ns, 5_000_000_000);
    assert_eq!(stated.untethered_linger_timeout_ns, 7_000_000);
    assert_eq!(stated.untethered_resting_timeout_ns, 3_000);
}

#[test]
fn a_window_is_set_by_channel_or_driver_and_is_at_most_half_a_term() {
    assert_eq!(
        publication("aeron:ipc?term-length=64k").window_length,
        32768
    );
    assert_eq!(
        publication("aeron:ipc?term-length=64k|pub-wnd=8k").window_length,
        8192
    );
    for (configured, effective) in [(4096, 4096), (1 << 20, 32768)] {
        let defaults = PublicationDefaults {
            window_length: configured,
            ..PUBLICATION
        };
        let uri = channel("aeron:ipc?term-length=64k");
        let params = PublicationParams::parse(&uri, &defaults, |_| None).unwrap();
        assert_eq!(params.window_length, effective);
    }
}

#[test]
fn a_stream_starts_at_the_position_in_its_channel_and_term_ids_wrap() {
    let start = publication(
        "aeron:ipc?term-length=64k|init-term-id=2147483647|term-id=-2147483648|term-offset=65536",
    );
    assert_eq!(
        start.initial_position.unwrap().position(start.term_length),
        2 * 65536
    );
    let at = InitialPosition::at(132_096, 5, 65536).unwrap();
    assert_eq!(
        (at.term_id, at.term_offset, at.position(65536)),
        (7, 1024, 132_096)
    );
    let wrapped = InitialPosition::at(65536, i32::MAX, 65536).unwrap();
    assert_eq!(
        (wrapped.term_id, wrapped.position(65536)),
        (i32::MIN, 65536)
    );
    for (position, term_length) in [(-32, 65536), (33, 65536), (64, 100), (i64::MAX - 31, 65536)] {
        assert!(
            InitialPosition::at(position, 0, term_length).is_err(),
            "{position} {term_length}"
        );
    }
}

#[test]
fn a_shared_publication_must_have_all_values_that_the_channel_sets() {
    let text =
        "aeron:ipc?session-id=5|mtu=2k|term-length=64k|init-term-id=1|term-id=2|term-offset=64";
    let params = publication(text);
    let existing = aeron_protocol::uri::ExistingPublication {
        session_id: 5,
        mtu_length: 2048,
        term_length: 65536,
        initial_position: params.initial_position.unwrap(),
    };
    assert_eq!(params.check_agrees_with(&existing), Ok(()));
    for (other, key) in [
        ("session-id=6", "session-id"),
        ("mtu=4k", "mtu"),
        ("term-length=128k", "term-length"),
        ("init-term-id=0|term-id=2|term-offset=64", "init-term-id"),
        ("init-term-id=1|term-id=3|term-offset=64", "term-id"),
        ("init-term-id=1|term-id=2|term-offset=96", "term-offset"),
    ] {
        let refused = publication(&format!("aeron:ipc?{other}")).check_agrees_with(&existing);
        let message = refused.unwrap_err().message;
        assert!(message.starts_with(&format!(
            "existing publication has different '{key}': existing="
        )));
    }
    assert_eq!(
        publication("aeron:ipc?linger=1s").check_agrees_with(&existing),
        Ok(())
    );
}

/// 05-24
#[test]
fn a_session_id_with_a_tag_takes_session_id_mtu_and_term_length_of_a_publication() {
    let lender = aeron_protocol::uri::ExistingPublication {
        session_id: -3,
        mtu_length: 4096,
        term_length: 131_072,
        initial_position: InitialPosition {
            initial_term_id: 0,
            term_id: 0,
            term_offset: 0,
        },
    };
    let parse = |text: &str| {
        PublicationParams::parse(&channel(text), &PUBLICATION, |tag| {
            (tag == 77).then_some(lender)
        })
    };
    let params = parse("aeron:udp?endpoint=a:1|session-id=tag:77").unwrap();
    assert_eq!(params.session_id, SessionId::Explicit(-3));
    assert_eq!((params.mtu_length, params.term_length), (4096, 131_072));
    let stated = parse("aeron:udp?endpoint=a:1|session-id=tag:77|mtu=2k").unwrap();
    assert_eq!((stated.mtu_length, stated.term_length), (2048, 131_072));
    let refused = parse("aeron:udp?endpoint=a:1|session-id=tag:78").unwrap_err();
    assert_eq!(refused.code, ErrorCode::GenericError);
    assert_eq!(
        refused.message,
        "session-id=tag:78 must reference a network publication"
    );
}

/// `response-correlation-id` connects a request stream with its response stream.
#[test]
fn a_response_correlation_id_is_an_id_or_prototype_or_minus_1_for_none() {
    let params = publication("aeron:udp?control-mode=response|response-correlation-id=prototype");
    assert_eq!(
        params.response_correlation,
        Some(ResponseCorrelation::Prototype)
    );
    assert_eq!(params.term_length, 65536);
    assert!(params.is_response);
    let id = publication("aeron:udp?endpoint=a:1|response-correlation-id=7");
    assert_eq!(id.response_correlation, Some(ResponseCorrelation::Id(7)));
    assert_eq!(
        publication("aeron:ipc?response-correlation-id=-1").response_correlation,
        None
    );
    assert!(subscription("aeron:ipc?control-mode=response").is_response);
}

#[test]
fn a_group_has_three_values_and_any_other_text_means_no() {
    for (text, group) in [
        ("aeron:ipc", ReceiverGroup::Infer),
        ("aeron:ipc?group=true", ReceiverGroup::Yes),
        ("aeron:ipc?group=infer", ReceiverGroup::Infer),
        ("aeron:ipc?group=foo", ReceiverGroup::No),
    ] {
        assert_eq!(subscription(text).group, group);
    }
}

/// With `rcv-wnd=0`, the driver's setting applies.
#[test]
fn for_a_receiver_window_of_0_the_setting_of_the_driver_applies() {
    assert_eq!(
        subscription("aeron:ipc?rcv-wnd=0").receiver_window_length,
        128 * 1024
    );
    assert_eq!(
        subscription("aeron:ipc?rcv-wnd=64k").receiver_window_length,
        65536
    );
}

/// 03-54
#[test]
fn text_that_is_not_a_channel_is_refused_with_code_1() {
    for text in [
        "",
        "garbage",
        "aeron:",
        "aeron:foo?a=b",
        "aeron:udp",
        "aeron:udp?",
        "aeron:ipcx",
        "aeron:ipc:",
    ] {
        refusal(text);
    }
}

/// 03-56
#[test]
fn lengths_and_positions_that_no_log_can_have_are_refused_with_code_11() {
    for parameters in [
        "term-length=32k",
        "term-length=65537",
        "term-length=2g",
        "mtu=100",
        "mtu=32",
        "init-term-id=5|term-id=7",
        "term-offset=0",
        "init-term-id=7|term-id=5|term-offset=0",
        "init-term-id=5|term-id=5|term-offset=33",
        "ssc=x",
        "max-resend=0",
        "max-resend=257",
    ] {
        for media in ["aeron:ipc?", "aeron:udp?endpoint=localhost:40123|"] {
            let uri = channel(&format!("{media}{parameters}"));
            let refused = PublicationParams::parse(&uri, &PUBLICATION, |_| None).unwrap_err();
            assert_eq!(refused.code, ErrorCode::GenericError, "{uri}: {refused}");
        }
    }
}

/// IPC ignores parameters of the network, even if their values are invalid.
#[test]
fn parameters_that_ipc_does_not_use_may_have_any_value() {
    publication("aeron:ipc?gtag=x|nak-delay=x|so-sndbuf=x|tags=x|ttl=x|stream-id=x");
    subscription("aeron:ipc?gtag=x|cc=x|nak-delay=x|mtu=x|term-length=x|linger=x|ats=x");
}

#[test]
fn flow_control_has_a_name_and_options_in_any_order() {
    let uri = channel("aeron:udp?control=a:1|control-mode=dynamic|fc=tagged,rrwm:3,t:2s,g:-5/4");
    let flow_control = uri.flow_control().unwrap().unwrap();
    assert_eq!(flow_control.strategy, FlowControlStrategy::Tagged);
    assert_eq!(
        (flow_control.group_tag, flow_control.group_min_size),
        (Some(-5), Some(4))
    );
    assert_eq!(flow_control.receiver_timeout_ns, Some(2_000_000_000));
    assert_eq!(flow_control.retransmit_window_multiple, Some(3));
    assert_eq!(channel("aeron:udp?endpoint=a:1").flow_control(), Ok(None));
    assert!(channel("aeron:udp?fc=max,t:5s").flow_control().is_err());
}

/// 05-28
#[test]
fn names_of_the_java_drivers_classes_are_flow_control_strategies() {
    use FlowControlStrategy::{Max, Min, Tagged};
    for (name, expected) in [("Max", Max), ("Min", Min), ("Tagged", Tagged)] {
        for end in ["", "Supplier"] {
            let class = format!("io.aeron.driver.{name}MulticastFlowControl{end}");
            let uri = channel(&format!("aeron:udp?endpoint=a:1|fc={class},rrwm:3"));
            let flow_control = uri.flow_control().unwrap().unwrap();
            assert_eq!(flow_control.strategy, expected);
        }
    }
    let refused = channel("aeron:udp?endpoint=a:1|fc=com.acme.Mine").flow_control();
    let refused = refused.unwrap_err().to_string();
    assert!(refused.ends_with(", use max, min or tagged"), "{refused}");
}

/// A channel sets where the driver writes timestamps: `reserved` is -8, and a negative offset means no timestamp.
#[test]
fn timestamp_offsets_are_read_from_the_channel() {
    let uri = channel(
        "aeron:udp?endpoint=a:1|media-rcv-ts-offset=reserved|channel-snd-ts-offset=0|channel-rcv-ts-offset=-3",
    );
    let params = NetworkParams::parse(&uri).unwrap();
    assert_eq!(params.control_mode, ControlMode::None);
    let offsets = params.timestamp_offsets;
    assert_eq!(offsets.media_receive, Some(-8));
    assert_eq!(
        (offsets.channel_receive, offsets.channel_send),
        (None, Some(0))
    );
}

/// `put` refuses keys and values with which the printed channel could not be parsed.
#[test]
fn parameters_with_which_a_channel_could_not_be_parsed_are_not_added() {
    let mut uri = ChannelUri::new(Media::Ipc);
    for (key, value) in [
        ("", "x"),
        ("a=b", "x"),
        ("a|b", "x"),
        ("a?b", "x"),
        ("a", ""),
        ("a", "1|2"),
    ] {
        assert!(uri.put(key, value).is_err(), "{key}={value}");
    }
    let refusal = |key, value| ChannelUri::new(Media::Ipc).put(key, value).unwrap_err();
    assert_eq!(
        refusal("a\0b", "x").to_string(),
        "key cannot contain a NUL byte: a\\0b"
    );
    assert_eq!(
        refusal("a", "1\x002").to_string(),
        "value cannot contain a NUL byte: a=1\\02"
    );
    uri.put("alias", "a=b?c").unwrap();
    assert_eq!(uri.to_string(), "aeron:ipc?alias=a=b?c");
    assert_eq!(ChannelUri::parse(&uri.to_string()), Ok(uri));
}

fn judge_everything(uri: &ChannelUri) {
    let _ = (
        uri.channel_tag(),
        uri.entity_tag(),
        uri.response_correlation(),
        uri.flow_control(),
    );
    let _ = NetworkParams::parse(uri);
    let _ = PublicationParams::parse(uri, &PUBLICATION, |_| None);
    let _ = SubscriptionParams::parse(uri, &SUBSCRIPTION);
}

proptest! {
    #[test]
    fn random_bytes_never_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        let _ = ChannelUri::from_bytes(&bytes);
        let with_scheme = [b"aeron:udp?".as_slice(), &bytes].concat();
        if let Ok(uri) = ChannelUri::from_bytes(&with_scheme) {
            judge_everything(&uri);
        }
    }

    #[test]
    fn parameters_with_unusual_values_are_refused_or_print_as_they_were_parsed(
        pairs in prop::collection::vec((0..aeron_protocol::uri::key::ALL.len(), strange_value()), 0..8),
        is_udp: bool,
    ) {
        let pairs: Vec<_> = pairs.iter()
            .map(|(key, value)| format!("{}={value}", aeron_protocol::uri::key::ALL[*key]))
            .collect();
        let text = format!("aeron:{}?{}", if is_udp { "udp" } else { "ipc" }, pairs.join("|"));
        if let Ok(uri) = ChannelUri::parse(&text) {
            judge_everything(&uri);
            prop_assert_eq!(ChannelUri::parse(&uri.to_string()), Ok(uri));
        }
    }
}

fn strange_value() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<i64>().prop_map(|number| number.to_string()),
        "[0-9]{1,25}[kmgsnu]{0,2}",
        "(min|max|tagged|tag|true|,)?[,:/a-z0-9-]{0,12}",
        "\\PC{0,12}",
        Just("reserved".to_owned()),
        Just("response".to_owned()),
        Just("prototype".to_owned()),
    ]
}
