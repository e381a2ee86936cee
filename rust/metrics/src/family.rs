//! [`MetricFamily`]: the series of one name, with their shape, unit and help.

use aeron_memory::counters::meaning::{CounterKind, CounterMeaning, CounterUnit};
use aeron_memory::counters::system::SystemCounter;
use aeron_memory::counters::types::{
    self, CHANNEL_ACTIVE, CHANNEL_CLOSING, CHANNEL_ERRORED, CHANNEL_INITIALIZING, CounterType,
};

/// States of a channel and their names.
pub const CHANNEL_STATES: [(i64, &str); 4] = [
    (CHANNEL_ERRORED, "errored"),
    (CHANNEL_INITIALIZING, "initializing"),
    (CHANNEL_ACTIVE, "active"),
    (CHANNEL_CLOSING, "closing"),
];

/// How the values of the counters of a series become one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A total: the sum of all increments. A counter that is freed takes nothing away.
    Total,
    /// The sum of the values.
    Sum,
    /// The largest value.
    Max,
    /// The smallest value.
    Min,
    /// The number of counters in each state of a channel.
    ChannelStates,
}

/// The series of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricFamily {
    /// Name, with unit and `_total` by the conventions of Prometheus.
    pub name: String,
    /// Description, in one line.
    pub help: String,
    /// Shape.
    pub shape: Shape,
    /// Number of the counters' units in a second; `None` if the values are no times.
    pub units_per_second: Option<f64>,
}

impl Shape {
    /// Returns the type that the format has for the shape.
    pub const fn type_name(self) -> &'static str {
        match self {
            Self::Total => "counter",
            Self::Sum | Self::Max | Self::Min | Self::ChannelStates => "gauge",
        }
    }

    /// Returns the number of lines of a series.
    pub const fn lines(self) -> usize {
        match self {
            Self::ChannelStates => CHANNEL_STATES.len(),
            Self::Total | Self::Sum | Self::Max | Self::Min => 1,
        }
    }
}

impl MetricFamily {
    /// Creates the family of a declaration. Adds the unit and `_total` to the name where they are missing.
    pub fn declared(
        name: &str,
        help: &str,
        kind: CounterKind,
        unit: CounterUnit,
        gauge: Shape,
    ) -> Self {
        let shape = match kind {
            CounterKind::Counter | CounterKind::Position => Shape::Total,
            CounterKind::Gauge => gauge,
            CounterKind::State => Shape::Max,
            CounterKind::Timestamp => Shape::Min,
        };
        let (suffix, units_per_second) = match unit {
            CounterUnit::Number => ("", None),
            CounterUnit::Bytes => ("_bytes", None),
            CounterUnit::Nanoseconds => ("_seconds", Some(1e9)),
            CounterUnit::Milliseconds => ("_seconds", Some(1e3)),
        };
        let suffix = match kind {
            CounterKind::Timestamp => "_timestamp_seconds",
            _ => suffix,
        };
        let mut name = name.to_owned();
        for end in [suffix, if shape == Shape::Total { "_total" } else { "" }] {
            if !name.ends_with(end) {
                name.push_str(end);
            }
        }
        Self {
            name,
            help: help.to_owned(),
            shape,
            units_per_second,
        }
    }

    /// Returns the family of a counter with a known type.
    pub fn of(type_id: i32, counter_id: i32, label: &str) -> Option<Self> {
        let meaning = CounterMeaning::of(type_id, counter_id, label)?;
        let known = CounterType::of(type_id);
        let help = match known {
            Some(known) => known.help.trim().to_owned(),
            None if type_id == types::SYSTEM => system_help(label),
            None => format!("Aeron Cluster: type {type_id}."),
        };
        // The conventions want the unit at the end: `bytes_sent` becomes `sent_bytes`.
        let name = match meaning.name.strip_prefix("bytes_") {
            Some(rest) => format!("aeron_{rest}_bytes"),
            None => format!("aeron_{}", meaning.name),
        };
        let (kind, unit) = (
            meaning.kind.unwrap_or(CounterKind::Gauge),
            meaning.unit.unwrap_or(CounterUnit::Number),
        );
        // A gauge with a unit is a maximum or a state of one thing. A gauge without a unit is a number of things.
        let gauge = match unit {
            CounterUnit::Number => Shape::Sum,
            _ => Shape::Max,
        };
        let mut family = Self::declared(&name, &help, kind, unit, gauge);
        if has_channel_states(type_id) {
            family.shape = Shape::ChannelStates;
        }
        Some(family)
    }
}

