//! Compares the results of the channel builder and helpers with recorded results of Aeron's builder and helpers, for
//! the same calls.
//!
//! Some results differ on purpose: some calls are impossible with these types, and some results of Aeron are defects.

use aeron_agent::value::parse_duration_ns;
use aeron_protocol::uri::{ChannelUri, ChannelUriBuilder, Media, UriError, key, session_id_tag};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Calls that these types make impossible: no media, an unknown media, an unknown prefix, or an entity tag without a
/// channel tag.
const CANNOT_BE_WRITTEN: [&str; 5] = [
    "builder-003",
    "builder-004",
    "builder-020",
    "builder-021",
    "builder-022",
];

/// Correct results for calls whose recorded result is a defect of Aeron. Tags or manual control are enough to identify
/// a channel, and `clear` removes everything.
const DEFECTS: [(&str, &str); 3] = [
    ("builder-006", "valid"),
    ("builder-007", "valid"),
    ("builder-035", "aeron:ipc"),
];

fn cases(builder: &str) -> Vec<Value> {
    let vectors: Value = serde_json::from_str(include_str!("vectors/builder.json")).unwrap();
    let cases = vectors["cases"].as_array().unwrap().iter();
    cases
        .filter(|case| case["builder"] == builder)
        .cloned()
        .collect()
}

