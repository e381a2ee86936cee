//! [`ObjectThread`]: the loop of the object thread.
//!
//! A copy has four steps: the object is written, it is read back, the manifest in the storage and then the local
//! manifest are replaced, and the archive gets the event. If the process is killed before the local manifest names the
//! copy, the next process copies the segment again. It does not write an object that already exists with the right
//! length; it only reads this object back. If the process is killed after the local manifest names the copy, the next
//! process reports the copy from the local manifest.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::pending;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::Duration;

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::objects::{CopierEvent, RecordingIdentity, SealedSegment, fetched_name};
use aeron_archive::pause::{self, Point};
use aeron_archive::segments::segment_name;
use aeron_archive::storage::{Directory, Storage};
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use object_store::ObjectStoreExt;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, sleep_until};

use crate::ObjectError;
use crate::cache::{FetchCache, FetchedSegment};
use crate::check::sound_segments;
use crate::copy::copy_segment;
use crate::fetch::{FetchSource, fetch_manifest, fetch_to_directory, list_segments};
use crate::local::write_manifest;
use crate::location::ObjectStorage;
use crate::manifest::{Manifest, ObjectCopy, RecordingFields};
use crate::queue::{CopyQueue, CopyTask};
use crate::throttle::Throttle;

/// Time between a failure to store a manifest and the next attempt.
const MANIFEST_RETRY: Duration = Duration::from_secs(5);
/// Time between a failure to list the copies of a recording and the next attempt. After the start of the archive,
/// requests of clients wait up to 5 s for these lists.
const LISTING_RETRY: Duration = Duration::from_secs(1);
/// Both manifests name the copy, and the archive has not received the event yet.
const MANIFEST_STORED: Point = Point::new("objects-manifest");

/// A request of the conductor.
#[derive(Debug)]
pub(crate) enum CopierRequest {
    Copy(SealedSegment),
    Forget {
        recording: RecordingIdentity,
        position: i64,
    },
}

/// The outcome of a fetch.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub segment: FetchedSegment,
    pub result: Result<(), String>,
}

/// The values with which the object thread starts.
pub(crate) struct ThreadParts {
    pub storage: ObjectStorage,
    pub directory: PathBuf,
    pub concurrency: usize,
    pub bytes_per_second: u64,
    pub cache_bytes: u64,
    /// Bytes of the disk that fetched segments must leave free.
    pub low_bytes: u64,
    /// Manifests in the archive directory.
    pub manifests: Vec<Manifest>,
    /// Recordings of the catalog without a manifest in the archive directory.
    pub unlisted: Vec<RecordingDescriptor>,
    pub copies: Receiver<CopierRequest>,
    pub fetches: Receiver<FetchedSegment>,
    pub events: Sender<CopierEvent>,
    pub fetched: Sender<Fetched>,
}

/// State of the object thread.
pub(crate) struct ObjectThread<'a> {
    storage: &'a ObjectStorage,
    directory: &'a PathBuf,
    throttle: &'a Throttle,
    events: Sender<CopierEvent>,
    fetched: Sender<Fetched>,
    origin: Instant,
    queue: CopyQueue,
    /// Copies in progress. The value is true if the recording was truncated after the copy began: then the result of
    /// the copy is ignored.
    running: BTreeMap<(RecordingIdentity, i64), bool>,
    manifests: BTreeMap<RecordingIdentity, Manifest>,
    /// Recordings without a local manifest. The storage may have copies of them.
    unlisted: VecDeque<RecordingDescriptor>,
    /// Copies that were read back, and are not in a manifest yet.
    verified: Vec<(CopyTask, ObjectCopy)>,
    /// Recordings with a manifest that must be stored even without new copies: a truncation has removed copies from the
    /// manifest, or the manifest was rebuilt from a listing.
    truncated: BTreeSet<RecordingIdentity>,
    /// The recording with the manifest that is being stored, and the lowest position to which this recording was
    /// truncated since the storing began; `i64::MAX` if it was not truncated.
    storing: Option<(RecordingIdentity, i64)>,
    is_listing: bool,
    /// Time before which no manifest is stored or read.
    manifest_due: Instant,
    cache: FetchCache,
    low_bytes: u64,
    /// Fetches in progress, and whether the archive waits for them.
    fetching: BTreeMap<FetchedSegment, bool>,
    /// Requested segments that are fetched when other fetches have ended.
    waiting: VecDeque<FetchedSegment>,
    jobs: FuturesUnordered<LocalBoxFuture<'a, Done>>,
}

