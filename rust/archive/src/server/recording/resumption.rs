//! [`Resumption`]: the decision how to record an image of a resumed subscription.
//!
//! If the archive ends while it records a stream, the stream may continue. Then the next archive
//! process joins the stream near the end of the recording, or later.

use aeron_client::Image;
use aeron_protocol::uri::{ChannelUri, key};

use crate::catalog::RecordingDescriptor;
use crate::channel;
use crate::extensions::RecordingLink;

/// The resumed subscription of an image.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResumedSubscription<'a> {
    /// Channel of the request.
    pub channel: &'a str,
    /// Recording that the subscription extends; `None` if each image becomes a new recording.
    pub recording_id: Option<i64>,
}

/// The stream and the position of an image.
#[derive(Clone, Copy, Debug)]
pub(super) struct JoinedStream {
    pub stream_id: i32,
    pub session_id: i32,
    pub initial_term_id: i32,
    pub term_length: i32,
    pub mtu_length: i32,
    /// Position of the first byte that was not consumed.
    pub position: i64,
}

/// How an image is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resumption {
    /// The image continues this recording without a gap.
    Extend {
        recording_id: i64,
        /// Link of the new recording that the image becomes if this recording cannot be extended.
        link: RecordingLink,
    },
    /// The image becomes a new recording that is linked to the former recording. The positions
    /// between the two recordings were not recorded.
    Link(RecordingLink),
    /// The image begins before the end of this recording. The final choice is made after the bytes
    /// up to the end of the recording are consumed.
    Overlap { recording_id: i64 },
    /// The image is recorded without a link: no former recording has the image's session, or the
    /// publisher has begun a new stream with the same session id.
    Unlinked,
}

impl JoinedStream {
    /// Returns the values of an image. Returns `None` if a length is too long for the catalog.
    pub(super) fn of(image: &Image) -> Option<Self> {
        Some(Self {
            stream_id: image.stream_id(),
            session_id: image.session_id(),
            initial_term_id: image.initial_term_id(),
            term_length: i32::try_from(image.term_buffer_length()).ok()?,
            mtu_length: i32::try_from(image.mtu_length()).ok()?,
            position: image.position(),
        })
    }

    fn is_of(&self, recording: &RecordingDescriptor) -> bool {
        recording.stream_id == self.stream_id
            && recording.session_id == self.session_id
            && recording.initial_term_id == self.initial_term_id
            && recording.term_length == self.term_length
            && !recording.is_unfinished()
    }
}

impl Resumption {
    /// Searches the recordings of the archive for the former recording of the image, and chooses how the image is
    /// recorded. `newest_first` must begin with the newest recording.
    pub(super) fn choose<'a>(
        mut newest_first: impl Iterator<Item = &'a RecordingDescriptor>,
        subscription: &ResumedSubscription<'_>,
        stream: &JoinedStream,
    ) -> Self {
        let former = newest_first
            .find(|recording| stream.is_of(recording) && subscription.has_recorded(recording));
        let Some(former) = former else {
            return Self::Unlinked;
        };
        let (recording_id, stop_position) = (former.recording_id, former.stop_position);
        let link = RecordingLink {
            predecessor_id: recording_id,
            gap_from: stop_position,
            gap_to: Some(stream.position),
        };
        match stream.position - stop_position {
            0 if stream.mtu_length == former.mtu_length => Self::Extend { recording_id, link },
            0.. => Self::Link(link),
            // A publisher is never more than one term ahead of its subscribers.
            distance if -distance <= i64::from(stream.term_length) => {
                Self::Overlap { recording_id }
            }
            _ => Self::Unlinked,
        }
    }
}

impl ResumedSubscription<'_> {
    fn has_recorded(&self, recording: &RecordingDescriptor) -> bool {
        self.recording_id == Some(recording.recording_id)
            || key_without_session(recording.stream_id, &recording.original_channel).is_some_and(
                |key| key_without_session(recording.stream_id, self.channel).as_ref() == Some(&key),
            )
    }
}

