//! The recorder: a thread that records the received streams of one query into its private archive.
//!
//! The thread owns the client, the subscriptions and the archive, and runs them in one duty cycle. A planning thread
//! reads the recorded positions through [`StreamRecorder::recordings`] without stopping the recorder. Through a queue,
//! the planning thread tells the recorder the positions up to which Spark has taken the data. Recorded data stays
//! readable if the media driver stops. It also stays readable after an error of the recorder, which
//! [`StreamRecorder::fault`] returns.

mod agent;
mod connection;
mod counters;
mod ledger;
mod query_archive;
mod recorded;
mod shared;
mod statistics;

use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use aeron_archive::storage::Directory;
use aeron_client::Context;

use crate::error::{LiveCode, LiveError};
use crate::offsets::{Offset, RecordingOffset};
use crate::partition::ArchiveLocation;
use crate::private::{
    ArchiveRoots, KnownRecording, PrivateArchiveId, RecordingGap, RecordingInfo, RowNotes,
    take_notes,
};

pub(crate) use self::agent::has_new_messages;
pub use self::shared::RecorderFault;
pub use self::statistics::{STATISTICS, Statistics};

use self::agent::RecorderAgent;
use self::shared::{PanicReport, Phase, SharedRecorder};

/// Creates the settings of a client. Called at the start, and again before each new connection to a driver.
pub type MakeContext = Box<dyn Fn() -> Result<Context, LiveError> + Send + Sync>;

/// Settings of a recorder.
pub struct RecorderSettings {
    /// Channel of all subscriptions.
    pub channel: String,
    /// Streams to subscribe to.
    pub stream_ids: Vec<i32>,
    /// Creates the settings of the client that connects to a media driver.
    pub make_context: MakeContext,
    /// Directories of private archives.
    pub roots: ArchiveRoots,
    /// Maximum number of bytes that are recorded and not yet committed.
    pub max_retained_bytes: u64,
    /// Whether a gap in a session or the end of the media driver is an error. If `false`, the loss is counted and the
    /// recorder continues, with another driver if necessary.
    pub fail_on_data_loss: bool,
    /// Whether rows have an arrival time. If so, the loss of the arrival times of a planned batch counts as data loss.
    pub needs_timestamp: bool,
}

/// The archive to open. If the archive is missing and `known` is empty, the archive is created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenArchive {
    /// Id of the archive.
    pub id: PrivateArchiveId,
    /// Recordings of the archive that the checkpoint names.
    pub known: Vec<KnownRecording>,
}

/// Result of opening an archive.
#[derive(Debug, Clone)]
pub struct OpenedArchive {
    /// Location of the archive, for workers.
    pub location: ArchiveLocation,
    /// Recordings that were abandoned because they cannot be read.
    pub given_up: Vec<i64>,
}

/// A command of the planning thread to the recorder.
pub(crate) enum Command {
    /// Spark never requests the data before these positions again.
    Commit(Vec<(i64, i64)>),
    /// Spark has taken all data up to these positions, but may request it again.
    SetTaken(Vec<(i64, i64)>),
    /// An earlier archive of the query is lost. Of its data, `bytes` bytes were taken and not committed. An unknown
    /// number of further bytes is lost too.
    ArchiveLost { bytes: i64, reason: String },
}

/// A running recorder. Dropping the value ends the thread. Usable from any thread.
pub struct StreamRecorder {
    shared: Arc<SharedRecorder>,
    commands: Sender<Command>,
    thread: std::sync::Mutex<Option<JoinHandle<()>>>,
}

