//! [`Recordings`]: the conductor's part of recording. Starts and stops recordings, and keeps the
//! state of active recordings.

mod begin;
mod end;
mod failure;
mod resume;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender};

use aeron_client::{Aeron, Counter, Image, PendingOperation, Subscription};
use aeron_protocol::archive::{ArchiveErrorCode, RecordingSignal, RequestIds, SourceLocation};
use aeron_protocol::uri::{ChannelUri, key};

use super::blocked::{ArrivedImage, BlockedImages};
use super::memory::SubscriptionMemory;
use super::recorder::{EndedRecording, RecorderCommand, RecorderEvent};
use super::refusals::{refuse_subscription, report_unnoted};
use super::subscriptions::{
    ImageArrivals, NewSubscription, RecordingPurpose, RecordingSubscriptions,
};
use super::unnoted::UnnotedStops;
use super::unrecorded::UnrecordedImages;
use crate::catalog::RecordingDescriptor;
use crate::channel;
use crate::recorder::RecorderSession;
use crate::server::ArchiveError;
use crate::server::context::OnFailure;
use crate::server::listing::SubscriptionEntry;
use crate::server::outlets::ArchiveOutlets;
use crate::server::replay::Replays;
use crate::storage::Storage;
use crate::store::ArchiveStore;

/// A request to record a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct RecordingRequest {
    /// Channel to record.
    pub channel: String,
    /// Stream id to record.
    pub stream_id: i32,
    /// Location of the publication: `Local` if the archive and the publication use the same driver.
    /// Then the archive records a UDP channel with a spy.
    pub source_location: SourceLocation,
    /// Whether the subscription ends when its first recording ends.
    pub is_auto_stop: bool,
}

/// The driver's reply about a subscription.
pub(in crate::server) enum SubscriptionReply {
    /// The driver has not replied yet.
    Pending,
    /// The subscription was added.
    Added(Subscription),
    /// The driver refused the subscription, or the archive has stopped the subscription in the
    /// meantime.
    Refused,
}

/// Settings of the recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) struct RecordingSettings {
    /// Id of the archive, shown in the labels of counters.
    pub archive_id: i64,
    /// Maximum number of recording requests at the same time: subscriptions, and active recordings without a
    /// subscription.
    pub max_concurrent_recordings: usize,
    /// Maximum length of a block, in bytes.
    pub block_limit: usize,
    /// Whether the archive resumes subscriptions after a restart.
    pub is_resuming: bool,
    /// How the archive treats the rest of an image after its recording has failed, if the channel does not set it.
    pub on_failure: OnFailure,
}

/// Active recordings, and the subscriptions whose images start new recordings.
pub(in crate::server) struct Recordings<S: Storage> {
    settings: RecordingSettings,
    subscriptions: RecordingSubscriptions,
    arrivals: ImageArrivals,
    starting: Vec<Starting<S>>,
    active: BTreeMap<i64, Active>,
    unrecorded: UnrecordedImages,
    blocked: BlockedImages,
    unnoted: UnnotedStops,
    memory: SubscriptionMemory,
    /// Whether a recording has entered a new segment or has stopped. Then retention may be able to
    /// delete segments.
    has_new_segment: bool,
    recorder: Sender<RecorderCommand<S>>,
    events: Receiver<RecorderEvent>,
}

/// A recording whose counter the driver has not added yet.
struct Starting<S: Storage> {
    active: ActiveParts,
    image: Image,
    recorder: RecorderSession<S>,
    original_channel: String,
    counter: PendingOperation<Counter>,
    signal: RecordingSignal,
    /// Whether the recording was stopped before the driver added the counter.
    is_stopped: bool,
}

/// A recording that the recorder runs.
struct Active {
    parts: ActiveParts,
    position: Counter,
    image: Image,
}

struct ActiveParts {
    recording_id: i64,
    requester: RequestIds,
    subscription_number: u64,
    /// Keeps the subscription open while one of its recordings is active.
    subscription: Subscription,
    is_auto_stop: bool,
    /// Position at which the recording has failed before, and this failure was reported.
    failed_position: Option<i64>,
}

