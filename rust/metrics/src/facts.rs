//! [`Facts`]: values that no counter has, such as free space.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::family::Shape;
use crate::labels::Labels;
use crate::series::write_head;

macro_rules! facts {
    ($($(#[doc = $help:literal])+ $variant:ident = $name:literal, $shape:ident;)*) => {
        /// A fact.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fact {
            $($(#[doc = $help])+ $variant,)*
        }

        impl Fact {
            /// All facts.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns name, shape and description.
            pub fn declared(self) -> (&'static str, Shape, &'static str) {
                match self {
                    $(Self::$variant => ($name, Shape::$shape, concat!($($help),+).trim_ascii_start()),)*
                }
            }
        }
    };
}

facts! {
    /// Version of the exporter.
    BuildInfo = "aeron_build_info", Max;
    /// Whether the heartbeat of a driver is fresh. Counters of a dead driver are not shown.
    DriverUp = "aeron_driver_up", Max;
    /// Last heartbeat of a driver.
    DriverHeartbeat = "aeron_driver_heartbeat_timestamp_seconds", Max;
    /// Start of a driver.
    DriverStart = "aeron_driver_start_timestamp_seconds", Max;
    /// Counters for which a driver still has room.
    DriverFreeCounters = "aeron_driver_free_counters", Max;
    /// Distinct errors in the log of a driver.
    DriverDistinctErrors = "aeron_driver_distinct_errors", Max;
    /// Free space of the file system of a driver's directory.
    DriverFreeSpace = "aeron_driver_filesystem_free_bytes", Max;
    /// Bytes in gaps of images.
    LossBytes = "aeron_loss_bytes_total", Total;
    /// Gaps of images.
    LossGaps = "aeron_loss_gaps_total", Total;
    /// Whether the heartbeat of an archive is fresh.
    ArchiveUp = "aeron_archive_up", Max;
    /// Id of an archive, which its counters have as the label `archive_id`.
    ArchiveInfo = "aeron_archive_info", Max;
    /// Last heartbeat of an archive.
    ArchiveHeartbeat = "aeron_archive_heartbeat_timestamp_seconds", Max;
    /// Start of an archive.
    ArchiveStart = "aeron_archive_start_timestamp_seconds", Max;
    /// Distinct errors in the log of an archive.
    ArchiveDistinctErrors = "aeron_archive_distinct_errors", Max;
    /// Free space of the file system of an archive's directory.
    ArchiveFreeSpace = "aeron_archive_filesystem_free_bytes", Max;
    /// Series of counters.
    ExporterSeries = "aeron_exporter_series", Max;
    /// Series that are left out because there are too many: those of the streams with the lowest rate.
    ExporterDroppedSeries = "aeron_exporter_dropped_series", Max;
    /// Time that the exporter needed to read all files.
    ExporterReadTime = "aeron_exporter_read_time_seconds", Max;
}

/// The facts of one moment.
#[derive(Debug, Default)]
pub struct Facts {
    found: BTreeMap<Fact, Vec<(String, f64)>>,
}

impl Facts {
    /// Adds a fact.
    pub fn add(&mut self, fact: Fact, labels: Labels, value: f64) {
        let samples = self.found.entry(fact).or_default();
        samples.push((labels.into_text(), value));
    }

    /// Writes all facts.
    pub fn write(&self, text: &mut String) {
        for (fact, samples) in &self.found {
            let (name, shape, help) = fact.declared();
            write_head(text, name, shape.type_name(), help);
            for (labels, value) in samples {
                let _ = match labels.is_empty() {
                    true => writeln!(text, "{name} {value}"),
                    false => writeln!(text, "{name}{{{labels}}} {value}"),
                };
            }
        }
    }
}
