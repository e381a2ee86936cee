//! [`RecordingSetUp`]: finds or starts the recording, and adds a publication that the archive
//! records.

use aeron_client::{Aeron, ErrorCode, ExclusivePublication, PendingOperation};
use aeron_protocol::archive::ArchiveErrorCode;
use aeron_protocol::uri::{ChannelUri, key};

use super::super::call::{ArchiveCall, Ticket};
use super::super::channels::with_session_id;
use super::super::error::ArchiveClientError;
use super::super::link::{Answered, ArchiveLink};
use super::context::PublisherSettings;
use super::decision::{Decision, KnownRecording, Situation};
use super::error::RecordedPublisherError;
use super::geometry::StreamGeometry;
use super::recorded_position::{QUERY_INTERVAL_NS, RecordedPosition};
use super::stream::ActiveStream;
use crate::catalog::RecordingDescriptor;

/// Maximum number of recordings in one listing during the search for an alias.
const SEARCH_COUNT: i32 = 100;

/// A step of the set-up.
pub(super) enum RecordingSetUp {
    Begin,
    /// Searches for the last recording with the alias.
    Search(AliasSearch),
    LookUp(Ticket<Option<RecordingDescriptor>>),
    Add(Plan, PendingOperation<ExclusivePublication>),
    Request(Plan, ExclusivePublication, Ticket<i64>),
    Await(Box<AwaitedRecording>),
}

pub(super) struct AliasSearch {
    request: Ticket<Vec<RecordingDescriptor>>,
    found: Option<RecordingDescriptor>,
}

/// The use of the new publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Start,
    Extend { recording_id: i64, position: i64 },
}

/// A recording that begins when the archive has the image of the publication.
pub(super) struct AwaitedRecording {
    plan: Plan,
    publication: ExclusivePublication,
    request_id: i64,
    deadline_ns: i64,
    query: Option<Ticket<Option<i64>>>,
    next_query_ns: i64,
}

/// The end of a set-up.
pub(super) enum RecordingSetUpEnd {
    /// The archive records a new publication from this position on.
    Recording(ActiveStream, i64),
    /// The archive still records the open publication.
    StillRecording,
    /// The archive records another publication in this recording. The set-up begins again after a
    /// pause.
    AwaitStop(Option<RecordedPublisherError>),
    /// The set-up begins again after a pause.
    Retry(Option<RecordedPublisherError>),
    SessionLost,
    Failed(RecordedPublisherError),
}

/// The next step, which may be the same step again.
type RecordingAdvance = Result<RecordingSetUp, Box<RecordingSetUpEnd>>;

/// The parts of a publisher that a set-up uses.
pub(super) struct RecordingSetUpTurn<'a> {
    pub(super) aeron: &'a Aeron,
    pub(super) archive: &'a mut ArchiveLink,
    pub(super) settings: &'a PublisherSettings,
    pub(super) recording: &'a mut Option<KnownRecording>,
    pub(super) situation: Situation,
    /// Time until which the set-up waits for the end of another publisher; `None` if no other
    /// publisher extends the recording.
    pub(super) takeover_deadline_ns: &'a mut Option<i64>,
    pub(super) now_ns: i64,
}

impl RecordingSetUpTurn<'_> {
    /// Runs one step.
    pub(super) fn step(&mut self, set_up: RecordingSetUp) -> RecordingAdvance {
        match set_up {
            RecordingSetUp::Begin => self.begin(),
            RecordingSetUp::Search(search) => self.search(search),
            RecordingSetUp::LookUp(request) => self.look_up(request),
            RecordingSetUp::Add(plan, operation) => self.add(plan, operation),
            RecordingSetUp::Request(plan, publication, request) => {
                self.request(plan, publication, request)
            }
            RecordingSetUp::Await(awaited) => self.await_recording(awaited),
        }
    }

    fn begin(&mut self) -> RecordingAdvance {
        let known = self.recording.as_ref().map(|recording| recording.id);
        match (known.or(self.settings.recording_id), &self.settings.alias) {
            (Some(recording_id), _) => self
                .submit(&ArchiveCall::list_recording(recording_id))
                .map(RecordingSetUp::LookUp),
            (None, Some(alias)) => {
                let request = self.submit_search(0, &alias.clone())?;
                Ok(RecordingSetUp::Search(AliasSearch {
                    request,
                    found: None,
                }))
            }
            (None, None) => self.add_publication(Plan::Start),
        }
    }
}