/// A job that has ended.
enum Done {
    Copied(CopyTask, Result<ObjectCopy, ObjectError>),
    Stored {
        manifest: Box<Manifest>,
        copies: Vec<(CopyTask, ObjectCopy)>,
        result: Result<(), ObjectError>,
    },
    Listed(RecordingDescriptor, Result<Rebuilt, ObjectError>),
    Fetched(FetchedSegment, FetchSource, Result<(), ObjectError>),
}

/// A manifest that was rebuilt from the storage.
struct Rebuilt {
    manifest: Manifest,
    /// Error texts about a stored manifest that cannot be used, and about objects that are not segments.
    faults: Vec<String>,
}

/// Runs the object thread until the archive closes it.
pub(crate) async fn run(parts: ThreadParts) {
    let throttle = Throttle::new(parts.bytes_per_second);
    let (storage, directory) = (parts.storage, parts.directory);
    let manifests = parts.manifests.into_iter();
    let mut thread = ObjectThread {
        storage: &storage,
        directory: &directory,
        throttle: &throttle,
        events: parts.events,
        fetched: parts.fetched,
        origin: Instant::now(),
        queue: CopyQueue::new(parts.concurrency),
        running: BTreeMap::new(),
        manifests: manifests.map(|it| (it.identity(), it)).collect(),
        unlisted: parts.unlisted.into(),
        verified: Vec::new(),
        truncated: BTreeSet::new(),
        storing: None,
        is_listing: false,
        manifest_due: Instant::now(),
        cache: FetchCache::new(parts.cache_bytes),
        low_bytes: parts.low_bytes,
        fetching: BTreeMap::new(),
        waiting: VecDeque::new(),
        jobs: FuturesUnordered::new(),
    };
    let (mut copies, mut fetches) = (parts.copies, parts.fetches);
    loop {
        thread.begin_jobs();
        let due = thread.next_due();
        let wake = async {
            match due {
                Some(due) => sleep_until(due).await,
                None => pending().await,
            }
        };
        tokio::select! {
            request = copies.recv() => match request {
                Some(CopierRequest::Copy(segment)) => thread.queue.add(segment),
                Some(CopierRequest::Forget { recording, position }) => thread.forget(recording, position),
                None => return,
            },
            Some(segment) = fetches.recv() => thread.on_fetch_requested(segment),
            Some(done) = thread.jobs.next() => thread.on_done(done),
            () = wake => {}
        }
    }
}

impl<'a> ObjectThread<'a> {
    fn begin_jobs(&mut self) {
        let (storage, directory, throttle) = (self.storage, self.directory, self.throttle);
        while let Some(task) = self.queue.begin(self.now_ms()) {
            let identity = task.recording();
            self.running.insert((identity, task.segment.base), false);
            self.jobs.push(Box::pin(async move {
                let copied = copy_segment(storage, directory, &task, throttle).await;
                Done::Copied(task, copied)
            }));
        }
        if Instant::now() >= self.manifest_due {
            self.begin_listing();
            self.begin_storing();
        }
    }

    fn begin_listing(&mut self) {
        if self.is_listing {
            return;
        }
        let Some(recording) = self.unlisted.front().cloned() else {
            return;
        };
        self.is_listing = true;
        let storage = self.storage;
        self.jobs.push(Box::pin(async move {
            let rebuilt = rebuilt(storage, &recording).await;
            Done::Listed(recording, rebuilt)
        }));
    }

