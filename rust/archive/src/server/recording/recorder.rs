//! [`Recorder`]: the agent that runs the recording sessions.

use std::sync::mpsc::{Receiver, Sender};

use super::events::RecordingEvents;
use super::session::{RecordingSession, SessionProgress};
use crate::recorder::RecorderError;
use crate::server::ArchiveError;
use crate::server::counters::TransferMeter;
use crate::storage::Storage;

/// A command of the conductor to the recorder.
pub(in crate::server) enum RecorderCommand<S: Storage> {
    /// Begin to record.
    Record(Box<RecordingSession<S>>),
    /// End a recording at its current position.
    Stop {
        /// Recording id.
        recording_id: i64,
    },
}

/// An event of the recorder for the conductor.
#[derive(Debug)]
pub(in crate::server) enum RecorderEvent {
    /// A recording ended. The recorder writes no more into its files.
    Ended(EndedRecording),
    /// A recording has entered a new segment.
    NewSegment,
    /// A recording continues without an index.
    IndexLost {
        /// Recording id.
        recording_id: i64,
        /// Reason.
        error: RecorderError,
    },
}

/// A recording that ended.
#[derive(Debug)]
pub(in crate::server) struct EndedRecording {
    /// Recording id.
    pub recording_id: i64,
    /// Position after the last byte.
    pub position: i64,
    /// Reason if the recording ended before its image did.
    pub error: Option<ArchiveError>,
}

/// Runs recording sessions. Only one thread uses it at a time.
pub(in crate::server) struct Recorder<S: Storage> {
    commands: Receiver<RecorderCommand<S>>,
    events: Sender<RecorderEvent>,
    sessions: Vec<RecordingSession<S>>,
    recording_events: RecordingEvents,
    meter: TransferMeter,
    buffer: Vec<u8>,
}

impl<S: Storage> Recorder<S> {
    /// Creates a recorder without recordings.
    pub fn new(
        commands: Receiver<RecorderCommand<S>>,
        events: Sender<RecorderEvent>,
        recording_events: RecordingEvents,
        meter: TransferMeter,
    ) -> Self {
        Self {
            meter,
            recording_events,
            commands,
            events,
            sessions: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Runs one duty cycle, in which each session records at most one block. Returns the work count.
    pub fn do_work(&mut self) -> usize {
        let mut work = self.take_commands();
        for at in (0..self.sessions.len()).rev() {
            let (session, buffer) = (&mut self.sessions[at], &mut self.buffer);
            let progress = self.meter.measure(|| {
                let progress = session.do_work(buffer);
                let bytes = progress.recorded_bytes();
                (progress, bytes)
            });
            match progress {
                SessionProgress::Recorded(bytes) => {
                    let session = &mut self.sessions[at];
                    session.report_progress(&mut self.recording_events);
                    if session.take_new_segment() {
                        let _ = self.events.send(RecorderEvent::NewSegment);
                    }
                    if let Some(error) = session.take_index_error() {
                        let recording_id = session.recording_id();
                        let event = RecorderEvent::IndexLost {
                            recording_id,
                            error,
                        };
                        let _ = self.events.send(event);
                    }
                    work += bytes;
                }
                SessionProgress::EndOfImage => self.end(at, None),
                SessionProgress::Failed(error) => self.end(at, Some(error)),
            }
        }
        work
    }

    /// Ends all recordings at their current positions, closes their files, and reports them.
    pub fn stop_all(&mut self) {
        while let Some(last) = self.sessions.len().checked_sub(1) {
            self.end(last, None);
        }
    }

    fn take_commands(&mut self) -> usize {
        let mut count = 0;
        while let Ok(command) = self.commands.try_recv() {
            count += 1;
            match command {
                RecorderCommand::Record(session) => {
                    debug_assert!(
                        self.sessions
                            .iter()
                            .all(|other| other.recording_id() != session.recording_id()),
                        "two sessions must not write into recording {}",
                        session.recording_id()
                    );
                    session.report_started(&mut self.recording_events);
                    self.sessions.push(*session);
                }
                RecorderCommand::Stop { recording_id } => {
                    let found =
                        |session: &RecordingSession<S>| session.recording_id() == recording_id;
                    if let Some(at) = self.sessions.iter().position(found) {
                        self.end(at, None);
                    }
                }
            }
        }
        count
    }

    fn end(&mut self, at: usize, error: Option<ArchiveError>) {
        let mut session = self.sessions.swap_remove(at);
        session.finish_index();
        session.report_stopped(&mut self.recording_events);
        // An error of `send` is ignored: it means that the conductor has ended. Then recovery finds the stop position.
        let _ = self.events.send(RecorderEvent::Ended(EndedRecording {
            recording_id: session.recording_id(),
            position: session.recorded_position(),
            error,
        }));
    }
}
