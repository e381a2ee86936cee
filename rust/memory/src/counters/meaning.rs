//! The meaning of a counter: its name, kind and unit, and the stream, channel or recording to which it belongs.
//!
//! Counters come from any process. So labels and keys are parsed totally: what does not have the expected form has no
//! meaning, and is not an error.

use std::net::SocketAddr;

use super::keys::{MAX_CHANNEL_LENGTH, MAX_STREAM_CHANNEL_LENGTH, StreamKey, decode_channel_key};
use super::system::SystemCounter;
use super::types::{self, CounterType};
use super::{MAX_KEY_LENGTH, MAX_LABEL_LENGTH, RecordingPositionKey};

/// Kind of the values of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// A total that only grows.
    Counter,
    /// A number that grows and shrinks, or a maximum.
    Gauge,
    /// A position in a stream.
    Position,
    /// A code.
    State,
    /// A time since the epoch.
    Timestamp,
}

/// Unit of the values of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterUnit {
    /// A number of things, or a code.
    Number,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Nanoseconds,
    /// Milliseconds.
    Milliseconds,
}

/// Layout of the keys of a counter type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLayout {
    /// Registration id, session id, stream id and channel.
    Stream,
    /// Channel.
    Channel,
    /// Counter id of a channel status, and an address.
    LocalAddress,
    /// Recording id, session id, source identity and archive id.
    Recording,
    /// Any other layout.
    Other,
}

/// Name, kind and unit of a counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterMeaning {
    /// Name in lower case, with underscores. All counters of a type have the same name, except system counters and the
    /// indicators of congestion control.
    pub name: String,
    /// Kind; `None` for a counter of Aeron Cluster.
    pub kind: Option<CounterKind>,
    /// Unit; `None` for a counter of Aeron Cluster.
    pub unit: Option<CounterUnit>,
}

/// The stream, channel and recording to which a counter belongs. A field is `None` if the type of the counter has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterSubject {
    /// Channel: the longer one of the channels in key and label.
    pub channel: Option<String>,
    /// Whether `channel` is complete. Keys and labels have room for the beginning of a long one.
    pub is_channel_complete: bool,
    /// Stream id.
    pub stream_id: Option<i32>,
    /// Session id.
    pub session_id: Option<i32>,
    /// Recording id.
    pub recording_id: Option<i64>,
}

impl CounterKind {
    /// Returns the name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Position => "position",
            Self::State => "state",
            Self::Timestamp => "timestamp",
        }
    }
}

impl CounterUnit {
    /// Returns the name in lower case; `None` for a number without a unit.
    pub const fn name(self) -> Option<&'static str> {
        match self {
            Self::Number => None,
            Self::Bytes => Some("bytes"),
            Self::Nanoseconds => Some("nanoseconds"),
            Self::Milliseconds => Some("milliseconds"),
        }
    }
}

impl CounterType {
    /// Returns a type that this project knows. [`types::SYSTEM`] and types of Aeron Cluster have no description.
    pub fn of(type_id: i32) -> Option<&'static Self> {
        types::ALL.iter().find(|known| known.id == type_id)
    }

    /// Returns the name in lower case.
    pub fn name(&self) -> String {
        self.constant.to_ascii_lowercase()
    }
}

impl CounterMeaning {
    /// Returns the meaning of a counter; `None` if its type is unknown.
    pub fn of(type_id: i32, counter_id: i32, label: &str) -> Option<Self> {
        match type_id {
            types::SYSTEM => SystemCounter::of(counter_id).map(|counter| Self {
                name: counter.name(),
                kind: Some(counter.kind()),
                unit: Some(counter.unit()),
            }),
            types::PER_IMAGE_INDICATOR => {
                Self::of_indicator(label).or_else(|| Self::of_type(type_id))
            }
            _ => Self::of_type(type_id),
        }
    }

