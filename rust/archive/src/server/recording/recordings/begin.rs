//! Begins recordings: from the arrival of an image to the recorder.

use aeron_client::{Aeron, Counter};
use aeron_protocol::archive::RecordingSignal;

use super::super::blocked::ArrivedImage;
use super::super::counters::request_position_counter;
use super::super::recorder::RecorderCommand;
use super::super::session::RecordingSession;
use super::super::subscriptions::{RecordingPurpose, ServedSubscription};
use super::failure::RecordingFailure;
use super::{Active, ActiveParts, RecordingSettings, Recordings, Starting};
use crate::catalog::RecordingDescriptor;
use crate::server::ArchiveError;
use crate::server::outlets::{ArchiveOutlets, SignalPlace};
use crate::storage::Storage;
use crate::store::{ArchiveStore, Continuation, NewRecording};

impl<S: Storage + Clone> Recordings<S> {
    /// Begins a new recording with an image, or extends a recording with the image.
    pub(super) fn begin(
        &mut self,
        aeron: &Aeron,
        store: &mut ArchiveStore<S>,
        arrived: ArrivedImage,
        outlets: &mut ArchiveOutlets,
    ) {
        let number = arrived.number;
        let Some(entry) = self.subscriptions.by_number(number) else {
            // The subscription was stopped after the arrival of the image. If one of its recordings keeps the
            // subscription open, an unread image would block its publisher.
            self.unrecorded.add(arrived.image);
            return;
        };
        if entry.subscription().is_none() {
            // The driver's reply about the subscription is not processed yet. The next duty cycle processes it.
            debug_assert!(
                arrived.failed_id.is_none() && !arrived.is_reported,
                "an image of subscription {number} has failed before the subscription was open"
            );
            self.arrivals.put_back(number, arrived.image);
            return;
        }
        self.memory.remember(entry);
        let (requester, is_auto_stop, purpose) =
            (entry.requester, entry.is_auto_stop, entry.purpose);
        let new_id = store.next_recording_id();
        let failed_id = arrived
            .failed_id
            .filter(|&id| Self::skip_recorded(store, id, &arrived));
        let purpose = match failed_id {
            Some(recording_id) => RecordingPurpose::Extend { recording_id },
            None => purpose,
        };
        let outcome = match purpose {
            RecordingPurpose::New | RecordingPurpose::Extend { .. } => {
                self.begin_as(purpose, aeron, store, &arrived, outlets.now_ms())
            }
            RecordingPurpose::Resume { .. } => self.begin_again(aeron, store, &arrived, outlets),
        };
        if let Err(error) = outcome {
            // A recording that could not begin may already be in the catalog, without any bytes.
            let added_id = store.recording(new_id).is_ok().then_some(new_id);
            let extended_id = match purpose {
                RecordingPurpose::Extend { recording_id } => Some(recording_id),
                RecordingPurpose::New | RecordingPurpose::Resume { .. } => None,
            };
            let arrived = ArrivedImage {
                failed_id: added_id.or(extended_id),
                ..arrived
            };
            let failure = RecordingFailure {
                error,
                requester,
                ends_subscription: is_auto_stop && extended_id.is_some() && failed_id.is_none(),
            };
            self.fail(store, arrived, failure, outlets);
        }
    }

    /// Tries again to record the blocked images for which it is time. Returns the number of attempts.
    pub(super) fn retry_blocked(
        &mut self,
        aeron: &Aeron,
        store: &mut ArchiveStore<S>,
        outlets: &mut ArchiveOutlets,
    ) -> usize {
        for closed in self.blocked.take_closed() {
            self.note_end_of_image(closed.number);
        }
        let now_ms = outlets.now_ms();
        let due = self.blocked.take_due(now_ms);
        let attempts = due.len();
        debug_assert!(
            due.iter()
                .all(|arrived| self.subscriptions.by_number(arrived.number).is_some()),
            "an image whose subscription was stopped must not stay blocked"
        );
        for arrived in due {
            let is_unnoted = arrived
                .failed_id
                .is_some_and(|id| self.unnoted.contains(id));
            match is_unnoted || store.check_storage_space().is_err() {
                true => self.blocked.add(arrived, true, now_ms),
                false => self.begin(aeron, store, arrived, outlets),
            }
        }
        attempts
    }

    /// Begins or extends a recording. A subscription with this number must exist.
    pub(super) fn begin_as(
        &mut self,
        purpose: RecordingPurpose,
        aeron: &Aeron,
        store: &mut ArchiveStore<S>,
        arrived: &ArrivedImage,
        now_ms: i64,
    ) -> Result<(), ArchiveError> {
        let Some(entry) = self.subscriptions.by_number(arrived.number) else {
            return Ok(());
        };
        let join_position = arrived.image.position();
        let recording_id = match purpose {
            RecordingPurpose::Extend { recording_id } => recording_id,
            RecordingPurpose::New | RecordingPurpose::Resume { .. } => store.next_recording_id(),
        };
        let is_unfinished = |store: &ArchiveStore<S>| {
            let recording = store.recording(recording_id);
            recording.is_ok_and(RecordingDescriptor::is_unfinished)
        };
        let was_unfinished = is_unfinished(store);
        match add_to_store(
            aeron,
            store,
            &self.settings,
            entry,
            purpose,
            arrived,
            now_ms,
        ) {
            Ok(starting) => {
                debug_assert_eq!(
                    starting.active.recording_id, recording_id,
                    "an image must be recorded in the recording that was chosen for it"
                );
                debug_assert!(
                    !self.is_active(recording_id),
                    "recording {recording_id} must not start twice"
                );
                self.unnoted.forget(recording_id);
                self.starting.push(starting);
                Ok(())
            }
            Err(error) => {
                if !was_unfinished && is_unfinished(store) {
                    // A sync or a later step failed, but the catalog already has the recording or
                    // the extension. So its stop position must be stored later.
                    self.unnoted.add(recording_id, join_position, now_ms);
                }
                Err(error)
            }
        }
    }

