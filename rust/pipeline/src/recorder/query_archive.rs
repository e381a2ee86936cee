//! [`QueryArchive`]: the private archive of a recorder, opened, locked and kept alive.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aeron_agent::{EpochClock, SystemEpochClock};
use aeron_archive::storage::Directory;

use super::ledger::Ledger;
use super::shared::Shared;
use super::{OpenArchive, OpenedArchive, RecorderSettings};
use crate::error::{LiveCode, LiveError};
use crate::machine;
use crate::partition::ArchiveLocation;
use crate::private::{
    DirectoryLock, LockRequest, LockedArchive, LostRange, LostTimes, OpenReport, PrivateArchive,
    PrivateError,
};

/// What going on in spite of a loss needs.
const REMEDY: &str = "failOnDataLoss=false counts what is lost and goes on";

/// The private archive of one query, locked by this process.
pub(super) struct QueryArchive {
    /// Its recordings.
    pub archive: PrivateArchive<Directory>,
    /// What the query counts over all its runs.
    pub ledger: Ledger,
    lock: DirectoryLock,
    id: String,
    path: String,
}

impl QueryArchive {
    /// Opens or makes the archive. What is lost of it ends this with an error, or is given up.
    pub fn open(
        settings: &RecorderSettings,
        open: &OpenArchive,
        aeron_dir: &Path,
        shared: &Arc<Shared>,
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

    /// Gives up what is lost, unless that is an error; answers it by recording.
    fn accept(
        &mut self,
        report: OpenReport,
        settings: &RecorderSettings,
        shared: &Shared,
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

    /// Gives up a recording of which something is lost, with what is left of it.
    fn give_up(&mut self, recording_id: i64, shared: &Shared) -> Result<(), LiveError> {
        if self.archive.descriptor(recording_id).is_none() {
            return Ok(());
        }
        let left = self.archive.give_up(recording_id)?;
        if left > 0 {
            shared.statistics.lost_bytes.add(left);
            shared.add_line(format!(
                "recording {recording_id} is given up with the {left} bytes before that"
            ));
        }
        Ok(())
    }

    fn lose(
        &self,
        line: String,
        settings: &RecorderSettings,
        shared: &Shared,
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

    /// Which archive belongs to the query.
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

    /// Id of the archive.
    pub fn archive_id(&self) -> &str {
        &self.id
    }

    /// An error of the archive, with its directory.
    pub fn in_archive(&self, error: &impl Display) -> LiveError {
        let path = &self.path;
        LiveError::new(
            LiveCode::Archive,
            format!("private archive {path}: {error}"),
        )
    }

    /// Gives a sign of life; at most once a second does anything.
    pub fn show_life(&mut self, now_ms: i64, shared: &Shared) {
        if let Err(error) = self.lock.heartbeat(now_ms) {
            shared.add_line(error.to_string());
        }
    }

    /// Notes an error where tools look for it.
    pub fn record_error(&mut self, error: &LiveError) {
        // Whoever asks is told of the error itself.
        let _ = self
            .lock
            .record_error(SystemEpochClock.time_ms(), &error.to_string());
    }

    /// Says in the mark file that the owner has ended, and frees the lock.
    pub fn close(self) {
        // An archive that could not be ended in order is taken over like that of a killed owner.
        let _ = self.lock.release();
    }
}

/// Sleeps, unless the recorder is to stop.
fn pause(time: Duration, shared: &Shared, path: &Path) -> Result<(), PrivateError> {
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

fn open_error(error: PrivateError, open: &OpenArchive, shared: &Shared) -> LiveError {
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

fn range_text(known: &crate::private::Known) -> String {
    let crate::private::Known {
        recording_id,
        committed,
        told,
    } = known;
    match committed == told {
        // How much more it held nobody knows.
        true => format!("recording {recording_id} behind {committed}"),
        false => format!("recording {recording_id} from {committed} to {told}"),
    }
}
