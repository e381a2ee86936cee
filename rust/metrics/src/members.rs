//! [`DriverCounters`]: the counters of a driver and the series to which they belong.

use std::collections::{HashMap, HashSet};

use aeron_memory::counters::meaning::{CounterKind, CounterSubject, KeyLayout};
use aeron_memory::counters::types::{self, CounterType};
use aeron_memory::counters::{CounterRecord, CountersReader};
use aeron_memory::words::Words;

use crate::custom::CustomMetrics;
use crate::family::{MetricFamily, count, distance, limited_publications, undeclared};
use crate::labels::{Labels, stable_channel};
use crate::series::{FamilyId, SeriesId, SeriesTable};
use crate::streams::{StreamId, StreamTable};

/// How a driver's counters become series.
#[derive(Debug)]
pub struct Naming<'a> {
    /// Value of the label `driver`.
    pub driver: &'a str,
    /// Declarations of an application's counters.
    pub custom: &'a CustomMetrics,
    /// Whether each session has series of its own.
    pub is_per_session: bool,
}

/// All series.
#[derive(Debug, Default)]
pub struct Tables {
    /// The series.
    pub series: SeriesTable,
    /// The streams of the series.
    pub streams: StreamTable,
}

/// The counters of a driver.
#[derive(Debug, Default)]
pub struct DriverCounters {
    /// Counters by id.
    members: Vec<Option<Member>>,
    /// Names of the clients by client id; `None` if the label of the heartbeat has no name.
    clients: HashMap<i64, Option<String>>,
    /// Whether a pass has ended. Positions that appear later need not begin at 0.
    is_running: bool,
}

/// A counter and its series.
#[derive(Debug)]
struct Member {
    type_id: i32,
    registration_id: i64,
    owner_id: i64,
    reference_id: i64,
    session_and_stream: Option<(i32, i32)>,
    series: SeriesId,
    /// Number of such counters.
    count: Option<SeriesId>,
    /// A difference to the position of another counter. `None` in a pass without that counter: the series ends then.
    distance: Option<SeriesId>,
    stream: Option<StreamId>,
    labels: Labels,
    is_position: bool,
    /// Value up to which the total of the series has it.
    counted: Option<i64>,
    /// Value at which the counter began, if it is known: the position at which a subscriber joined, or 0 for a
    /// publisher, unless its channel names a position.
    begin: Option<i64>,
    value: i64,
}

/// Positions of one pass.
#[derive(Debug, Default)]
struct Positions {
    /// Positions of publications and images by registration id.
    heads: HashMap<i64, i64>,
    /// Positions of publications and images by session id and stream id.
    sessions: HashMap<(i32, i32), i64>,
    senders: HashMap<i64, i64>,
    sender_limits: HashMap<i64, i64>,
    /// Position and owner of the slowest subscriber, by the registration id of the publication.
    slowest: HashMap<i64, (i64, i64)>,
    /// Lowest position at which a subscriber of an image joined, by the id of the image.
    joined: HashMap<i64, i64>,
}

impl DriverCounters {
    /// Adds the values of all counters to their series.
    pub fn read<W: Words>(
        &mut self,
        counters: &CountersReader<W>,
        naming: &Naming<'_>,
        tables: &mut Tables,
    ) {
        let (renamed, held_back) = self.read_clients(counters);
        let mut is_used = vec![false; self.members.len()];
        for id in counters.ids() {
            let (Some(type_id), Some(counter)) = (counters.type_id(id), counters.counter(id))
            else {
                continue;
            };
            if held_back.contains(&counter.owner_id()) {
                continue;
            }
            let index = id as usize;
            if self.members.len() <= index {
                self.members.resize_with(index + 1, || None);
                is_used.resize(index + 1, false);
            }
            let is_known = self.members[index].as_ref().is_some_and(|member| {
                member.type_id == type_id
                    && member.registration_id == counter.registration_id()
                    && !renamed.contains(&member.owner_id)
            });
            if !is_known {
                let record = counters.record(id);
                self.members[index] = record.map(|record| self.member(&record, naming, tables));
            }
            if let Some(member) = &mut self.members[index] {
                member.value = counter.get();
                is_used[index] = true;
            }
        }
        for (member, is_used) in self.members.iter_mut().zip(is_used) {
            if !is_used {
                *member = None;
            }
        }
        self.add_values(tables);
        self.is_running = true;
    }