impl StreamRecorder {
    /// Starts the thread. The thread opens the archive and then subscribes.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(settings: Arc<RecorderSettings>, open: OpenArchive) -> Result<Self, LiveError> {
        let shared = Arc::new(SharedRecorder::default());
        let (commands, queue) = channel();
        let agent_shared = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("aeron-spark-source".to_owned())
            .spawn(move || {
                let _words = PanicReport(&agent_shared);
                RecorderAgent::run(settings, open, Arc::clone(&agent_shared), queue);
            })
            .map_err(|error| {
                LiveError::new(
                    LiveCode::Archive,
                    format!("no thread for the recorder: {error}"),
                )
            })?;
        Ok(Self {
            shared,
            commands,
            thread: Some(thread).into(),
        })
    }

    /// Waits until the archive is open and the subscriptions are made. Returns `None` after `timeout`. If the client
    /// cannot connect or subscribe, the archive still counts as open, and [`fault`](Self::fault) returns the error.
    ///
    /// # Errors
    /// The archive cannot be opened, or the recorder has ended.
    pub fn wait_until_open(&self, timeout: Duration) -> Result<Option<OpenedArchive>, LiveError> {
        let state = self
            .shared
            .wait(timeout, |state| !matches!(state.phase, Phase::Opening));
        match &state.phase {
            Phase::Opening => Ok(None),
            Phase::Open(opened) => Ok(Some(opened.clone())),
            Phase::Ended(error) => Err(error.clone()),
        }
    }

    /// Returns the location of the archive.
    ///
    /// # Errors
    /// The recorder has ended, or has not opened the archive yet.
    pub fn location(&self) -> Result<ArchiveLocation, LiveError> {
        let opened = self.wait_until_open(Duration::ZERO)?;
        opened
            .map(|opened| opened.location)
            .ok_or_else(LiveError::closed)
    }

    /// Returns the archive's directory, for reading.
    pub fn storage(&self) -> Directory {
        Directory::new(self.shared.path())
    }

    /// Returns the existing recordings, oldest first.
    pub fn recordings(&self) -> Arc<[RecordingInfo]> {
        self.shared.recordings()
    }

    /// Waits at most `timeout` until `is_due` returns `true` or there is a fault. `is_due` is called again after new
    /// data.
    pub fn wait_for_data(&self, timeout: Duration, is_due: impl Fn(&[RecordingInfo]) -> bool) {
        self.shared.wait_for_data(timeout, is_due);
    }

    /// Returns the current fault, if there is one.
    pub fn fault(&self) -> Option<RecorderFault> {
        self.shared.fault()
    }

    /// Returns the latest ranges that were not recorded, oldest first.
    pub fn gaps(&self) -> Arc<[RecordingGap]> {
        self.shared.gaps()
    }

    /// Returns the statistics that the progress report shows.
    pub fn statistics(&self) -> &Statistics {
        &self.shared.statistics
    }

    /// Counts bytes that cannot be read any more, and logs the loss.
    pub(crate) fn count_loss(&self, bytes: i64, line: String) {
        self.shared.statistics.lost_bytes.add(bytes);
        self.shared.add_line(line);
    }

    /// Counts the messages and values that are not in the rows of the batches after `from` and up to `to`. If `from` is
    /// `None`, counts from the first batch.
    pub(crate) fn count_notes(&self, from: Option<&Offset>, to: &Offset) {
        let position = |offset: &Offset, note: &RowNotes| offset.position(note.recording_id);
        let counted = take_notes(&self.storage(), |note| {
            let is_counted = from.is_some_and(|from| position(from, note) >= Some(note.to));
            !is_counted && position(to, note) >= Some(note.to)
        });
        match counted {
            Ok(counts) => {
                let number = |count| i64::try_from(count).unwrap_or(i64::MAX);
                let statistics = &self.shared.statistics;
                statistics.malformed.add(number(counts.malformed));
                statistics.skipped.add(number(counts.skipped));
                statistics.unknown_enums.add(number(counts.unknown));
            }
            Err(error) => self.shared.add_line(format!(
                "malformed and skipped messages cannot be counted: {error}"
            )),
        }
    }

    /// Removes and returns the pending log lines.
    pub fn take_lines(&self) -> Vec<String> {
        self.shared.take_lines()
    }

    /// Allows the recorder to delete the data before these positions.
    pub fn commit(&self, offsets: &[RecordingOffset]) {
        self.send(Command::Commit(positions(offsets)));
    }

    /// Tells the recorder the positions up to which Spark has taken the recordings.
    pub fn set_taken(&self, offsets: &[RecordingOffset]) {
        self.send(Command::SetTaken(positions(offsets)));
    }

    /// Adds the loss of an earlier archive of the query.
    pub(crate) fn add_lost_archive(&self, bytes: i64, reason: String) {
        self.send(Command::ArchiveLost { bytes, reason });
    }

    fn send(&self, command: Command) {
        // A recorder that has ended ignores commands.
        let _ = self.commands.send(command);
    }

    /// Stops the recordings, removes the subscriptions and unlocks the archive. Returns after the thread has ended.
    /// Idempotent.
    pub fn close(&self) {
        self.shared.stop();
        let thread = self.thread.lock().map(|mut thread| thread.take());
        if let Ok(Some(thread)) = thread {
            // If the thread has panicked, the panic was already printed and the archive is unlocked.
            let _ = thread.join();
        }
    }
}

impl Drop for StreamRecorder {
    fn drop(&mut self) {
        self.close();
    }
}

fn positions(offsets: &[RecordingOffset]) -> Vec<(i64, i64)> {
    let position = |offset: &RecordingOffset| (offset.recording_id, offset.position);
    offsets.iter().map(position).collect()
}
