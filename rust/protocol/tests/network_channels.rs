//! Tests of the parameters that publications and subscriptions read from network channels.

use aeron_protocol::ErrorCode;
use aeron_protocol::uri::{
    ChannelUri, NetworkParams, PublicationParams, ReceiverGroup, ResponseCorrelation,
    SubscriptionParams, UriError, key,
};

use crate::defaults::{PUBLICATION, SUBSCRIPTION};

/// Returns a unicast channel with further parameters.
fn channel(parameters: &str) -> ChannelUri {
    ChannelUri::parse(&format!("aeron:udp?endpoint=localhost:40123|{parameters}")).unwrap()
}

fn publication(parameters: &str) -> Result<PublicationParams, UriError> {
    PublicationParams::parse(&channel(parameters), &PUBLICATION, |_| None)
}

fn subscription(parameters: &str) -> Result<SubscriptionParams, UriError> {
    SubscriptionParams::parse(&channel(parameters), &SUBSCRIPTION)
}

fn network(parameters: &str) -> Result<NetworkParams, UriError> {
    NetworkParams::parse(&channel(parameters))
}

fn assert_refused<T: std::fmt::Debug>(answer: Result<T, UriError>, message: &str) {
    let error = answer.unwrap_err();
    assert_eq!(error.code, ErrorCode::GenericError);
    assert!(error.message.starts_with(message), "{error}");
}

/// 05-25
#[test]
fn durations_have_units_and_the_default_of_the_untethered_linger_is_the_window_limit() {
    for (text, expected_ns) in [
        ("0", 0),
        ("1000", 1000),
        ("1000ns", 1000),
        ("100us", 100_000),
        ("100MS", 100_000_000),
        ("10s", 10_000_000_000),
        ("9223372036854775807s", i64::MAX),
    ] {
        let linger_ns = publication(&format!("linger={text}"))
            .unwrap()
            .linger_timeout_ns;
        assert_eq!(linger_ns, expected_ns, "{text}");
    }
    for text in ["abc", "-1", "1h", "1.5s", "10s1"] {
        for parameter in [
            key::LINGER,
            key::UNTETHERED_WINDOW_LIMIT_TIMEOUT,
            key::UNTETHERED_LINGER_TIMEOUT,
            key::UNTETHERED_RESTING_TIMEOUT,
        ] {
            let message = format!("could not parse {parameter}={text} in URI");
            assert_refused(publication(&format!("{parameter}={text}")), &message);
        }
    }

    let unstated = publication("alias=x").unwrap();
    assert_eq!(unstated.linger_timeout_ns, 5_000_000_000);
    let stated = "untethered-window-limit-timeout=2s|untethered-resting-timeout=3us";
    let publication = publication(stated).unwrap();
    assert_eq!(
        publication.untethered_window_limit_timeout_ns,
        2_000_000_000
    );
    assert_eq!(publication.untethered_linger_timeout_ns, 2_000_000_000);
    assert_eq!(publication.untethered_resting_timeout_ns, 3_000);
    let subscription = subscription("untethered-linger-timeout=7ms").unwrap();
    assert_eq!(
        subscription.untethered_window_limit_timeout_ns,
        5_000_000_000
    );
    assert_eq!(subscription.untethered_linger_timeout_ns, 7_000_000);
    assert_eq!(subscription.untethered_resting_timeout_ns, 10_000_000_000);
}

/// 05-26
#[test]
fn a_publication_keeps_1_to_256_retransmissions_in_flight() {
    let max_resend = |text: &str| publication(&format!("max-resend={text}"));
    assert_eq!(publication("alias=x").unwrap().max_resend, 16);
    assert_eq!(max_resend("1").unwrap().max_resend, 1);
    assert_eq!(max_resend("256").unwrap().max_resend, 256);
    let limit = "must be > 0 and <= 256";
    assert_refused(max_resend("0"), &format!("invalid max-resend=0, {limit}"));
    assert_refused(
        max_resend("257"),
        &format!("invalid max-resend=257, {limit}"),
    );
    assert_refused(
        max_resend("1k"),
        &format!("invalid max-resend=1024, {limit}"),
    );
    assert_refused(max_resend("abc"), "could not parse max-resend=abc in URI");
}

