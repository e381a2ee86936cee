//! [`Replayer`]: the agent that runs the replay sessions.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};

use aeron_agent::NanoClock;

use super::segment_reads::SegmentReads;
use super::session::{NewReplay, ReplayEnd, ReplayProgress, ReplaySession};
use crate::objects::SegmentFetcher;
use crate::storage::Storage;

/// A command of the conductor to the replayer.
pub(in crate::server) enum ReplayerCommand {
    /// Begin a replay.
    Replay(Box<NewReplay>),
    /// Abort a replay.
    Stop {
        /// Id of the replay.
        replay_session_id: i64,
    },
    /// Abort all replays, or all replays of one recording.
    StopAll {
        /// Recording id; `None` for all recordings.
        recording_id: Option<i64>,
    },
}

/// An event of the replayer for the conductor.
#[derive(Debug)]
pub(in crate::server) enum ReplayerEvent {
    /// A replay has opened the segment file of its first position.
    Started {
        /// Id of the replay.
        replay_session_id: i64,
    },
    /// A replay has ended, and its file is closed.
    Ended {
        /// Id of the replay.
        replay_session_id: i64,
        /// Reason of the end.
        end: ReplayEnd,
    },
}

/// Runs replay sessions. Only one thread uses it at a time.
pub(in crate::server) struct Replayer<S: Storage> {
    reads: SegmentReads<S>,
    commands: Receiver<ReplayerCommand>,
    events: Sender<ReplayerEvent>,
    sessions: Vec<ReplaySession<S>>,
}

impl<S: Storage> Replayer<S> {
    /// Creates a replayer of the recordings in `storage`, without replays.
    pub fn new(
        storage: S,
        commands: Receiver<ReplayerCommand>,
        events: Sender<ReplayerEvent>,
    ) -> Self {
        Self {
            reads: SegmentReads::new(storage),
            commands,
            events,
            sessions: Vec::new(),
        }
    }

    /// Makes the replayer use `fetcher` for segments that are only in object storage.
    pub fn fetch_by(mut self, fetcher: Option<Box<dyn SegmentFetcher>>) -> Self {
        if let Some(fetcher) = fetcher {
            self.reads.fetch_by(fetcher);
        }
        self
    }

    /// Makes the replayer call `on_read` after each read of a segment file, with the number of
    /// bytes and the duration in nanoseconds.
    pub fn measure_reads(
        mut self,
        clock: Arc<dyn NanoClock>,
        on_read: impl FnMut(usize, i64) + Send + 'static,
    ) -> Self {
        self.reads.measure(clock, on_read);
        self
    }

    /// Runs one duty cycle, in which each replay sends at most one block and padding. Returns the work count.
    pub fn do_work(&mut self, now_ns: i64) -> usize {
        let mut work = self.take_commands();
        for at in (0..self.sessions.len()).rev() {
            let session = &mut self.sessions[at];
            match session.do_work(&mut self.reads, now_ns) {
                ReplayProgress::Worked(count) => work += count,
                ReplayProgress::Started => {
                    work += 1;
                    let replay_session_id = session.replay_session_id();
                    self.tell(ReplayerEvent::Started { replay_session_id });
                }
                ReplayProgress::Ended(end) => {
                    work += 1;
                    self.end(at, end);
                }
            }
        }
        work
    }

    /// Aborts all replays, closes their files, and reports them.
    pub fn stop_all(&mut self) {
        self.abort(|_| true);
    }

    fn take_commands(&mut self) -> usize {
        let mut count = 0;
        while let Ok(command) = self.commands.try_recv() {
            count += 1;
            match command {
                ReplayerCommand::Replay(new) => self.sessions.push(ReplaySession::new(*new)),
                ReplayerCommand::Stop { replay_session_id } => {
                    self.abort(|session| session.replay_session_id() == replay_session_id);
                }
                ReplayerCommand::StopAll { recording_id } => {
                    self.abort(|session| {
                        recording_id.is_none_or(|id| id == session.recording_id())
                    });
                }
            }
        }
        count
    }

    fn abort(&mut self, is_aborted: impl Fn(&ReplaySession<S>) -> bool) {
        for at in (0..self.sessions.len()).rev() {
            if is_aborted(&self.sessions[at]) {
                self.end(at, ReplayEnd::Aborted);
            }
        }
    }

    fn end(&mut self, at: usize, end: ReplayEnd) {
        let replay_session_id = self.sessions.swap_remove(at).replay_session_id();
        self.tell(ReplayerEvent::Ended {
            replay_session_id,
            end,
        });
    }

    fn tell(&self, event: ReplayerEvent) {
        // An error is ignored: if the conductor has ended, the archive has ended, and all its publications are closed.
        let _ = self.events.send(event);
    }
}