    /// Begins to store the manifest of one recording, with its new copies.
    fn begin_storing(&mut self) {
        if self.storing.is_some() {
            return;
        }
        let unlisted: BTreeSet<_> = self.unlisted.iter().map(RecordingIdentity::of).collect();
        let verified = self.verified.iter();
        let verified = verified.map(|(task, _)| task.recording());
        let mut candidates = verified.chain(self.truncated.iter().copied());
        // The storage may have a manifest of a recording in `unlisted`. Storing a new manifest before the old one was
        // read would lose the copies that only the old one names.
        let Some(identity) = candidates.find(|identity| !unlisted.contains(identity)) else {
            return;
        };
        drop(candidates);
        let is_of = |(task, _): &mut (CopyTask, ObjectCopy)| task.recording() == identity;
        let copies: Vec<_> = self.verified.extract_if(.., is_of).collect();
        let Some(manifest) = self.with_copies(identity, &copies) else {
            self.truncated.remove(&identity);
            return;
        };
        self.storing = Some((identity, i64::MAX));
        let (storage, directory) = (self.storage, self.directory);
        self.jobs.push(Box::pin(async move {
            let result = store_manifest(storage, directory, &manifest).await;
            Done::Stored {
                manifest: Box::new(manifest),
                copies,
                result,
            }
        }));
    }

    /// Returns the manifest of a recording with further copies; `None` if there is nothing to store.
    fn with_copies(
        &self,
        identity: RecordingIdentity,
        copies: &[(CopyTask, ObjectCopy)],
    ) -> Option<Manifest> {
        let latest = copies.last().map(|(task, _)| &task.segment.recording);
        let known = self.manifests.get(&identity).cloned();
        let mut manifest = known.or_else(|| latest.map(Manifest::new))?;
        if let Some(latest) = latest {
            manifest.recording = RecordingFields::of(latest);
        }
        for (_, copy) in copies {
            manifest.insert(*copy);
        }
        Some(manifest)
    }

    fn forget(&mut self, recording: RecordingIdentity, position: i64) {
        // The archive requests the copies of the remaining segments again.
        self.queue.forget(recording);
        for ((identity, _), is_forgotten) in &mut self.running {
            *is_forgotten |= *identity == recording;
        }
        self.verified
            .retain(|(task, _)| task.recording() != recording);
        if let Some((storing, lowest)) = &mut self.storing
            && *storing == recording
        {
            *lowest = position.min(*lowest);
        }
        if let Some(manifest) = self.manifests.get_mut(&recording)
            && manifest.truncate(position)
        {
            self.truncated.insert(recording);
        }
        self.remove_stale();
    }

    /// Removes fetched segments that a manifest no longer names with the same bytes.
    fn remove_stale(&mut self) {
        let manifests = &self.manifests;
        let is_valid =
            |segment, crc32c| source(manifests, segment).is_some_and(|it| it.copy.crc32c == crc32c);
        let stale = self.cache.retain(is_valid);
        stale.into_iter().for_each(|it| self.remove_fetched(it));
    }

    fn remove_fetched(&self, (id, base): FetchedSegment) {
        // If the removal fails, the next start of the archive removes the file.
        let _ = std::fs::remove_file(self.directory.join(fetched_name(id, base)));
    }

    fn on_done(&mut self, done: Done) {
        match done {
            Done::Copied(task, copied) => self.on_copied(task, copied),
            Done::Stored {
                manifest,
                copies,
                result,
            } => self.on_stored(*manifest, copies, result),
            Done::Listed(recording, rebuilt) => self.on_listed(&recording, rebuilt),
            Done::Fetched(segment, source, result) => {
                self.cache.end(source.length);
                self.on_fetched(segment, &source, result);
                self.begin_waiting();
            }
        }
    }

