//! [`QueryArchive`]: the private archive of a recorder. Opens and locks the archive, and updates its heartbeat.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aeron_agent::{EpochClock, SystemEpochClock};
use aeron_archive::storage::Directory;

use super::ledger::Ledger;
use super::shared::SharedRecorder;
use super::{OpenArchive, OpenedArchive, RecorderSettings};
use crate::error::{LiveCode, LiveError};
use crate::machine;
use crate::partition::ArchiveLocation;
use crate::private::{
    DirectoryLock, LockRequest, LockedArchive, LostRange, LostTimes, OpenReport, PrivateArchive,
    PrivateError,
};

/// Advice in error texts for a lost recording.
const REMEDY: &str = "failOnDataLoss=false counts the loss and continues";

/// The private archive of one query, locked by this process.
pub(super) struct QueryArchive {
    /// Recordings of the archive.
    pub archive: PrivateArchive<Directory>,
    /// Counts of the query over all its runs.
    pub ledger: Ledger,
    lock: DirectoryLock,
    id: String,
    path: String,
}

impl QueryArchive {
    /// Opens or creates the archive. If data is lost, returns an error or abandons the recordings with losses:
    /// [`RecorderSettings::fail_on_data_loss`] decides.
    pub fn open(
        settings: &RecorderSettings,
        open: &OpenArchive,
        aeron_dir: &Path,
        shared: &Arc<SharedRecorder>,
    ) -> Result<(Self, OpenedArchive), LiveError> {
        let mut request = LockRequest {
            id: open.id,
            aeron_directory: &aeron_dir.to_string_lossy(),
            clock: &SystemEpochClock,
            pause: &mut |time| pause(time, shared, aeron_dir),
        };
        let (roots, bound) = (&settings.roots, settings.max_retained_bytes);
        let opened = LockedArchive::open(roots, &open.known, bound, &mut request);
        let opened = opened.map_err(|error| open_error(error, open, shared))?;
        let mut query = Self {
            ledger: Ledger::open(&opened.archive, shared),
            archive: opened.archive,
            id: open.id.to_string(),
            path: opened.lock.path().display().to_string(),
            lock: opened.lock,
        };
        shared.add_line(query.opened_line(settings));
        match query.accept(opened.report, settings, shared) {
            Ok(given_up) => {
                let location = query.location();
                Ok((query, OpenedArchive { location, given_up }))
            }
            Err(error) => {
                query.close();
                Err(error)
            }
        }
    }

    /// Abandons the recordings that have lost data, unless the settings make a loss an error. Returns their ids.
    fn accept(
        &mut self,
        report: OpenReport,
        settings: &RecorderSettings,
        shared: &SharedRecorder,
    ) -> Result<Vec<i64>, LiveError> {
        for line in report.lines {
            shared.add_line(line);
        }
        let mut given_up = Vec::new();
        for range in report.lost {
            let line = self.lost_line(&range);
            self.lose(line, settings, shared)?;
            shared.statistics.lost_bytes.add(range.to - range.from);
            self.give_up(range.recording_id, shared)?;
            given_up.push(range.recording_id);
        }
        for times in report.lost_times {
            let line = self.lost_times_line(&times);
            if times.is_needed && settings.needs_timestamp {
                self.lose(line, settings, shared)?;
                shared.statistics.lost_bytes.add(times.to - times.from);
            } else {
                shared.add_line(line);
            }
        }
        Ok(given_up)
    }

    /// Abandons a recording that has lost data. Its remaining data is not read either.
    fn give_up(&mut self, recording_id: i64, shared: &SharedRecorder) -> Result<(), LiveError> {
        if self.archive.descriptor(recording_id).is_none() {
            return Ok(());
        }
        let left = self.archive.give_up(recording_id)?;
        if left > 0 {
            shared.statistics.lost_bytes.add(left);
            shared.add_line(format!(
                "recording {recording_id} is abandoned with the {left} bytes before that"
            ));
        }
        Ok(())
    }

