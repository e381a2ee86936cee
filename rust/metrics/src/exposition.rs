//! [`Exposition`]: the text that a scrape returns.

use std::time::Instant;

use aeron_memory::SharedBuffer;
use aeron_memory::cnc::Cnc;

use crate::custom::CustomMetrics;
use crate::facts::{Fact, Facts};
use crate::family::known_families;
use crate::labels::{Labels, stable_channel};
use crate::members::{DriverCounters, Naming, Tables};
use crate::source::{ArchiveSource, DriverSource, distinct_errors, free_bytes, is_fresh};

/// Settings of an exposition.
#[derive(Clone, Debug)]
pub struct ExpositionOptions {
    /// Maximum number of series of counters. Of more, whole streams with the lowest rate are left out. The series of
    /// a driver and of an archive themselves, about a hundred each, are always shown.
    pub max_series: usize,
    /// Whether series have session ids and registration ids, which are new after each restart.
    pub is_per_session: bool,
    /// Declarations of an application's counters.
    pub custom: CustomMetrics,
}

/// The metrics of drivers and archives.
///
/// A total is the sum over all counters of a series since the exposition was created. A counter that is freed takes
/// nothing away, so a total falls only when its last counter ends.
#[derive(Debug)]
pub struct Exposition {
    options: ExpositionOptions,
    drivers: Vec<(DriverSource, DriverCounters)>,
    archives: Vec<ArchiveSource>,
    tables: Tables,
}

impl Default for ExpositionOptions {
    fn default() -> Self {
        Self {
            max_series: 10_000,
            is_per_session: false,
            custom: CustomMetrics::default(),
        }
    }
}

impl Exposition {
    /// Creates the metrics of drivers and archives. Opens nothing.
    #[must_use]
    pub fn new(
        drivers: Vec<DriverSource>,
        archives: Vec<ArchiveSource>,
        options: ExpositionOptions,
    ) -> Self {
        let drivers = drivers.into_iter();
        Self {
            options,
            drivers: drivers
                .map(|driver| (driver, DriverCounters::default()))
                .collect(),
            archives,
            tables: Tables::default(),
        }
    }

    /// Returns name, type and description of each metric that [`render`](Self::render) can write.
    #[must_use]
    pub fn families(&self) -> Vec<(String, &'static str, String)> {
        let known = known_families();
        let counters = known.iter().chain(self.options.custom.families());
        let counters = counters.map(|family| {
            (
                family.name.clone(),
                family.shape.type_name(),
                family.help.clone(),
            )
        });
        let facts = Fact::ALL.iter().map(|fact| {
            let (name, shape, help) = fact.declared();
            (name.to_owned(), shape.type_name(), help.to_owned())
        });
        counters.chain(facts).collect()
    }

    /// Reads all files, and returns the metrics in the text format of Prometheus, version 0.0.4. `now_ms` is the time
    /// in milliseconds since the epoch. A file that cannot be read has the metric `aeron_driver_up` or
    /// `aeron_archive_up` of 0.
    pub fn render(&mut self, now_ms: i64) -> String {
        let begin = Instant::now();
        let mut facts = Facts::default();
        facts.add(
            Fact::BuildInfo,
            Labels::default().with("version", env!("CARGO_PKG_VERSION")),
            1.0,
        );
        for (source, counters) in &mut self.drivers {
            let driver = source.name.clone();
            let naming = Naming {
                driver: &driver,
                custom: &self.options.custom,
                is_per_session: self.options.is_per_session,
            };
            read_driver(
                source,
                counters,
                &naming,
                &mut self.tables,
                &mut facts,
                now_ms,
            );
        }
        for archive in &self.archives {
            read_archive(archive, &mut facts, now_ms);
        }
        let text = self.write(&mut facts, begin);
        self.tables.series.end_pass();
        text
    }

    fn write(&mut self, facts: &mut Facts, begin: Instant) -> String {
        let Tables { series, streams } = &mut self.tables;
        let lines = || series.lines().filter(|(series, _)| series.is_shown());
        let left_out = streams.end_pass(
            lines().map(|(series, lines)| (series.stream, lines)),
            self.options.max_series,
        );
        let is_left_out =
            |stream: Option<_>| stream.is_some_and(|stream| left_out.contains(&stream));
        let (mut shown, mut dropped) = (0, 0);
        for (series, lines) in lines() {
            match is_left_out(series.stream) {
                true => dropped += lines,
                false => shown += lines,
            }
        }
        facts.add(Fact::ExporterSeries, Labels::default(), shown as f64);
        facts.add(
            Fact::ExporterDroppedSeries,
            Labels::default(),
            dropped as f64,
        );
        let mut text = String::new();
        series.write(&mut text, |series| {
            series.is_shown() && !is_left_out(series.stream)
        });
        facts.add(
            Fact::ExporterReadTime,
            Labels::default(),
            begin.elapsed().as_secs_f64(),
        );
        facts.write(&mut text);
        text
    }
}

