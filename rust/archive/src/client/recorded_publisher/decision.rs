//! [`Situation`]: decides, from the descriptor of the recording, how the publisher continues.

use super::error::RecordedPublisherError;
use super::geometry::StreamGeometry;
use crate::catalog::RecordingDescriptor;

/// The recording that the publisher has found or started.
#[derive(Clone, Debug)]
pub(super) struct KnownRecording {
    pub(super) id: i64,
    pub(super) geometry: StreamGeometry,
    /// Session id of the recording at the last extension, and of each publication that this publisher
    /// has added since then. The last recorded session may be any of them.
    pub(super) sessions: Vec<i32>,
    /// Whether this publisher has already recorded a stream in this recording.
    pub(super) is_ours: bool,
}

/// The facts of the publisher that the decision depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Situation {
    /// Session id of the open publication.
    pub(super) active_session_id: Option<i32>,
    /// Position up to which the stream was recorded and no message is kept any more.
    pub(super) dropped_position: i64,
    /// The highest position at which a recording of the sent messages can end.
    pub(super) highest_sent_position: i64,
}

/// How the publisher continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The archive still records the open publication.
    StillRecording,
    /// The archive has not noticed yet that a former publication of this publisher has ended.
    AwaitStop,
    /// Another publisher extends the recording.
    AwaitOther,
    /// The recording has stopped, and is extended at its stop position.
    Extend(StreamGeometry),
}

impl Situation {
    /// Decides how the publisher continues. `known` is the publisher's knowledge of the recording;
    /// `None` at the first look-up.
    ///
    /// # Errors
    /// The recording cannot be extended, or the messages would not continue it.
    pub(super) fn decide(
        &self,
        recording: &RecordingDescriptor,
        stream_id: i32,
        known: Option<&KnownRecording>,
    ) -> Result<Decision, RecordedPublisherError> {
        let recording_id = recording.recording_id;
        if recording.stream_id != stream_id {
            return Err(RecordedPublisherError::StreamIdMismatch {
                recording_id,
                recorded_stream_id: recording.stream_id,
                stream_id,
            });
        }
        let geometry = StreamGeometry::of_recording(recording).map_err(|source| {
            RecordedPublisherError::InvalidRecording {
                recording_id,
                source,
            }
        })?;
        if let Some(known) = known {
            check_is_same(recording_id, geometry, known.geometry)?;
        }
        let is_active = recording.is_unfinished();
        let Some(ours) = known.filter(|known| known.is_ours) else {
            return Ok(match is_active {
                true if is_session_of(recording, known) => Decision::AwaitStop,
                true => Decision::AwaitOther,
                false => Decision::Extend(geometry),
            });
        };
        if is_active && self.active_session_id == Some(recording.session_id) {
            return Ok(Decision::StillRecording);
        }
        if !is_session_of(recording, Some(ours)) {
            return Err(RecordedPublisherError::ExtendedByOther {
                recording_id,
                session_id: recording.session_id,
            });
        }
        if is_active {
            return Ok(Decision::AwaitStop);
        }
        self.check_stop_position(recording)?;
        Ok(Decision::Extend(geometry))
    }

    /// Checks that the recording has all messages that the publisher no longer keeps, and no bytes that this publisher
    /// has not sent. The recording may end before the recorded position: after a kill, Aeron's archive cuts a last
    /// frame that crosses a page boundary, such as padding.
    fn check_stop_position(
        &self,
        recording: &RecordingDescriptor,
    ) -> Result<(), RecordedPublisherError> {
        let (recording_id, stop_position) = (recording.recording_id, recording.stop_position);
        debug_assert!(
            self.dropped_position <= self.highest_sent_position,
            "no end of recording {recording_id} fits: messages up to {} were dropped, but only up to {} sent",
            self.dropped_position,
            self.highest_sent_position
        );
        if stop_position < self.dropped_position {
            return Err(RecordedPublisherError::RecordedPositionLost {
                recording_id,
                stop_position,
                recorded_position: self.dropped_position,
            });
        }
        if stop_position > self.highest_sent_position {
            return Err(RecordedPublisherError::ExtendedByOther {
                recording_id,
                session_id: recording.session_id,
            });
        }
        Ok(())
    }
}

fn is_session_of(recording: &RecordingDescriptor, known: Option<&KnownRecording>) -> bool {
    known.is_some_and(|known| known.sessions.contains(&recording.session_id))
}

