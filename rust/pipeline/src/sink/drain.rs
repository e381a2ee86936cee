//! Reads the positions of subscribers from the counters of the local driver.

use aeron_client::{CountersReader, SharedBuffer};
use aeron_memory::counters::keys::StreamKey;
use aeron_memory::counters::types;

use super::publication::SinkPublication;

/// Returns the position of the slowest reader of a publication; `None` if it has no reader. Readers are the subscribers
/// on this machine and the driver's sender. The sender represents all subscribers on the network.
pub(super) fn slowest_position(
    counters: &CountersReader<SharedBuffer>,
    publication: &SinkPublication,
) -> Option<i64> {
    let reads = |id: i32| -> Option<i64> {
        let kind = counters.type_id(id)?;
        if kind != types::SUBSCRIBER_POSITION && kind != types::SENDER_POSITION {
            return None;
        }
        let key = StreamKey::decode(&counters.key(id)?);
        let is_ours =
            key.session_id == publication.session_id() && key.stream_id == publication.stream_id();
        is_ours.then(|| counters.value(id)).flatten()
    };
    counters.ids().filter_map(reads).min()
}
