//! [`Exchange`]: stores the requests of a session until the client has read their results. Also
//! stores the recording signals and errors that the archive sends without a request.
//!
//! An `Exchange` does no I/O. Messages are passed in and out as bytes, and the time is a parameter.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use aeron_protocol::archive::extension::ExtensionResponse;
use aeron_protocol::archive::{
    ArchiveDecodeError, ArchiveErrorCode, ArchiveResponse, ControlResponse, ControlResponseCode,
    RecordingDescriptorMessage, RecordingSignalEvent, RecordingSubscriptionDescriptor,
};

use super::answer::{Answer, Expected};
use super::bounded::BoundedQueue;
use super::descriptor::text;
use super::error::{ArchiveClientError, Result};

/// Maximum number of queued signals for the application. If another signal arrives, the oldest
/// signal is dropped.
pub const MAX_QUEUED_SIGNALS: usize = 1024;
/// Maximum number of queued errors for the application. If another error arrives, the oldest error
/// is dropped.
const MAX_QUEUED_ERRORS: usize = 64;
/// Maximum number of expired requests that the exchange remembers until their late responses arrive.
/// If another request expires, the oldest request is removed.
const MAX_LATE_ANSWERS: usize = 64;
/// Maximum number of ended requests that the exchange remembers for later errors of the archive. If another request
/// ends, the oldest request is removed.
const MAX_ENDED_REQUESTS: usize = 256;
/// Beginnings of the names of requests that continue in the archive after their response. An error may follow later.
const CONTINUING_REQUESTS: [&str; 3] = ["start ", "extend ", "replicate"];
/// Longest response that is read, in bytes. A descriptor with three channels of maximum length is shorter.
pub(super) const MAX_RESPONSE_LENGTH: usize = 1 << 20;

/// A request to be sent.
pub(super) struct NewRequest {
    /// Name of the request in error texts.
    pub(super) name: &'static str,
    pub(super) correlation_id: i64,
    pub(super) message: Vec<u8>,
    pub(super) expected: Expected,
    /// Whether the archive refuses the request while a listing of the session is running.
    pub(super) is_listing: bool,
}

/// Outcome of an attempt to send a request.
pub(super) enum SendOutcome {
    Sent,
    /// The stream has no room now.
    BackPressured,
    /// The stream will never accept the request.
    Failed(ArchiveClientError),
}

/// The requests and notifications of one session.
pub(super) struct Exchange {
    control_session_id: i64,
    message_timeout_ns: i64,
    requests: HashMap<i64, Request>,
    /// Correlation ids in the order of the requests. Some of these requests may already be abandoned or finished.
    unsent: VecDeque<i64>,
    /// Correlation id of the listing that is running in the archive.
    active_listing: Option<i64>,
    signals: BoundedQueue<RecordingSignalEvent>,
    errors: BoundedQueue<ArchiveClientError>,
    /// Correlation ids of expired requests. Their responses may still arrive.
    late: VecDeque<i64>,
    /// Values that arrived for the requests in `late`.
    late_values: BoundedQueue<i64>,
    unclaimed: UnclaimedRefusals,
    /// Ended requests, for which an error may still arrive.
    ended: VecDeque<EndedRequest>,
}

/// A request that has ended, and the error that has arrived since then.
struct EndedRequest {
    correlation_id: i64,
    name: &'static str,
    /// Value of the response, such as the id of a replay; `None` if there was no response.
    value: Option<i64>,
    error: Option<ArchiveClientError>,
}

/// Number of errors that no request was waiting for, and the last of them. Reading them does not
/// remove errors from the queue.
#[derive(Default)]
pub(super) struct UnclaimedRefusals {
    count: u64,
    last: Option<ArchiveClientError>,
}

impl UnclaimedRefusals {
    /// Returns the number of errors that no request was waiting for, since the session was connected.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the last error if more than `count` errors have arrived.
    pub(super) fn last_after(&self, count: u64) -> Option<&ArchiveClientError> {
        self.last.as_ref().filter(|_| self.count > count)
    }