/// Looking up the recording.
impl RecordingSetUpTurn<'_> {
    fn submit_search(
        &mut self,
        from_recording_id: i64,
        alias: &str,
    ) -> Result<Ticket<Vec<RecordingDescriptor>>, Box<RecordingSetUpEnd>> {
        let fragment = format!("{}={alias}", key::ALIAS);
        let stream_id = self.settings.stream_id;
        self.submit(&ArchiveCall::list_recordings_for_uri(
            from_recording_id,
            SEARCH_COUNT,
            &fragment,
            stream_id,
        ))
    }

    fn search(&mut self, mut search: AliasSearch) -> RecordingAdvance {
        let recordings = match self.archive.take(&search.request) {
            Answered::Pending => return Ok(RecordingSetUp::Search(search)),
            Answered::Value(recordings) => recordings,
            Answered::Expired => return Err(retry(None)),
            Answered::Refused(source) => return Err(refused(source)),
        };
        let alias = self.settings.alias.clone().unwrap_or_default();
        let last_id = recordings.last().map(|last| last.recording_id);
        let is_complete = recordings.len() < SEARCH_COUNT as usize;
        let matching = recordings.into_iter().rfind(|it| has_alias(it, &alias));
        search.found = matching.or(search.found);
        match (last_id, search.found) {
            (Some(last_id), found) if !is_complete => {
                let request = self.submit_search(last_id.saturating_add(1), &alias)?;
                Ok(RecordingSetUp::Search(AliasSearch { request, found }))
            }
            (_, Some(found)) => self.go_on(&found),
            (_, None) => self.add_publication(Plan::Start),
        }
    }

    fn look_up(&mut self, request: Ticket<Option<RecordingDescriptor>>) -> RecordingAdvance {
        match self.archive.take(&request) {
            Answered::Pending => Ok(RecordingSetUp::LookUp(request)),
            Answered::Value(Some(recording)) => self.go_on(&recording),
            Answered::Value(None) => {
                let known = self.recording.as_ref().map(|recording| recording.id);
                let recording_id = known.or(self.settings.recording_id).unwrap_or_default();
                Err(failed(RecordedPublisherError::UnknownRecording {
                    recording_id,
                }))
            }
            Answered::Expired => Err(retry(None)),
            Answered::Refused(source) => Err(refused(source)),
        }
    }

    fn go_on(&mut self, recording: &RecordingDescriptor) -> RecordingAdvance {
        let decision = self
            .situation
            .decide(recording, self.settings.stream_id, self.recording.as_ref())
            .map_err(failed)?;
        match decision {
            Decision::StillRecording => Err(Box::new(RecordingSetUpEnd::StillRecording)),
            Decision::AwaitStop => Err(Box::new(RecordingSetUpEnd::AwaitStop(None))),
            Decision::AwaitOther => Err(self.await_other(recording)),
            Decision::Extend(geometry) => {
                *self.takeover_deadline_ns = None;
                let recording_id = recording.recording_id;
                let known = self.recording.get_or_insert(KnownRecording {
                    id: recording_id,
                    geometry,
                    sessions: Vec::new(),
                    is_ours: false,
                });
                known.sessions.clear();
                known.sessions.push(recording.session_id);
                self.add_publication(Plan::Extend {
                    recording_id,
                    position: recording.stop_position,
                })
            }
        }
    }

    /// Waits until another publisher has ended, and reports the wait once. Fails if the other
    /// publisher does not end in time.
    fn await_other(&mut self, recording: &RecordingDescriptor) -> Box<RecordingSetUpEnd> {
        let in_use = RecordedPublisherError::InUse {
            recording_id: recording.recording_id,
            session_id: recording.session_id,
        };
        let deadline_ns = self
            .now_ns
            .saturating_add(self.settings.takeover_timeout_ns);
        match *self.takeover_deadline_ns {
            None => {
                *self.takeover_deadline_ns = Some(deadline_ns);
                Box::new(RecordingSetUpEnd::AwaitStop(Some(in_use)))
            }
            Some(deadline_ns) if self.now_ns < deadline_ns => {
                Box::new(RecordingSetUpEnd::AwaitStop(None))
            }
            Some(_) => failed(in_use),
        }
    }
}

