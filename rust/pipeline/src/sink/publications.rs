//! [`SharedPublications`]: clients and publications that stay open after the end of a task for later tasks.
//!
//! A worker process runs one task after another. With [`Sharing::Shared`], all its tasks and the tasks of other workers
//! on the machine publish into the same session of a channel and stream. With [`Sharing::Exclusive`], each task has a
//! session of its own. A thread closes clients and publications that no task has used for some time. The thread ends
//! when no client is open.

use std::collections::HashMap;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime};

use aeron_client::{Aeron, Counter, CountersReader, Error, SharedBuffer};
use aeron_memory::directory::cnc_file;

use super::publication::{Sharing, SinkPublication};

/// Maximum number of publications that one worker keeps open at one driver.
pub const MAX_STREAMS: usize = 1024;

/// Type id of the counters of rows that tasks have published. Aeron does not use this id.
const SINK_ROWS_TYPE_ID: i32 = 5101;
/// Minimum interval between two searches for unused clients and publications.
const SHORTEST_LOOK: Duration = Duration::from_millis(10);
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// Clients and publications of one process. Clones share them. Usable from any thread.
#[derive(Clone)]
pub struct SharedPublications {
    shared: Arc<PublicationsCore>,
}

/// A publication or counter in use. It stays open while the lease exists, and for the idle time afterwards.
pub(super) struct Lease<T>(Arc<KeptEntry<T>>);

/// Reason why a publication could not be opened.
#[derive(Debug)]
pub(super) enum LeaseError {
    Client(Error),
    TooManyStreams,
}

struct PublicationsCore {
    idle: Duration,
    state: Mutex<PublicationsState>,
}

#[derive(Default)]
struct PublicationsState {
    clients: HashMap<PathBuf, Client>,
    is_watched: bool,
}

/// A client, with its publications and counters.
struct Client {
    aeron: Aeron,
    driver: Option<DriverFile>,
    publications: HashMap<(String, i32), Arc<KeptEntry<SinkPublication>>>,
    counters: HashMap<(String, i32), Arc<KeptEntry<Counter>>>,
}

/// Identity of the driver's CnC file. A new driver in the same directory has another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DriverFile {
    inode: u64,
    created: Option<SystemTime>,
}

struct KeptEntry<T> {
    value: T,
    counters: CountersReader<SharedBuffer>,
    last_use: Mutex<Instant>,
}

impl SharedPublications {
    /// Creates an empty set. Publications and counters that are unused for `idle` are closed.
    pub fn new(idle: Duration) -> Self {
        let state = Mutex::default();
        Self {
            shared: Arc::new(PublicationsCore { idle, state }),
        }
    }

    /// Returns the publication of a channel and stream at the driver of a directory. Opens the publication if
    /// necessary. If there is no client of this driver, or the driver was replaced, calls `connect` to create a client.
    /// The channel of an exclusive publication must have a session id that only one task uses.
    pub(super) fn publication(
        &self,
        directory: &Path,
        connect: &dyn Fn() -> Result<Aeron, Error>,
        channel: &str,
        stream_id: i32,
        sharing: Sharing,
    ) -> Result<Lease<SinkPublication>, LeaseError> {
        let mut state = self.shared.lock();
        let client = state
            .client(directory, connect)
            .map_err(LeaseError::Client)?;
        let kept = client.publication(channel, stream_id, sharing)?;
        self.watch(&mut state);
        Ok(Lease(kept))
    }

    /// Returns the counter of the rows that a query has published on a stream. Returns `None` if this process has no
    /// client of the driver in `directory`.
    pub(super) fn rows_counter(
        &self,
        directory: &Path,
        query: &str,
        stream_id: i32,
    ) -> Result<Option<Lease<Counter>>, Error> {
        let mut state = self.shared.lock();
        let Some(client) = state.clients.get_mut(directory) else {
            return Ok(None);
        };
        client.rows_counter(query, stream_id).map(Lease).map(Some)
    }

    /// Returns the number of open publications.
    pub fn count(&self) -> usize {
        let state = self.shared.lock();
        state
            .clients
            .values()
            .map(|client| client.publications.len())
            .sum()
    }

    /// Closes all clients and publications, even those in use.
    pub fn close(&self) {
        let clients = std::mem::take(&mut self.shared.lock().clients);
        for client in clients.into_values() {
            client.aeron.close();
        }
    }

    fn watch(&self, state: &mut PublicationsState) {
        if state.is_watched {
            return;
        }
        let shared = Arc::downgrade(&self.shared);
        let interval = (self.shared.idle / 4).clamp(SHORTEST_LOOK, LONGEST_LOOK);
        let thread = std::thread::Builder::new().name("aeron-sink-idle".to_owned());
        // If the thread cannot start, publications stay open until the process ends.
        state.is_watched = thread.spawn(move || watch(&shared, interval)).is_ok();
    }
}

fn watch(shared: &Weak<PublicationsCore>, interval: Duration) {
    loop {
        std::thread::sleep(interval);
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if shared.close_unused() {
            return;
        }
    }
}