    fn add(&mut self, refusal: ArchiveClientError) {
        self.count += 1;
        self.last = Some(refusal);
    }
}

struct Request {
    name: &'static str,
    is_listing: bool,
    expected: Expected,
    /// The part of the answer that has arrived.
    answer: Answer,
    /// Number of descriptors that have arrived.
    received: usize,
    progress: RequestProgress,
    /// Time at which the client began to wait for the next message; `None` for a listing that waits until another
    /// listing has ended.
    waiting_since_ns: Option<i64>,
    /// Whether the client has abandoned the request. The archive still executes it.
    is_abandoned: bool,
}

enum RequestProgress {
    Unsent(Vec<u8>),
    Sent,
    Finished(Result<Answer>),
}

impl Exchange {
    pub(super) fn new(control_session_id: i64, message_timeout_ns: i64) -> Self {
        Self {
            control_session_id,
            message_timeout_ns,
            requests: HashMap::new(),
            unsent: VecDeque::new(),
            active_listing: None,
            signals: BoundedQueue::new(MAX_QUEUED_SIGNALS),
            errors: BoundedQueue::new(MAX_QUEUED_ERRORS),
            late: VecDeque::new(),
            late_values: BoundedQueue::new(MAX_LATE_ANSWERS),
            unclaimed: UnclaimedRefusals::default(),
            ended: VecDeque::new(),
        }
    }

    /// Queues a request.
    pub(super) fn begin(&mut self, new: NewRequest, now_ns: i64) {
        let answer = Answer::none_of(new.expected);
        let nothing_to_ask = new.expected.count() == Some(0);
        let request = Request {
            name: new.name,
            is_listing: new.is_listing,
            expected: new.expected,
            received: 0,
            progress: match nothing_to_ask {
                // An archive does not respond to a listing of 0 recordings.
                true => RequestProgress::Finished(Ok(answer.clone())),
                false => RequestProgress::Unsent(new.message),
            },
            answer,
            waiting_since_ns: (!new.is_listing).then_some(now_ns),
            is_abandoned: false,
        };
        self.requests.insert(new.correlation_id, request);
        if !nothing_to_ask {
            self.unsent.push_back(new.correlation_id);
        }
    }