impl<S: Storage + Clone> Recordings<S> {
    /// Creates the state without recordings. Commands are sent to `recorder`, which reports `events`.
    pub fn new(
        settings: RecordingSettings,
        recorder: Sender<RecorderCommand<S>>,
        events: Receiver<RecorderEvent>,
    ) -> Self {
        Self {
            settings,
            subscriptions: RecordingSubscriptions::default(),
            arrivals: ImageArrivals::new(),
            starting: Vec::new(),
            active: BTreeMap::new(),
            unrecorded: UnrecordedImages::default(),
            blocked: BlockedImages::default(),
            unnoted: UnnotedStops::default(),
            memory: SubscriptionMemory::new(settings.is_resuming),
            has_new_segment: false,
            recorder,
            events,
        }
    }

    /// Returns the number of recordings that are active or about to become active.
    pub fn count(&self) -> usize {
        self.active.len() + self.starting.len()
    }

    /// Returns whether a recording is active or about to become active.
    pub fn is_active(&self, recording_id: i64) -> bool {
        self.active.contains_key(&recording_id) || self.is_starting(recording_id)
    }

    /// Returns whether a recording is about to become active: the driver has not added the position counter yet.
    pub fn is_starting(&self, recording_id: i64) -> bool {
        let is_it = |starting: &Starting<S>| starting.active.recording_id == recording_id;
        self.starting.iter().any(is_it)
    }

    /// Returns whether a subscription waits for an image that extends the recording, or a blocked image is to continue
    /// the recording.
    pub fn is_to_be_extended(&self, recording_id: i64) -> bool {
        !self.active.contains_key(&recording_id)
            && (self.subscriptions.extend(recording_id)
                || self.blocked.number_of(recording_id).is_some())
    }

    /// Returns the number of images that no agent reads, because their recordings have failed.
    pub fn blocked_count(&self) -> usize {
        self.blocked.count()
    }

    /// Returns the number of bytes that were read and not recorded, because their recordings have failed.
    pub fn lost_bytes(&self) -> u64 {
        self.unrecorded.lost_bytes()
    }

    /// Returns the position counter of an active recording. The value of the counter is the
    /// recorded position.
    pub fn position_counter(&self, recording_id: i64) -> Option<&Counter> {
        self.active
            .get(&recording_id)
            .map(|active| &active.position)
    }

    /// Returns the recorded position of a recording that is active or about to become active.
    pub fn position(&self, recording_id: i64) -> Option<i64> {
        let starting = |starting: &&Starting<S>| starting.active.recording_id == recording_id;
        self.position_counter(recording_id)
            .map(|counter| counter.get())
            .or_else(|| {
                let starting = self.starting.iter().find(starting)?;
                Some(starting.recorder.recorded_position())
            })
    }

    /// Returns the recorded position of an active recording, otherwise the stop position.
    pub fn recorded_end(&self, recording: &RecordingDescriptor) -> i64 {
        match recording.is_unfinished() {
            // Without any of these positions, the recorder has not begun yet.
            true => {
                let id = recording.recording_id;
                let position = self.position(id).or_else(|| self.unnoted.position(id));
                position.unwrap_or(recording.start_position)
            }
            false => recording.stop_position,
        }
    }

