//! [`ArchiveCore`]: conductor, recorder and replayer of an archive. Its owner provides the storage, the clocks and the
//! client.
//!
//! [`ArchiveStart`] sends its commands to the driver and never waits. So the simulator can start
//! archives with the same code as a real process.

use std::sync::Arc;
use std::sync::mpsc::channel;

use aeron_agent::{Agent, EpochClock, NanoClock};
use aeron_client::{Aeron, Counter, ExclusivePublication, PendingOperation};

use super::agents::ConductorAgent;
use super::conductor::{ArchiveConductor, ArchiveParts};
use super::context::{ArchiveChoices, ArchiveContext};
use super::control::{ControlSessions, ControlStreams, log_policy_of_file};
use super::counters::{
    ArchiveCounters, PendingCounters, TransferCounters, TransferMeter, is_archive_there,
};
use super::objects::{ObjectCopies, UnknownCopies};
use super::outlets::{ArchiveOutlets, Clocks};
use super::recording::{Recorder, RecordingEvents, Recordings};
use super::replay::{Replayer, Replays};
use super::replication::Replications;
use super::reports::ErrorReports;
use super::retention::{Retention, RetentionFileError, RetentionLog, load_policies};
use super::scrub::Scrubber;
use super::settings::{
    Security, control_streams, labels, object_settings, recording_events, recording_settings,
    replay_settings, replication_settings, scrub_settings, session_settings, store_options,
};
use super::startup::ArchiveStartError;
use crate::index::ArrivalClock;
use crate::objects::ArchiveObjects;
use crate::ownership::BootId;
use crate::retention::{Moment, RetentionClock};
use crate::storage::Storage;
use crate::store::{ArchiveStore, RecoveredRecording};

/// Function that marks the archive as ready and returns the receiver of its errors. The arguments
/// are the time in milliseconds since the epoch, and the counter of errors.
pub type OpenReports =
    Box<dyn FnOnce(i64, Counter) -> Result<Box<dyn ErrorReports>, ArchiveStartError> + Send>;

/// The storage, the client, the clocks and the other parts that an archive's owner provides.
pub struct ArchiveEnvironment<S> {
    /// Catalog and segment files. Only this archive changes them.
    pub storage: S,
    /// An Aeron client without a thread of its own. Only this archive uses it.
    pub aeron: Aeron,
    /// Id of the archive, unique among the archives of its driver.
    pub archive_id: i64,
    /// The wall clock.
    pub epoch_clock: Arc<dyn EpochClock>,
    /// The monotonic clock.
    pub nano_clock: Arc<dyn NanoClock>,
    /// Function that returns random numbers that cannot be guessed.
    pub random: Box<dyn FnMut() -> i64 + Send>,
    /// The current boot of the machine, if it is known.
    pub boot_id: Option<BootId>,
    /// Function that is called once, when all other parts are ready.
    pub reports: OpenReports,
}

/// An archive that is starting. Dropping it cancels the start.
pub struct ArchiveStart<S: Storage> {
    context: ArchiveContext,
    choices: ArchiveChoices,
    environment: Option<ArchiveEnvironment<S>>,
    objects: Option<ArchiveObjects>,
    step: StartStep<S>,
}

/// The step that the start is waiting for.
enum StartStep<S: Storage> {
    /// Waits for the end of another archive with the same id.
    ArchiveId {
        deadline_ns: i64,
    },
    Counters(PendingCounters),
    Streams(Box<OpenedStore<S>>),
}

/// The store is open, and the streams have been requested from the driver.
struct OpenedStore<S: Storage> {
    counters: ArchiveCounters,
    store: ArchiveStore<S>,
    recovered: Vec<RecoveredRecording>,
    events: Option<PendingOperation<ExclusivePublication>>,
    streams: ControlStreams,
    now_ms: i64,
}

/// An archive that is ready.
pub struct ArchiveCore<S: Storage + Clone> {
    pub(super) conductor: ArchiveConductor<S>,
    pub(super) sessions: ControlSessions,
    pub(super) recorder: Recorder<S>,
    pub(super) replayer: Replayer<S>,
}

impl<S: Storage + Clone> ArchiveStart<S> {
    /// Begins to start an archive. The directories and idle strategies of `context` are not used. Its
    /// threading mode only decides which counters are added, and their labels.
    ///
    /// # Errors
    /// The configuration is not valid.
    pub fn new(
        context: ArchiveContext,
        environment: ArchiveEnvironment<S>,
    ) -> Result<Self, ArchiveStartError> {
        let timeout_ns = environment.aeron.inter_service_timeout().as_nanos() as i64;
        let now_ns = environment.nano_clock.nano_time();
        let deadline_ns = now_ns.saturating_add(timeout_ns);
        Ok(Self {
            choices: context.conclude()?,
            context,
            environment: Some(environment),
            objects: None,
            step: StartStep::ArchiveId { deadline_ns },
        })
    }

