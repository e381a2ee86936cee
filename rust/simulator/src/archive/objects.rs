//! [`ObjectBucket`]: the object storage of a simulated archive, and the steps of its object thread on the virtual
//! clock.
//!
//! Code of the product computes the names of objects, the manifests, the order of the copies and the cache of fetched
//! segments. The steps are those of the product's object thread. Each turn of the archive does at most one step, so a
//! kill can come between any two steps. The bucket survives all faults of the archive's machine. Sometimes it refuses
//! to store an object.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use aeron_agent::{CachedNanoClock, NanoClock};
use aeron_archive::catalog::{Catalog, RecordingDescriptor};
use aeron_archive::objects::{
    ArchiveObjects, CopierEvent, FETCHED_EXTENSION, FetchProgress, RecordingIdentity,
    SealedSegment, SegmentCopier, SegmentFetcher, fetched_name, manifest_name, manifest_owner,
};
use aeron_archive::segments::{SegmentFileName, segment_name};
use aeron_archive::storage::{Access, Storage, StorageFile, SyncLevel};
use aeron_objects::cache::{FetchCache, FetchedSegment};
use aeron_objects::key::SegmentKey;
use aeron_objects::manifest::{Manifest, ObjectCopy};
use aeron_objects::queue::{CopyQueue, CopyTask};
use fastrand::Rng;

use super::disk::SimulatedDisk;
use crate::schedule::{MS, rarely};

/// Maximum number of copies at the same time.
const CONCURRENCY: usize = 2;
/// Maximum number of bytes of fetched segments that stay on the disk.
const CACHE_BYTES: u64 = 256 * 1_024;
/// Maximum time between two steps, and maximum time of a fetch.
const MAX_PAUSE_NS: i64 = 10 * MS;
/// On average, one of this number of attempts to store an object fails.
const PUTS_PER_FAILURE: u32 = 16;
/// Name of the catalog.
const CATALOG: &str = "archive.catalog";

/// An object storage. Clones are the same storage.
#[derive(Clone, Default)]
pub struct ObjectBucket(Arc<Mutex<Objects>>);

#[derive(Default)]
struct Objects {
    segments: BTreeMap<(RecordingIdentity, SegmentKey), Vec<u8>>,
    manifests: BTreeMap<RecordingIdentity, Vec<u8>>,
}

impl ObjectBucket {
    /// Opens the storage for a process of the archive.
    ///
    /// # Errors
    /// The disk fails, or its catalog is damaged.
    pub fn open(
        &self,
        disk: &SimulatedDisk,
        clock: Arc<CachedNanoClock>,
        seed: u64,
    ) -> Result<ArchiveObjects, String> {
        let recordings = recordings(disk)?;
        let mut thread = ObjectSteps {
            disk: disk.clone(),
            bucket: self.clone(),
            clock,
            random: Rng::with_seed(seed),
            queue: CopyQueue::new(CONCURRENCY),
            running: VecDeque::new(),
            manifests: BTreeMap::new(),
            changed: BTreeSet::new(),
            cache: FetchCache::new(CACHE_BYTES),
            fetches: BTreeMap::new(),
            events: VecDeque::new(),
            acts_from_ns: i64::MIN,
        };
        thread
            .remove_leftovers(&recordings)
            .and_then(|()| thread.read_manifests(&recordings))
            .map_err(|error| error.to_string())?;
        let thread = Arc::new(Mutex::new(thread));
        Ok(ArchiveObjects {
            copier: Box::new(Copier(Arc::clone(&thread))),
            fetcher: Box::new(Fetcher(thread)),
        })
    }
}

fn recordings(disk: &SimulatedDisk) -> Result<Vec<RecordingDescriptor>, String> {
    if !disk.names().iter().any(|name| name == CATALOG) {
        return Ok(Vec::new());
    }
    let catalog = Catalog::open_read_only(disk).map_err(|error| error.to_string())?;
    Ok(catalog.recordings().cloned().collect())
}