/// Recording a new publication.
impl RecordingSetUpTurn<'_> {
    fn add_publication(&self, plan: Plan) -> RecordingAdvance {
        let channel = match (plan, &*self.recording) {
            (Plan::Extend { position, .. }, Some(known)) => self
                .settings
                .channel_at(position, known.geometry)
                .map_err(unusable)?,
            _ => self.settings.new_channel(),
        };
        let stream_id = self.settings.stream_id;
        self.aeron
            .async_add_exclusive_publication(&channel, stream_id)
            .map(|operation| RecordingSetUp::Add(plan, operation))
            .map_err(publication_failed)
    }

    fn add(
        &mut self,
        plan: Plan,
        mut operation: PendingOperation<ExclusivePublication>,
    ) -> RecordingAdvance {
        let Some(publication) = operation.poll().map_err(publication_failed)? else {
            return Ok(RecordingSetUp::Add(plan, operation));
        };
        let session_id = publication.session_id();
        let channel = with_session_id(publication.channel(), session_id).map_err(unusable)?;
        let (stream_id, location) = (self.settings.stream_id, self.settings.source_location);
        // The archive's subscription has only this session, so it can end with its only recording.
        let is_auto_stop = true;
        let call = match plan {
            Plan::Start => {
                ArchiveCall::start_recording(&channel, stream_id, location, is_auto_stop)
            }
            Plan::Extend { recording_id, .. } => ArchiveCall::extend_recording(
                recording_id,
                &channel,
                stream_id,
                location,
                is_auto_stop,
            ),
        };
        debug_assert_eq!(
            matches!(plan, Plan::Extend { .. }),
            self.recording.is_some(),
            "only a known recording is extended, and a known recording is never started again: {plan:?}"
        );
        if let Some(known) = &mut self.recording {
            known.sessions.push(session_id);
        }
        let request = self.submit(&call)?;
        Ok(RecordingSetUp::Request(plan, publication, request))
    }

    fn request(
        &mut self,
        plan: Plan,
        publication: ExclusivePublication,
        request: Ticket<i64>,
    ) -> RecordingAdvance {
        match self.archive.take(&request) {
            Answered::Pending => Ok(RecordingSetUp::Request(plan, publication, request)),
            Answered::Value(_) => Ok(RecordingSetUp::Await(Box::new(AwaitedRecording {
                plan,
                publication,
                request_id: request.correlation_id(),
                deadline_ns: self.settings.deadline_ns(self.now_ns),
                query: None,
                next_query_ns: self.now_ns.saturating_add(QUERY_INTERVAL_NS),
            }))),
            Answered::Expired => {
                self.take_back(&publication);
                Err(retry(None))
            }
            Answered::Refused(source) => Err(refused(source)),
        }
    }

    fn take_back(&mut self, publication: &ExclusivePublication) {
        if let Ok(channel) = with_session_id(publication.channel(), publication.session_id()) {
            let stream_id = publication.stream_id();
            self.archive
                .take_back_recording(&channel, stream_id, self.now_ns);
        }
    }

    fn await_recording(&mut self, mut awaited: Box<AwaitedRecording>) -> RecordingAdvance {
        let session_id = awaited.publication.session_id();
        if let Some(recorded) = RecordedPosition::find(self.aeron, self.archive, session_id) {
            return Err(self.recording(*awaited, recorded));
        }
        if let Some(request) = &awaited.query {
            let answer = self.archive.take(request);
            if matches!(answer, Answered::Pending) {
                return Ok(RecordingSetUp::Await(awaited));
            }
            awaited.query = None;
            if let Answered::Value(Some(value)) = answer {
                let recording_id = match awaited.plan {
                    Plan::Start => value,
                    Plan::Extend { recording_id, .. } => recording_id,
                };
                let recorded = RecordedPosition::of_recording(recording_id, session_id);
                return Err(self.recording(*awaited, recorded));
            }
        }
        if let Some(source) = self.archive.late_refusal(awaited.request_id) {
            return Err(refused(source));
        }
        if self.now_ns > awaited.deadline_ns {
            self.take_back(&awaited.publication);
            let waited = self.settings.archive.message_timeout();
            return Err(retry(Some(RecordedPublisherError::NotStarted { waited })));
        }
        if self.now_ns >= awaited.next_query_ns {
            awaited.next_query_ns = self.now_ns.saturating_add(QUERY_INTERVAL_NS);
            let call = match awaited.plan {
                Plan::Start => ArchiveCall::find_last_matching_recording(
                    0,
                    "",
                    awaited.publication.stream_id(),
                    session_id,
                ),
                Plan::Extend { recording_id, .. } => ArchiveCall::recording_position(recording_id),
            };
            awaited.query = Some(self.submit(&call)?);
        }
        Ok(RecordingSetUp::Await(awaited))
    }

    fn recording(
        &mut self,
        awaited: AwaitedRecording,
        recorded: RecordedPosition,
    ) -> Box<RecordingSetUpEnd> {
        let AwaitedRecording {
            plan,
            publication,
            request_id,
            ..
        } = awaited;
        let position = match (plan, publication.position()) {
            (Plan::Extend { position, .. }, _) | (Plan::Start, Ok(position)) => position,
            // The publication was closed, and nothing was sent.
            (Plan::Start, Err(_)) => return retry(None),
        };
        let id = recorded.recording_id();
        let geometry = match StreamGeometry::of_publication(&publication) {
            Ok(geometry) => geometry,
            Err(source) => {
                return failed(RecordedPublisherError::InvalidRecording {
                    recording_id: id,
                    source,
                });
            }
        };
        let session_id = publication.session_id();
        let known = self.recording.get_or_insert_with(|| KnownRecording {
            id,
            geometry,
            sessions: vec![session_id],
            is_ours: true,
        });
        known.is_ours = true;
        let stream = ActiveStream::new(publication, recorded, request_id);
        Box::new(RecordingSetUpEnd::Recording(stream, position))
    }

    fn submit<T>(&mut self, call: &ArchiveCall<T>) -> Result<Ticket<T>, Box<RecordingSetUpEnd>> {
        self.archive
            .submit(call, self.now_ns)
            .ok_or_else(|| Box::new(RecordingSetUpEnd::SessionLost))
    }
}

