//! Checks in the driver's counters whether published data has left the publisher. Works with any Aeron driver.

use aeron_memory::counters::keys::StreamKey;
use aeron_memory::counters::{CounterRecord, types};
use aeron_protocol::uri::Transport;

use super::core::{PublicationBase, PublicationParts, PublishedStream};

impl PublicationBase {
    /// Whether the sender has sent everything before `position`; over IPC, whether all subscribers have consumed it.
    pub(super) fn is_flushed(&self, position: i64) -> bool {
        if !self.has_driver() {
            return false;
        }
        let parts = self.parts();
        match is_ipc(&self.stream.channel) {
            true => self
                .positions(&parts, types::SUBSCRIBER_POSITION)
                .all(|consumed| consumed >= position),
            // If the counter is missing, the result is `false`: the driver has not announced the publication yet, or
            // has already removed it.
            false => self
                .positions(&parts, types::SENDER_POSITION)
                .any(|sent| sent >= position),
        }
    }

    /// Returns the values of the counters of this type that belong to the stream in one driver.
    pub(crate) fn positions(
        &self,
        parts: &PublicationParts,
        type_id: i32,
    ) -> impl Iterator<Item = i64> {
        Self::positions_of(&self.stream, parts, type_id)
    }

    /// Like [`positions`](Self::positions), for a stream whose publication may have gone on.
    pub(crate) fn positions_of(
        stream: &PublishedStream,
        parts: &PublicationParts,
        type_id: i32,
    ) -> impl Iterator<Item = i64> {
        let counters = &parts.link.counters;
        let ids = counters.ids();
        let of_type = ids.filter(move |id| counters.type_id(*id) == Some(type_id));
        of_type.filter_map(move |id| {
            let key = StreamKey::decode(&counters.key(id)?);
            is_counted_by(stream, parts, &key, type_id)
                .then(|| counters.value(id))
                .flatten()
        })
    }
}

/// Whether the stream has a spy in one driver.
pub(crate) fn has_spy(stream: &PublishedStream, parts: &PublicationParts) -> bool {
    let of_type = |record: &CounterRecord| record.type_id == types::SUBSCRIBER_POSITION;
    parts.link.counters.records().filter(of_type).any(|record| {
        let key = StreamKey::decode(&record.key);
        (key.session_id, key.stream_id) == (parts.session_id, stream.stream_id)
            && Transport::of(key.channel.as_bytes()) == Transport::Spy
    })
}

fn is_counted_by(
    stream: &PublishedStream,
    parts: &PublicationParts,
    key: &StreamKey,
    type_id: i32,
) -> bool {
    let is_stream = (key.session_id, key.stream_id) == (parts.session_id, stream.stream_id);
    // The key of a subscriber position has the registration id of the subscription, not of the publication.
    is_stream
        && match type_id {
            types::SENDER_POSITION => key.registration_id == parts.original_registration_id,
            _ => is_ipc(&key.channel),
        }
}

pub(crate) fn is_ipc(channel: &str) -> bool {
    Transport::of(channel.as_bytes()) == Transport::Ipc
}