    fn on_copied(&mut self, mut task: CopyTask, copied: Result<ObjectCopy, ObjectError>) {
        self.queue.end();
        let recording = task.recording();
        let base = task.segment.base;
        if self.running.remove(&(recording, base)) == Some(true) {
            return;
        }
        match copied {
            Ok(copy) => self.verified.push((task, copy)),
            Err(error) if error.is_missing_file() => {
                self.tell(CopierEvent::Missing { recording, base });
                self.fail(format!("copy: {error}; the segment is not copied"));
            }
            Err(error) => {
                task.is_object_wrong |= matches!(error, ObjectError::Damaged { .. });
                self.retry(task, &error);
            }
        }
    }

    fn retry(&mut self, task: CopyTask, error: &ObjectError) {
        let name = segment_name(task.segment.recording.recording_id, task.segment.base);
        let delay_ms = self.queue.retry(task, self.now_ms());
        self.fail(format!(
            "copy of {name}: {error}; the file stays, and the next attempt is in {} s",
            delay_ms / 1_000
        ));
    }

    fn on_stored(
        &mut self,
        mut manifest: Manifest,
        copies: Vec<(CopyTask, ObjectCopy)>,
        result: Result<(), ObjectError>,
    ) {
        let recording = manifest.identity();
        let (_, truncation) = self.storing.take().unwrap_or((recording, i64::MAX));
        if let Err(error) = result {
            self.manifest_due = Instant::now() + MANIFEST_RETRY;
            if copies.is_empty() {
                self.fail(format!(
                    "manifest of recording {}: {error}",
                    recording.recording_id
                ));
            }
            // After a truncation, the archive requests the copies again.
            if truncation == i64::MAX {
                copies
                    .into_iter()
                    .for_each(|(task, _)| self.retry(task, &error));
            }
            return;
        }
        match manifest.truncate(truncation) {
            true => self.truncated.insert(recording),
            false => self.truncated.remove(&recording),
        };
        pause::at(MANIFEST_STORED);
        let is_kept = |copy: &&(CopyTask, ObjectCopy)| manifest.get(copy.1.base) == Some(&copy.1);
        for (_, copy) in copies.iter().filter(is_kept) {
            let copy = copy.segment_copy();
            self.tell(CopierEvent::Copied { recording, copy });
        }
        self.manifests.insert(recording, manifest);
        self.remove_stale();
    }

    fn on_listed(
        &mut self,
        recording: &RecordingDescriptor,
        rebuilt: Result<Rebuilt, ObjectError>,
    ) {
        self.is_listing = false;
        let Rebuilt { manifest, faults } = match rebuilt {
            Ok(rebuilt) => rebuilt,
            Err(error) => {
                self.manifest_due = Instant::now() + LISTING_RETRY;
                let id = recording.recording_id;
                return self.fail(format!(
                    "list of the copies of recording {id}: {error}; the next attempt is in {} s",
                    LISTING_RETRY.as_secs()
                ));
            }
        };
        self.unlisted.pop_front();
        faults.into_iter().for_each(|fault| self.fail(fault));
        // The archive waits for this event even if there are no copies.
        self.tell(known(&manifest));
        if manifest.copies().next().is_some() {
            let identity = manifest.identity();
            self.manifests.insert(identity, manifest);
            // The manifest will be stored, so that the next start need not list the copies.
            self.truncated.insert(identity);
        }
    }