impl PublicationsCore {
    fn lock(&self) -> MutexGuard<'_, PublicationsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes clients and publications that were unused for the idle time. Returns whether all clients are closed.
    fn close_unused(&self) -> bool {
        let mut state = self.lock();
        let mut unused = Vec::new();
        for client in state.clients.values_mut() {
            client.remove_unused(self.idle);
        }
        let directories: Vec<PathBuf> = state.clients.keys().cloned().collect();
        for directory in directories {
            if state.clients[&directory].is_empty() {
                unused.extend(state.clients.remove(&directory));
            }
        }
        state.is_watched = !state.clients.is_empty();
        let is_empty = !state.is_watched;
        drop(state);
        // The clients are dropped after the lock is released, because dropping a client waits for its thread.
        drop(unused);
        is_empty
    }
}

impl PublicationsState {
    fn client(
        &mut self,
        directory: &Path,
        connect: &dyn Fn() -> Result<Aeron, Error>,
    ) -> Result<&mut Client, Error> {
        let driver = DriverFile::of(directory);
        let is_usable = |client: &Client| {
            !client.aeron.is_closed() && (driver.is_none() || client.driver == driver)
        };
        if !self.clients.get(directory).is_some_and(is_usable) {
            self.clients.remove(directory);
            let client = Client::new(connect()?, directory);
            self.clients.insert(directory.to_owned(), client);
        }
        Ok(self
            .clients
            .get_mut(directory)
            .expect("there, or just inserted"))
    }
}

impl Client {
    fn new(aeron: Aeron, directory: &Path) -> Self {
        Self {
            aeron,
            driver: DriverFile::of(directory),
            publications: HashMap::new(),
            counters: HashMap::new(),
        }
    }

    fn publication(
        &mut self,
        channel: &str,
        stream_id: i32,
        sharing: Sharing,
    ) -> Result<Arc<KeptEntry<SinkPublication>>, LeaseError> {
        self.publications.retain(|_, kept| !kept.is_closed());
        let name = (channel.to_owned(), stream_id);
        if let Some(kept) = self.publications.get(&name) {
            return Ok(Arc::clone(kept));
        }
        if self.publications.len() >= MAX_STREAMS {
            self.remove_longest_unused()?;
        }
        let publication = SinkPublication::add(&self.aeron, channel, stream_id, sharing);
        let kept = self.keep(publication.map_err(LeaseError::Client)?);
        debug_assert!(
            self.publications.len() < MAX_STREAMS,
            "a client must not keep more than {MAX_STREAMS} publications"
        );
        self.publications.insert(name, Arc::clone(&kept));
        Ok(kept)
    }

    fn rows_counter(
        &mut self,
        query: &str,
        stream_id: i32,
    ) -> Result<Arc<KeptEntry<Counter>>, Error> {
        let name = (query.to_owned(), stream_id);
        if let Some(kept) = self.counters.get(&name) {
            return Ok(Arc::clone(kept));
        }
        let label = format!("spark-sink rows query={query} stream={stream_id}");
        let kept = self.keep(self.aeron.add_counter(SINK_ROWS_TYPE_ID, &[], &label)?);
        self.counters.insert(name, Arc::clone(&kept));
        Ok(kept)
    }

    fn keep<T>(&self, value: T) -> Arc<KeptEntry<T>> {
        Arc::new(KeptEntry {
            value,
            counters: self.aeron.counters_reader().clone(),
            last_use: Mutex::new(Instant::now()),
        })
    }

    fn remove_longest_unused(&mut self) -> Result<(), LeaseError> {
        let unused = self
            .publications
            .iter()
            .filter(|(_, kept)| !is_in_use(kept));
        let longest = unused.min_by_key(|(_, kept)| kept.last_use());
        let name = longest.map(|(name, _)| name.clone());
        self.publications
            .remove(&name.ok_or(LeaseError::TooManyStreams)?);
        Ok(())
    }

    fn remove_unused(&mut self, idle: Duration) {
        self.publications
            .retain(|_, kept| is_in_use(kept) || kept.last_use().elapsed() < idle);
        self.counters
            .retain(|_, kept| is_in_use(kept) || kept.last_use().elapsed() < idle);
    }

    fn is_empty(&self) -> bool {
        self.publications.is_empty() && self.counters.is_empty()
    }
}

impl DriverFile {
    fn of(directory: &Path) -> Option<Self> {
        let metadata = std::fs::metadata(cnc_file(directory)).ok()?;
        Some(Self {
            inode: metadata.ino(),
            created: metadata.created().ok(),
        })
    }
}

/// Returns whether a lease of the entry exists. Call this function only with the lock held. Leases are created under
/// the lock, so an unused value stays unused until the lock is released.
fn is_in_use<T>(kept: &Arc<KeptEntry<T>>) -> bool {
    Arc::strong_count(kept) > 1
}

impl<T> KeptEntry<T> {
    fn last_use(&self) -> Instant {
        *self.last_use.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptEntry<SinkPublication> {
    fn is_closed(&self) -> bool {
        self.value.is_closed()
    }
}

impl<T> Lease<T> {
    /// Returns the driver's counters.
    pub(super) fn counters(&self) -> &CountersReader<SharedBuffer> {
        &self.0.counters
    }
}

impl<T> Deref for Lease<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T> Drop for Lease<T> {
    fn drop(&mut self) {
        let last_use = &self.0.last_use;
        *last_use.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}