    /// Forgets all counters: the driver is dead, or another one uses the directory. Their series end with this pass, so
    /// nothing may refer to them later.
    pub fn clear(&mut self) {
        self.members.clear();
        self.clients.clear();
    }

    /// Reads the names of the clients. Returns the clients with changed names, and the new clients without a name.
    ///
    /// A client appends its name to the label when it writes its first heartbeat. Without the second set, each start of
    /// a client would make series without the label `client`, which end within a second.
    fn read_clients<W: Words>(
        &mut self,
        counters: &CountersReader<W>,
    ) -> (HashSet<i64>, HashSet<i64>) {
        let mut clients = HashMap::new();
        for id in counters.ids() {
            if counters.type_id(id) == Some(types::CLIENT_HEARTBEAT)
                && let (Some(label), Some(counter)) = (counters.label(id), counters.counter(id))
            {
                clients.insert(counter.owner_id(), client_name(&label).map(str::to_owned));
            }
        }
        let renamed = clients
            .iter()
            .filter(|(id, name)| self.clients.get(id).is_none_or(|known| known != *name))
            .map(|(id, _)| *id)
            .collect();
        let held_back = clients
            .iter()
            .filter(|(id, name)| {
                self.is_running && name.is_none() && !self.clients.contains_key(id)
            })
            .map(|(id, _)| *id)
            .collect();
        self.clients = clients;
        (renamed, held_back)
    }

    /// Returns the name of a client; empty without one.
    fn client_name(&self, client_id: i64) -> &str {
        let name = self.clients.get(&client_id).and_then(Option::as_deref);
        name.unwrap_or_default()
    }

    /// Finds the series of a counter.
    fn member(&self, record: &CounterRecord, naming: &Naming<'_>, tables: &mut Tables) -> Member {
        let (type_id, label) = (record.type_id, record.label.as_str());
        let known = MetricFamily::of(type_id, record.id, label);
        let custom = naming.custom.of(type_id);
        let subject = CounterSubject::of(type_id, &record.key, label);
        let channel = subject.channel.as_deref();
        let channel = channel.map(|channel| stable_channel(channel, subject.is_channel_complete));
        let mut labels = Labels::default().with("driver", naming.driver);
        if let Some(channel) = &channel {
            labels = labels.with("channel", channel);
        }
        if let Some(stream_id) = subject.stream_id {
            labels = labels.with_number("stream_id", stream_id.into());
        }
        let archive_id = archive_id(type_id, label);
        let client = self.client_name(record.owner_id);
        // The client of an archive has no name that an operator knows.
        if !client.is_empty() && archive_id.is_none() {
            labels = labels.with("client", client);
        }
        if naming.is_per_session {
            labels = with_session(labels, &subject, record);
        }
        if let Some(archive_id) = archive_id {
            labels = labels.with("archive_id", archive_id);
        }
        let (family, own_labels) = match (known, custom) {
            (_, Some(custom)) => (
                custom.family.clone(),
                custom.label(labels.clone(), &record.key, label),
            ),
            (Some(family), None) if has_label(type_id) => {
                (family, labels.clone().with("label", label))
            }
            (Some(family), None) => (family, labels.clone()),
            (None, None) => (
                undeclared(),
                labels
                    .clone()
                    .with_number("type_id", type_id.into())
                    .with("label", label),
            ),
        };
        let stream = match (channel, subject.stream_id) {
            (Some(channel), Some(stream_id)) => {
                Some(format!("{} {channel} {stream_id}", naming.driver))
            }
            // Clients choose channels, names and counters, so these are bounded too.
            (Some(channel), None) => Some(format!("{} {channel}", naming.driver)),
            _ if is_foreign(type_id) => Some(format!("{} type {type_id}", naming.driver)),
            _ if type_id == types::CLIENT_HEARTBEAT => Some(format!("{} clients", naming.driver)),
            _ => None,
        };
        let stream = stream.map(|name| tables.streams.stream(name));
        let mut series = |family: MetricFamily, labels: Labels| {
            let family = tables.series.family(family);
            tables.series.series(family, labels.into_text(), stream)
        };
        Member {
            type_id,
            registration_id: record.registration_id,
            owner_id: record.owner_id,
            reference_id: record.reference_id,
            session_and_stream: subject.session_id.zip(subject.stream_id),
            series: series(family, own_labels),
            count: count(type_id).map(|family| series(family, labels.clone())),
            distance: None,
            stream,
            labels,
            is_position: CounterType::of(type_id)
                .is_some_and(|known| known.kind == CounterKind::Position),
            counted: None,
            begin: begin(type_id, label, subject.channel.as_deref()),
            value: 0,
        }
    }

