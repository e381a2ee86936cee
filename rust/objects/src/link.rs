//! [`open_objects`]: starts the object thread, and connects it with the archive by queues. The queues for requests are
//! bounded; those for events and for outcomes of fetches are not.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aeron_archive::catalog::{CATALOG_FILE, Catalog, RecordingDescriptor};
use aeron_archive::objects::{
    ArchiveObjects, CopierEvent, FetchProgress, RecordingIdentity, SealedSegment, SegmentCopier,
    SegmentFetcher, manifest_name,
};
use aeron_archive::server::context::ArchiveContext;
use aeron_archive::storage::Directory;
use tokio::runtime::Builder;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Sender as RequestSender, channel as request_channel};

use crate::cache::FetchedSegment;
use crate::local::{
    check_location, keep_unreadable, read_manifest, remove_leftovers, write_location,
};
use crate::location::{ObjectLocation, ObjectStorage};
use crate::thread::{CopierRequest, Fetched, ThreadParts, known, run};

/// Capacity of the queues to the object thread.
const QUEUE_CAPACITY: usize = 64;
/// Time after which the outcome of a fetch is forgotten if no replay has taken it. A waiting replay asks in each duty
/// cycle.
const OUTCOME_AGE: Duration = Duration::from_secs(5);
/// Maximum time for which the closing archive waits for work that the runtime cannot cancel.
const END_TIMEOUT: Duration = Duration::from_secs(1);
const ENDED: &str = "the object thread has ended: restart the archive";

/// Opens the object storage of an archive, and starts its thread.
///
/// # Errors
/// A setting is not valid, the copies are in another storage, the catalog cannot be read, the thread cannot be started,
/// or the file system returns an error. It is not checked that the storage can be reached: copies are retried until
/// they succeed.
pub fn open_objects(context: &ArchiveContext) -> Result<ArchiveObjects, String> {
    let location = ObjectLocation::of(context);
    let storage = location.open()?;
    open_with(context, &location, storage)
}

/// Starts the object thread of an archive. `storage` may have any implementation. `location` is stored in the archive
/// directory, so that other processes find the copies.
///
/// # Errors
/// As [`open_objects`].
pub fn open_with(
    context: &ArchiveContext,
    location: &ObjectLocation,
    storage: ObjectStorage,
) -> Result<ArchiveObjects, String> {
    let directory = context.archive_dir.clone();
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    let recordings = recordings(&directory)?;
    let ids: BTreeSet<i64> = recordings.iter().map(|it| it.recording_id).collect();
    check_location(&directory, location)?;
    remove_leftovers(&directory, |id| ids.contains(&id)).map_err(failed)?;
    write_location(&directory, location).map_err(failed)?;
    let (events, copier_events) = channel();
    let (mut manifests, mut unlisted) = (Vec::new(), Vec::new());
    for recording in recordings {
        let manifest = read_manifest(&directory, recording.recording_id).map_err(failed)?;
        let identity = RecordingIdentity::of(&recording);
        match manifest {
            Some(Ok(manifest)) if manifest.identity() == identity => manifests.push(manifest),
            Some(Err(error)) => {
                let id = recording.recording_id;
                let kept = keep_unreadable(&directory, id).map_err(failed)?;
                let text = format!(
                    "{} {error}: it is kept as {kept}, and the copies are taken from the storage",
                    manifest_name(id)
                );
                let _ = events.send(CopierEvent::Failed { text });
                unlisted.push(recording);
            }
            _ => unlisted.push(recording),
        }
    }
    for manifest in &manifests {
        let _ = events.send(known(manifest));
    }
    let (copies, copy_requests) = request_channel(QUEUE_CAPACITY);
    let (fetches, fetch_requests) = request_channel(QUEUE_CAPACITY);
    let (fetched, fetch_results) = channel();
    let parts = ThreadParts {
        storage,
        directory: directory.clone(),
        concurrency: context.objects_concurrency.max(1) as usize,
        bytes_per_second: context.objects_rate,
        cache_bytes: context.objects_cache_bytes,
        low_bytes: context.low_storage_space_threshold,
        manifests,
        unlisted,
        copies: copy_requests,
        fetches: fetch_requests,
        events,
        fetched,
    };
    let thread = spawn(parts).map_err(|error| format!("cannot start a thread: {error}"))?;
    Ok(ArchiveObjects {
        copier: Box::new(ObjectCopier {
            requests: Some(copies),
            events: copier_events,
            is_end_reported: false,
            thread: Some(thread),
        }),
        fetcher: Box::new(ObjectFetcher {
            requests: fetches,
            results: fetch_results,
            states: HashMap::new(),
        }),
    })
}