    fn of_type(type_id: i32) -> Option<Self> {
        let known = CounterType::of(type_id).map(|known| Self {
            name: known.name(),
            kind: Some(known.kind),
            unit: Some(known.unit),
        });
        known.or_else(|| {
            let (_, name) = types::CLUSTER.iter().find(|(id, _)| *id == type_id)?;
            Some(Self {
                name: (*name).to_owned(),
                kind: None,
                unit: None,
            })
        })
    }

    /// Returns the meaning of an indicator of congestion control. The values have one type, and different units.
    fn of_indicator(label: &str) -> Option<Self> {
        let (name, unit) = match label.split_once(':')?.0 {
            "rcv-cc-cubic-rtt" => ("receiver_round_trip_time", CounterUnit::Nanoseconds),
            "rcv-cc-cubic-wnd" => ("receiver_window", CounterUnit::Bytes),
            _ => return None,
        };
        Some(Self {
            name: name.to_owned(),
            kind: Some(CounterKind::Gauge),
            unit: Some(unit),
        })
    }
}

impl CounterSubject {
    /// Returns the subject of a counter.
    pub fn of(type_id: i32, key: &[u8; MAX_KEY_LENGTH], label: &str) -> Self {
        match CounterType::of(type_id).map(|known| known.key) {
            Some(KeyLayout::Stream) => Self::of_stream(type_id, &StreamKey::decode(key), label),
            Some(KeyLayout::Channel) => Self::of_channel(decode_channel_key(key), label),
            Some(KeyLayout::Recording) => Self::of_recording(key, label).unwrap_or_default(),
            Some(KeyLayout::LocalAddress | KeyLayout::Other) | None => Self::default(),
        }
    }

    fn of_stream(type_id: i32, key: &StreamKey, label: &str) -> Self {
        let (registration_id, session_id, stream_id) =
            (key.registration_id, key.session_id, key.stream_id);
        let ids = format!(": {registration_id} {session_id} {stream_id} ");
        let labelled = label.split_once(&ids).map_or("", |(_, channel)| channel);
        let (labelled, is_whole) = match type_id {
            types::SUBSCRIBER_POSITION => without_end(labelled, |end| {
                end.strip_prefix('@')
                    .is_some_and(|position| position.parse::<i64>().is_ok())
            }),
            _ => (labelled, false),
        };
        let is_whole = is_whole || label.len() < MAX_LABEL_LENGTH;
        let (channel, is_channel_complete) =
            longer(&key.channel, MAX_STREAM_CHANNEL_LENGTH, labelled, is_whole);
        Self {
            channel: Some(channel),
            is_channel_complete,
            stream_id: Some(stream_id),
            session_id: Some(session_id),
            recording_id: None,
        }
    }

    fn of_channel(key: String, label: &str) -> Self {
        let labelled = label.split_once(": ").map_or("", |(_, channel)| channel);
        // The driver appends the bound address. Aeron's Java driver writes a blank before it creates the address.
        let (labelled, is_whole) =
            without_end(labelled.trim_end(), |end| end.parse::<SocketAddr>().is_ok());
        let is_whole = is_whole || label.len() < MAX_LABEL_LENGTH;
        let (channel, is_channel_complete) = longer(&key, MAX_CHANNEL_LENGTH, labelled, is_whole);
        Self {
            channel: Some(channel),
            is_channel_complete,
            ..Self::default()
        }
    }