    /// Passes each queued request with its correlation id to `send`. If `send` returns
    /// `BackPressured`, the request stays queued. Returns the number of sent requests.
    ///
    /// A listing is only sent while no other listing is running.
    pub(super) fn send(
        &mut self,
        now_ns: i64,
        mut send: impl FnMut(i64, &'static str, &[u8]) -> SendOutcome,
    ) -> usize {
        let mut sent = 0;
        for _ in 0..self.unsent.len() {
            let Some(id) = self.unsent.pop_front() else {
                break;
            };
            let Some(request) = self.requests.get_mut(&id) else {
                continue;
            };
            let RequestProgress::Unsent(message) = &request.progress else {
                continue;
            };
            if request.is_listing && *self.active_listing.get_or_insert(id) != id {
                self.unsent.push_back(id);
                continue;
            }
            request.waiting_since_ns.get_or_insert(now_ns);
            match send(id, request.name, message) {
                SendOutcome::Sent => {
                    request.progress = RequestProgress::Sent;
                    request.waiting_since_ns = Some(now_ns);
                    sent += 1;
                }
                SendOutcome::BackPressured => self.unsent.push_back(id),
                SendOutcome::Failed(error) => self.finish(id, Err(error)),
            }
        }
        sent
    }

    /// Processes a message of the archive. Never panics, because the bytes of the message may be
    /// anything.
    pub(super) fn on_message(&mut self, message: &[u8], now_ns: i64) {
        match ArchiveResponse::decode(message) {
            Ok(response) => self.on_response(&response, now_ns),
            Err(ArchiveDecodeError::UnknownTemplateId { .. }) => self.on_other(message, now_ns),
            Err(error) => self.errors.push(error.into()),
        }
    }

    /// Queues the error for a message that is too long for the archive's protocol.
    pub(super) fn on_oversized_message(&mut self, length: usize) {
        let max = MAX_RESPONSE_LENGTH;
        self.errors
            .push(ArchiveClientError::ResponseTooLong { length, max });
    }

    /// Fails the requests that have waited longer than the message timeout.
    pub(super) fn expire(&mut self, now_ns: i64) {
        let timeout_ns = self.message_timeout_ns;
        let is_late = |request: &Request| {
            request.waiting_since_ns.is_some_and(|since_ns| {
                !request.is_finished() && now_ns.wrapping_sub(since_ns) > timeout_ns
            })
        };
        let late: Vec<i64> = self
            .requests
            .iter()
            .filter(|(_, request)| is_late(request))
            .map(|(&id, _)| id)
            .collect();
        for id in late {
            let error = self.timeout(id);
            self.finish(id, Err(error));
        }
    }

    /// Fails all requests that are not finished.
    pub(super) fn fail_all(&mut self, error: &ArchiveClientError) {
        let ids: Vec<i64> = self.requests.keys().copied().collect();
        for id in ids {
            self.finish(id, Err(error.clone()));
        }
    }

    /// Removes and returns the outcome of a request. Returns `None` until the request is finished.
    pub(super) fn take(&mut self, correlation_id: i64) -> Option<Result<Answer>> {
        if !self.requests.get(&correlation_id)?.is_finished() {
            return None;
        }
        match self.requests.remove(&correlation_id)?.progress {
            RequestProgress::Finished(outcome) => Some(outcome),
            RequestProgress::Unsent(_) | RequestProgress::Sent => None,
        }
    }

    /// Removes a request. If the request is a listing and was sent, it blocks other listings until
    /// the archive has ended it.
    pub(super) fn abandon(&mut self, correlation_id: i64) {
        let Some(request) = self.requests.get_mut(&correlation_id) else {
            return;
        };
        if request.is_listing && matches!(request.progress, RequestProgress::Sent) {
            request.is_abandoned = true;
            request.answer = Answer::none_of(request.expected);
            return;
        }
        self.requests.remove(&correlation_id);
        if self.active_listing == Some(correlation_id) {
            self.active_listing = None;
        }
    }

    /// Notes that the response to an expired request may still arrive. If the response arrives, its
    /// value is stored.
    pub(super) fn await_late_value(&mut self, correlation_id: i64) {
        if self.late.len() == MAX_LATE_ANSWERS {
            self.late.pop_front();
        }
        self.late.push_back(correlation_id);
    }

    /// Removes and returns the value of a response that arrived after its request had expired.
    pub(super) fn take_late_value(&mut self) -> Option<i64> {
        self.late_values.pop()
    }

    /// Returns whether the request waits for its answer.
    pub(super) fn is_waiting(&self, correlation_id: i64) -> bool {
        self.requests
            .get(&correlation_id)
            .is_some_and(|request| !request.is_finished())
    }

    pub(super) fn take_signal(&mut self) -> Option<RecordingSignalEvent> {
        self.signals.pop()
    }

    /// Returns the number of signals that have arrived.
    pub(super) const fn received_signals(&self) -> u64 {
        self.signals.pushed()
    }

    /// Returns the number of signals that were dropped because the application did not read them.
    pub(super) const fn lost_signals(&self) -> u64 {
        self.signals.lost()
    }

    /// Returns the error that the archive sent for a replay after the replay had started.
    pub(super) fn error_of_replay(&self, replay_session_id: i64) -> Option<&ArchiveClientError> {
        let is_it = |it: &&EndedRequest| it.value == Some(replay_session_id) && it.error.is_some();
        self.ended.iter().rev().find(is_it)?.error.as_ref()
    }

    pub(super) const fn unclaimed_refusals(&self) -> &UnclaimedRefusals {
        &self.unclaimed
    }

    /// Removes and returns an error that no request was waiting for.
    pub(super) fn take_error(&mut self) -> Option<ArchiveClientError> {
        self.errors.pop()
    }
}

/// Processing of messages.
impl Exchange {
    fn on_response(&mut self, response: &ArchiveResponse<'_>, now_ns: i64) {
        let own = self.control_session_id;
        match response {
            ArchiveResponse::ControlResponse(message) if message.control_session_id == own => {
                self.on_control_response(message);
            }
            ArchiveResponse::RecordingDescriptor(message) if message.control_session_id == own => {
                self.on_recording(message, now_ns);
            }
            ArchiveResponse::RecordingSubscriptionDescriptor(message)
                if message.control_session_id == own =>
            {
                self.on_subscription(message, now_ns);
            }
            ArchiveResponse::RecordingSignal(message) if message.control_session_id == own => {
                self.signals.push(*message);
            }
            _ => {}
        }
    }