    /// Sets the object storage to which the archive copies sealed segments; `None` for no object storage.
    #[must_use]
    pub fn with_objects(mut self, objects: Option<ArchiveObjects>) -> Self {
        self.objects = objects;
        self
    }

    /// Makes progress without waiting for the driver. Returns the archive when it is ready. Do not
    /// call it after it has returned the archive or an error.
    ///
    /// # Errors
    /// The driver does not serve the archive, or serves another archive with the same id. The store
    /// cannot be opened.
    ///
    /// # Panics
    /// If the start has already returned the archive. It may also panic after an error.
    pub fn poll(&mut self) -> Result<Option<ArchiveCore<S>>, ArchiveStartError> {
        let environment = self.environment.as_ref().expect("the start has not ended");
        environment.aeron.do_work();
        let now_ns = environment.nano_clock.nano_time();
        match &mut self.step {
            StartStep::ArchiveId { deadline_ns } => {
                let archive_id = environment.archive_id;
                if is_archive_there(&environment.aeron.counters_reader(), archive_id) {
                    return match now_ns >= *deadline_ns {
                        true => Err(ArchiveStartError::ArchiveIdInUse { archive_id }),
                        false => Ok(None),
                    };
                }
                let labels = labels(&self.context, archive_id);
                self.step = StartStep::Counters(ArchiveCounters::ask(&environment.aeron, &labels)?);
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
        let environment = self.environment.as_ref().expect("the start has not ended");
        let now_ms = environment.epoch_clock.time_ms();
        let options = store_options(&self.context, &self.choices, environment.boot_id);
        let (mut store, recovered) =
            ArchiveStore::open_with(environment.storage.clone(), options, now_ms, &mut || {
                self.context.run_driver();
                _ = environment.aeron.do_work()
            })?;
        store.set_arrival_clock(ArrivalClock::new(Arc::clone(&environment.epoch_clock)));
        Ok(OpenedStore {
            counters,
            store,
            recovered,
            events: recording_events(&environment.aeron, &self.context)?,
            streams: control_streams(&environment.aeron, &self.context)?,
            now_ms,
        })
    }

    fn finish(&mut self, events: RecordingEvents) -> Result<ArchiveCore<S>, ArchiveStartError> {
        let environment = self.environment.take().expect("the start has not ended");
        let over = StartStep::ArchiveId {
            deadline_ns: i64::MIN,
        };
        let StartStep::Streams(opened) = std::mem::replace(&mut self.step, over) else {
            unreachable!("the streams are the last step");
        };
        let parts = (environment, *opened, events, self.objects.take());
        ArchiveCore::new(&self.context, &self.choices, parts)
    }
}

impl<S: Storage> OpenedStore<S> {
    /// Returns the publisher of recording events when the driver has added its publication.
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
        (environment, opened, events, objects): (
            ArchiveEnvironment<S>,
            OpenedStore<S>,
            RecordingEvents,
            Option<ArchiveObjects>,
        ),
    ) -> Result<Self, ArchiveStartError> {
        let ArchiveEnvironment {
            aeron,
            archive_id,
            epoch_clock: epoch,
            nano_clock: nano,
            mut random,
            ..
        } = environment;
        let OpenedStore {
            counters,
            mut store,
            recovered,
            streams,
            now_ms,
            ..
        } = opened;
        let security = Security::of(context, choices)?;
        // The first session id is random, so that a restarted archive does not use the session
        // ids of the previous process.
        let first_id = random() & i64::from(i32::MAX);
        let sessions = ControlSessions::new(
            session_settings(context, archive_id),
            streams,
            nano.nano_time(),
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
        let (copier, fetcher) = objects.map(|it| (it.copier, it.fetcher)).unzip();
        let replayer = Replayer::new(environment.storage, commands_to_replayer, replayer_events)
            .fetch_by(fetcher)
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
        let mut reports = (environment.reports)(now_ms, counters.errors.clone())?;
        for recording in recovered.iter().filter(|recording| recording.is_torn) {
            reports.report(now_ms, &recording.to_string());
        }
        for fault in store.faults() {
            reports.report(now_ms, &fault.to_string());
        }
        if let Some(damage) = store.extensions().damage() {
            reports.report(now_ms, &damage.to_string());
        }
        compact_catalog(&mut store, now_ms, reports.as_mut());
        let started_ns = nano.nano_time();
        let unknown = match copier.is_some() {
            true => UnknownCopies::new(store.recordings().map(|it| it.recording_id), started_ns),
            false => UnknownCopies::default(),
        };
        let start = Moment {
            wall_ms: epoch.time_ms(),
            now_ns: started_ns,
        };
        let wait_ns = context.retention_clock_wait_ns;
        let clock = RetentionClock::new(start, store.earlier_time(), wait_ns);
        let outlets = ArchiveOutlets::new(counters, reports, Clocks { epoch, nano });
        let mut conductor = ArchiveConductor::new(ArchiveParts {
            archive_id,
            first_id,
            aeron,
            recordings: Recordings::new(
                recording_settings(context, archive_id),
                recorder_commands,
                events_of_recorder,
            ),
            replays,
            replications: Replications::new(replication_settings(context, archive_id)),
            retention: Retention::new(
                RetentionLog::new(store.storage().clone()),
                clock,
                context.step_sizes,
            ),
            objects: ObjectCopies::new(copier, object_settings(context), unknown),
            scrubber: Scrubber::new(scrub_settings(context, choices)),
            retention_file: context.retention_file.clone(),
            outlets,
            store,
        });
        if let Some(path) = &context.retention_file {
            let set = conductor.set_policies_of_file(load_policies(path)?);
            let set = set.map_err(|error| RetentionFileError {
                path: path.clone(),
                problem: error.message,
            })?;
            set.iter().for_each(log_policy_of_file);
        }
        conductor.resume_recordings();
        Ok(Self {
            conductor,
            sessions,
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
    /// Converts the archive to one agent that runs conductor, recorder and replayer.
    pub fn into_agent(self) -> impl Agent {
        let mut agent = ConductorAgent::new(self.conductor, self.sessions);
        agent.recorder = Some(self.recorder);
        agent.replayer = Some(self.replayer);
        agent
    }
}

/// Removes the catalog entries of deleted recordings if a compaction is due. If the compaction fails, for example
/// because the disk is full, the archive reports the error and runs with the old catalog.
fn compact_catalog<S: Storage + Clone>(
    store: &mut ArchiveStore<S>,
    now_ms: i64,
    reports: &mut dyn ErrorReports,
) {
    if store.due_compaction().is_some()
        && let Err(error) = store.compact(|_| false)
    {
        reports.report(now_ms, &format!("compaction of the catalog: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::memory_storage::{MemoryStorage, StorageFault};
    use crate::store::{NewRecording, RecordingActivity, StoreOptions};

    #[derive(Default)]
    struct Reports(Vec<String>);

    impl ErrorReports for Reports {
        fn report(&mut self, _: i64, error: &str) {
            self.0.push(error.to_owned());
        }

        fn report_client(&mut self, now_ms: i64, error: &str) {
            self.report(now_ms, error);
        }

        fn heartbeat(&mut self, _: i64) {}

        fn close(&mut self) {}
    }

    /// Records an empty stream. Returns the recording id.
    fn recorded(store: &mut ArchiveStore<MemoryStorage>) -> i64 {
        let session = store.start_recording(NewRecording::of_ipc(7, 8)).unwrap();
        let id = session.stream().recording_id();
        store.stop_recording(id, 0, 2).unwrap();
        id
    }

    #[test]
    fn a_failed_compaction_at_the_start_is_reported_and_the_archive_uses_the_old_catalog() {
        let storage = MemoryStorage::new();
        let options = StoreOptions {
            low_storage_space_threshold: 0,
            ..StoreOptions::default()
        };
        let open = || ArchiveStore::open(storage.clone(), options, 0).unwrap().0;
        let mut store = open();
        let kept = recorded(&mut store);
        for _ in 0..256 {
            let id = recorded(&mut store);
            let purge = store.purge_recording(id, &RecordingActivity::default());
            let mut purge = purge.unwrap();
            while purge.step(&mut store).unwrap() {}
        }
        drop(store);
        let (mut store, mut reports) = (open(), Reports::default());
        let full = StorageFault::Error(io::ErrorKind::StorageFull);
        storage.fail_at(storage.steps(), full);

        compact_catalog(&mut store, 7, &mut reports);

        let [report] = &reports.0[..] else {
            panic!("{:?}", reports.0);
        };
        assert!(
            report.starts_with("compaction of the catalog: "),
            "{report}"
        );
        assert_eq!(store.due_compaction(), Some(1));
        assert_eq!(recorded(&mut store), kept + 257);
        let ids: Vec<_> = store.recordings().map(|it| it.recording_id).collect();
        assert_eq!(ids, [kept, kept + 257]);

        compact_catalog(&mut store, 8, &mut reports);
        assert_eq!((store.due_compaction(), reports.0.len()), (None, 1));
    }
}