/// State of the object thread.
struct ObjectSteps {
    disk: SimulatedDisk,
    bucket: ObjectBucket,
    clock: Arc<CachedNanoClock>,
    random: Rng,
    queue: CopyQueue,
    running: VecDeque<RunningCopy>,
    manifests: BTreeMap<RecordingIdentity, Manifest>,
    /// Recordings with a manifest that must be stored even without new copies.
    changed: BTreeSet<RecordingIdentity>,
    cache: FetchCache,
    /// Fetches in progress, each with the virtual time in nanoseconds at which it ends.
    fetches: BTreeMap<FetchedSegment, i64>,
    events: VecDeque<CopierEvent>,
    acts_from_ns: i64,
}

/// A copy in progress, and its next step.
struct RunningCopy {
    task: CopyTask,
    step: CopyStep,
}

enum CopyStep {
    /// The file is read.
    Read,
    /// The object is stored.
    Put(ObjectCopy, Vec<u8>),
    /// The modification time of the file is compared with the time before the copy.
    Verify(ObjectCopy),
    /// Both manifests are stored, and the archive gets the event.
    Note(ObjectCopy),
}

impl ObjectSteps {
    fn remove_leftovers(&self, recordings: &[RecordingDescriptor]) -> io::Result<()> {
        let exists = |id| recordings.iter().any(|it| it.recording_id == id);
        for name in self.disk.names() {
            let file = SegmentFileName::parse(&name);
            let is_fetched = file.is_some_and(|file| file.extension == FETCHED_EXTENSION);
            if is_fetched || manifest_owner(&name).is_some_and(|id| !exists(id)) {
                self.disk.remove(&name)?;
            }
        }
        Ok(())
    }

    /// Reads the local manifests. A manifest that is missing or damaged is rebuilt from the manifest and the objects in
    /// the bucket.
    fn read_manifests(&mut self, recordings: &[RecordingDescriptor]) -> io::Result<()> {
        for recording in recordings {
            let identity = RecordingIdentity::of(recording);
            let local = match self.read(&manifest_name(recording.recording_id)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                bytes => Manifest::decode(&bytes?).ok(),
            };
            let local = local.filter(|manifest| manifest.identity() == identity);
            let manifest = match local {
                Some(manifest) => manifest,
                None => {
                    self.changed.insert(identity);
                    self.rebuilt(recording)
                }
            };
            self.events.push_back(CopierEvent::Known {
                recording: identity,
                copies: manifest.copies().map(ObjectCopy::segment_copy).collect(),
            });
            if manifest.copies().next().is_some() {
                self.manifests.insert(identity, manifest);
            }
        }
        Ok(())
    }

    fn rebuilt(&self, recording: &RecordingDescriptor) -> Manifest {
        let identity = RecordingIdentity::of(recording);
        let objects = lock(&self.bucket.0);
        let stored = objects.manifests.get(&identity);
        let stored = stored.and_then(|bytes| Manifest::decode(bytes).ok());
        let mut manifest = stored.unwrap_or_else(|| Manifest::new(recording));
        let keys = objects.segments.keys();
        manifest.add_listed(keys.filter(|(it, _)| *it == identity).map(|(_, key)| *key));
        manifest
    }

    /// Does the next step, if it is time.
    fn step(&mut self) {
        let now_ns = self.clock.nano_time();
        if now_ns < self.acts_from_ns {
            return;
        }
        self.acts_from_ns = now_ns + self.random.i64(0..MAX_PAUSE_NS);
        if let Some(identity) = self.changed.pop_first() {
            let stored = self.manifests.get(&identity).cloned();
            if stored.is_some_and(|manifest| self.store(&manifest).is_err()) {
                self.changed.insert(identity);
            }
        }
        if let Some(task) = self.queue.begin(self.now_ms()) {
            let step = CopyStep::Read;
            self.running.push_back(RunningCopy { task, step });
        }
        if let Some(RunningCopy { task, step }) = self.running.pop_front() {
            match self.go_on(&task, step) {
                Ok(Some(step)) => self.running.push_back(RunningCopy { task, step }),
                Ok(None) => self.queue.end(),
                Err(error) => self.fail(task, &error),
            }
        }
    }