fn has_alias(recording: &RecordingDescriptor, alias: &str) -> bool {
    ChannelUri::parse(&recording.original_channel)
        .is_ok_and(|channel| channel.get(key::ALIAS) == Some(alias))
}

fn retry(error: Option<RecordedPublisherError>) -> Box<RecordingSetUpEnd> {
    Box::new(RecordingSetUpEnd::Retry(error))
}

fn failed(error: RecordedPublisherError) -> Box<RecordingSetUpEnd> {
    Box::new(RecordingSetUpEnd::Failed(error))
}

fn unusable(source: ArchiveClientError) -> Box<RecordingSetUpEnd> {
    failed(RecordedPublisherError::Archive { source })
}

/// Returns the end of the set-up after the archive refused a request. Refusals because of the
/// recording or the user are final. After other refusals, a later attempt may succeed: for example,
/// when space becomes free or another recording stops.
fn refused(source: ArchiveClientError) -> Box<RecordingSetUpEnd> {
    let is_final = matches!(
        source.archive_code(),
        Some(ArchiveErrorCode::UnknownRecording | ArchiveErrorCode::UnauthorisedAction)
    );
    let error = RecordedPublisherError::Refused { source };
    match is_final {
        true => failed(error),
        false => retry(Some(error)),
    }
}

/// Returns the end of the set-up after the driver refused the publication. If the channel is wrong,
/// a later attempt would fail too.
fn publication_failed(source: aeron_client::Error) -> Box<RecordingSetUpEnd> {
    let is_final = matches!(
        source,
        aeron_client::Error::Registration {
            code: ErrorCode::InvalidChannel
                | ErrorCode::NotSupported
                | ErrorCode::MalformedCommand
                | ErrorCode::UnknownCommandTypeId,
            ..
        } | aeron_client::Error::InvalidCommand { .. }
            | aeron_client::Error::InvalidArgument(_)
    );
    let error = RecordedPublisherError::Publication { source };
    match is_final {
        true => failed(error),
        false => retry(Some(error)),
    }
}
