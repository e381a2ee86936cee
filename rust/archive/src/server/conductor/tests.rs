//! Tests the interface of the conductor as a process that embeds an archive uses it: without control sessions, messages
//! and streams. The driver and the storage are in heap memory.

use std::sync::Arc;

use aeron_agent::{CachedEpochClock, EpochClock, NanoClock};
use aeron_protocol::archive::extension::MAX_LISTED;
use aeron_protocol::archive::{
    ArchiveErrorCode, NULL_VALUE, RecordingSignal, RequestIds, SourceLocation,
};

use super::*;
use crate::extensions::{RetentionPolicy, RetentionScope};
use crate::memory_storage::MemoryStorage;
use crate::server::context::ArchiveContext;
use crate::server::listing::{ListedEntry, Listing, ListingEnd, PageEntry, PageRange};
use crate::server::outlets::{ConductorNotice, ConductorReply, SignalPlace};
use crate::server::recording::RecordingRequest;
use crate::server::{ArchiveEnvironment, ArchiveError, ArchiveStart, ErrorReports};
use crate::store::{NewRecording, StoreOptions};
use crate::tests::driver::TestDriver;

const CHANNEL: &str = "aeron:ipc";
const STREAM_ID: i32 = 1001;
const REQUESTER: i64 = -7;
const ALL: PageRange = PageRange {
    from_index: 0,
    count: MAX_LISTED,
};

/// A process that embeds an archive, as one user.
#[derive(Default)]
struct Embedder {
    user: &'static [u8],
    may_record: bool,
    next_correlation_id: i64,
    request: Option<ConductorRequest<'static>>,
    executed: Option<Result<Execution, ArchiveError>>,
    replies: Vec<(i64, Result<ConductorReply, ArchiveError>)>,
    signals: Vec<(RecordingSignal, SignalPlace)>,
}

struct NoReports;

/// An archive and the process that embeds it.
struct Fixture {
    driver: Arc<TestDriver>,
    conductor: ArchiveConductor<MemoryStorage>,
    embedder: Embedder,
}

impl ErrorReports for NoReports {
    fn report(&mut self, _: i64, error: &str) {
        panic!("{error}");
    }

    fn report_client(&mut self, _: i64, _: &str) {}

    fn heartbeat(&mut self, _: i64) {}

    fn close(&mut self) {}
}

impl Requesters<MemoryStorage> for Embedder {
    fn send_requests(&mut self, conductor: &mut ArchiveConductor<MemoryStorage>) -> usize {
        let Some(request) = self.request.take() else {
            return 0;
        };
        self.next_correlation_id += 1;
        let caller = Caller {
            ids: RequestIds {
                control_session_id: REQUESTER,
                correlation_id: self.next_correlation_id,
            },
            principal: self.user,
            may_record: self.may_record,
        };
        self.executed = Some(conductor.execute(&caller, request));
        1
    }

    fn receive(
        &mut self,
        notices: Vec<ConductorNotice>,
        _: &mut ArchiveConductor<MemoryStorage>,
    ) -> usize {
        let count = notices.len();
        for notice in notices {
            match notice {
                ConductorNotice::Reply(requester, reply) => {
                    assert_eq!(requester.control_session_id, REQUESTER);
                    self.replies.push((requester.correlation_id, reply));
                }
                ConductorNotice::Signal(_, signal, place) => self.signals.push((signal, place)),
            }
        }
        count
    }
}

impl Fixture {
    /// Starts an archive with this number of empty recordings.
    fn new(recordings: i64) -> Self {
        let storage = MemoryStorage::new();
        let options = StoreOptions {
            low_storage_space_threshold: 0,
            ..StoreOptions::default()
        };
        let mut store = ArchiveStore::open(storage.clone(), options, 0).unwrap().0;
        for id in 0..recordings {
            store
                .start_recording(NewRecording::of_ipc(7, STREAM_ID))
                .unwrap();
            store.stop_recording(id, 0, 2).unwrap();
        }
        drop(store);
        let driver = TestDriver::new();
        driver.serve_subscriptions();
        let environment = ArchiveEnvironment {
            storage,
            aeron: driver.connect(),
            archive_id: 3,
            epoch_clock: Arc::new(CachedEpochClock::new(1_000_000)) as Arc<dyn EpochClock>,
            nano_clock: driver.nano_clock() as Arc<dyn NanoClock>,
            random: Box::new(|| 5),
            boot_id: None,
            reports: Box::new(|_, _| Ok(Box::new(NoReports))),
        };
        let context = ArchiveContext {
            control_channel_enabled: false,
            replication_channel: "aeron:udp?endpoint=localhost:0".into(),
            low_storage_space_threshold: 0,
            ..ArchiveContext::default()
        };
        let mut start = ArchiveStart::new(context, environment).unwrap();
        let core = loop {
            if let Some(core) = start.poll().unwrap() {
                break core;
            }
            driver.step();
        };
        Self {
            driver,
            conductor: core.conductor,
            embedder: Embedder::default(),
        }
    }

