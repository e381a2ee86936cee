//! [`ArchiveCore`]: conductor, recorder and replayer of an archive, on a storage, clocks and a client that its owner brings.
//!
//! [`ArchiveStart`] asks the driver for what an archive needs and never waits, so that the simulator starts archives as production does.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use aeron_agent::{Agent, EpochClock, NanoClock};
use aeron_client::{Aeron, Counter, ExclusivePublication, PendingOperation};

use super::agents::ConductorAgent;
use super::assembly::{
    Security, control_streams, labels, recording_events, replication_settings, session_settings,
    store_options,
};
use super::conductor::{ArchiveConductor, Clocks};
use super::context::{ArchiveChoices, ArchiveContext};
use super::control::ControlStreams;
use super::counters::{
    ArchiveCounters, PendingCounters, TransferCounters, TransferMeter, is_archive_there,
};
use super::maintenance::Deletions;
use super::outbox::Outbox;
use super::recording::{Recorder, RecordingEvents, RecordingSettings, Recordings};
use super::replay::{ReplaySettings, Replayer, Replays};
use super::replaying::HeldReplays;
use super::replication::Replications;
use super::reports::ErrorReports;
use super::sessions::ControlSessions;
use super::startup::ArchiveStartError;
use crate::storage::Storage;
use crate::store::ArchiveStore;

/// Says that the archive is up, at an epoch time in milliseconds, and returns where its errors go. The counter counts them.
pub type OpenReports =
    Box<dyn FnOnce(i64, Counter) -> Result<Box<dyn ErrorReports>, ArchiveStartError> + Send>;

/// What an archive stands on.
pub struct ArchiveSurroundings<S> {
    /// Catalog and segment files. Nobody else changes them.
    pub storage: S,
    /// A client without a thread, for this archive alone.
    pub aeron: Aeron,
    /// Id of the archive among those of its driver.
    pub archive_id: i64,
    /// The wall clock.
    pub epoch_clock: Arc<dyn EpochClock>,
    /// The monotonic clock.
    pub nano_clock: Arc<dyn NanoClock>,
    /// Returns numbers that nobody can guess.
    pub random: Box<dyn FnMut() -> i64 + Send>,
    /// Called once, when everything else is ready.
    pub reports: OpenReports,
}

/// An archive that starts. Dropping it ends the attempt.
pub struct ArchiveStart<S: Storage> {
    context: ArchiveContext,
    choices: ArchiveChoices,
    surroundings: Option<ArchiveSurroundings<S>>,
    step: StartStep<S>,
}

/// What the archive waits for.
enum StartStep<S: Storage> {
    /// Another archive with the same id may be going.
    ArchiveId {
        deadline_ns: i64,
    },
    Counters(PendingCounters),
    Streams(Box<OpenedStore<S>>),
}

/// The store is open, and the driver was asked for the streams.
struct OpenedStore<S: Storage> {
    counters: ArchiveCounters,
    store: ArchiveStore<S>,
    events: Option<PendingOperation<ExclusivePublication>>,
    streams: ControlStreams,
    now_ms: i64,
}

/// An archive that is ready.
pub struct ArchiveCore<S: Storage + Clone> {
    pub(super) conductor: ArchiveConductor<S>,
    pub(super) recorder: Recorder<S>,
    pub(super) replayer: Replayer<S>,
}

impl<S: Storage + Clone> ArchiveStart<S> {
    /// Begins to start an archive. Directories, threading mode and idle strategies of `context` mean nothing here.
    ///
    /// # Errors
    /// The configuration is refused.
    pub fn new(
        context: ArchiveContext,
        surroundings: ArchiveSurroundings<S>,
    ) -> Result<Self, ArchiveStartError> {
        let timeout_ns = surroundings.aeron.inter_service_timeout().as_nanos() as i64;
        let deadline_ns = surroundings.nano_clock.nano_time() + timeout_ns;
        Ok(Self {
            choices: context.conclude()?,
            context,
            surroundings: Some(surroundings),
            step: StartStep::ArchiveId { deadline_ns },
        })
    }

    /// Makes progress without waiting for the driver. Returns the archive once it is ready; must not be called after that, or after an
    /// error.
    ///
    /// # Errors
    /// The driver does not serve the archive or serves one with the same id, or the store cannot be opened.
    ///
    /// # Panics
    /// If the start is over.
    pub fn poll(&mut self) -> Result<Option<ArchiveCore<S>>, ArchiveStartError> {
        let surroundings = self.surroundings.as_ref().expect("the start goes on");
        surroundings.aeron.do_work();
        let now_ns = surroundings.nano_clock.nano_time();
        match &mut self.step {
            StartStep::ArchiveId { deadline_ns } => {
                let archive_id = surroundings.archive_id;
                if is_archive_there(surroundings.aeron.counters_reader(), archive_id) {
                    return match now_ns >= *deadline_ns {
                        true => Err(ArchiveStartError::ArchiveIdInUse { archive_id }),
                        false => Ok(None),
                    };
                }
                let labels = labels(&self.context, archive_id);
                self.step =
                    StartStep::Counters(ArchiveCounters::ask(&surroundings.aeron, &labels)?);
            }
            StartStep::Counters(pending) => {
                if let Some(counters) = pending.poll(now_ns)? {
                    self.step = StartStep::Streams(Box::new(self.open_store(counters)?));
                }
            }
            StartStep::Streams(opened) => {
                if let Some(events) = opened.poll_events()?
                    && opened.streams.poll_ready()?
                {
                    return self.finish(events).map(Some);
                }
            }
        }
        Ok(None)
    }