    /// Adds the values of a pass to the series.
    fn add_values(&mut self, tables: &mut Tables) {
        let positions = self.positions();
        for member in self.members.iter_mut().flatten() {
            let increment = member.increment(self.is_running, &tables.series, &positions);
            if let Some(stream) = member.stream.filter(|_| member.is_position) {
                tables.streams.grow(stream, increment);
            }
            tables.series.add(member.series, member.value, increment);
            if let Some(count) = member.count {
                tables.series.add(count, 1, 0);
            }
            member.add_distance(positions.distance(member), &mut tables.series);
        }
        let limited = tables.series.family(limited_publications());
        for member in self.members.iter().flatten() {
            if member.type_id == types::PUBLISHER_LIMIT
                && let Some(labels) = self.limiting(member, &positions)
            {
                add_limited(limited, labels, member, tables);
            }
        }
    }

    fn positions(&self) -> Positions {
        let mut positions = Positions::default();
        for member in self.members.iter().flatten() {
            let (id, value) = (member.registration_id, member.value);
            match member.type_id {
                types::PUBLISHER_POSITION | types::RECEIVER_POSITION => {
                    positions.heads.insert(id, value);
                    if let Some(session) = member.session_and_stream {
                        let head = positions.sessions.entry(session).or_insert(value);
                        *head = value.max(*head);
                    }
                }
                types::SENDER_POSITION => _ = positions.senders.insert(id, value),
                types::SENDER_LIMIT => _ = positions.sender_limits.insert(id, value),
                types::SUBSCRIBER_POSITION => {
                    let reader = (value, member.owner_id);
                    let slowest = positions
                        .slowest
                        .entry(member.reference_id)
                        .or_insert(reader);
                    *slowest = reader.min(*slowest);
                    if let Some(begin) = member.begin {
                        let joined = positions.joined.entry(member.reference_id).or_insert(begin);
                        *joined = begin.min(*joined);
                    }
                }
                _ => (),
            }
        }
        positions
    }

    /// Returns the labels of a publication without room: what holds its publishers back.
    fn limiting(&self, limit: &Member, positions: &Positions) -> Option<Labels> {
        let id = limit.registration_id;
        // Before the first receiver or subscriber, the limit is 0: such a publication is not connected.
        if limit.value <= 0 || *positions.heads.get(&id)? < limit.value {
            return None;
        }
        let slowest = positions.slowest.get(&id);
        let labels = limit.labels.clone();
        if let Some(sent) = positions.senders.get(&id)
            && slowest.is_none_or(|(position, _)| position >= sent)
        {
            let is_at_limit = positions
                .sender_limits
                .get(&id)
                .is_some_and(|limit| sent >= limit);
            return Some(labels.with("by", if is_at_limit { "receivers" } else { "sender" }));
        }
        let reader = self.client_name(slowest?.1);
        Some(labels.with("by", "subscriber").with("subscriber", reader))
    }
}

impl Member {
    /// Adds the distance to the position of another counter, if there is one in this pass.
    fn add_distance(&mut self, value: Option<i64>, series: &mut SeriesTable) {
        self.distance = value.and_then(|value| {
            let id = self.distance.or_else(|| {
                let family = series.family(distance(self.type_id)?);
                Some(series.series(family, self.labels.clone().into_text(), self.stream))
            })?;
            series.add(id, value, 0);
            Some(id)
        });
    }

