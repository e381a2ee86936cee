//! Storage that fails, hangs or changes bytes. No segment counts as copied until the storage is sound again; then the
//! next attempt succeeds.

use std::fmt;
use std::path::Path as FilePath;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::objects::{
    ArchiveObjects, CopierEvent, FetchProgress, RecordingIdentity, SealedSegment, fetched_name,
};
use aeron_archive::server::context::ArchiveContext;
use aeron_objects::location::{ObjectLocation, ObjectStorage};
use aeron_objects::open_with;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use tempfile::TempDir;

const SEGMENT: usize = 64 * 1024;

/// Behaviour of the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Mode {
    Sound,
    Fails,
    Hangs,
    /// Stores segments with a changed byte.
    Changes,
    /// Refuses manifests, and stores segments.
    RefusesManifests,
    Panics,
}

#[derive(Debug)]
struct FaultyStore {
    inner: InMemory,
    mode: Arc<AtomicU8>,
}

impl FaultyStore {
    fn is(&self, mode: Mode) -> bool {
        self.mode.load(Ordering::SeqCst) == mode as u8
    }

    async fn pass(&self, object: &Path) -> Result<()> {
        assert!(!self.is(Mode::Panics), "the storage has a fault");
        if self.is(Mode::Hangs) {
            std::future::pending::<()>().await;
        }
        let is_manifest = object.filename() == Some("manifest.json");
        match self.is(Mode::Fails) || (self.is(Mode::RefusesManifests) && is_manifest) {
            true => Err(object_store::Error::Generic {
                store: "test",
                source: "the storage is broken".into(),
            }),
            false => Ok(()),
        }
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("faulty store")
    }
}