fn spawn(parts: ThreadParts) -> std::io::Result<JoinHandle<()>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let body = move || {
        runtime.block_on(run(parts));
        runtime.shutdown_timeout(END_TIMEOUT);
    };
    std::thread::Builder::new()
        .name("archive-objects".to_owned())
        .spawn(body)
}

/// Returns the recordings in the catalog of a directory.
fn recordings(directory: &Path) -> Result<Vec<RecordingDescriptor>, String> {
    if !directory.join(CATALOG_FILE).exists() {
        return Ok(Vec::new());
    }
    let catalog = Catalog::open_read_only(&Directory::new(directory));
    let catalog = catalog.map_err(|error| format!("{}: {error}", directory.display()))?;
    Ok(catalog.recordings().cloned().collect())
}

/// The conductor's end of the queues.
struct ObjectCopier {
    /// `None` after the close.
    requests: Option<RequestSender<CopierRequest>>,
    events: Receiver<CopierEvent>,
    /// Whether an unexpected end of the thread was reported.
    is_end_reported: bool,
    thread: Option<JoinHandle<()>>,
}

impl ObjectCopier {
    fn send(&self, request: CopierRequest) -> bool {
        let requests = self.requests.as_ref();
        requests.is_some_and(|requests| requests.try_send(request).is_ok())
    }
}

impl SegmentCopier for ObjectCopier {
    fn copy(&mut self, segment: SealedSegment) -> bool {
        self.send(CopierRequest::Copy(segment))
    }

    fn forget(&mut self, recording: RecordingIdentity, position: i64) -> bool {
        self.send(CopierRequest::Forget {
            recording,
            position,
        })
    }

    fn poll(&mut self) -> Option<CopierEvent> {
        match self.events.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Disconnected) if self.requests.is_some() && !self.is_end_reported => {
                self.is_end_reported = true;
                let text = ENDED.to_owned();
                Some(CopierEvent::Failed { text })
            }
            Err(_) => None,
        }
    }

    fn close(&mut self) {
        self.requests = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread is ignored: it has ended the copies and fetches, and does not affect recordings.
            let _ = thread.join();
        }
    }
}

impl Drop for ObjectCopier {
    fn drop(&mut self) {
        self.close();
    }
}

/// The replayer's end of the queues.
struct ObjectFetcher {
    requests: RequestSender<FetchedSegment>,
    results: Receiver<Fetched>,
    /// Requested segments. The value is `None` until the outcome of the fetch has arrived.
    states: HashMap<FetchedSegment, Option<Outcome>>,
}

/// The outcome of a fetch, and its time.
struct Outcome {
    result: Result<(), String>,
    received: Instant,
}

impl SegmentFetcher for ObjectFetcher {
    fn fetch(&mut self, recording_id: i64, base: i64) -> FetchProgress {
        let has_ended = loop {
            match self.results.try_recv() {
                Ok(Fetched { segment, result }) => {
                    let received = Instant::now();
                    self.states
                        .insert(segment, Some(Outcome { result, received }));
                }
                Err(error) => break error == TryRecvError::Disconnected,
            }
        };
        // If a replay ends before its fetch, it does not take the outcome.
        self.states.retain(|_, outcome| {
            let received = outcome.as_ref().map(|outcome| outcome.received);
            received.is_none_or(|received| received.elapsed() < OUTCOME_AGE)
        });
        let segment = (recording_id, base);
        match self.states.remove(&segment) {
            Some(Some(outcome)) => {
                return match outcome.result {
                    Ok(()) => FetchProgress::Ready,
                    Err(reason) => FetchProgress::Failed(reason),
                };
            }
            Some(None) if has_ended => return FetchProgress::Failed(ENDED.to_owned()),
            Some(None) => {
                self.states.insert(segment, None);
                return FetchProgress::Waiting;
            }
            None => {}
        }
        match self.requests.try_send(segment) {
            Ok(()) => {
                self.states.insert(segment, None);
                FetchProgress::Waiting
            }
            Err(TrySendError::Full(_)) => FetchProgress::Waiting,
            Err(TrySendError::Closed(_)) => FetchProgress::Failed(ENDED.to_owned()),
        }
    }
}