/// Checks that the recording has the known geometry. Otherwise the recording id now belongs to
/// another recording.
fn check_is_same(
    recording_id: i64,
    found: StreamGeometry,
    known: StreamGeometry,
) -> Result<(), RecordedPublisherError> {
    let fields = [
        (
            "initial term id",
            i64::from(found.initial_term_id()),
            i64::from(known.initial_term_id()),
        ),
        (
            "term length",
            found.term_length() as i64,
            known.term_length() as i64,
        ),
        ("MTU", found.mtu_length() as i64, known.mtu_length() as i64),
    ];
    for (field, found, known) in fields {
        if found != known {
            return Err(RecordedPublisherError::OtherRecording {
                recording_id,
                field,
                found,
                known,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::NULL_VALUE;

    const STREAM_ID: i32 = 2;
    const OURS: i32 = 11;
    const OTHER: i32 = 12;

    fn recording(session_id: i32, stop_position: i64) -> RecordingDescriptor {
        RecordingDescriptor {
            control_session_id: 0,
            correlation_id: 0,
            recording_id: 7,
            start_timestamp_ms: 0,
            stop_timestamp_ms: NULL_VALUE,
            start_position: 0,
            stop_position,
            initial_term_id: 5,
            segment_length: 65536,
            term_length: 65536,
            mtu_length: 1408,
            session_id,
            stream_id: STREAM_ID,
            stripped_channel: "".into(),
            original_channel: "".into(),
            source_identity: "".into(),
        }
    }

    fn geometry() -> StreamGeometry {
        StreamGeometry::of_recording(&recording(OURS, 0)).unwrap()
    }

    fn known(is_ours: bool) -> KnownRecording {
        KnownRecording {
            id: 7,
            geometry: geometry(),
            sessions: vec![OURS],
            is_ours,
        }
    }

    /// The publisher has sent 4096 bytes, and knows that 1024 of them are recorded.
    const AFTER_A_LOSS: Situation = Situation {
        active_session_id: None,
        dropped_position: 1024,
        highest_sent_position: 4096,
    };

    fn decide(recording: &RecordingDescriptor, known: Option<&KnownRecording>) -> Decision {
        AFTER_A_LOSS.decide(recording, STREAM_ID, known).unwrap()
    }

    fn refusal(recording: &RecordingDescriptor, known: Option<&KnownRecording>) -> String {
        let decision = AFTER_A_LOSS.decide(recording, STREAM_ID, known);
        decision.unwrap_err().to_string()
    }

    #[test]
    fn the_first_look_up_extends_a_stopped_recording_at_any_position() {
        for stop_position in [0, 8192] {
            let stopped = recording(OTHER, stop_position);
            assert_eq!(decide(&stopped, None), Decision::Extend(geometry()));
        }
    }

    #[test]
    fn the_end_of_another_publisher_is_awaited_only_before_this_publisher_has_recorded() {
        let active = recording(OTHER, NULL_VALUE);
        assert_eq!(decide(&active, None), Decision::AwaitOther);
        assert_eq!(decide(&active, Some(&known(false))), Decision::AwaitOther);
        assert_eq!(
            refusal(&active, Some(&known(true))),
            "recording 7 was extended by another publisher with session id 12"
        );
    }

    #[test]
    fn the_end_of_a_former_publication_of_this_publisher_is_awaited() {
        let active = recording(OURS, NULL_VALUE);
        for is_ours in [false, true] {
            assert_eq!(decide(&active, Some(&known(is_ours))), Decision::AwaitStop);
        }
    }

    #[test]
    fn the_open_publication_continues_while_the_archive_records_it() {
        let situation = Situation {
            active_session_id: Some(OURS),
            ..AFTER_A_LOSS
        };
        let active = recording(OURS, NULL_VALUE);
        let decision = situation.decide(&active, STREAM_ID, Some(&known(true)));
        assert_eq!(decision.unwrap(), Decision::StillRecording);
        let stopped = recording(OURS, 2048);
        let decision = situation.decide(&stopped, STREAM_ID, Some(&known(true)));
        assert_eq!(decision.unwrap(), Decision::Extend(geometry()));
    }

    #[test]
    fn a_recording_that_lacks_dropped_messages_or_has_bytes_that_were_not_sent_is_refused() {
        let ours = known(true);
        for stop_position in [1024, 2048, 4096] {
            let stopped = recording(OURS, stop_position);
            assert_eq!(decide(&stopped, Some(&ours)), Decision::Extend(geometry()));
        }
        assert_eq!(
            refusal(&recording(OURS, 992), Some(&ours)),
            "recording 7 ends at position 992, although it was recorded up to position 1024"
        );
        assert_eq!(
            refusal(&recording(OURS, 4128), Some(&ours)),
            "recording 7 was extended by another publisher with session id 11"
        );
        assert_eq!(
            refusal(&recording(OTHER, 2048), Some(&ours)),
            "recording 7 was extended by another publisher with session id 12"
        );
    }

    #[test]
    fn a_recording_of_another_stream_or_with_invalid_values_is_refused() {
        let mut other = recording(OURS, 2048);
        other.stream_id = 3;
        assert_eq!(refusal(&other, None), "recording 7 has stream id 3, not 2");
        let mut other = recording(OURS, 2048);
        other.term_length = 131_072;
        assert_eq!(
            refusal(&other, Some(&known(true))),
            "recording 7 is not the one that the publisher has recorded: term length is 131072, and was 65536"
        );
        let mut invalid = recording(OURS, 2048);
        invalid.mtu_length = 7;
        let text = refusal(&invalid, None);
        assert!(
            text.starts_with("recording 7 cannot be extended: "),
            "{text}"
        );
    }
}
