//! Checks in the driver's counters whether published data has left the publisher. Works with any Aeron driver.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::keys::StreamKey;
use aeron_memory::counters::{CountersReader, types};
use aeron_protocol::uri::Transport;

use super::core::PublicationBase;

impl PublicationBase {
    /// Whether the sender has sent everything before `position`; over IPC, whether all subscribers have consumed it.
    pub(super) fn is_flushed(
        &self,
        counters: &CountersReader<SharedBuffer>,
        position: i64,
    ) -> bool {
        match is_ipc(&self.parts.channel) {
            true => self
                .positions(counters, types::SUBSCRIBER_POSITION)
                .all(|consumed| consumed >= position),
            // If the counter is missing, the result is `false`: the driver has not announced the publication yet, or
            // has already removed it.
            false => self
                .positions(counters, types::SENDER_POSITION)
                .any(|sent| sent >= position),
        }
    }

    /// Returns the values of the counters of this type that belong to the stream.
    fn positions(
        &self,
        counters: &CountersReader<SharedBuffer>,
        type_id: i32,
    ) -> impl Iterator<Item = i64> {
        let of_type = counters
            .ids()
            .filter(move |id| counters.type_id(*id) == Some(type_id));
        of_type.filter_map(move |id| {
            let key = StreamKey::decode(&counters.key(id)?);
            self.is_counted_by(&key, type_id)
                .then(|| counters.value(id))
                .flatten()
        })
    }

    fn is_counted_by(&self, key: &StreamKey, type_id: i32) -> bool {
        let parts = &self.parts;
        let is_stream = (key.session_id, key.stream_id) == (parts.session_id, parts.stream_id);
        // The key of a subscriber position has the registration id of the subscription, not of the publication.
        is_stream
            && match type_id {
                types::SENDER_POSITION => key.registration_id == parts.original_registration_id,
                _ => is_ipc(&key.channel),
            }
    }
}

fn is_ipc(channel: &str) -> bool {
    Transport::of(channel.as_bytes()) == Transport::Ipc
}