    fn of_recording(key: &[u8; MAX_KEY_LENGTH], label: &str) -> Option<Self> {
        let key = RecordingPositionKey::decode(key)?;
        let subject = Self {
            session_id: Some(key.session_id),
            recording_id: Some(key.recording_id),
            ..Self::default()
        };
        // Only the label has stream id and channel.
        let ids = format!("rec-pos: {} {} ", key.recording_id, key.session_id);
        let labelled = label.strip_prefix(&ids).and_then(|rest| {
            let (stream_id, rest) = rest.split_once(' ')?;
            let (channel, _) = rest.rsplit_once(" - archiveId=")?;
            Some((stream_id.parse().ok()?, channel))
        });
        let Some((stream_id, channel)) = labelled else {
            return Some(subject);
        };
        Some(Self {
            channel: Some(channel.to_owned()),
            // The archive shortens the channel so that the label with its end has the maximum length.
            is_channel_complete: label.len() < MAX_LABEL_LENGTH,
            stream_id: Some(stream_id),
            ..subject
        })
    }
}

/// Returns the longer one of the channels in a key and in a label, and whether it is complete.
fn longer(key: &str, max_key: usize, labelled: &str, is_label_whole: bool) -> (String, bool) {
    let is_key_whole = key.len() < max_key;
    // A label may have another channel only if another process has written it.
    match labelled.starts_with(key) && !is_key_whole {
        true => (labelled.to_owned(), is_label_whole),
        false => (key.to_owned(), is_key_whole),
    }
}