    /// Returns by how much the total of the series grows.
    fn increment(&mut self, is_running: bool, series: &SeriesTable, positions: &Positions) -> i64 {
        let begin = self.begin.or_else(|| positions.begin_of_image(self));
        let increment = match (self.counted, begin) {
            (Some(counted), _) => self.value.saturating_sub(counted).max(0),
            (None, Some(begin)) => self.value.saturating_sub(begin).max(0),
            // The position of a recording need not begin at 0. The total of the others must not grow by bytes that were
            // there before.
            (None, None) if self.is_position && is_running && !series.is_new(self.series) => 0,
            (None, None) => self.value,
        };
        self.counted = Some(self.value);
        increment
    }
}

impl Positions {
    /// Returns the position at which an image began: its first subscriber joined there.
    fn begin_of_image(&self, member: &Member) -> Option<i64> {
        let is_of_image = [types::RECEIVER_POSITION, types::RECEIVER_HWM].contains(&member.type_id);
        is_of_image.then(|| self.joined.get(&member.registration_id).copied())?
    }

    /// Returns the room of a publication, or the bytes by which a reader lags.
    fn distance(&self, member: &Member) -> Option<i64> {
        let (head, value) = match member.type_id {
            types::PUBLISHER_LIMIT => (member.value, *self.heads.get(&member.registration_id)?),
            types::SUBSCRIBER_POSITION => (*self.heads.get(&member.reference_id)?, member.value),
            types::ARCHIVE_RECORDING_POSITION => (
                *self.sessions.get(&member.session_and_stream?)?,
                member.value,
            ),
            _ => return None,
        };
        // The counters are read one after another, so a reader can seem to be ahead.
        Some(head.saturating_sub(value).max(0))
    }
}

fn add_limited(family: FamilyId, labels: Labels, member: &Member, tables: &mut Tables) {
    let series = tables
        .series
        .series(family, labels.into_text(), member.stream);
    tables.series.add(series, 1, 0);
}

fn with_session(labels: Labels, subject: &CounterSubject, record: &CounterRecord) -> Labels {
    let Some(session_id) = subject.session_id else {
        return labels;
    };
    let labels = labels.with_number("session_id", session_id.into());
    match subject.recording_id {
        Some(recording_id) => labels.with_number("recording_id", recording_id),
        None => labels.with_number("registration_id", record.registration_id),
    }
}

/// Returns whether an application or Aeron Cluster has the type.
fn is_foreign(type_id: i32) -> bool {
    CounterType::of(type_id).is_none() && type_id != types::SYSTEM
}

/// Returns whether only the label says what a counter of a known type counts.
fn has_label(type_id: i32) -> bool {
    let is_labelled = [types::NAME_ENTRY, types::BOOTSTRAP_NEIGHBOR].contains(&type_id);
    is_labelled || is_foreign(type_id)
}

/// Returns the name in the label of a client's heartbeat; `None` before the first heartbeat.
fn client_name(label: &str) -> Option<&str> {
    let named = label
        .split_once(" name=")
        .and_then(|(_, rest)| rest.rsplit_once(" version="));
    named.map(|(name, _)| name)
}

/// Returns the id in the label of an archive's counter.
fn archive_id(type_id: i32, label: &str) -> Option<&str> {
    let known = CounterType::of(type_id)?;
    let is_archives = matches!(known.key, KeyLayout::Other | KeyLayout::Recording);
    let (_, rest) = label.rsplit_once(" - archiveId=")?;
    // The label of the errors goes on with the version.
    let id = rest.split(' ').next()?;
    (is_archives && id.parse::<i64>().is_ok()).then_some(id)
}

/// Returns the value at which a counter of a position began, if label or channel have it.
fn begin(type_id: i32, label: &str, channel: Option<&str>) -> Option<i64> {
    match type_id {
        types::SUBSCRIBER_POSITION => label.rsplit_once(" @")?.1.parse().ok(),
        types::PUBLISHER_LIMIT
        | types::PUBLISHER_POSITION
        | types::SENDER_LIMIT
        | types::SENDER_POSITION => {
            let names_position = channel?.contains("init-term-id=");
            (!names_position).then_some(0)
        }
        _ => None,
    }
}