    fn on_control_response(&mut self, response: &ControlResponse<'_>) {
        let id = response.correlation_id;
        let request = self
            .requests
            .get_mut(&id)
            .filter(|request| matches!(request.progress, RequestProgress::Sent));
        match request {
            Some(request) => {
                let outcome = request.outcome_of(response);
                self.finish(id, outcome);
            }
            None if response.code == ControlResponseCode::Ok && self.late.contains(&id) => {
                self.late.retain(|late| *late != id);
                self.late_values.push(response.relevant_id);
            }
            None if response.code == ControlResponseCode::Error => {
                let ended = self.ended.iter_mut().find(|it| it.correlation_id == id);
                let name = ended.as_ref().map_or("unknown request", |it| it.name);
                let error = refusal(name, response);
                if let Some(ended) = ended {
                    ended.error = Some(error.clone());
                }
                self.unclaimed.add(error.clone());
                self.errors.push(error);
            }
            None => {}
        }
    }

    fn on_recording(&mut self, message: &RecordingDescriptorMessage<'_>, now_ns: i64) {
        self.on_descriptor(message.correlation_id, now_ns, |answer| match answer {
            Answer::Recordings(recordings) => {
                recordings.push(message.into());
                true
            }
            Answer::Subscriptions(_) | Answer::Page(..) | Answer::Value(_) => false,
        });
    }

    fn on_subscription(&mut self, message: &RecordingSubscriptionDescriptor<'_>, now_ns: i64) {
        self.on_descriptor(message.correlation_id, now_ns, |answer| match answer {
            Answer::Subscriptions(subscriptions) => {
                subscriptions.push(message.into());
                true
            }
            Answer::Recordings(_) | Answer::Page(..) | Answer::Value(_) => false,
        });
    }

    /// Processes a message that does not belong to Aeron's protocol. Ignores unknown messages.
    fn on_other(&mut self, message: &[u8], now_ns: i64) {
        let response = match ExtensionResponse::decode(message) {
            Ok(response) => response,
            Err(ArchiveDecodeError::UnknownTemplateId { .. }) => return,
            Err(error) => return self.errors.push(error.into()),
        };
        let (control_session_id, correlation_id) = response.ids();
        if control_session_id != self.control_session_id {
            return;
        }
        self.on_descriptor(correlation_id, now_ns, |answer| match answer {
            Answer::Page(descriptors, _) => {
                descriptors.push((&response).into());
                true
            }
            Answer::Recordings(_) | Answer::Subscriptions(_) | Answer::Value(_) => false,
        });
    }

    /// Calls `add` to add a descriptor to an answer. `add` returns `false` if the answer has another kind of
    /// descriptors.
    fn on_descriptor(&mut self, id: i64, now_ns: i64, add: impl FnOnce(&mut Answer) -> bool) {
        let Some(request) = self.requests.get_mut(&id) else {
            return;
        };
        let (RequestProgress::Sent, Some(count)) = (&request.progress, request.expected.count())
        else {
            return;
        };
        if !add(&mut request.answer) {
            return;
        }
        if request.is_abandoned {
            request.answer = Answer::none_of(request.expected);
        }
        request.received += 1;
        request.waiting_since_ns = Some(now_ns);
        debug_assert!(
            request.received <= count,
            "a listing of {count} descriptors must end before descriptor {}",
            request.received
        );
        if request.received >= count {
            let answer = request.take_answer();
            self.finish(id, Ok(answer));
        }
    }