    /// Executes a request, and runs some duty cycles.
    fn execute(&mut self, request: ConductorRequest<'static>) -> Result<Execution, ArchiveError> {
        self.embedder.request = Some(request);
        for _ in 0..5 {
            self.conductor.do_work(&mut self.embedder);
            self.driver.step();
        }
        self.embedder.executed.take().unwrap()
    }

    /// Executes a request whose reply comes at once.
    fn value(&mut self, request: ConductorRequest<'static>) -> i64 {
        match self.execute(request) {
            Ok(Execution::Replied(ConductorReply::Value(value))) => value,
            other => panic!("{other:?}"),
        }
    }

    fn listing(&mut self, request: ConductorRequest<'static>) -> Listing {
        match self.execute(request) {
            Ok(Execution::Replied(ConductorReply::Listing(listing))) => listing,
            other => panic!("{other:?}"),
        }
    }

    /// Executes a request whose reply comes later.
    fn later(&mut self, request: ConductorRequest<'static>) -> ConductorReply {
        assert_eq!(self.execute(request), Ok(Execution::Pending));
        let (correlation_id, reply) = self.embedder.replies.remove(0);
        assert_eq!(correlation_id, self.embedder.next_correlation_id);
        reply.unwrap()
    }

    fn ids(&self, mut listing: Listing) -> (Vec<i64>, Option<ListingEnd>) {
        let mut ids = Vec::new();
        let progress = listing.read(&self.conductor, |entry| {
            ids.push(match entry {
                ListedEntry::Recording(recording) => recording.recording_id,
                ListedEntry::Subscription(subscription) => subscription.registration_id,
                ListedEntry::OfPage(entry) => panic!("{entry:?}"),
            });
            true
        });
        (ids, progress.end)
    }

    fn page(&self, listing: ConductorReply) -> Vec<PageEntry> {
        let ConductorReply::Listing(mut listing) = listing else {
            panic!("{listing:?}");
        };
        let mut entries = Vec::new();
        let progress = listing.read(&self.conductor, |entry| {
            let ListedEntry::OfPage(entry) = entry else {
                panic!("{entry:?}");
            };
            entries.push((*entry).clone());
            true
        });
        assert_eq!(progress.end, Some(ListingEnd::NextIndex(NULL_VALUE)));
        entries
    }
}

fn stream() -> RecordingRequest {
    RecordingRequest {
        channel: CHANNEL.to_owned(),
        stream_id: STREAM_ID,
        source_location: SourceLocation::Local,
        is_auto_stop: false,
    }
}

fn commit(position: i64) -> ConductorRequest<'static> {
    let commit = ReaderCommit {
        recording_id: 0,
        name: "orders",
        position,
        max_age_ms: None,
        max_lag: None,
    };
    ConductorRequest::CommitReader { commit }
}

#[test]
fn a_recording_starts_later_and_its_subscription_is_listed_until_it_stops() {
    let mut archive = Fixture::new(0);
    let start = || ConductorRequest::StartRecording { request: stream() };
    let reply = archive.later(start());
    let ConductorReply::Value(subscription_id) = reply else {
        panic!("{reply:?}");
    };
    let listing = || ConductorRequest::List {
        listing: Listing::subscriptions(0, 10, Some(STREAM_ID), b"ipc".to_vec()),
    };
    let listed = archive.listing(listing());
    let end = Some(ListingEnd::SubscriptionUnknown);
    assert_eq!(archive.ids(listed), (vec![subscription_id], end));
    let error = archive.execute(start());
    assert_eq!(
        error.unwrap_err().code,
        ArchiveErrorCode::ActiveSubscription
    );

    let stop = || ConductorRequest::StopRecording {
        stream_id: STREAM_ID,
        channel: CHANNEL,
    };
    assert_eq!(archive.value(stop()), 0);
    let error = archive.execute(stop()).unwrap_err();
    assert_eq!(error.code, ArchiveErrorCode::UnknownSubscription);
    let listed = archive.listing(listing());
    assert_eq!(archive.ids(listed), (vec![], end));
}