/// Returns the key of a subscription to all sessions of a stream.
fn key_without_session(stream_id: i32, channel: &str) -> Option<String> {
    let mut channel = ChannelUri::parse(channel).ok()?;
    channel.remove(key::SESSION_ID);
    Some(channel::subscription_key(stream_id, &channel))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::NULL_VALUE;

    const CHANNEL: &str = "aeron:udp?endpoint=localhost:7000|alias=trades";
    const NEW: ResumedSubscription<'_> = ResumedSubscription {
        channel: CHANNEL,
        recording_id: None,
    };

    fn recording(recording_id: i64, session_id: i32, stop_position: i64) -> RecordingDescriptor {
        RecordingDescriptor {
            control_session_id: 0,
            correlation_id: 0,
            recording_id,
            start_timestamp_ms: 0,
            stop_timestamp_ms: NULL_VALUE,
            start_position: 0,
            stop_position,
            initial_term_id: 5,
            segment_length: 65536,
            term_length: 65536,
            mtu_length: 1408,
            session_id,
            stream_id: 2,
            stripped_channel: "".into(),
            original_channel: CHANNEL.into(),
            source_identity: "".into(),
        }
    }

    fn joined(session_id: i32, position: i64) -> JoinedStream {
        JoinedStream {
            stream_id: 2,
            session_id,
            initial_term_id: 5,
            term_length: 65536,
            mtu_length: 1408,
            position,
        }
    }

    fn link(predecessor_id: i64, from: i64, to: i64) -> RecordingLink {
        RecordingLink {
            predecessor_id,
            gap_from: from,
            gap_to: Some(to),
        }
    }

    fn choose(
        recordings: &[RecordingDescriptor],
        subscription: &ResumedSubscription<'_>,
        stream: &JoinedStream,
    ) -> Resumption {
        Resumption::choose(recordings.iter().rev(), subscription, stream)
    }

    #[test]
    fn an_image_that_joins_at_the_end_of_its_former_recording_extends_the_recording() {
        let recordings = [recording(0, 11, 4096), recording(1, 12, 8192)];
        assert_eq!(
            choose(&recordings, &NEW, &joined(11, 4096)),
            Resumption::Extend {
                recording_id: 0,
                link: link(0, 4096, 4096)
            }
        );
    }

    #[test]
    fn an_image_that_joins_after_the_end_is_linked_to_the_newest_recording_of_its_session() {
        let recordings = [recording(0, 11, 4096), recording(1, 11, 8192)];
        let chosen = choose(&recordings, &NEW, &joined(11, 9000 * 32));
        assert_eq!(chosen, Resumption::Link(link(1, 8192, 9000 * 32)));
        let mut other_mtu = joined(11, 8192);
        other_mtu.mtu_length = 8192;
        let chosen = choose(&recordings, &NEW, &other_mtu);
        assert_eq!(chosen, Resumption::Link(link(1, 8192, 8192)));
    }

    #[test]
    fn an_image_that_joins_at_most_one_term_before_the_end_overlaps_its_recording() {
        let recordings = [recording(0, 11, 100_000)];
        let overlap = Resumption::Overlap { recording_id: 0 };
        for position in [99_968, 100_000 - 65536] {
            assert_eq!(choose(&recordings, &NEW, &joined(11, position)), overlap);
        }
    }

    #[test]
    fn an_image_of_another_session_or_stream_or_at_a_much_earlier_position_is_not_linked() {
        let recordings = [recording(0, 11, 100_000), recording(1, 12, NULL_VALUE)];
        for stream in [
            joined(13, 100_000),
            joined(12, 100_000),
            joined(11, 100_000 - 65536 - 32),
            JoinedStream {
                initial_term_id: 6,
                ..joined(11, 100_000)
            },
            JoinedStream {
                stream_id: 3,
                ..joined(11, 100_000)
            },
        ] {
            assert_eq!(choose(&recordings, &NEW, &stream), Resumption::Unlinked);
        }
    }

    #[test]
    fn a_recording_of_another_channel_is_linked_only_if_the_subscription_extended_it() {
        let recordings = [recording(0, 11, 4096)];
        let of = |channel| ResumedSubscription {
            channel,
            recording_id: None,
        };
        let stream = joined(11, 8192);
        let linked = Resumption::Link(link(0, 4096, 8192));
        let same = of("aeron:udp?endpoint=localhost:7000|session-id=11|alias=x");
        assert_eq!(choose(&recordings, &same, &stream), linked);
        let other = of("aeron:udp?endpoint=localhost:7001");
        assert_eq!(choose(&recordings, &other, &stream), Resumption::Unlinked);
        let extending = ResumedSubscription {
            recording_id: Some(0),
            ..other
        };
        assert_eq!(choose(&recordings, &extending, &stream), linked);
    }
}
