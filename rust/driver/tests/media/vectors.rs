//! Tests with channels and the results that were captured from real drivers.

use aeron_driver::DriverError;
use aeron_driver::media::destination::send_destination_endpoint;
use aeron_driver::media::{ChannelRole, UdpChannel};
use serde_json::{Value, json};

use super::machine::resolve;

const VECTORS: &str = include_str!("../../../protocol/tests/vectors/uris.json");

/// Beginnings of the error texts for invalid addresses and for channels that are not allowed in their role.
const REFUSALS: [&str; 15] = [
    "port ",
    "endpoint has port=0",
    "control has port=0",
    "Unable to resolve host",
    "Multicast data address",
    "unknown interface",
    "name length",
    "unexpected character after name",
    "could not find matching interface",
    "prefixlen",
    "'control' parameter requires",
    "UDP channels must use UDP URIs",
    "Aeron spies are invalid",
    "destinations m",
    "incorrect URI format",
];

fn cases() -> Vec<Value> {
    let vectors: Value = serde_json::from_str(VECTORS).unwrap();
    vectors["cases"].as_array().unwrap().clone()
}

fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or_default()
}

/// Returns the resolved channel in its role; `None` if it is not a UDP channel, or if a different part of the driver
/// handles it.
fn resolved(case: &Value) -> Option<Result<UdpChannel, DriverError>> {
    let channel = text(case, "uri");
    let (prefix, role) = match text(case, "op") {
        "parse" if case["as_destination"] == true => ("", ChannelRole::ReceiveDestination),
        // The case only parses the channel, as the driver does with the channel of a spy.
        "parse" => ("aeron-spy:", ChannelRole::Spy),
        "pub" | "xpub" => ("", ChannelRole::Publication),
        "pub-dest" => return None,
        _ if channel.starts_with("aeron-spy:") => ("", ChannelRole::Spy),
        "sub" => ("", ChannelRole::Subscription),
        "sub-dest" => ("", ChannelRole::ReceiveDestination),
        _ => return None,
    };
    if channel.is_empty() || channel.starts_with("aeron:ipc") && role != ChannelRole::Spy {
        return None;
    }
    Some(resolve(&format!("{prefix}{channel}"), role))
}

fn assert_error(case: &Value, error: &DriverError) {
    let expected = &case["error"];
    assert_eq!(
        json!(error.code().value()),
        expected["code"],
        "{case}: {error}"
    );
    let words = text(expected, "text").trim_end_matches("Success").trim();
    let words = words.trim_end_matches("<padding>");
    assert!(error.text().contains(words), "{case}: {error}");
}

/// 05-16: the numbers that distinguish channels of one process may differ. 05-8: the cases include IPv4, IPv6 in
/// brackets, scopes and names.
#[test]
fn every_channel_resolves_to_the_result_of_real_drivers() {
    let mut compared = 0;
    for case in cases() {
        let expected = &case["decoded"];
        if case["product"] != "accept" || expected["canonical"].is_null() {
            continue;
        }
        let Some(result) = resolved(&case) else {
            continue;
        };
        let channel = result.unwrap_or_else(|error| panic!("{case}: {error}"));
        let canonical = text(expected, "canonical").replace("<N>", "0");
        assert_eq!(channel.canonical_form, canonical, "{case}");
        for (address, key) in [
            (channel.remote_data, "data_remote"),
            (channel.local_data, "data_local"),
            (channel.remote_control, "control_remote"),
            (channel.local_control, "control_local"),
        ] {
            assert_eq!(address.to_string(), text(expected, key), "{key}: {case}");
        }
        let mode = format!("{:?}", channel.control_mode()).to_lowercase();
        assert_eq!(mode, text(expected, "control_mode"), "{case}");
        assert_eq!(expected["multicast"], channel.is_multicast, "{case}");
        assert_eq!(
            expected["explicit_endpoint"],
            channel.endpoint.is_some(),
            "{case}"
        );
        assert_eq!(
            expected["explicit_control"],
            channel.control.is_some(),
            "{case}"
        );
        assert_eq!(json!(channel.tag()), expected["channel_tag"], "{case}");
        compared += 1;
    }
    assert!(compared > 180, "{compared}");
}

#[test]
fn every_channel_with_invalid_addresses_is_refused_with_the_error_of_real_drivers() {
    let mut refused = 0;
    for case in cases() {
        let Some(result) = resolved(&case) else {
            continue;
        };
        let words = text(&case["error"], "text");
        let is_due = REFUSALS.iter().any(|start| words.starts_with(start));
        match result {
            Err(error) if case["product"] == "reject" && case["error"].is_object() => {
                assert_error(&case, &error);
                refused += usize::from(is_due);
            }
            Err(error) => assert_ne!(case["product"], "accept", "{case}: {error}"),
            Ok(_) => assert!(!is_due || case["product"] != "reject", "{case}"),
        }
    }
    assert!(refused > 40, "{refused}");
}

#[test]
fn every_send_destination_gets_the_response_of_real_drivers() {
    let mut judged = 0;
    for case in cases().iter().filter(|case| text(case, "op") == "pub-dest") {
        let words = text(&case["error"], "text");
        match send_destination_endpoint(text(case, "uri").as_bytes()) {
            Ok(endpoint) => {
                let ends_here = REFUSALS.iter().any(|start| words.starts_with(start));
                assert!(!ends_here, "{case}");
                assert_eq!(case["decoded"]["params"]["endpoint"], endpoint, "{case}");
            }
            Err(error) => assert_error(case, &error),
        }
        judged += 1;
    }
    assert_eq!(judged, 19);
}
