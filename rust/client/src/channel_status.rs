//! Status and local addresses of a channel, read from the driver's counters.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::keys::decode_local_address_key;
use aeron_memory::counters::{CountersReader, types};
use aeron_protocol::uri::{ChannelUri, ControlMode, key};

/// Parameters that follow the endpoint in a resolved channel.
const FIRST_PRINTED: [&str; 5] = [
    key::INTERFACE,
    key::CONTROL,
    key::CONTROL_MODE,
    key::TAGS,
    key::TTL,
];

type Counters = CountersReader<SharedBuffer>;

/// Counter id of a channel without a status counter: IPC and spies.
const NO_INDICATOR: i32 = -1;
/// Counter id of a subscription before the driver has responded.
const NOT_READY: i32 = 0;

/// Returns the status of the channel with this status counter.
pub(crate) fn status(counters: &Counters, indicator_id: i32, is_closed: bool) -> i64 {
    match indicator_id {
        _ if is_closed => types::CHANNEL_ERRORED,
        NO_INDICATOR => types::CHANNEL_ACTIVE,
        NOT_READY => types::CHANNEL_INITIALIZING,
        id => counters.value(id).unwrap_or(types::CHANNEL_ERRORED),
    }
}

/// Returns the addresses that are bound for the channel with this status counter. Empty unless the channel is active;
/// an address that is not active is left out.
pub(crate) fn local_addresses(
    counters: &Counters,
    indicator_id: i32,
    is_closed: bool,
) -> Vec<String> {
    if indicator_id == NO_INDICATOR
        || status(counters, indicator_id, is_closed) != types::CHANNEL_ACTIVE
    {
        return Vec::new();
    }
    counters
        .records()
        .filter(|record| {
            record.type_id == types::LOCAL_SOCKET_ADDRESS && record.value == types::CHANNEL_ACTIVE
        })
        .filter_map(|record| {
            let (channel, address) = decode_local_address_key(&record.key);
            (channel == indicator_id && !address.is_empty()).then_some(address)
        })
        .collect()
}

/// Replaces an `endpoint` that ends in `:0` by the bound address; `None` while no address is bound. Returns any other
/// channel unchanged.
pub(crate) fn resolve_endpoint_port(
    channel: &str,
    bound: impl FnOnce() -> Option<String>,
) -> Option<String> {
    let has_wildcard = |uri: &ChannelUri| {
        uri.control_mode() != ControlMode::Manual
            && uri
                .get(key::ENDPOINT)
                .is_some_and(|endpoint| endpoint.ends_with(":0"))
    };
    let Some(uri) = ChannelUri::parse(channel).ok().filter(has_wildcard) else {
        return Some(channel.to_owned());
    };
    with_endpoint(&uri, &bound()?).map(|resolved| resolved.to_string())
}

/// Formats the channel as Aeron's C client does: address parameters first, then the others in their order.
fn with_endpoint(uri: &ChannelUri, endpoint: &str) -> Option<ChannelUri> {
    let mut resolved = ChannelUri::new(uri.media());
    resolved.put(key::ENDPOINT, endpoint).ok()?;
    let first = FIRST_PRINTED
        .iter()
        .filter_map(|key| uri.get(key).map(|value| (*key, value)));
    for (key, value) in first.chain(uri.parameters()) {
        if resolved.get(key).is_none() {
            resolved.put(key, value).ok()?;
        }
    }
    Some(resolved)
}