    /// Does a step of a copy. Returns the next step.
    fn go_on(&mut self, task: &CopyTask, step: CopyStep) -> io::Result<Option<CopyStep>> {
        let recording = &task.segment.recording;
        let (identity, base) = (task.recording(), task.segment.base);
        let name = segment_name(recording.recording_id, base);
        match step {
            CopyStep::Read => {
                let modified_ns = self.modified_ns(&name)?;
                let bytes = self.read(&name)?;
                let copy = ObjectCopy {
                    base,
                    from: recording.start_position.max(base),
                    crc32c: crc32c::crc32c(&bytes),
                    modified_ns,
                };
                Ok(Some(CopyStep::Put(copy, bytes)))
            }
            CopyStep::Put(copy, bytes) => {
                if rarely(&mut self.random, PUTS_PER_FAILURE) {
                    return Err(io::Error::other("the bucket does not respond"));
                }
                let mut objects = lock(&self.bucket.0);
                objects.segments.insert((identity, copy.key()), bytes);
                Ok(Some(CopyStep::Verify(copy)))
            }
            CopyStep::Verify(copy) => match self.modified_ns(&name)? == copy.modified_ns {
                true => Ok(Some(CopyStep::Note(copy))),
                false => Err(io::Error::other("the file has changed")),
            },
            CopyStep::Note(copy) => {
                let known = self.manifests.get(&identity).cloned();
                let mut manifest = known.unwrap_or_else(|| Manifest::new(recording));
                manifest.insert(copy);
                self.store(&manifest)?;
                self.manifests.insert(identity, manifest);
                self.remove_stale();
                self.events.push_back(CopierEvent::Copied {
                    recording: identity,
                    copy: copy.segment_copy(),
                });
                Ok(None)
            }
        }
    }

    fn fail(&mut self, task: CopyTask, error: &io::Error) {
        let (recording, base) = (task.recording(), task.segment.base);
        self.queue.end();
        match error.kind() {
            io::ErrorKind::NotFound => {
                let missing = CopierEvent::Missing { recording, base };
                self.events.push_back(missing);
            }
            _ => {
                self.queue.retry(task, self.now_ms());
                let text = error.to_string();
                self.events.push_back(CopierEvent::Failed { text });
            }
        }
    }

    /// Stores a manifest: first in the bucket, then on the disk.
    fn store(&self, manifest: &Manifest) -> io::Result<()> {
        let bytes = manifest.encode().into_bytes();
        let identity = manifest.identity();
        let mut objects = lock(&self.bucket.0);
        objects.manifests.insert(identity, bytes.clone());
        drop(objects);
        let name = manifest_name(identity.recording_id);
        let new_name = format!("{name}.new");
        self.write(&new_name, &bytes)?;
        self.disk.rename(&new_name, &name)?;
        self.disk.sync()
    }

    fn forget(&mut self, recording: RecordingIdentity, position: i64) {
        self.queue.forget(recording);
        let before = self.running.len();
        self.running.retain(|it| it.task.recording() != recording);
        (self.running.len()..before).for_each(|_| self.queue.end());
        if let Some(manifest) = self.manifests.get_mut(&recording)
            && manifest.truncate(position)
        {
            self.changed.insert(recording);
        }
        self.remove_stale();
    }

    /// Removes each fetched segment that no manifest names any more, or that a manifest names with another checksum.
    fn remove_stale(&mut self) {
        let manifests = &self.manifests;
        let is_valid =
            |segment, crc32c| copy_of(manifests, segment).is_some_and(|it| it.1.crc32c == crc32c);
        let stale = self.cache.retain(is_valid);
        self.remove_fetched(stale);
    }