#[async_trait::async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(
        &self,
        at: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.pass(at).await?;
        let mut bytes = bytes::Bytes::from(payload).to_vec();
        if self.is(Mode::Changes) && bytes.len() == SEGMENT {
            bytes[100] ^= 1;
        }
        self.inner.put_opts(at, bytes.into(), options).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.pass(at).await?;
        self.inner.put_multipart_opts(at, options).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        if !self.is(Mode::Changes) {
            self.pass(at).await?;
        }
        self.inner.get_opts(at, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// An archive directory with one segment, and its object thread.
struct World {
    directory: TempDir,
    mode: Arc<AtomicU8>,
    store: Arc<FaultyStore>,
    objects: ArchiveObjects,
}

fn recording() -> RecordingDescriptor {
    RecordingDescriptor {
        control_session_id: 0,
        correlation_id: 0,
        recording_id: 0,
        start_timestamp_ms: 1,
        stop_timestamp_ms: -1,
        start_position: 0,
        stop_position: -1,
        initial_term_id: 0,
        segment_length: SEGMENT as i32,
        term_length: SEGMENT as i32,
        mtu_length: 1408,
        session_id: 0,
        stream_id: 1,
        stripped_channel: "aeron:ipc".into(),
        original_channel: "aeron:ipc".into(),
        source_identity: "aeron:ipc".into(),
    }
}

fn open(directory: &FilePath, store: &Arc<FaultyStore>) -> ArchiveObjects {
    open_at(directory, store, "s3://bucket/a").expect("the directory is there")
}

/// Opens the archive again. Its fetches must leave `low_storage_space_threshold` bytes of the disk free.
fn open_again(world: &mut World, low_storage_space_threshold: u64) {
    world.objects.copier.close();
    let context = ArchiveContext {
        archive_dir: world.directory.path().to_owned(),
        objects_url: "s3://bucket/a".to_owned(),
        low_storage_space_threshold,
        ..ArchiveContext::default()
    };
    let location = ObjectLocation::of(&context);
    let storage = ObjectStorage::new(Arc::clone(&world.store) as _, Duration::from_millis(50));
    world.objects = open_with(&context, &location, storage).expect("the directory is there");
}

fn open_at(
    directory: &FilePath,
    store: &Arc<FaultyStore>,
    url: &str,
) -> std::result::Result<ArchiveObjects, String> {
    let context = ArchiveContext {
        archive_dir: directory.to_owned(),
        objects_url: url.to_owned(),
        low_storage_space_threshold: 0,
        ..ArchiveContext::default()
    };
    let location = ObjectLocation::of(&context);
    let storage = ObjectStorage::new(Arc::clone(store) as _, Duration::from_millis(50));
    open_with(&context, &location, storage)
}

impl World {
    fn new(mode: Mode) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("0-0.rec"), bytes()).expect("a segment");
        let mode = Arc::new(AtomicU8::new(mode as u8));
        let store = Arc::new(FaultyStore {
            inner: InMemory::new(),
            mode: Arc::clone(&mode),
        });
        let objects = open(directory.path(), &store);
        Self {
            directory,
            mode,
            store,
            objects,
        }
    }

    fn request_copy(&mut self) {
        let segment = SealedSegment {
            recording: recording(),
            base: 0,
        };
        assert!(self.objects.copier.copy(segment));
    }

    fn set(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::SeqCst);
    }

    /// Waits for the next event.
    fn event(&mut self) -> CopierEvent {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            if let Some(event) = self.objects.copier.poll() {
                return event;
            }
            assert!(Instant::now() < deadline, "no event");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn failure(&mut self) -> String {
        match self.event() {
            CopierEvent::Failed { text } => text,
            event => panic!("{event:?}"),
        }
    }

    fn assert_copied(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            assert!(Instant::now() < deadline, "no copy");
            match self.event() {
                CopierEvent::Copied { copy, .. } => {
                    assert_eq!((copy.base, copy.from), (0, 0));
                    assert!(copy.modified_ns.is_some());
                    return;
                }
                CopierEvent::Failed { .. } => {}
                event => panic!("{event:?}"),
            }
        }
    }

    fn fetch(&mut self) -> FetchProgress {
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            match self.objects.fetcher.fetch(0, 0) {
                FetchProgress::Waiting => assert!(Instant::now() < deadline, "no outcome"),
                outcome => return outcome,
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn has_manifest(&self) -> bool {
        self.directory
            .path()
            .join("archive-objects-0.manifest")
            .exists()
    }
}

fn bytes() -> Vec<u8> {
    (0..SEGMENT).map(|number| (number / 7) as u8).collect()
}

#[test]
fn a_copy_that_fails_is_reported_and_tried_again() {
    for (mode, reason) in [
        (Mode::Fails, "the storage is broken"),
        (Mode::Hangs, "no response within 50ms"),
        (Mode::Changes, "is damaged: 65536 bytes with CRC-32C"),
    ] {
        let mut world = World::new(mode);
        world.request_copy();
        let text = world.failure();
        assert!(text.contains(reason), "{text}");
        assert!(text.starts_with("copy of 0-0.rec: "), "{text}");
        assert!(
            text.ends_with("the file stays, and the next attempt is in 1 s"),
            "{text}"
        );
        assert!(!world.has_manifest());
        world.set(Mode::Sound);
        world.assert_copied();
        assert!(world.has_manifest());
        assert_eq!(
            std::fs::read(world.directory.path().join("0-0.rec")).unwrap(),
            bytes()
        );
    }
}

#[test]
fn a_segment_does_not_count_as_copied_until_the_manifest_is_stored() {
    let mut world = World::new(Mode::RefusesManifests);
    world.request_copy();
    assert!(world.failure().contains("manifest.json: "));
    assert!(!world.has_manifest());
}

#[test]
fn a_fetched_segment_has_the_bytes_of_the_file_or_does_not_exist() {
    let mut world = World::new(Mode::Sound);
    world.request_copy();
    world.assert_copied();
    let fetched = world.directory.path().join(fetched_name(0, 0));
    world.set(Mode::Fails);
    let FetchProgress::Failed(reason) = world.fetch() else {
        panic!("the storage is broken");
    };
    assert!(reason.starts_with("object storage: "), "{reason}");
    assert!(!fetched.exists());
    world.set(Mode::Sound);
    assert_eq!(world.fetch(), FetchProgress::Ready);
    assert_eq!(std::fs::read(&fetched).unwrap(), bytes());
}

#[test]
fn damaged_bytes_of_an_object_are_never_fetched() {
    let mut world = World::new(Mode::Sound);
    world.request_copy();
    world.assert_copied();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        use futures_util::StreamExt;
        let objects: Vec<_> = world.store.inner.list(None).collect().await;
        let segment = objects.into_iter().map(|object| object.unwrap().location);
        let segment = segment
            .filter(|path| path.as_ref().ends_with(".rec"))
            .last()
            .unwrap();
        world
            .store
            .inner
            .put(&segment, vec![1; SEGMENT].into())
            .await
            .unwrap();
    });
    let FetchProgress::Failed(reason) = world.fetch() else {
        panic!("the object is damaged");
    };
    assert!(reason.contains("is damaged"), "{reason}");
    assert!(!world.directory.path().join(fetched_name(0, 0)).exists());
}

#[test]
fn a_segment_is_not_fetched_if_the_disk_would_have_too_little_space_left() {
    let mut world = World::new(Mode::Sound);
    open_again(&mut world, 1 << 60);
    world.request_copy();
    world.assert_copied();
    let begin = "object storage: segment 0 of recording 0 is not fetched: it and the other fetches need 65536 bytes, ";
    let end = "aeron.archive.low.storage.space.threshold=1152921504606846976 must stay free: delete files to make room on the disk";
    // The refused fetch does not count as one in progress, so the second one needs no more bytes.
    for _ in 0..2 {
        let FetchProgress::Failed(reason) = world.fetch() else {
            panic!("the disk has no room");
        };
        assert!(reason.starts_with(begin), "{reason}");
        assert!(reason.ends_with(end), "{reason}");
    }
    assert!(!world.directory.path().join(fetched_name(0, 0)).exists());
}