/// 05-27
#[test]
fn flags_are_true_or_false_and_a_group_has_three_values() {
    let both = |parameter: &str| [true, false].map(|value| (value, format!("{parameter}={value}")));
    for (value, text) in both("sparse") {
        assert_eq!(publication(&text).unwrap().is_sparse, value);
        assert_eq!(subscription(&text).unwrap().is_sparse, value);
    }
    for (value, text) in both("eos") {
        assert_eq!(publication(&text).unwrap().signal_eos, value);
    }
    for (value, text) in both("ssc") {
        assert_eq!(publication(&text).unwrap().spies_simulate_connection, value);
    }
    for (value, text) in both("reliable") {
        assert_eq!(subscription(&text).unwrap().is_reliable, value);
    }
    for (value, text) in both("tether") {
        assert_eq!(subscription(&text).unwrap().is_tether, value);
    }
    for (value, text) in both("rejoin") {
        assert_eq!(subscription(&text).unwrap().is_rejoin, value);
    }
    for word in ["yes", "TRUE", "1"] {
        let message = |parameter| format!("could not parse {parameter}={word} as bool from URI");
        for parameter in ["sparse", "eos", "ssc"] {
            assert_refused(
                publication(&format!("{parameter}={word}")),
                &message(parameter),
            );
        }
        for parameter in ["sparse", "reliable", "tether", "rejoin"] {
            assert_refused(
                subscription(&format!("{parameter}={word}")),
                &message(parameter),
            );
        }
    }
    for (text, group) in [
        ("alias=x", ReceiverGroup::Infer),
        ("group=infer", ReceiverGroup::Infer),
        ("group=true", ReceiverGroup::Yes),
        ("group=false", ReceiverGroup::No),
        ("group=other", ReceiverGroup::No),
    ] {
        assert_eq!(subscription(text).unwrap().group, group, "{text}");
    }
}

/// 02-102, 05-30
#[test]
fn timestamps_are_8_bytes_apart_and_may_use_the_reserved_value() {
    let offsets = |parameters: &str| network(parameters).map(|params| params.timestamp_offsets);
    let apart = "media-rcv-ts-offset=reserved|channel-rcv-ts-offset=0|channel-snd-ts-offset=8";
    let found = offsets(apart).unwrap();
    assert_eq!(found.media_receive, Some(-8));
    assert_eq!(found.channel_receive, Some(0));
    assert_eq!(found.channel_send, Some(8));

    let off = offsets("media-rcv-ts-offset=-1|channel-rcv-ts-offset=-5").unwrap();
    assert_eq!(
        (off.media_receive, off.channel_receive, off.channel_send),
        (None, None, None)
    );

    let parameters = [
        "media-rcv-ts-offset",
        "channel-rcv-ts-offset",
        "channel-snd-ts-offset",
    ];
    for (first, second) in [(0, 1), (0, 2), (1, 2)] {
        let (first, second) = (parameters[first], parameters[second]);
        for (a, b) in [
            ("0", "4"),
            ("7", "0"),
            ("reserved", "reserved"),
            ("reserved", "-8"),
        ] {
            let message = format!("{first} and {second} overlap");
            assert_refused(offsets(&format!("{first}={a}|{second}={b}")), &message);
        }
    }
    for parameter in parameters {
        for text in ["abc", "1.5", "2147483648"] {
            let message = format!("Invalid media-rcv-ts-offset: {text}");
            assert_refused(offsets(&format!("{parameter}={text}")), &message);
        }
    }
}

/// `response-correlation-id` connects a request stream with its response stream; -1 means no connection.
#[test]
fn a_response_correlation_id_is_a_number_and_minus_1_means_no_connection() {
    let correlation = |text: &str| {
        publication(&format!("response-correlation-id={text}"))
            .map(|params| params.response_correlation)
    };
    assert_eq!(correlation("-1"), Ok(None));
    assert_eq!(correlation("7"), Ok(Some(ResponseCorrelation::Id(7))));
    assert!(correlation("x").is_err());
}

/// 05-32, 04-182
#[test]
fn transport_security_is_refused() {
    assert_refused(
        network("ats=true"),
        "ATS is not enabled and thus ats=true not allowed",
    );
    assert_refused(
        network("ats=junk"),
        "could not parse ats=junk as bool from URI",
    );
    assert!(network("ats=false").is_ok());
}

/// 05-33: parameters that only clients use do not change what a driver reads.
#[test]
fn parameters_for_clients_have_no_effect_on_a_driver() {
    let unused = "stream-id=1002|alias=x y|response-endpoint=localhost:1";
    assert_eq!(publication(unused), publication("foo=bar"));
    assert_eq!(subscription(unused), subscription("foo=bar"));
    assert_eq!(network(unused), network("foo=bar"));
}

/// A channel sets the group tag, NAK delay, socket buffers and TTL of its endpoint.
#[test]
fn a_channel_sets_group_tag_nak_delay_socket_buffers_and_ttl() {
    let params = network("gtag=-9223372036854775808|nak-delay=200us|so-rcvbuf=2M|ttl=3").unwrap();
    assert_eq!(params.group_tag, Some(i64::MIN));
    assert_eq!(params.nak_delay_ns, Some(200_000));
    assert_eq!(params.socket_rcvbuf_length, Some(2 << 20));
    assert_eq!(params.socket_sndbuf_length, None);
    assert_eq!(params.ttl, Some(3));
    assert_refused(
        network("gtag=abc"),
        "could not parse gtag=abc as int64_t in URI",
    );
    assert_refused(
        network("nak-delay=abc"),
        "could not parse nak-delay=abc in URI",
    );
    assert_refused(network("ttl=256"), "could not parse ttl=256");
}