    fn remove_fetched(&self, segments: Vec<FetchedSegment>) {
        for (id, base) in segments {
            // If the removal fails, the next start removes the file.
            let _ = self.disk.remove(&fetched_name(id, base));
        }
    }

    fn fetch(&mut self, segment: FetchedSegment) -> FetchProgress {
        if self.cache.touch(segment) {
            return FetchProgress::Ready;
        }
        let Some((identity, copy)) = copy_of(&self.manifests, segment) else {
            return FetchProgress::Failed(format!("{segment:?} has no copy"));
        };
        let now_ns = self.clock.nano_time();
        let random = &mut self.random;
        let end_ns = self.fetches.entry(segment);
        if *end_ns.or_insert_with(|| now_ns + random.i64(0..MAX_PAUSE_NS)) > now_ns {
            return FetchProgress::Waiting;
        }
        self.fetches.remove(&segment);
        let stored = lock(&self.bucket.0)
            .segments
            .get(&(identity, copy.key()))
            .cloned();
        let Some(bytes) = stored.filter(|bytes| crc32c::crc32c(bytes) == copy.crc32c) else {
            return FetchProgress::Failed(format!("the object of {segment:?} is damaged"));
        };
        let (id, base) = segment;
        if let Err(error) = self.write(&fetched_name(id, base), &bytes) {
            return FetchProgress::Failed(error.to_string());
        }
        let length = bytes.len() as u64;
        let displaced = self.cache.add(segment, copy.crc32c, length);
        self.remove_fetched(displaced);
        let bytes = length as i64;
        self.events.push_back(CopierEvent::Fetched { bytes });
        FetchProgress::Ready
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = self.disk.open(name, Access::Read)?;
        let mut bytes = vec![0; file.length()? as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    /// Creates or replaces a file, and forces it to the disk.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        match self.disk.remove(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = self.disk.create(name, 0)?;
        file.write_all_at(bytes, 0)?;
        file.sync(SyncLevel::DataAndMetadata)
    }

    fn modified_ns(&self, name: &str) -> io::Result<Option<i64>> {
        let modified = self.disk.open(name, Access::Read)?.modified()?;
        let since_epoch = modified.duration_since(UNIX_EPOCH).ok();
        Ok(since_epoch.and_then(|it| i64::try_from(it.as_nanos()).ok()))
    }

    fn now_ms(&self) -> u64 {
        (self.clock.nano_time() / MS).unsigned_abs()
    }
}

/// Returns the copy of a segment, and its recording.
fn copy_of(
    manifests: &BTreeMap<RecordingIdentity, Manifest>,
    (recording_id, base): FetchedSegment,
) -> Option<(RecordingIdentity, ObjectCopy)> {
    let mut manifests = manifests
        .iter()
        .filter(|(identity, _)| identity.recording_id == recording_id);
    manifests.find_map(|(identity, manifest)| Some((*identity, *manifest.get(base)?)))
}

/// The interface of the object thread for the archive's conductor.
struct Copier(Arc<Mutex<ObjectSteps>>);

impl SegmentCopier for Copier {
    fn copy(&mut self, segment: SealedSegment) -> bool {
        lock(&self.0).queue.add(segment);
        true
    }

    fn forget(&mut self, recording: RecordingIdentity, position: i64) -> bool {
        lock(&self.0).forget(recording, position);
        true
    }

    fn poll(&mut self) -> Option<CopierEvent> {
        let mut thread = lock(&self.0);
        thread.step();
        thread.events.pop_front()
    }

    fn close(&mut self) {}
}

/// The interface of the object thread for the archive's replayer.
struct Fetcher(Arc<Mutex<ObjectSteps>>);

impl SegmentFetcher for Fetcher {
    fn fetch(&mut self, recording_id: i64, base: i64) -> FetchProgress {
        lock(&self.0).fetch((recording_id, base))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