    fn open_store(&self, counters: ArchiveCounters) -> Result<OpenedStore<S>, ArchiveStartError> {
        let surroundings = self.surroundings.as_ref().expect("the start goes on");
        let now_ms = surroundings.epoch_clock.time_ms();
        let options = store_options(&self.context, &self.choices);
        let (store, _) = ArchiveStore::open(surroundings.storage.clone(), options, now_ms)?;
        Ok(OpenedStore {
            counters,
            store,
            events: recording_events(&surroundings.aeron, &self.context)?,
            streams: control_streams(&surroundings.aeron, &self.context)?,
            now_ms,
        })
    }

    fn finish(&mut self, events: RecordingEvents) -> Result<ArchiveCore<S>, ArchiveStartError> {
        let surroundings = self.surroundings.take().expect("the start goes on");
        let over = StartStep::ArchiveId {
            deadline_ns: i64::MIN,
        };
        let StartStep::Streams(opened) = std::mem::replace(&mut self.step, over) else {
            unreachable!("the streams are the last step");
        };
        ArchiveCore::new(&self.context, &self.choices, surroundings, *opened, events)
    }
}

impl<S: Storage> OpenedStore<S> {
    /// The recording events, once they can be told.
    fn poll_events(&mut self) -> Result<Option<RecordingEvents>, ArchiveStartError> {
        Ok(match &mut self.events {
            None => Some(RecordingEvents::default()),
            Some(adding) => {
                let publication = adding.poll()?;
                publication.map(|publication| RecordingEvents::new(Some(publication)))
            }
        })
    }
}

impl<S: Storage + Clone> ArchiveCore<S> {
    fn new(
        context: &ArchiveContext,
        choices: &ArchiveChoices,
        surroundings: ArchiveSurroundings<S>,
        opened: OpenedStore<S>,
        events: RecordingEvents,
    ) -> Result<Self, ArchiveStartError> {
        let ArchiveSurroundings {
            aeron,
            archive_id,
            epoch_clock: epoch,
            nano_clock: nano,
            mut random,
            ..
        } = surroundings;
        let OpenedStore {
            counters,
            store,
            streams,
            now_ms,
            ..
        } = opened;
        let security = Security::of(choices)?;
        let sessions = ControlSessions::new(
            session_settings(context, archive_id),
            // The ids of an archive that is started again differ from those before.
            random() & i64::from(i32::MAX),
            security.authenticator,
            security.authorisation,
        );
        let (commands, commands_to_replayer) = channel();
        let (replayer_events, events_of_replayer) = channel();
        let replays = Replays::new(
            replay_settings(context, choices),
            commands,
            events_of_replayer,
            random,
        );
        let (reads, clock) = (counters.reads.clone(), Arc::clone(&nano));
        let replayer = Replayer::new(surroundings.storage, commands_to_replayer, replayer_events)
            .measure_reads(clock, move |bytes, ns| reads.note(bytes, ns));
        let (recorder_commands, commands_to_recorder) = channel();
        let (recorder_events, events_of_recorder) = channel();
        let meter =
            |counters: &TransferCounters| TransferMeter::new(counters.clone(), Arc::clone(&nano));
        let recorder = Recorder::new(
            commands_to_recorder,
            recorder_events,
            events,
            meter(&counters.writes),
        );
        let recording_settings = RecordingSettings {
            archive_id,
            max_concurrent_recordings: context.max_concurrent_recordings as usize,
            block_limit: context.file_io_max_length,
        };
        let conductor = ArchiveConductor {
            archive_id,
            recordings: Recordings::new(recording_settings, recorder_commands, events_of_recorder),
            replays,
            held_replays: HeldReplays::default(),
            replications: Replications::new(replication_settings(context, archive_id)),
            deletions: Deletions::default(),
            sessions,
            outbox: Outbox::default(),
            reports: (surroundings.reports)(now_ms, counters.errors.clone())?,
            now_ns: nano.nano_time(),
            clocks: Clocks { epoch, nano },
            aeron,
            store,
            streams,
            counters,
            now_ms,
        };
        Ok(Self {
            conductor,
            recorder,
            replayer,
        })
    }
}

impl<S> ArchiveCore<S>
where
    S: Storage + Clone + Send + 'static,
    S::File: Send,
{
    /// The archive in one agent, as in the modes SHARED and INVOKER.
    pub fn into_agent(self) -> impl Agent {
        ConductorAgent {
            conductor: self.conductor,
            recorder: Some(self.recorder),
            replayer: Some(self.replayer),
            is_terminated: Arc::new(AtomicBool::new(false)),
        }
    }
}

fn replay_settings(context: &ArchiveContext, choices: &ArchiveChoices) -> ReplaySettings {
    ReplaySettings {
        max_concurrent_replays: context.max_concurrent_replays as usize,
        connect_timeout_ns: context.connect_timeout_ns,
        linger_timeout_ns: context.replay_linger_timeout_ns,
        file_io_max_length: context.file_io_max_length as i32,
        checksum: choices.replay_checksum,
    }
}
