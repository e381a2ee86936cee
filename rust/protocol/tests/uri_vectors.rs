//! Tests with channels that were sent to real drivers, with the values that the drivers used, and the exact texts of
//! their errors.

use aeron_protocol::ErrorCode;
use aeron_protocol::uri::{
    ChannelUri, ControlMode, ExistingPublication, InitialPosition, Media, NetworkParams,
    PublicationDefaults, PublicationParams, ReceiverGroup, SessionId, SubscriptionDefaults,
    SubscriptionParams, Transport, UntetheredTimeouts, UriError,
};
use serde_json::{Value, json};

const VECTORS: &str = include_str!("vectors/uris.json");

const UNTETHERED: UntetheredTimeouts = UntetheredTimeouts {
    window_limit_timeout_ns: 5_000_000_000,
    linger_timeout_ns: None,
    resting_timeout_ns: 10_000_000_000,
};

/// Default settings of a driver.
fn publication_defaults(media: Media) -> PublicationDefaults {
    PublicationDefaults {
        term_length: if media == Media::Ipc {
            64 << 20
        } else {
            16 << 20
        },
        mtu_length: 1408,
        window_length: 0,
        linger_timeout_ns: 5_000_000_000,
        is_sparse: true,
        spies_simulate_connection: false,
        max_resend: 16,
        untethered: UNTETHERED,
    }
}

const SUBSCRIPTION_DEFAULTS: SubscriptionDefaults = SubscriptionDefaults {
    is_reliable: true,
    is_sparse: true,
    is_tether: true,
    is_rejoin: true,
    group: ReceiverGroup::Infer,
    receiver_window_length: 128 * 1024,
    untethered: UNTETHERED,
};

fn cases() -> Vec<Value> {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    let cases = vectors["cases"].as_array().unwrap().clone();
    assert_eq!(cases.len() as u64, vectors["count"].as_u64().unwrap());
    cases
}

fn channel_of(case: &Value) -> String {
    match case["uri"].as_str() {
        Some(uri) => uri.to_owned(),
        None => {
            let repeat = &case["uri_repeat"];
            let count = repeat["count"].as_u64().unwrap() as usize;
            let text = repeat["char"].as_str().unwrap().repeat(count);
            format!("{}{text}", repeat["prefix"].as_str().unwrap())
        }
    }
}

fn op(case: &Value) -> &str {
    case["op"].as_str().unwrap()
}

/// Reads a publication's channel as a driver does before the driver resolves addresses.
fn publication(channel: &str, lenders: &[Value]) -> Result<PublicationParams, UriError> {
    let uri = ChannelUri::parse(channel)?;
    if uri.is_spy() {
        return Err(UriError {
            code: ErrorCode::InvalidChannel,
            message: format!("invalid URI scheme or transport: {channel}"),
        });
    }
    if uri.media() == Media::Udp {
        let network = NetworkParams::parse(&uri)?;
        if [ControlMode::Dynamic, ControlMode::Manual].contains(&network.control_mode) {
            uri.flow_control()?;
        }
    }
    PublicationParams::parse(&uri, &publication_defaults(uri.media()), |tag| {
        find_tagged(tag, lenders)
    })
}

fn find_tagged(tag: i64, lenders: &[Value]) -> Option<ExistingPublication> {
    lenders.iter().find_map(|lender| {
        let uri = ChannelUri::parse(&channel_of(lender)).unwrap();
        (uri.entity_tag() == Ok(Some(tag))).then(|| existing(&channel_of(lender)))
    })
}

/// Returns the publication that a driver creates for `channel`.
fn existing(channel: &str) -> ExistingPublication {
    let params = publication(channel, &[]).unwrap();
    ExistingPublication {
        session_id: match params.session_id {
            SessionId::Explicit(session_id) => session_id,
            SessionId::Automatic => 1001,
        },
        mtu_length: params.mtu_length,
        term_length: params.term_length,
        initial_position: params.initial_position.unwrap_or(InitialPosition {
            initial_term_id: 1,
            term_id: 1,
            term_offset: 0,
        }),
    }
}

fn subscription(channel: &str) -> Result<SubscriptionParams, UriError> {
    let uri = ChannelUri::parse(channel)?;
    if uri.media() == Media::Udp {
        NetworkParams::parse(&uri)?;
    }
    SubscriptionParams::parse(&uri, &SUBSCRIPTION_DEFAULTS)
}

fn setup_of(case: &Value) -> Vec<Value> {
    case["setup"].as_array().cloned().unwrap_or_default()
}