/// Returns all families of counters, without those of an application.
pub fn known_families() -> Vec<MetricFamily> {
    let system = SystemCounter::ALL.iter();
    let system =
        system.map(|counter| MetricFamily::of(types::SYSTEM, counter.id(), counter.text()));
    // The type of these indicators has one name for each congestion control.
    let indicators = ["rcv-cc-cubic-rtt: ", "rcv-cc-cubic-wnd: "];
    let indicators = indicators.map(|label| MetricFamily::of(types::PER_IMAGE_INDICATOR, 0, label));
    let type_ids = || types::ALL.iter().map(|known| known.id);
    let known = type_ids().map(|id| MetricFamily::of(id, 0, ""));
    let cluster = types::CLUSTER
        .iter()
        .map(|(id, _)| MetricFamily::of(*id, 0, ""));
    let derived = type_ids().flat_map(|id| [count(id), distance(id)]);
    let others = [Some(limited_publications()), Some(undeclared())];
    let families = system
        .chain(known)
        .chain(indicators)
        .chain(cluster)
        .chain(derived);
    families.chain(others).flatten().collect()
}

fn gauge(name: &str, help: &str, unit: CounterUnit, shape: Shape) -> MetricFamily {
    MetricFamily::declared(name, help, CounterKind::Gauge, unit, shape)
}

/// Returns the family of the number of counters of a type.
pub fn count(type_id: i32) -> Option<MetricFamily> {
    let (name, help) = match type_id {
        types::CLIENT_HEARTBEAT => ("aeron_clients", "Clients."),
        types::PUBLISHER_POSITION => ("aeron_publications", "Publications."),
        types::RECEIVER_POSITION => ("aeron_images", "Streams that arrive over the network."),
        types::SUBSCRIBER_POSITION => (
            "aeron_subscribers",
            "Subscribers of a publication or an image.",
        ),
        _ => return None,
    };
    Some(gauge(name, help, CounterUnit::Number, Shape::Sum))
}

/// Returns the family of a difference of two positions.
pub fn distance(type_id: i32) -> Option<MetricFamily> {
    let (name, help, shape) = match type_id {
        types::PUBLISHER_LIMIT => (
            "aeron_publication_window",
            "Bytes that publishers may still append, of the publication with the fewest.",
            Shape::Min,
        ),
        types::SUBSCRIBER_POSITION => (
            "aeron_subscriber_lag",
            "Bytes that are available and not consumed, of the subscriber with the most.",
            Shape::Max,
        ),
        types::ARCHIVE_RECORDING_POSITION => (
            "aeron_archive_recording_lag",
            "Bytes that are available and not recorded, of the recording with the most.",
            Shape::Max,
        ),
        _ => return None,
    };
    Some(gauge(name, help, CounterUnit::Bytes, shape))
}

/// Returns the family of publications without room.
pub fn limited_publications() -> MetricFamily {
    let help = "Publications without room, by what holds them back: a subscriber with its client, receivers, the sender.";
    gauge(
        "aeron_publications_limited",
        help,
        CounterUnit::Number,
        Shape::Sum,
    )
}

/// Returns the family of counters that neither this project nor the options declare.
pub fn undeclared() -> MetricFamily {
    let help = "Counters without a declaration.";
    gauge("aeron_undeclared", help, CounterUnit::Number, Shape::Sum)
}

/// Returns whether the values of a type are the states of a channel.
fn has_channel_states(type_id: i32) -> bool {
    [
        types::SEND_CHANNEL_STATUS,
        types::RECEIVE_CHANNEL_STATUS,
        types::LOCAL_SOCKET_ADDRESS,
    ]
    .contains(&type_id)
}

/// Returns the text of a system counter without the values that a driver appends.
fn system_help(label: &str) -> String {
    let text = label.split_once(": ").map_or(label, |(text, _)| text);
    format!("{text}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(type_id: i32, counter_id: i32, label: &str) -> String {
        let family = MetricFamily::of(type_id, counter_id, label).unwrap();
        format!("{} {}", family.shape.type_name(), family.name)
    }

    #[test]
    fn names_have_base_units_and_totals_end_with_total() {
        assert_eq!(name(1, 70, ""), "counter aeron_publisher_limit_bytes_total");
        assert_eq!(name(0, 0, "Bytes sent"), "counter aeron_sent_bytes_total");
        assert_eq!(name(0, 15, "Errors"), "counter aeron_errors_total");
        assert_eq!(
            name(0, 26, ""),
            "gauge aeron_conductor_max_cycle_time_seconds"
        );
        assert_eq!(
            name(11, 70, ""),
            "gauge aeron_client_heartbeat_timestamp_seconds"
        );
        assert_eq!(
            name(107, 70, ""),
            "counter aeron_archive_recorder_write_time_seconds_total"
        );
        assert_eq!(name(6, 70, ""), "gauge aeron_send_channel_status");
        assert_eq!(name(201, 70, ""), "gauge aeron_cluster_node_role");
    }

    #[test]
    fn each_known_counter_has_a_family_of_its_own() {
        let mut names: Vec<_> = known_families()
            .into_iter()
            .map(|family| family.name)
            .collect();
        let count = names.len();
        assert!(count > types::ALL.len() + SystemCounter::ALL.len() + types::CLUSTER.len());
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn each_family_has_one_line_of_help() {
        for family in known_families() {
            let help = family.help.as_str();
            assert_eq!(help, help.trim());
            assert!(help.ends_with('.') && !help.contains('\n'), "{help}");
        }
    }
}