    fn lose(
        &self,
        line: String,
        settings: &RecorderSettings,
        shared: &SharedRecorder,
    ) -> Result<(), LiveError> {
        if settings.fail_on_data_loss {
            let text = format!("{line}; {REMEDY}");
            return Err(LiveError::new(LiveCode::DataLoss, text));
        }
        shared.add_line(line);
        Ok(())
    }

    fn lost_line(&self, range: &LostRange) -> String {
        let LostRange {
            recording_id,
            from,
            to,
            reason,
        } = range;
        let path = &self.path;
        format!("recording {recording_id} from {from} to {to} of {path} cannot be read: {reason}")
    }

    fn lost_times_line(&self, times: &LostTimes) -> String {
        let LostTimes {
            recording_id,
            from,
            to,
            ..
        } = times;
        let path = &self.path;
        format!(
            "arrival times of recording {recording_id} from {from} to {to} of {path} are lost: timestamp is null there"
        )
    }

    /// Returns the log line that names the query's archive.
    fn opened_line(&self, settings: &RecorderSettings) -> String {
        let streams = match settings.stream_ids.as_slice() {
            [stream] => format!("stream {stream}"),
            streams => format!("{} streams", streams.len()),
        };
        let (path, channel) = (&self.path, &settings.channel);
        format!("{streams} of {channel} recorded into private archive {path}")
    }

    fn location(&self) -> ArchiveLocation {
        let record = self.lock.record();
        ArchiveLocation {
            path: self.path.clone(),
            nonce: Some(record.nonce.to_string()),
            boot_id: record.boot_id.clone(),
            host: machine::host_name(),
        }
    }

    /// Returns the id of the archive.
    pub fn archive_id(&self) -> &str {
        &self.id
    }

    /// Creates an error of the archive that names its directory.
    pub fn in_archive(&self, error: &impl Display) -> LiveError {
        let path = &self.path;
        LiveError::new(
            LiveCode::Archive,
            format!("private archive {path}: {error}"),
        )
    }

    /// Updates the heartbeat, at most once a second.
    pub fn show_life(&mut self, now_ms: i64, shared: &SharedRecorder) {
        if let Err(error) = self.lock.heartbeat(now_ms) {
            shared.add_line(error.to_string());
        }
    }

    /// Writes an error to the archive's error log, for tools.
    pub fn record_error(&mut self, error: &LiveError) {
        // If this fails, the caller still receives the error itself.
        let _ = self
            .lock
            .record_error(SystemEpochClock.time_ms(), &error.to_string());
    }

    /// Marks the owner as ended in the mark file, and unlocks the archive.
    pub fn close(self) {
        // If the release fails, the next owner takes over the archive in the same way as after a kill.
        let _ = self.lock.release();
    }
}

/// Sleeps for `time`. Returns an error if the recorder is stopping.
fn pause(time: Duration, shared: &SharedRecorder, path: &Path) -> Result<(), PrivateError> {
    std::thread::sleep(time);
    if shared.is_stopping() {
        return Err(PrivateError::Io {
            doing: "wait for",
            path: path.to_owned(),
            source: std::io::ErrorKind::Interrupted.into(),
        });
    }
    Ok(())
}

fn open_error(error: PrivateError, open: &OpenArchive, shared: &SharedRecorder) -> LiveError {
    match error {
        _ if shared.is_stopping() => LiveError::closed(),
        PrivateError::Missing { path } => {
            let ranges: Vec<String> = open.known.iter().map(range_text).collect();
            let (path, ranges) = (path.display(), ranges.join(", "));
            let text = format!("private archive {path} is gone, with {ranges}; {REMEDY}");
            LiveError::new(LiveCode::DataLoss, text)
        }
        error => error.into(),
    }
}

fn range_text(known: &crate::private::KnownRecording) -> String {
    let crate::private::KnownRecording {
        recording_id,
        committed,
        told,
    } = known;
    match committed == told {
        // The number of bytes after `committed` is unknown.
        true => format!("recording {recording_id} after {committed}"),
        false => format!("recording {recording_id} from {committed} to {told}"),
    }
}