/// Checks the code and text of an error. If the value of a parameter is not a number, the error text of C drivers ends
/// with the wrong reason `Success`. Our text does not contain this reason.
fn assert_refused(case: &Value, error: &UriError) {
    let expected = &case["error"];
    let text = expected["text"].as_str().unwrap_or_default();
    let text = text
        .trim_end_matches("Success")
        .trim_end_matches("<padding>")
        .trim_end();
    assert_eq!(
        json!(error.code.value()),
        expected["code"],
        "{case}: {error}"
    );
    assert!(error.message.contains(text), "{case}: {error}");
}

/// 05-4: the captured channels have keys in different orders, unknown keys, and keys in other letter case.
#[test]
fn channels_that_real_drivers_accept_are_parsed_with_the_same_result() {
    let mut read = 0;
    for case in cases() {
        let (Some(params), Some(media)) = (
            case["decoded"]["params"].as_object(),
            case["decoded"]["media"].as_str(),
        ) else {
            continue;
        };
        if case["product"] != "accept" || case["uri"].is_null() {
            continue;
        }
        let uri =
            ChannelUri::parse(&channel_of(&case)).unwrap_or_else(|error| panic!("{case}: {error}"));
        assert_eq!(uri.media().as_str(), media);
        let parameters: Value = uri
            .parameters()
            .map(|(k, v)| (k.to_owned(), json!(v)))
            .collect();
        assert_eq!(parameters.as_object(), Some(params), "{case}");
        assert_eq!(ChannelUri::parse(&uri.to_string()), Ok(uri), "{case}");
        read += 1;
    }
    assert!(read > 200, "{read}");
}

/// Each captured channel of an IPC publication is accepted or refused as the vector requires.
#[test]
fn every_ipc_publication_gets_the_expected_response() {
    let mut judged = 0;
    for case in cases() {
        let channel = channel_of(&case);
        // Only the driver can detect that a session id is in use.
        if !["pub", "xpub"].contains(&op(&case))
            || Transport::of(channel.as_bytes()) != Transport::Ipc
            || case["id"] == "clash-018"
        {
            continue;
        }
        let answer = publication(&channel, &[]).and_then(|params| {
            setup_of(&case)
                .iter()
                .try_for_each(|other| params.check_agrees_with(&existing(&channel_of(other))))
                .map(|()| params)
        });
        match (case["product"].as_str().unwrap(), answer) {
            ("accept", Ok(params)) => assert_effect(&case, &params),
            ("reject", Err(error)) => assert_refused(&case, &error),
            ("either", _) => {}
            (verdict, answer) => panic!("{verdict}: {case}: {answer:?}"),
        }
        judged += 1;
    }
    assert_eq!(judged, 33);
}

fn assert_effect(case: &Value, params: &PublicationParams) {
    // If the product differs from the C driver on purpose, the documented effect is expected.
    let effect = |key: &str| {
        let wanted = &case["product_effect"][key];
        if wanted.is_null() {
            case["effect"][key].clone()
        } else {
            wanted.clone()
        }
    };
    let position = params
        .initial_position
        .map_or(0, |start| start.position(params.term_length));
    assert_eq!(json!(params.term_length), effect("term_length"), "{case}");
    assert_eq!(json!(params.mtu_length), effect("mtu"), "{case}");
    assert_eq!(json!(position), effect("position"), "{case}");
    if let Some(session_id) = effect("session_id").as_i64() {
        assert_eq!(
            params.session_id,
            SessionId::Explicit(session_id as i32),
            "{case}"
        );
    }
    if let (Some(start), Some(id)) = (params.initial_position, effect("initial_term_id").as_i64()) {
        assert_eq!(i64::from(start.initial_term_id), id, "{case}");
    }
}

/// Each captured channel of an IPC subscription is accepted or refused as the vector requires.
#[test]
fn every_ipc_subscription_gets_the_expected_response() {
    let mut judged = 0;
    for case in cases() {
        let channel = channel_of(&case);
        if !["sub", "sub-dest"].contains(&op(&case))
            || Transport::of(channel.as_bytes()) != Transport::Ipc
        {
            continue;
        }
        match (case["product"].as_str().unwrap(), subscription(&channel)) {
            ("accept", Ok(_)) | ("either", _) => {}
            ("reject", Err(error)) => assert_refused(&case, &error),
            (verdict, answer) => panic!("{verdict}: {case}: {answer:?}"),
        }
        judged += 1;
    }
    assert_eq!(judged, 10);
}