    fn finish(&mut self, id: i64, outcome: Result<Answer>) {
        if self.active_listing == Some(id) {
            self.active_listing = None;
        }
        let Some(request) = self.requests.get_mut(&id) else {
            return;
        };
        if request.is_finished() {
            return;
        }
        let value = match &outcome {
            Ok(Answer::Value(value)) => Some(*value),
            _ => None,
        };
        let name = request.name;
        let continues = CONTINUING_REQUESTS.iter().any(|it| name.starts_with(it));
        let is_remembered = outcome.is_err() || continues;
        match request.is_abandoned {
            true => drop(self.requests.remove(&id)),
            false => request.progress = RequestProgress::Finished(outcome),
        }
        if is_remembered {
            if self.ended.len() == MAX_ENDED_REQUESTS {
                self.ended.pop_front();
            }
            self.ended.push_back(EndedRequest {
                correlation_id: id,
                name,
                value,
                error: None,
            });
        }
    }

    fn timeout(&self, correlation_id: i64) -> ArchiveClientError {
        let (request, awaited) = match self.requests.get(&correlation_id) {
            Some(request) => (request.name, request.awaited()),
            None => ("unknown request", "a response"),
        };
        ArchiveClientError::Timeout {
            request,
            awaited,
            correlation_id,
            waited: Duration::from_nanos(self.message_timeout_ns.unsigned_abs()),
        }
    }
}

impl Request {
    const fn is_finished(&self) -> bool {
        matches!(self.progress, RequestProgress::Finished(_))
    }

    const fn awaited(&self) -> &'static str {
        match (&self.progress, self.expected) {
            (RequestProgress::Unsent(_), _) => "room on the request stream",
            (_, Expected::Value) => "a response",
            (_, Expected::Recordings(_) | Expected::Subscriptions(_) | Expected::Page) => {
                "the next descriptor"
            }
        }
    }

    fn take_answer(&mut self) -> Answer {
        std::mem::replace(&mut self.answer, Answer::Value(0))
    }

    fn outcome_of(&mut self, response: &ControlResponse<'_>) -> Result<Answer> {
        match (response.code, self.expected) {
            (ControlResponseCode::Ok, Expected::Value) => Ok(Answer::Value(response.relevant_id)),
            (ControlResponseCode::RecordingUnknown, Expected::Recordings(_))
            | (ControlResponseCode::SubscriptionUnknown, Expected::Subscriptions(_)) => {
                Ok(self.take_answer())
            }
            (ControlResponseCode::Ok, Expected::Page) => {
                let (descriptors, _) = self.take_answer().into_page();
                Ok(Answer::Page(descriptors, response.relevant_id))
            }
            (ControlResponseCode::Error, _) => Err(refusal(self.name, response)),
            (ControlResponseCode::RecordingUnknown, Expected::Value) => {
                Err(unknown_recording(self.name, response))
            }
            _ => Err(ArchiveClientError::UnexpectedResponse {
                request: self.name,
                correlation_id: response.correlation_id,
                code: response.code,
                relevant_id: response.relevant_id,
            }),
        }
    }
}

/// Returns the error in a response of the archive.
pub(super) fn refusal(request: &'static str, response: &ControlResponse<'_>) -> ArchiveClientError {
    ArchiveClientError::Refused {
        request,
        correlation_id: response.correlation_id,
        code: response.relevant_id,
        message: text(response.error_message),
    }
}

/// Returns the error for an unknown recording. The archive reports an unknown recording in a separate kind of response,
/// not as an error.
fn unknown_recording(request: &'static str, response: &ControlResponse<'_>) -> ArchiveClientError {
    ArchiveClientError::Refused {
        request,
        correlation_id: response.correlation_id,
        code: ArchiveErrorCode::UnknownRecording.value().into(),
        message: format!("unknown recording id: {}", response.relevant_id),
    }
}
