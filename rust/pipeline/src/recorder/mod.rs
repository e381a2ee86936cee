//! The recorder: a thread that records what its subscriptions receive into the private archive of one query.
//!
//! The thread owns the client, its subscriptions and the archive, and runs them in one duty cycle. Whoever plans batches sees
//! how far the recordings go through [`StreamRecorder::recordings`], without stopping the thread, and tells it what was taken by a
//! queue. What is recorded stays readable whatever becomes of the media driver; an error is only said.

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
    ArchiveRoots, Gap, Known, MalformedNote, PrivateArchiveId, RecordingInfo, take_notes,
};

pub(crate) use self::agent::has_news;
pub use self::shared::Fault;
pub use self::statistics::{STATISTICS, Statistics};

use self::agent::RecorderAgent;
use self::shared::{LastWords, Phase, Shared};

/// Makes the settings of a client: called at the start, and again for every driver that is connected to.
pub type MakeContext = Box<dyn Fn() -> Result<Context, LiveError> + Send + Sync>;

/// What to record, and where.
pub struct RecorderSettings {
    /// Channel of all subscriptions.
    pub channel: String,
    /// Streams to subscribe to.
    pub stream_ids: Vec<i32>,
    /// How to connect to a media driver.
    pub make_context: MakeContext,
    /// Directories of private archives.
    pub roots: ArchiveRoots,
    /// Most bytes recorded and not yet committed.
    pub max_retained_bytes: u64,
    /// Whether a gap in a session is an error, and the end of the media driver too; else they are counted and the recorder goes
    /// on, with another driver if need be.
    pub fail_on_data_loss: bool,
    /// Whether rows have their arrival time; then losing those that a logged batch needs is data loss.
    pub needs_timestamp: bool,
}

/// Which archive to open. One that is not there is made if nothing is known of its recordings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenArchive {
    /// Its id.
    pub id: PrivateArchiveId,
    /// What the checkpoint says of its recordings.
    pub known: Vec<Known>,
}

/// What was opened.
#[derive(Debug, Clone)]
pub struct OpenedArchive {
    /// Where it is, for workers.
    pub location: ArchiveLocation,
    /// Recordings that were given up because they cannot be read.
    pub given_up: Vec<i64>,
}

/// A command of the planning thread to the recorder.
pub(crate) enum Command {
    /// What lies before these positions is not asked for again.
    Commit(Vec<(i64, i64)>),
    /// Spark has taken everything up to these positions, though it may ask for it again.
    SetTaken(Vec<(i64, i64)>),
    /// An earlier archive of the query is gone, with so many bytes that were taken and not committed, and more that nobody knows of.
    ArchiveLost { bytes: i64, reason: String },
}

/// A running recorder. Dropping it ends the thread. Usable from any thread.
pub struct StreamRecorder {
    shared: Arc<Shared>,
    commands: Sender<Command>,
    thread: std::sync::Mutex<Option<JoinHandle<()>>>,
}

impl StreamRecorder {
    /// Starts the thread, which opens the archive, then subscribes.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(settings: Arc<RecorderSettings>, open: OpenArchive) -> Result<Self, LiveError> {
        let shared = Arc::new(Shared::default());
        let (commands, queue) = channel();
        let agent_shared = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("aeron-spark-source".to_owned())
            .spawn(move || {
                let _words = LastWords(&agent_shared);
                RecorderAgent::run(settings, open, Arc::clone(&agent_shared), queue);
            })
            .map_err(|error| {
                LiveError::new(
                    LiveCode::Archive,
                    format!("no thread for the receiver: {error}"),
                )
            })?;
        Ok(Self {
            shared,
            commands,
            thread: Some(thread).into(),
        })
    }

    /// Waits at most `timeout` until the archive is open and the subscriptions are made; `None` when they are not yet. The
    /// archive counts as open also when no subscription could be made: [`fault`](Self::fault) then says why.
    ///
    /// # Errors
    /// The archive cannot be opened; the recorder has ended.
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

    /// Where the archive is.
    ///
    /// # Errors
    /// The recorder has ended, or has not opened it yet.
    pub fn location(&self) -> Result<ArchiveLocation, LiveError> {
        let opened = self.wait_until_open(Duration::ZERO)?;
        opened
            .map(|opened| opened.location)
            .ok_or_else(LiveError::closed)
    }

    /// The files of the archive, to be read.
    pub fn storage(&self) -> Directory {
        Directory::new(self.shared.path())
    }

    /// The recordings that exist, the oldest first.
    pub fn recordings(&self) -> Arc<[RecordingInfo]> {
        self.shared.recordings()
    }

    /// Waits at most `timeout` for something to be recorded or to go wrong, unless `is_due` says that it has.
    pub fn wait_for_data(&self, timeout: Duration, is_due: impl Fn(&[RecordingInfo]) -> bool) {
        self.shared.wait_for_data(timeout, is_due);
    }

    /// What goes wrong, as long as it does.
    pub fn fault(&self) -> Option<Fault> {
        self.shared.fault()
    }

    /// The latest ranges that were not recorded, the oldest first.
    pub fn gaps(&self) -> Arc<[Gap]> {
        self.shared.gaps()
    }

    /// Statistics shown in the progress report.
    pub fn statistics(&self) -> &Statistics {
        &self.shared.statistics
    }

    /// Counts what cannot be read any more, and says so in the log.
    pub(crate) fn count_loss(&self, bytes: i64, line: String) {
        self.shared.statistics.lost_bytes.add(bytes);
        self.shared.add_line(line);
    }

    /// Counts what workers dropped as malformed of the batches between two offsets, from the first one on if there is none before.
    pub(crate) fn count_malformed(&self, from: Option<&Offset>, to: &Offset) {
        let position = |offset: &Offset, note: &MalformedNote| offset.position(note.recording_id);
        let counted = take_notes(&self.storage(), |note| {
            let is_counted = from.is_some_and(|from| position(from, note) >= Some(note.to));
            !is_counted && position(to, note) >= Some(note.to)
        });
        match counted {
            Ok(count) => {
                let count = i64::try_from(count).unwrap_or(i64::MAX);
                self.shared.statistics.malformed.add(count);
            }
            Err(error) => self.shared.add_line(format!(
                "what was dropped as malformed cannot be counted: {error}"
            )),
        }
    }

    /// Lines for the log that nobody has taken yet.
    pub fn take_lines(&self) -> Vec<String> {
        self.shared.take_lines()
    }

    /// Lets go what lies before these positions.
    pub fn commit(&self, offsets: &[RecordingOffset]) {
        self.send(Command::Commit(positions(offsets)));
    }

    /// Says how far Spark has taken the recordings.
    pub fn set_taken(&self, offsets: &[RecordingOffset]) {
        self.send(Command::SetTaken(positions(offsets)));
    }

    /// Takes over what was lost with an earlier archive of the query.
    pub(crate) fn add_lost_archive(&self, bytes: i64, reason: String) {
        self.send(Command::ArchiveLost { bytes, reason });
    }

    fn send(&self, command: Command) {
        // A recorder that has ended has nothing to do with it any more.
        let _ = self.commands.send(command);
    }

    /// Stops the recordings, removes the subscriptions and gives the archive free; returns when all that is done. Idempotent.
    pub fn close(&self) {
        self.shared.stop();
        let thread = self.thread.lock().map(|mut thread| thread.take());
        if let Ok(Some(thread)) = thread {
            // A panic of the thread was printed by it; the archive is free all the same.
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