    /// Passes recordings to the recorder when the driver has added their counters.
    pub(super) fn poll_starting(
        &mut self,
        store: &mut ArchiveStore<S>,
        outlets: &mut ArchiveOutlets,
    ) -> usize {
        let mut work = 0;
        let mut place = 0;
        // The others stay in the list: if the failure of one ends its subscription, the others are stopped too.
        while let Some(starting) = self.starting.get_mut(place) {
            match starting.counter.poll() {
                Ok(None) => place += 1,
                Ok(Some(counter)) => {
                    work += 1;
                    let starting = self.starting.remove(place);
                    self.hand_to_recorder(starting, counter, outlets);
                }
                Err(error) => {
                    work += 1;
                    let starting = self.starting.remove(place);
                    let position = starting.recorder.recorded_position();
                    let (parts, image) = (&starting.active, starting.image);
                    let error = Some(error.into());
                    self.stop(store, parts, (image, position), error, outlets);
                }
            }
        }
        work
    }

    fn hand_to_recorder(
        &mut self,
        starting: Starting<S>,
        counter: Counter,
        outlets: &mut ArchiveOutlets,
    ) {
        let Starting {
            active: parts,
            image,
            recorder,
            original_channel,
            signal,
            is_stopped,
            ..
        } = starting;
        let (recording_id, position) = (parts.recording_id, recorder.recorded_position());
        // Set before the client gets the signal, because the client may read the counter then.
        counter.set(position);
        let place = SignalPlace {
            recording_id,
            subscription_id: parts.subscription.registration_id(),
            position,
        };
        outlets.signal(parts.requester, signal, place);
        let block_limit = self.settings.block_limit;
        let session = RecordingSession::new(
            image.clone(),
            recorder,
            counter.clone(),
            original_channel,
            block_limit,
        );
        debug_assert!(
            !self.is_active(recording_id),
            "recording {recording_id} must not have two recorders"
        );
        self.active.insert(
            recording_id,
            Active {
                parts,
                position: counter,
                image,
            },
        );
        self.send(RecorderCommand::Record(Box::new(session)));
        if is_stopped {
            self.send(RecorderCommand::Stop { recording_id });
        }
    }
}

/// Adds a recording of an image to the store, or extends an existing recording. Asks the driver to add the position
/// counter.
fn add_to_store<S: Storage + Clone>(
    aeron: &Aeron,
    store: &mut ArchiveStore<S>,
    settings: &RecordingSettings,
    entry: &ServedSubscription,
    purpose: RecordingPurpose,
    arrived: &ArrivedImage,
    now_ms: i64,
) -> Result<Starting<S>, ArchiveError> {
    let subscription = entry
        .subscription()
        .ok_or_else(|| ArchiveError::generic("the subscription of the image is not added yet"))?
        .clone();
    let image = arrived.image.clone();
    // After a restart, the bytes before this position are already in the recording.
    let join_position = image.position();
    let (recorder, signal) = match purpose {
        RecordingPurpose::New | RecordingPurpose::Resume { .. } => {
            let new = NewRecording {
                start_timestamp_ms: now_ms,
                join_position,
                initial_term_id: image.initial_term_id(),
                term_length: length(image.term_buffer_length())?,
                mtu_length: length(image.mtu_length())?,
                session_id: image.session_id(),
                stream_id: image.stream_id(),
                stripped_channel: entry.stripped_channel.clone(),
                original_channel: entry.original_channel.clone(),
                source_identity: image.source_identity().to_owned(),
            };
            (store.start_recording(new)?, RecordingSignal::Start)
        }
        RecordingPurpose::Extend { recording_id } => {
            let continuation = Continuation {
                join_position,
                initial_term_id: image.initial_term_id(),
                term_length: length(image.term_buffer_length())?,
                mtu_length: length(image.mtu_length())?,
                session_id: image.session_id(),
                control_session_id: entry.requester.control_session_id,
                correlation_id: entry.requester.correlation_id,
            };
            (
                store.extend_recording(recording_id, &continuation)?,
                RecordingSignal::Extend,
            )
        }
    };
    let recording_id = recorder.stream().recording_id();
    let descriptor = store.recording(recording_id)?;
    Ok(Starting {
        counter: request_position_counter(aeron, descriptor, settings.archive_id)?,
        active: ActiveParts {
            recording_id,
            requester: entry.requester,
            subscription_number: entry.number,
            subscription,
            is_auto_stop: entry.is_auto_stop,
            failed_position: arrived.is_reported.then_some(join_position),
        },
        image,
        recorder,
        original_channel: entry.original_channel.clone(),
        signal,
        is_stopped: false,
    })
}

fn length(length: usize) -> Result<i32, ArchiveError> {
    i32::try_from(length)
        .map_err(|_| ArchiveError::generic(format!("length {length} of an image is too long")))
}