    /// Returns the subscription at an index, for a listing.
    pub fn subscription(&self, index: usize) -> Option<SubscriptionEntry<'_>> {
        self.subscriptions.entry(index)
    }

    /// Subscribes to a stream. Each image of the subscription becomes a recording. The response is sent when the driver
    /// has added the subscription.
    ///
    /// # Errors
    /// There are too many recordings, there is too little space, a subscription with the same key
    /// exists, or the channel is not valid.
    pub fn start(
        &mut self,
        aeron: &Aeron,
        store: &ArchiveStore<S>,
        requester: RequestIds,
        request: &RecordingRequest,
    ) -> Result<(), ArchiveError> {
        let limit = self.settings.max_concurrent_recordings;
        if self.accepted_count() >= limit {
            return Err(max_recordings(format!(
                "max concurrent recordings reached {limit}"
            )));
        }
        store.check_storage_space()?;
        self.subscribe(aeron, requester, request, RecordingPurpose::New)
            .map(drop)
    }

    /// Subscribes to a stream that extends a recording. Returns the number of the subscription.
    ///
    /// # Errors
    /// The same errors as [`start`](Self::start). The recording is unknown, has another stream id,
    /// or is active.
    pub fn extend(
        &mut self,
        aeron: &Aeron,
        store: &ArchiveStore<S>,
        recording_id: i64,
        requester: RequestIds,
        request: &RecordingRequest,
    ) -> Result<u64, ArchiveError> {
        let limit = self.settings.max_concurrent_recordings;
        if self.accepted_count() >= limit {
            return Err(max_recordings(format!(
                "max concurrent recordings reached at {limit}"
            )));
        }
        store.check_extension(recording_id, request.stream_id)?;
        if self.is_active(recording_id) {
            return Err(ArchiveError::new(
                ArchiveErrorCode::ActiveRecording,
                format!(
                    "cannot extend active recording {recording_id} streamId={}",
                    request.stream_id
                ),
            ));
        }
        store.check_storage_space()?;
        self.subscribe(
            aeron,
            requester,
            request,
            RecordingPurpose::Extend { recording_id },
        )
    }

    /// Returns the driver's reply about the subscription with this number.
    pub fn subscription_reply(&self, number: u64) -> SubscriptionReply {
        match self.subscriptions.by_number(number) {
            None => SubscriptionReply::Refused,
            Some(entry) => match entry.subscription() {
                None => SubscriptionReply::Pending,
                Some(subscription) => SubscriptionReply::Added(subscription.clone()),
            },
        }
    }

    /// Returns whether images have arrived that are not recorded yet, or it is time for the next attempt to record a
    /// blocked image.
    pub fn has_arrivals(&mut self, now_ms: i64) -> bool {
        self.arrivals.has_any() || self.blocked.has_due(now_ms)
    }

    /// Returns whether a recording has entered a new segment or has stopped since the last call.
    pub fn take_new_segment(&mut self) -> bool {
        std::mem::take(&mut self.has_new_segment)
    }

    /// Stops the recordings of the subscription with this number, if it exists.
    pub fn stop_by_number(&mut self, number: u64) {
        self.stop_subscription(number);
    }

    /// Stops the recordings of the subscription with this stream id and channel.
    ///
    /// # Errors
    /// The channel cannot be parsed, or no subscription has this stream id and channel.
    pub fn stop_by_channel(&mut self, stream_id: i32, channel: &str) -> Result<(), ArchiveError> {
        let key = channel::subscription_key(stream_id, &ChannelUri::parse(channel)?);
        let number = self.subscriptions.by_key(&key).map(|entry| entry.number);
        match number {
            Some(number) => {
                self.stop_subscription(number);
                Ok(())
            }
            None => Err(ArchiveError::new(
                ArchiveErrorCode::UnknownSubscription,
                format!("no recording found for streamId={stream_id} channel={channel}"),
            )),
        }
    }

    /// Stops the recordings of the subscription with this registration id.
    ///
    /// # Errors
    /// No subscription has the id.
    pub fn stop_by_subscription(&mut self, subscription_id: i64) -> Result<(), ArchiveError> {
        let entry = self.subscriptions.by_registration_id(subscription_id);
        match entry.map(|entry| entry.number) {
            Some(number) => {
                self.stop_subscription(number);
                Ok(())
            }
            None => Err(ArchiveError::new(
                ArchiveErrorCode::UnknownSubscription,
                format!("no recording subscription found for subscriptionId={subscription_id}"),
            )),
        }
    }

    /// Stops one recording. Its subscription records no further images. Returns whether the recording was active and
    /// its subscription had not been stopped before.
    pub fn stop_by_identity(&mut self, recording_id: i64) -> bool {
        let Some(number) = self.number_of(recording_id) else {
            return false;
        };
        let removed = self.subscriptions.remove(number);
        self.memory.forget(removed.as_ref());
        self.release_blocked(number);
        self.stop_recording(recording_id);
        removed.is_some()
    }

    /// Processes the replies of the driver and the events of the recorder. Returns the work count. If
    /// `is_waiting_for_room`, new images are not recorded yet. An image of one of the `replays` is refused.
    pub fn do_work(
        &mut self,
        aeron: &Aeron,
        store: &mut ArchiveStore<S>,
        replays: &Replays,
        is_waiting_for_room: bool,
        outlets: &mut ArchiveOutlets,
    ) -> usize {
        let memory = &mut self.memory;
        let mut work = self.subscriptions.poll(|entry, reply| match reply {
            Ok(registration_id) => {
                memory.remember(entry);
                outlets.reply(entry.requester, Ok(registration_id));
            }
            Err(error) => refuse_subscription(outlets, entry, error),
        });
        let now_ms = outlets.now_ms();
        if !is_waiting_for_room {
            for (number, image) in self.arrivals.take() {
                work += 1;
                if self.is_own_replay(replays, number, &image) {
                    self.refuse_own_replay(number, image, outlets);
                    continue;
                }
                let arrived = ArrivedImage {
                    number,
                    image,
                    failed_id: None,
                    is_reported: false,
                };
                self.begin(aeron, store, arrived, outlets);
            }
            work += self.retry_blocked(aeron, store, outlets);
        }
        work += self.unnoted.note(store, now_ms) + self.unrecorded.consume();
        work + self.poll_starting(store, outlets) + self.take_events(store, outlets)
    }

    /// Stores the changes of the subscriptions that the next start resumes. Call it before the responses to the
    /// requests are sent.
    pub fn store_memory(&mut self, store: &mut ArchiveStore<S>, outlets: &mut ArchiveOutlets) {
        self.memory.store(store, outlets);
    }

    /// Stores the stop positions of recordings that the recorder has ended or never started. Call
    /// it after the recorder has ended.
    pub fn close(&mut self, store: &mut ArchiveStore<S>, outlets: &mut ArchiveOutlets) {
        self.take_events(store, outlets);
        for starting in std::mem::take(&mut self.starting) {
            let position = starting.recorder.recorded_position();
            let ActiveParts {
                recording_id,
                requester,
                ..
            } = starting.active;
            if let Err(error) = store.stop_recording(recording_id, position, outlets.now_ms()) {
                report_unnoted(outlets, recording_id, requester, error.into());
            }
        }
        let unbegun = self
            .active
            .iter()
            .map(|(&recording_id, active)| EndedRecording {
                recording_id,
                position: active.position.get(),
                error: None,
            });
        for ended in unbegun.collect::<Vec<_>>() {
            self.end(store, ended, outlets);
        }
        debug_assert!(
            self.active.is_empty() && self.starting.is_empty(),
            "{} recordings have no stop position after the end of the archive",
            self.count()
        );
    }

    /// Returns the number of recording requests that the limit applies to: subscriptions, and active recordings without
    /// a subscription.
    fn accepted_count(&self) -> usize {
        let is_orphan = |parts: &ActiveParts| {
            self.subscriptions
                .by_number(parts.subscription_number)
                .is_none()
        };
        let orphans = self.all_parts().filter(|parts| is_orphan(parts)).count();
        self.subscriptions.count() + orphans
    }

    fn all_parts(&self) -> impl Iterator<Item = &ActiveParts> {
        let starting = self.starting.iter().map(|starting| &starting.active);
        self.active
            .values()
            .map(|active| &active.parts)
            .chain(starting)
    }

    fn number_of(&self, recording_id: i64) -> Option<u64> {
        self.all_parts()
            .find(|parts| parts.recording_id == recording_id)
            .map(|parts| parts.subscription_number)
            .or_else(|| self.blocked.number_of(recording_id))
    }

    fn subscribe(
        &mut self,
        aeron: &Aeron,
        requester: RequestIds,
        request: &RecordingRequest,
        purpose: RecordingPurpose,
    ) -> Result<u64, ArchiveError> {
        let channel = ChannelUri::parse(&request.channel)?;
        let key = channel::subscription_key(request.stream_id, &channel);
        if self.subscriptions.by_key(&key).is_some() {
            return Err(ArchiveError::new(
                ArchiveErrorCode::ActiveSubscription,
                format!(
                    "recording exists for streamId={} channel={}",
                    request.stream_id, request.channel
                ),
            ));
        }
        let is_local = request.source_location == SourceLocation::Local;
        let new = NewSubscription {
            key,
            requester,
            is_auto_stop: request.is_auto_stop,
            on_failure: match channel.get(channel::ON_FAILURE) {
                None => self.settings.on_failure,
                Some(name) => OnFailure::from_name(name).ok_or_else(|| unknown_on_failure(name))?,
            },
            purpose,
            stream_id: request.stream_id,
            source_location: request.source_location,
            subscribed_channel: channel::recording_channel(&channel, is_local)?,
            original_channel: request.channel.clone(),
            stripped_channel: channel::stripped(&request.channel)?,
        };
        self.subscriptions.add(aeron, new, &self.arrivals)
    }

    /// Returns whether an image is of a replay of this archive, and the channel of its subscription does not name the
    /// session. Such a subscription would record its own recordings again and again. A subscription to one session is
    /// a copy that ends, and a replication is one too.
    fn is_own_replay(&self, replays: &Replays, number: u64, image: &Image) -> bool {
        let Some(entry) = self.subscriptions.by_number(number) else {
            return false;
        };
        ChannelUri::parse(&entry.original_channel).is_ok_and(|channel| {
            channel.get(key::SESSION_ID).is_none() && replays.has_published(image, &channel)
        })
    }

    fn refuse_own_replay(&mut self, number: u64, image: Image, outlets: &mut ArchiveOutlets) {
        let requester = self.subscriptions.by_number(number).map(|it| it.requester);
        let (session_id, stream_id) = (image.session_id(), image.stream_id());
        // An unread image would block the replay.
        self.unrecorded.add(image);
        // The text is constant, because a client chooses the channel. The client itself gets the reason.
        outlets.report_client("a recording would have recorded a replay of this archive");
        if let Some(requester) = requester {
            let text = format!(
                "session {session_id} of stream {stream_id} is a replay of this archive and is not recorded: for a copy, record the channel with session-id={session_id}"
            );
            outlets.refuse(requester, ArchiveError::generic(text));
        }
    }

    fn stop_subscription(&mut self, number: u64) {
        let removed = self.subscriptions.remove(number);
        self.memory.forget(removed.as_ref());
        self.release_blocked(number);
        let of_it: Vec<i64> = self
            .all_parts()
            .filter(|parts| parts.subscription_number == number)
            .map(|parts| parts.recording_id)
            .collect();
        of_it.into_iter().for_each(|id| self.stop_recording(id));
    }

    fn stop_recording(&mut self, recording_id: i64) {
        for starting in &mut self.starting {
            starting.is_stopped |= starting.active.recording_id == recording_id;
        }
        if self.active.contains_key(&recording_id) {
            self.send(RecorderCommand::Stop { recording_id });
        }
    }

    fn send(&self, command: RecorderCommand<S>) {
        // An error is ignored: it means that the recorder and the archive have ended.
        let _ = self.recorder.send(command);
    }
}

fn unknown_on_failure(name: &str) -> ArchiveError {
    let parameter = channel::ON_FAILURE;
    ArchiveError::generic(format!(
        "{parameter}={name} is not known: use block or release"
    ))
}

fn max_recordings(message: String) -> ArchiveError {
    ArchiveError::new(ArchiveErrorCode::MaxRecordings, message)
}