/// Beginnings of the texts of errors that only a driver with addresses, sockets or other resources can detect. These
/// tests have no driver, so channels with such errors are accepted here.
const BEYOND_THE_TEXT: [&str; 27] = [
    "port ",
    "endpoint has port=0",
    "control has port=0",
    "Unable to resolve host",
    "Multicast data address",
    "failed to ",
    "unknown interface",
    "name length",
    "unexpected character after name",
    "could not find matching interface",
    "prefixlen",
    "'control' parameter requires",
    "URI must have explicit control",
    "image.correlationId=",
    "unable to find response subscription",
    "MTU greater than SO_SNDBUF",
    "Initial window greater than SO_RCVBUF",
    "matching tag",
    "existing publication has",
    "so-sndbuf=",
    "so-rcvbuf=",
    "option conflicts with",
    "no available ports",
    "channel does not allow",
    "Aeron spies are invalid",
    "destinations ",
    "incorrect URI format",
];

/// A network channel is refused if its text alone is invalid. It is accepted if only a driver could detect the error.
#[test]
fn exactly_the_invalid_texts_of_network_channels_are_refused() {
    let mut refused = 0;
    for case in cases() {
        let channel = channel_of(&case);
        if !["pub", "xpub", "sub"].contains(&op(&case))
            || Transport::of(channel.as_bytes()) == Transport::Ipc
        {
            continue;
        }
        let answer = match op(&case) {
            "sub" => subscription(&channel).map(|_| None),
            _ => publication(&channel, &setup_of(&case)).map(Some),
        };
        match (case["product"].as_str().unwrap(), answer) {
            ("accept", Ok(Some(params))) => assert_effect(&case, &params),
            ("accept", Ok(None)) | ("either", _) => {}
            ("reject", Err(error)) if case["error"].is_object() => {
                assert_refused(&case, &error);
                refused += 1;
            }
            ("reject", Err(_)) => {}
            ("reject", Ok(_)) => {
                let text = case["error"]["text"].as_str().unwrap();
                assert!(
                    BEYOND_THE_TEXT.iter().any(|start| text.starts_with(start)),
                    "{case}"
                );
            }
            (verdict, answer) => panic!("{verdict}: {case}: {answer:?}"),
        }
    }
    assert!(refused > 80, "{refused}");
}

/// Tests pairs of publications on one channel. A real driver gave both the same log, or reported a difference in their
/// parameters.
#[test]
fn shared_network_publications_agree_or_the_error_names_the_difference() {
    let mut judged = 0;
    for case in cases() {
        let told = case["error"]["text"].as_str().unwrap_or_default();
        // `ExistingPublication` has no `ssc`, because `ssc` is not a parameter of the log, so such a difference is not
        // tested here.
        let differs = told.starts_with("existing publication has different '");
        let shares = case["effect"]["shares_log_with_setup"] == true;
        let channel = channel_of(&case);
        if Transport::of(channel.as_bytes()) != Transport::Network || !(differs || shares) {
            continue;
        }
        let existing = existing(&channel_of(&setup_of(&case)[0]));
        let params = publication(&channel, &[]).unwrap();
        match params.check_agrees_with(&existing) {
            Ok(()) => assert!(shares, "{case}"),
            Err(error) => assert_refused(&case, &error),
        }
        judged += 1;
    }
    assert!(judged >= 6, "{judged}");
}

#[test]
fn parsed_network_channels_have_the_recorded_values() {
    for case in cases()
        .iter()
        .filter(|case| op(case) == "parse" && case["product"] == "accept")
    {
        let params = NetworkParams::parse(&ChannelUri::parse(&channel_of(case)).unwrap()).unwrap();
        let decoded = &case["decoded"];
        assert_eq!(
            json!(format!("{:?}", params.control_mode).to_lowercase()),
            decoded["control_mode"],
            "{case}"
        );
        assert_eq!(json!(params.channel_tag), decoded["channel_tag"], "{case}");
        assert_eq!(
            json!(params.socket_sndbuf_length),
            decoded["so_sndbuf"],
            "{case}"
        );
        assert_eq!(
            json!(params.socket_rcvbuf_length),
            decoded["so_rcvbuf"],
            "{case}"
        );
        let offsets = params.timestamp_offsets;
        for (offset, key) in [
            (offsets.media_receive, "media_rcv_ts_offset"),
            (offsets.channel_receive, "channel_rcv_ts_offset"),
            (offsets.channel_send, "channel_snd_ts_offset"),
        ] {
            if decoded[key].is_i64() {
                assert_eq!(json!(offset), decoded[key], "{case}");
            }
        }
    }
}