fn steps(case: &Value) -> Vec<(String, Vec<Value>)> {
    let name_and_arguments = |step: &Value| {
        let step = step.as_array().unwrap();
        (step[0].as_str().unwrap().to_owned(), step[1..].to_vec())
    };
    case["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(name_and_arguments)
        .collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn int32(value: &Value) -> i32 {
    value.as_i64().unwrap().try_into().unwrap()
}

fn int64(value: &Value) -> i64 {
    value.as_i64().unwrap()
}

fn flag(value: &Value) -> bool {
    value.as_bool().unwrap()
}

fn duration_ns(value: &Value) -> Option<i64> {
    value.as_str().map(|text| parse_duration_ns(text).unwrap())
}

fn media_of(steps: &[(String, Vec<Value>)]) -> Media {
    match steps.iter().find(|(name, _)| name == "media") {
        Some((_, arguments)) if arguments[0] == "udp" => Media::Udp,
        _ => Media::Ipc,
    }
}

/// Runs the steps. Returns the channel, or `valid` if the last step is a validation.
fn run_java_builder(case: &Value) -> Result<String, UriError> {
    let steps = steps(case);
    let mut builder = ChannelUriBuilder::new(media_of(&steps));
    for (name, arguments) in &steps {
        match name.as_str() {
            "from" => {
                builder = ChannelUriBuilder::from_channel(&ChannelUri::parse(text(&arguments[0]))?)?
            }
            "validate" => return builder.validate().map(|()| "valid".to_owned()),
            name => set(&mut builder, name, arguments)?,
        }
    }
    Ok(builder.build().to_string())
}

fn set(builder: &mut ChannelUriBuilder, setter: &str, arguments: &[Value]) -> Result<(), UriError> {
    let first = arguments.first().unwrap_or(&Value::Null);
    match setter {
        "media" | "build" => Ok(builder),
        "clear" => Ok(builder.clear()),
        "prefix" => Ok(builder.spy(first == "aeron-spy")),
        "endpoint" => builder.put(key::ENDPOINT, text(first)),
        "networkInterface" => builder.put(key::INTERFACE, text(first)),
        "controlEndpoint" => builder.put(key::CONTROL, text(first)),
        "controlMode" => builder.put(key::CONTROL_MODE, text(first)),
        "tags" if first.is_string() => builder.put("tags", text(first)),
        "tags" => builder.tags(int64(first), arguments.get(1).map(int64)),
        "alias" => builder.put(key::ALIAS, text(first)),
        "congestionControl" => builder.put(key::CONGESTION_CONTROL, text(first)),
        "flowControl" => builder.put(key::FLOW_CONTROL, text(first)),
        "reliable" => builder.put(key::RELIABLE, flag(first)),
        "ttl" => builder.put(key::TTL, int32(first)),
        "mtu" => builder.put(key::MTU, int32(first)),
        "termLength" => builder.put(key::TERM_LENGTH, int32(first)),
        "initialTermId" => builder.put(key::INITIAL_TERM_ID, int32(first)),
        "termId" => builder.put(key::TERM_ID, int32(first)),
        "termOffset" => builder.put(key::TERM_OFFSET, int32(first)),
        "sessionId" if first.is_string() => builder.put("session-id", text(first)),
        "sessionId" => builder.put(key::SESSION_ID, int32(first)),
        "linger" => builder.put(key::LINGER, int64(first)),
        "sparse" => builder.put(key::SPARSE, flag(first)),
        "eos" => builder.put(key::EOS, flag(first)),
        "tether" => builder.put(key::TETHER, flag(first)),
        "group" => builder.put(key::GROUP, flag(first)),
        "groupTag" => builder.put(key::GROUP_TAG, int64(first)),
        "rejoin" => builder.put(key::REJOIN, flag(first)),
        "spiesSimulateConnection" => builder.put(key::SPIES_SIMULATE_CONNECTION, flag(first)),
        "socketRcvbufLength" => builder.put(key::SOCKET_RCVBUF, int64(first)),
        "socketSndbufLength" => builder.put(key::SOCKET_SNDBUF, int64(first)),
        "receiverWindowLength" => builder.put(key::RECEIVER_WINDOW, int64(first)),
        "mediaReceiveTimestampOffset" => builder.put(key::MEDIA_RCV_TIMESTAMP_OFFSET, text(first)),
        "channelReceiveTimestampOffset" => {
            builder.put(key::CHANNEL_RCV_TIMESTAMP_OFFSET, text(first))
        }
        "channelSendTimestampOffset" => builder.put(key::CHANNEL_SND_TIMESTAMP_OFFSET, text(first)),
        "responseEndpoint" => builder.put(key::RESPONSE_ENDPOINT, text(first)),
        "responseCorrelationId" => builder.put(
            key::RESPONSE_CORRELATION_ID,
            first.to_string().trim_matches('"'),
        ),
        "nakDelay" => builder.put(key::NAK_DELAY, int64(first)),
        "untetheredWindowLimitTimeoutNs" => {
            builder.put(key::UNTETHERED_WINDOW_LIMIT_TIMEOUT, int64(first))
        }
        "untetheredLingerTimeoutNs" => builder.put(key::UNTETHERED_LINGER_TIMEOUT, int64(first)),
        "untetheredRestingTimeoutNs" => builder.put(key::UNTETHERED_RESTING_TIMEOUT, int64(first)),
        "maxResend" => builder.put(key::MAX_RESEND, int32(first)),
        "streamId" => builder.put(key::STREAM_ID, int32(first)),
        "publicationWindowLength" => builder.put(key::PUBLICATION_WINDOW, int32(first)),
        "initialPosition" => {
            builder.initial_position(int64(first), int32(&arguments[1]), int32(&arguments[2]))
        }
        "taggedFlowControl" => {
            let size = Some(int32(&arguments[1]));
            builder.tagged_flow_control(first.as_i64(), size, duration_ns(&arguments[2]))
        }
        "minFlowControl" => {
            builder.min_flow_control(Some(int32(first)), duration_ns(&arguments[1]))
        }
        unknown => panic!("{unknown}"),
    }
    .map(drop)
}

/// 05-45: the builder prints the same channels as Java's, with the parameters in the same order, except for Java's
/// defects.
#[test]
fn the_builder_prints_the_channels_of_javas_builder_without_its_defects() {
    let mut checked = 0;
    for case in cases("java") {
        let id = text(&case["id"]);
        if CANNOT_BE_WRITTEN.contains(&id) {
            continue;
        }
        let made = run_java_builder(&case);
        let defect = DEFECTS.iter().find(|(defective, _)| *defective == id);
        let expected = defect.map(|(_, right)| *right).or(case["result"].as_str());
        assert_eq!(made.as_deref().ok(), expected, "{case}: {made:?}");
        checked += 1;
    }
    assert_eq!(checked, 30);
}

/// The helpers on `ChannelUri` return the same results and errors as the helpers of Java's `ChannelUri`.
#[test]
fn the_helpers_have_the_results_of_javas_helpers() {
    for case in cases("java ChannelUri") {
        let steps = steps(&case);
        let (name, arguments) = &steps[0];
        let channel = ChannelUri::parse(text(&arguments[0]));
        let done = match name.as_str() {
            "parse" if case["id"] == "builder-044" => {
                // Java's parser accepts this media, and its driver refuses it.
                assert_eq!(
                    channel.unwrap_err().message,
                    "invalid URI scheme or transport: aeron:tcp?a=1"
                );
                continue;
            }
            "parse" => {
                let mut channel = channel.unwrap();
                let resolved = text(&steps[1].1[0]);
                channel
                    .replace_endpoint_wildcard_port(resolved)
                    .map(|()| json!(channel.to_string()))
            }
            "createDestinationUri" => channel
                .and_then(|channel| channel.destination(text(&arguments[1])))
                .map(|channel| json!(channel.to_string())),
            "addSessionId" => {
                // The recorded order comes from a hash map, so the order is not compared.
                let expected = ChannelUri::parse(text(&case["result"]));
                assert_eq!(
                    channel.map(|channel| channel.with_session_id(int32(&arguments[1]))),
                    expected
                );
                continue;
            }
            "getTag" => session_id_tag(text(&arguments[0])).map(|tag| json!(tag.unwrap_or(-1))),
            "equals" => {
                channel.map(|channel| json!(Ok(channel) == ChannelUri::parse(text(&arguments[1]))))
            }
            "addAliasIfAbsent" => channel
                .and_then(|channel| channel.with_alias_if_absent(text(&arguments[1])))
                .map(|channel| json!(channel.to_string())),
            unknown => panic!("{unknown}"),
        };
        match &case["error"] {
            Value::Null => assert_eq!(done.as_ref(), Ok(&case["result"]), "{case}"),
            error => assert!(text(error).ends_with(&done.unwrap_err().message), "{case}"),
        }
    }
}

/// Changes of a parsed channel have the same result as the same calls of the C builder.
#[test]
fn editing_a_channel_has_the_result_of_the_c_builder() {
    for case in cases("c") {
        let done = run_c_builder(&case);
        match case["result"].as_str() {
            None => assert!(done.is_err(), "{case}: {done:?}"),
            Some(expected) => assert_eq!(
                done.unwrap(),
                ChannelUri::parse(expected).unwrap(),
                "{case}"
            ),
        }
    }
}

fn run_c_builder(case: &Value) -> Result<ChannelUri, UriError> {
    let mut channel = match &case["init"] {
        Value::Null if case["steps"][0][1] == "__media" => {
            ChannelUri::new(if case["steps"][0][2] == "udp" {
                Media::Udp
            } else {
                Media::Ipc
            })
        }
        // A channel without media is invalid.
        Value::Null => ChannelUri::parse("")?,
        init => ChannelUri::parse(text(init))?,
    };
    for (name, arguments) in steps(case) {
        match (name.as_str(), text_or_none(&arguments[0]), arguments.get(1)) {
            ("put", Some("__media"), _) => {}
            ("put", Some(key), Some(Value::Null)) => drop(channel.remove(key)),
            ("put", Some(key), Some(value)) => channel.put(key, text(value))?,
            _ => channel.set_initial_position(
                int64(&arguments[0]),
                int32(&arguments[1]),
                int32(&arguments[2]),
            )?,
        }
    }
    Ok(channel)
}

fn text_or_none(value: &Value) -> Option<&str> {
    value.as_str()
}

#[test]
fn an_error_of_a_setter_names_the_setting_and_its_value() {
    let mut builder = ChannelUriBuilder::new(Media::Udp);
    let message = |refused: Result<&mut ChannelUriBuilder, UriError>| refused.unwrap_err().message;
    assert_eq!(
        message(builder.put(key::MTU, 33)),
        "mtu=33 not a multiple of 32"
    );
    assert_eq!(
        message(builder.put(key::TTL, 256)),
        "ttl=256 not a number in range 0-255"
    );
    assert_eq!(
        message(builder.put(key::LINGER, -1)),
        "linger=-1 cannot be negative"
    );
    assert_eq!(
        message(builder.put(key::TERM_LENGTH, 100)),
        "term length less than min length of 65536: length=100"
    );
    assert_eq!(
        message(builder.put("colour", "red")),
        "unknown parameter: colour"
    );
    assert_eq!(
        message(builder.put(key::ALIAS, "a|b")),
        "value cannot contain '|': alias=a|b"
    );
    assert_eq!(
        message(builder.put(key::ALIAS, "a\0b")),
        "value cannot contain a NUL byte: alias=a\\0b"
    );
    assert_eq!(builder, ChannelUriBuilder::new(Media::Udp));
}

proptest! {
    /// 05-46
    #[test]
    fn building_parsing_and_building_again_changes_nothing_for_any_key(
        size in 64_i32..=65504, time_ns in 0..i64::MAX, id: i32, long_id: i64, count in 1..=255_i32,
        yes: bool, text in "[^|\0]{1,20}", shift in 16..=30_u32, offset in 0..2048_i32,
        mode in prop::sample::select(vec!["dynamic", "manual", "response"]), is_udp: bool, port: u16,
        host in "[^|:\0]{1,20}",
    ) {
        // The builder refuses a port above 65535.
        let address = format!("{host}:{port}");
        let media = if is_udp { Media::Udp } else { Media::Ipc };
        let mut builder = ChannelUriBuilder::new(media);
        builder
            .put(key::ENDPOINT, &address)?.put(key::INTERFACE, &text)?.put(key::CONTROL, &address)?.put(key::CONTROL_MODE, mode)?
            .put(key::MTU, size / 32 * 32)?.put(key::TERM_LENGTH, 1 << shift)?.put(key::INITIAL_TERM_ID, id)?.put(key::TERM_ID, id)?
            .put(key::TERM_OFFSET, offset * 32)?.put(key::SESSION_ID, id)?.put(key::TTL, count)?.put(key::RELIABLE, yes)?
            .put(key::LINGER, time_ns)?.put(key::ALIAS, &text)?.put(key::CONGESTION_CONTROL, &text)?
            .min_flow_control(Some(count), Some(time_ns))?.put(key::GROUP_TAG, long_id)?.put(key::SPARSE, yes)?.put(key::EOS, yes)?
            .put(key::TETHER, yes)?.put(key::GROUP, yes)?.put(key::REJOIN, yes)?.put(key::SPIES_SIMULATE_CONNECTION, yes)?
            .put(key::SOCKET_SNDBUF, time_ns)?.put(key::SOCKET_RCVBUF, time_ns)?.put(key::RECEIVER_WINDOW, time_ns)?
            .put(key::MEDIA_RCV_TIMESTAMP_OFFSET, id.to_string())?.put(key::CHANNEL_RCV_TIMESTAMP_OFFSET, "reserved")?
            .put(key::CHANNEL_SND_TIMESTAMP_OFFSET, id.to_string())?.put(key::RESPONSE_ENDPOINT, &text)?
            .put(key::RESPONSE_CORRELATION_ID, time_ns.to_string())?.put(key::NAK_DELAY, time_ns)?
            .put(key::UNTETHERED_WINDOW_LIMIT_TIMEOUT, time_ns)?.put(key::UNTETHERED_LINGER_TIMEOUT, time_ns)?
            .put(key::UNTETHERED_RESTING_TIMEOUT, time_ns)?.put(key::MAX_RESEND, count)?.put(key::STREAM_ID, id)?
            .put(key::PUBLICATION_WINDOW, size)?.tags(i64::from(count), Some(long_id))?;
        let channel = builder.build();
        prop_assert_eq!(channel.parameters().len(), key::ALL.len());
        let parsed = ChannelUri::parse(&channel.to_string()).unwrap();
        prop_assert_eq!(&parsed, &channel);
        prop_assert_eq!(ChannelUriBuilder::from_channel(&parsed).unwrap(), builder);
    }
}