/// Removes the last word and the blank before it if the word satisfies `is_end`. Returns whether it did.
fn without_end(text: &str, is_end: impl Fn(&str) -> bool) -> (&str, bool) {
    match text.rsplit_once(' ') {
        Some((rest, end)) if is_end(end) => (rest.trim_end(), true),
        _ => (text, false),
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::{channel_key, stream_key, stream_label, subscriber_position_label};
    use super::*;

    fn named(counter_type: i32, id: i32, label: &str) -> String {
        let meaning = CounterMeaning::of(counter_type, id, label).unwrap();
        let kind = meaning.kind.map_or("none", CounterKind::name);
        let unit = meaning.unit.and_then(CounterUnit::name).unwrap_or("none");
        format!("{} {kind} {unit}", meaning.name)
    }

    #[test]
    fn the_type_of_a_counter_gives_its_name_kind_and_unit() {
        assert_eq!(named(1, 70, ""), "publisher_limit position bytes");
        assert_eq!(named(11, 70, ""), "client_heartbeat timestamp milliseconds");
        assert_eq!(
            named(20_110, 70, ""),
            "archive_connects_dropped counter none"
        );
        assert_eq!(named(201, 70, ""), "cluster_node_role none none");
        assert_eq!(CounterMeaning::of(8, 70, ""), None);
        assert_eq!(CounterMeaning::of(1000, 70, "mine"), None);
    }

    #[test]
    fn the_id_of_a_system_counter_gives_its_name() {
        assert_eq!(named(0, 0, ""), "bytes_sent counter bytes");
        assert_eq!(
            named(0, 26, ""),
            "conductor_max_cycle_time gauge nanoseconds"
        );
        assert_eq!(CounterMeaning::of(0, 46, ""), None);
        assert_eq!(CounterMeaning::of(0, -1, ""), None);
    }

    #[test]
    fn the_label_of_an_indicator_gives_its_unit() {
        let window = "rcv-cc-cubic-wnd: 3 7 1001 aeron:udp?endpoint=localhost:40123";
        assert_eq!(named(10, 70, window), "receiver_window gauge bytes");
        let time = "rcv-cc-cubic-rtt: 3 7 1001 aeron:udp?endpoint=localhost:40123";
        assert_eq!(
            named(10, 70, time),
            "receiver_round_trip_time gauge nanoseconds"
        );
        assert_eq!(
            named(10, 70, "of another driver"),
            "per_image_indicator gauge none"
        );
    }

    #[test]
    fn each_type_has_an_id_of_its_own_and_the_types_are_sorted() {
        let known = types::ALL.iter().map(|known| known.id);
        let ids: Vec<_> = known
            .chain(types::CLUSTER.iter().map(|(id, _)| *id))
            .collect();
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), ids.len());
        assert!(types::ALL.is_sorted_by_key(|known| known.id));
    }

    fn channel_of_length(length: usize) -> String {
        let begin = "aeron:udp?endpoint=localhost:40123|alias=";
        format!("{begin}{}", "x".repeat(length - begin.len()))
    }

    #[test]
    fn a_stream_counter_has_the_channel_of_its_label_if_the_key_has_no_room_for_it_01_7_3() {
        for (length, is_complete) in [
            (60, true),
            (91, true),
            (92, true),
            (300, true),
            (400, false),
        ] {
            let channel = channel_of_length(length);
            let key = stream_key(17, -5, 1001, &channel);
            let mut label = stream_label("pub-pos (concurrent)", 17, -5, 1001, &channel);
            label.truncate(MAX_LABEL_LENGTH);
            let subject = CounterSubject::of(types::PUBLISHER_POSITION, &key, &label);
            let found = subject.channel.unwrap();
            assert!(channel.starts_with(&found), "{found}");
            assert_eq!(found == channel, is_complete, "{length}");
            assert_eq!(subject.is_channel_complete, is_complete, "{length}");
            assert_eq!(
                (subject.session_id, subject.stream_id),
                (Some(-5), Some(1001))
            );
        }
    }

    #[test]
    fn the_join_position_is_no_part_of_a_subscribers_channel_01_7_3() {
        for length in [60, 200] {
            let channel = channel_of_length(length);
            let key = stream_key(2, 9, 1001, &channel);
            let label = subscriber_position_label(2, 9, 1001, &channel, 4096);
            let subject = CounterSubject::of(types::SUBSCRIBER_POSITION, &key, &label);
            assert_eq!(subject.channel, Some(channel));
            assert!(subject.is_channel_complete);
        }
    }

    #[test]
    fn the_bound_address_is_no_part_of_a_channel_01_7_3() {
        for address in ["", " ", " 127.0.0.1:40123", " [::1]:40123"] {
            for length in [60, 108, 200] {
                let channel = channel_of_length(length);
                let label = format!("snd-channel: {channel}{address}");
                let key = channel_key(&channel);
                let subject = CounterSubject::of(types::SEND_CHANNEL_STATUS, &key, &label);
                assert_eq!(subject.channel, Some(channel), "{label}");
                assert!(subject.is_channel_complete, "{label}");
            }
        }
    }

    #[test]
    fn a_recording_counter_has_stream_and_channel_from_its_label_01_7_4() {
        let mut key = [0; MAX_KEY_LENGTH];
        key[..8].copy_from_slice(&3_i64.to_le_bytes());
        key[8..12].copy_from_slice(&(-7_i32).to_le_bytes());
        let label = "rec-pos: 3 -7 1001 aeron:udp?alias=a - archiveId=b - archiveId=42";
        let subject = CounterSubject::of(types::ARCHIVE_RECORDING_POSITION, &key, label);
        let expected = CounterSubject {
            channel: Some("aeron:udp?alias=a - archiveId=b".to_owned()),
            is_channel_complete: true,
            stream_id: Some(1001),
            session_id: Some(-7),
            recording_id: Some(3),
        };
        assert_eq!(subject, expected);
        let foreign = CounterSubject::of(types::ARCHIVE_RECORDING_POSITION, &key, "rec-pos: 3 x");
        let expected = CounterSubject {
            session_id: Some(-7),
            recording_id: Some(3),
            ..CounterSubject::default()
        };
        assert_eq!(foreign, expected);
    }

    proptest::proptest! {
        #[test]
        fn any_key_and_label_have_a_subject(
            type_id in proptest::prop_oneof![0..22, 100..118, proptest::num::i32::ANY],
            key in proptest::collection::vec(proptest::num::u8::ANY, MAX_KEY_LENGTH),
            label in ".{0,100}",
        ) {
            let key = key.try_into().unwrap();
            CounterSubject::of(type_id, &key, &label);
            CounterMeaning::of(type_id, 0, &label);
        }
    }
}