fn read_driver(
    source: &mut DriverSource,
    counters: &mut DriverCounters,
    naming: &Naming<'_>,
    tables: &mut Tables,
    facts: &mut Facts,
    now_ms: i64,
) {
    let labels = || Labels::default().with("driver", naming.driver);
    let (cnc, is_another) = source.open();
    let heartbeat_ms = cnc
        .as_ref()
        .map(|cnc| cnc.to_driver().consumer_heartbeat_ms());
    let is_up = heartbeat_ms.is_some_and(|heartbeat_ms| is_fresh(heartbeat_ms, now_ms));
    facts.add(Fact::DriverUp, labels(), f64::from(is_up));
    if is_another || !is_up {
        counters.clear();
    }
    if let Ok(free) = free_bytes(source.directory()) {
        facts.add(Fact::DriverFreeSpace, labels(), free as f64);
    }
    let Some(cnc) = cnc else {
        return;
    };
    facts.add(
        Fact::DriverHeartbeat,
        labels(),
        seconds(heartbeat_ms.unwrap_or(-1)),
    );
    if is_up {
        add_facts(&cnc, source, naming, facts);
        counters.read(cnc.counters(), naming, tables);
    }
}

fn add_facts(
    cnc: &Cnc<SharedBuffer>,
    source: &DriverSource,
    naming: &Naming<'_>,
    facts: &mut Facts,
) {
    let labels = || Labels::default().with("driver", naming.driver);
    let counters = cnc.counters();
    let room = (i64::from(counters.max_counter_id()) + 1) as usize;
    let free = room.saturating_sub(counters.ids().count());
    facts.add(
        Fact::DriverStart,
        labels(),
        seconds(cnc.identity().start_timestamp_ms),
    );
    facts.add(Fact::DriverFreeCounters, labels(), free as f64);
    facts.add(
        Fact::DriverDistinctErrors,
        labels(),
        distinct_errors(cnc) as f64,
    );
    add_losses(source, naming, facts);
}

/// Adds the losses of each stream. The report has one entry for each image.
fn add_losses(source: &DriverSource, naming: &Naming<'_>, facts: &mut Facts) {
    let mut by_stream = std::collections::BTreeMap::<(String, i32), (i64, i64)>::new();
    for loss in source.losses() {
        let stream = (
            stable_channel(&loss.image.channel, true),
            loss.image.stream_id,
        );
        let (bytes, gaps) = by_stream.entry(stream).or_default();
        *bytes = bytes.saturating_add(loss.total_bytes_lost);
        *gaps = gaps.saturating_add(loss.observation_count);
    }
    for ((channel, stream_id), (bytes, gaps)) in by_stream {
        let labels = || {
            let labels = Labels::default().with("driver", naming.driver);
            let labels = labels.with("channel", &channel);
            labels.with_number("stream_id", stream_id.into())
        };
        facts.add(Fact::LossBytes, labels(), bytes as f64);
        facts.add(Fact::LossGaps, labels(), gaps as f64);
    }
}

fn read_archive(source: &ArchiveSource, facts: &mut Facts, now_ms: i64) {
    let labels = || Labels::default().with("archive", &source.name);
    let read = source.read();
    let heartbeat_ms = read.as_ref().map(|(state, _)| state.activity_timestamp_ms);
    let is_up = heartbeat_ms.is_some_and(|heartbeat_ms| is_fresh(heartbeat_ms, now_ms));
    facts.add(Fact::ArchiveUp, labels(), f64::from(is_up));
    if let Ok(free) = free_bytes(source.directory()) {
        facts.add(Fact::ArchiveFreeSpace, labels(), free as f64);
    }
    if let Some((state, errors)) = read {
        let info = labels().with_number("archive_id", state.owner.archive_id);
        facts.add(Fact::ArchiveInfo, info, 1.0);
        facts.add(
            Fact::ArchiveHeartbeat,
            labels(),
            seconds(state.activity_timestamp_ms),
        );
        facts.add(
            Fact::ArchiveStart,
            labels(),
            seconds(state.owner.start_timestamp_ms),
        );
        facts.add(Fact::ArchiveDistinctErrors, labels(), errors as f64);
    }
}

/// Returns a time in seconds since the epoch; -1 for the end of a driver or an archive.
fn seconds(time_ms: i64) -> f64 {
    match time_ms {
        -1 => -1.0,
        _ => time_ms as f64 / 1000.0,
    }
}