    fn on_fetch_requested(&mut self, segment: FetchedSegment) {
        if self.cache.touch(segment) {
            return self.tell_fetched(segment, Ok(()));
        }
        if let Some(is_awaited) = self.fetching.get_mut(&segment) {
            *is_awaited = true;
            return;
        }
        let (recording_id, base) = segment;
        let Some(source) = source(&self.manifests, segment) else {
            let error = ObjectError::NotCopied { recording_id, base };
            return self.tell_fetched(segment, Err(error.to_string()));
        };
        let length = source.length;
        if !self.cache.begin(length) {
            return self.waiting.push_back(segment);
        }
        if let Err(error) = self.make_room(segment) {
            self.cache.end(length);
            let text = format!("object storage: {error}");
            self.fail(format!("fetch: {text}"));
            return self.tell_fetched(segment, Err(text));
        }
        self.begin_fetch(segment, source, true);
        self.fetch_in_advance((recording_id, base.saturating_add(length as i64)));
    }

    /// Fetches a segment that no replay has requested yet, if there is room for it.
    fn fetch_in_advance(&mut self, segment: FetchedSegment) {
        let local = self.directory.join(segment_name(segment.0, segment.1));
        let Some(source) = source(&self.manifests, segment) else {
            return;
        };
        let length = source.length;
        if !self.cache.has_room_for_two(length)
            || self.fetching.contains_key(&segment)
            || self.cache.touch(segment)
            || local.exists()
            || !self.cache.begin(length)
        {
            return;
        }
        match self.free_bytes() {
            Ok(free_bytes) if free_bytes >= self.needed_bytes() => {
                self.begin_fetch(segment, source, false);
            }
            _ => self.cache.end(length),
        }
    }

    /// Deletes fetched segments until the disk has room for the fetches in progress. The least recently used segment is
    /// deleted first.
    fn make_room(&mut self, (recording_id, base): FetchedSegment) -> Result<(), ObjectError> {
        loop {
            let free_bytes = self.free_bytes()?;
            if free_bytes >= self.needed_bytes() {
                return Ok(());
            }
            let Some(oldest) = self.cache.remove_oldest() else {
                return Err(ObjectError::NoRoom {
                    recording_id,
                    base,
                    needed_bytes: self.cache.fetching_bytes(),
                    free_bytes,
                    low_bytes: self.low_bytes,
                });
            };
            self.remove_fetched(oldest);
        }
    }

    /// Returns the number of bytes that must be free: the threshold, and the full length of all fetches in progress. A
    /// part of these fetches may be on the disk already.
    fn needed_bytes(&self) -> u64 {
        self.low_bytes.saturating_add(self.cache.fetching_bytes())
    }

    fn free_bytes(&self) -> Result<u64, ObjectError> {
        let directory = Directory::new(self.directory);
        let shown = self.directory.display().to_string();
        directory.free_bytes().map_err(ObjectError::file(&shown))
    }

    /// Begins a fetch that is counted in the cache.
    fn begin_fetch(&mut self, segment: FetchedSegment, source: FetchSource, is_awaited: bool) {
        self.fetching.insert(segment, is_awaited);
        let (storage, directory) = (self.storage, self.directory);
        self.jobs.push(Box::pin(async move {
            let fetched = fetch_to_directory(storage, directory, &source).await;
            Done::Fetched(segment, source, fetched)
        }));
    }

    /// Begins the fetches that waited for the end of others.
    fn begin_waiting(&mut self) {
        for segment in std::mem::take(&mut self.waiting) {
            self.on_fetch_requested(segment);
        }
    }

    fn on_fetched(
        &mut self,
        segment: FetchedSegment,
        fetched: &FetchSource,
        result: Result<(), ObjectError>,
    ) {
        let is_awaited = self.fetching.remove(&segment) == Some(true);
        let copy = source(&self.manifests, segment).map(|it| it.copy);
        if copy.map(|copy| copy.crc32c) != Some(fetched.copy.crc32c) {
            // The recording was truncated during the fetch.
            self.remove_fetched(segment);
            if is_awaited {
                self.on_fetch_requested(segment);
            }
            return;
        }
        if result.is_ok() {
            let (crc32c, length) = (fetched.copy.crc32c, fetched.length);
            let displaced = self.cache.add(segment, crc32c, length);
            displaced.into_iter().for_each(|it| self.remove_fetched(it));
            let bytes = length as i64;
            self.tell(CopierEvent::Fetched { bytes });
        }
        if is_awaited {
            let result = result.map_err(|error| format!("object storage: {error}"));
            if let Err(text) = &result {
                self.fail(format!("fetch: {text}"));
            }
            self.tell_fetched(segment, result);
        }
    }