#[test]
fn the_error_for_a_segment_without_a_copy_names_the_segment() {
    let mut world = World::new(Mode::Sound);
    let expected = "segment 0 of recording 0 has no copy in object storage";
    assert_eq!(world.fetch(), FetchProgress::Failed(expected.to_owned()));
}

#[test]
fn a_segment_without_a_file_is_reported_as_missing_and_as_a_failure() {
    let mut world = World::new(Mode::Sound);
    std::fs::remove_file(world.directory.path().join("0-0.rec")).unwrap();
    world.request_copy();
    let recording = RecordingIdentity::of(&recording());
    assert_eq!(world.event(), CopierEvent::Missing { recording, base: 0 });
    assert!(world.failure().starts_with("copy: 0-0.rec: "));
}

#[test]
fn a_truncation_removes_the_copy_from_the_manifests() {
    let mut world = World::new(Mode::Sound);
    world.request_copy();
    world.assert_copied();
    assert!(
        world
            .objects
            .copier
            .forget(RecordingIdentity::of(&recording()), 64)
    );
    let path = world.directory.path().join("archive-objects-0.manifest");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !std::fs::read_to_string(&path)
        .unwrap()
        .contains("\"copies\":[]")
    {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(matches!(world.fetch(), FetchProgress::Failed(_)));
}

#[test]
fn a_fetch_after_a_truncation_and_a_new_copy_has_the_new_bytes() {
    let mut world = World::new(Mode::Sound);
    world.request_copy();
    world.assert_copied();
    assert_eq!(world.fetch(), FetchProgress::Ready);
    let fetched = world.directory.path().join(fetched_name(0, 0));
    assert_eq!(std::fs::read(&fetched).unwrap(), bytes());
    let identity = RecordingIdentity::of(&recording());
    assert!(world.objects.copier.forget(identity, 64));
    let changed: Vec<u8> = bytes().iter().map(|byte| byte ^ 1).collect();
    std::fs::write(world.directory.path().join("0-0.rec"), &changed).unwrap();
    world.request_copy();
    while !matches!(world.event(), CopierEvent::Copied { .. }) {}
    assert!(!fetched.exists());
    assert_eq!(world.fetch(), FetchProgress::Ready);
    assert_eq!(std::fs::read(&fetched).unwrap(), changed);
}

#[test]
fn a_segment_that_is_on_the_disk_is_not_fetched_in_advance() {
    let mut world = World::new(Mode::Sound);
    let directory = world.directory.path().to_owned();
    std::fs::write(directory.join(format!("0-{SEGMENT}.rec")), bytes()).unwrap();
    for base in [0, SEGMENT as i64] {
        let segment = SealedSegment {
            recording: recording(),
            base,
        };
        assert!(world.objects.copier.copy(segment));
        while !matches!(world.event(), CopierEvent::Copied { .. }) {}
    }
    assert_eq!(world.fetch(), FetchProgress::Ready);
    assert_eq!(
        world.event(),
        CopierEvent::Fetched {
            bytes: SEGMENT as i64
        }
    );
    std::thread::sleep(Duration::from_millis(50));
    assert!(!directory.join(fetched_name(0, SEGMENT as i64)).exists());
}

#[test]
fn an_end_of_the_object_thread_is_reported_once_and_fails_the_fetches() {
    let mut world = World::new(Mode::Sound);
    world.request_copy();
    world.assert_copied();
    world.set(Mode::Panics);
    let ended = "the object thread has ended: restart the archive".to_owned();
    assert_eq!(world.fetch(), FetchProgress::Failed(ended.clone()));
    assert_eq!(world.failure(), ended);
    assert_eq!(world.fetch(), FetchProgress::Failed(ended));
    assert_eq!(world.objects.copier.poll(), None);
}

#[test]
fn another_storage_than_that_of_the_copies_is_refused() {
    let mut world = World::new(Mode::Sound);
    let directory = world.directory.path().to_owned();
    // Before the first copy, the storage may change.
    for url in ["s3://bucket/b", "s3://bucket/a"] {
        assert!(open_at(&directory, &world.store, url).is_ok());
    }
    world.request_copy();
    world.assert_copied();
    world.objects.copier.close();
    // The catalog of this test has no recording, so each start removes the manifest. The loop writes it back.
    for url in ["s3://bucket/a", "s3://bucket/a/"] {
        let manifest = std::fs::read(directory.join("archive-objects-0.manifest")).unwrap();
        assert!(open_at(&directory, &world.store, url).is_ok());
        std::fs::write(directory.join("archive-objects-0.manifest"), manifest).unwrap();
    }
    let error = open_at(&directory, &world.store, "s3://bucket/b")
        .err()
        .unwrap();
    assert!(
        error.contains("aeron.archive.objects.url=s3://bucket/b"),
        "{error}"
    );
    assert!(error.contains("which is s3://bucket/a"), "{error}");
    assert!(directory.join("archive-objects-0.manifest").exists());
    std::fs::remove_file(directory.join("archive-objects.json")).unwrap();
    assert!(open_at(&directory, &world.store, "s3://bucket/b").is_ok());
}