#[test]
fn an_extension_waits_for_its_subscription_and_needs_the_stream_of_the_recording() {
    let mut archive = Fixture::new(1);
    let extend = |request| ConductorRequest::ExtendRecording {
        recording_id: 0,
        request,
    };
    let other = RecordingRequest {
        stream_id: STREAM_ID + 1,
        ..stream()
    };
    let error = archive.execute(extend(other)).unwrap_err();
    assert_eq!(error.code, ArchiveErrorCode::UnknownRecording);
    let reply = archive.later(extend(stream()));
    let ConductorReply::Value(subscription_id) = reply else {
        panic!("{reply:?}");
    };
    let stop = ConductorRequest::StopRecordingSubscription { subscription_id };
    assert_eq!(archive.value(stop), 0);
}

#[test]
fn positions_and_recordings_are_values() {
    let mut archive = Fixture::new(3);
    let recording_id = 1;
    assert_eq!(archive.value(ConductorRequest::ArchiveId), 3);
    for request in [
        ConductorRequest::StartPosition { recording_id },
        ConductorRequest::StopPosition { recording_id },
        ConductorRequest::MaxRecordedPosition { recording_id },
    ] {
        assert_eq!(archive.value(request), 0);
    }
    let active = ConductorRequest::RecordingPosition { recording_id };
    assert_eq!(archive.value(active), NULL_VALUE);
    let unknown = ConductorRequest::StartPosition { recording_id: 9 };
    let error = archive.execute(unknown).unwrap_err();
    assert_eq!(error.code, ArchiveErrorCode::UnknownRecording);

    let list = |from, count| ConductorRequest::List {
        listing: Listing::recordings(from, count, None),
    };
    let two = archive.listing(list(0, 2));
    assert_eq!(archive.ids(two), (vec![0, 1], Some(ListingEnd::Full)));
    let rest = archive.listing(list(1, 10));
    let end = Some(ListingEnd::RecordingUnknown(3));
    assert_eq!(archive.ids(rest), (vec![1, 2], end));
}

#[test]
fn the_reply_to_a_purge_and_its_signal_come_as_notices() {
    let mut archive = Fixture::new(2);
    let reply = archive.later(ConductorRequest::PurgeRecording { recording_id: 0 });
    assert!(matches!(reply, ConductorReply::Value(_)), "{reply:?}");
    let signal = (RecordingSignal::Delete, SignalPlace::recording(0));
    assert_eq!(archive.embedder.signals, [signal]);
    let all = archive.listing(ConductorRequest::List {
        listing: Listing::recordings(0, 10, None),
    });
    let end = Some(ListingEnd::RecordingUnknown(2));
    assert_eq!(archive.ids(all), (vec![1], end));
}

#[test]
fn a_named_reader_belongs_to_its_user() {
    let mut archive = Fixture::new(1);
    archive.embedder.user = b"ann";
    assert_eq!(archive.value(commit(0)), 0);
    let error = archive.execute(commit(64)).unwrap_err();
    assert_eq!(error.code, ArchiveErrorCode::InvalidPosition);
    archive.embedder.user = b"bob";
    let remove = || ConductorRequest::RemoveReader {
        recording_id: 0,
        name: "orders",
    };
    let error = archive.execute(remove()).unwrap_err();
    assert_eq!(error.code, ArchiveErrorCode::UnauthorisedAction);
    let readers = archive.listing(ConductorRequest::ListReaders {
        recording_id: None,
        name: "",
        range: ALL,
    });
    let readers = archive.page(ConductorReply::Listing(readers));
    assert!(
        matches!(&readers[..], [PageEntry::Reader(reader)] if reader.owner == b"ann"),
        "{readers:?}"
    );
    archive.embedder.may_record = true;
    assert_eq!(archive.value(remove()), 1);
    assert_eq!(archive.value(remove()), 0);
}

#[test]
fn retention_is_set_at_once_and_applied_later() {
    let mut archive = Fixture::new(1);
    let policy = RetentionPolicy {
        scope: RetentionScope::Recording(0),
        max_bytes: Some(0),
        max_age_ms: None,
    };
    let set = |policy: &RetentionPolicy| ConductorRequest::SetRetention {
        policy: policy.clone(),
    };
    assert_eq!(archive.value(set(&policy)), 0);
    assert_eq!(archive.value(set(&policy)), 1);
    let negative = RetentionPolicy {
        max_age_ms: Some(-5),
        ..policy.clone()
    };
    let error = archive.execute(set(&negative)).unwrap_err();
    assert_eq!(error.message, "maxAge=-5 is negative: use -1 for no limit");
    let listed = archive.listing(ConductorRequest::ListRetention { range: ALL });
    let listed = archive.page(ConductorReply::Listing(listed));
    assert_eq!(listed, [PageEntry::Policy(policy)]);

    let reply = archive.later(ConductorRequest::ApplyRetention {
        recording_id: None,
        dry_run: true,
        trust_clock: false,
    });
    archive.page(reply);
}