    fn next_due(&self) -> Option<Instant> {
        let copy = self.queue.next_due_ms();
        let copy = copy.map(|due_ms| self.origin + Duration::from_millis(due_ms));
        let has_manifest = (!self.unlisted.is_empty() && !self.is_listing)
            || (self.storing.is_none() && !(self.verified.is_empty() && self.truncated.is_empty()));
        let manifest = has_manifest.then_some(self.manifest_due);
        let manifest = manifest.filter(|due| *due > Instant::now());
        copy.into_iter().chain(manifest).min()
    }

    fn now_ms(&self) -> u64 {
        self.origin.elapsed().as_millis() as u64
    }

    fn fail(&self, text: String) {
        self.tell(CopierEvent::Failed { text });
    }

    fn tell(&self, event: CopierEvent) {
        // If the archive has ended, nobody needs the event.
        let _ = self.events.send(event);
    }

    fn tell_fetched(&self, segment: FetchedSegment, result: Result<(), String>) {
        let _ = self.fetched.send(Fetched { segment, result });
    }
}

/// Returns the copy of a segment; `None` if no manifest names one.
fn source(
    manifests: &BTreeMap<RecordingIdentity, Manifest>,
    (recording_id, base): FetchedSegment,
) -> Option<FetchSource> {
    let first = RecordingIdentity {
        recording_id,
        start_timestamp_ms: i64::MIN,
        initial_term_id: i32::MIN,
    };
    // A replication may have replaced an empty recording. The manifest of the former recording then has no copies.
    let manifests = manifests
        .range(first..)
        .take_while(|(recording, _)| recording.recording_id == recording_id);
    manifests
        .map(|(_, manifest)| manifest)
        .find_map(|manifest| FetchSource::of(manifest, base))
}

/// Returns the event with the copies of a manifest.
pub(crate) fn known(manifest: &Manifest) -> CopierEvent {
    CopierEvent::Known {
        recording: manifest.identity(),
        copies: manifest.copies().map(ObjectCopy::segment_copy).collect(),
    }
}

/// Makes the manifest of a recording from its manifest in the storage and from a listing of its objects. Objects that
/// the manifest does not name are checked first.
async fn rebuilt(
    storage: &ObjectStorage,
    recording: &RecordingDescriptor,
) -> Result<Rebuilt, ObjectError> {
    let identity = RecordingIdentity::of(recording);
    let stored = fetch_manifest(storage, &identity).await?;
    let (stored, fault) = match stored {
        Some(Err(fault)) => (None, Some(fault)),
        stored => (stored.and_then(Result::ok), None),
    };
    let mut manifest = stored.unwrap_or_else(|| Manifest::new(recording));
    let mut listed = list_segments(storage, &identity, recording.segment_length).await?;
    listed.retain(|key| manifest.get(key.base).is_none());
    let (sound, mut faults) = sound_segments(storage, recording, listed).await?;
    manifest.add_listed(sound);
    faults.extend(fault);
    Ok(Rebuilt { manifest, faults })
}

/// Stores a manifest: first in the storage, so that the local manifest never names a copy that the manifest in the
/// storage lacks.
async fn store_manifest(
    storage: &ObjectStorage,
    directory: &std::path::Path,
    manifest: &Manifest,
) -> Result<(), ObjectError> {
    let text = manifest.encode();
    let object = storage.manifest(&manifest.identity());
    let put = storage.store.put(&object, text.clone().into_bytes().into());
    storage.within_time(&object, put).await?;
    write_manifest(directory, manifest.recording.recording_id, &text)
}
