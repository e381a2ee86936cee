//! [`Replays`]: the conductor's part of replays. It checks requests, adds publications, and passes replays to the
//! replayer.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use aeron_client::{Aeron, Counter, ExclusivePublication, Image, PendingOperation};
use aeron_protocol::archive::{ArchiveErrorCode, RequestIds};
use aeron_protocol::uri::{ChannelUri, UriError, key};

use super::bounds::{LimitCounter, ReplayBounds};
use super::pacing::RequestedPace;
use super::plan::{ReplayPlan, ReplayRange};
use super::replayer::{ReplayerCommand, ReplayerEvent};
use super::session::{NewReplay, ReplayEnd};
use super::tokens::ReplayTokens;
use crate::catalog::RecordingDescriptor;
use crate::channel::{ReplayStart, replay_channel};
use crate::checksum::Checksum;
use crate::server::ArchiveError;
use crate::store::RecordingActivity;
use crate::stream::{RecordedStream, StreamDescription};

/// Settings of the archive for replays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::server) struct ReplaySettings {
    /// Maximum number of replays at the same time.
    pub max_concurrent_replays: usize,
    /// Time limit in nanoseconds within which a replay must have a segment file and a subscriber. A
    /// token is valid for the same time.
    pub connect_timeout_ns: i64,
    /// Linger of a publication if the request does not set a linger, in nanoseconds.
    pub linger_timeout_ns: i64,
    /// Longest read of a segment file, in bytes.
    pub file_io_max_length: i32,
    /// Checksum that is verified in each frame; `None` if checksums are not verified.
    pub checksum: Option<Checksum>,
}

/// A replay request: bounded by a counter or unbounded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) struct ReplayOrder {
    pub recording_id: i64,
    /// The requested part of the recording.
    pub range: ReplayRange,
    /// The requested pace.
    pub pace: RequestedPace,
    /// Counter that bounds the replay.
    pub limit_counter_id: Option<i32>,
    /// Stream id of the replay.
    pub stream_id: i32,
    /// Channel of the replay.
    pub channel: String,
    /// Correlation id of the image from which a request with a token was received. The replay is
    /// sent to the response channel of that image.
    pub response_correlation_id: Option<i64>,
}

/// A replay request, its requester and its recording.
pub(in crate::server) struct ReplayRequested<'a> {
    /// Control session id and correlation id of the request.
    pub requester: RequestIds,
    /// Principal of the user who sent the request.
    pub owner: &'a [u8],
    /// The request.
    pub order: &'a ReplayOrder,
    /// The catalog entry, if the recording exists. If the replay begins in object storage, the start position in this
    /// entry is replaced by that of the copies.
    pub recording: Option<&'a RecordingDescriptor>,
    /// Start position of the recording in the catalog.
    pub local_start: i64,
    /// Position counter of the recording, if it is active.
    pub active_position: Option<&'a Counter>,
}

/// An event of a replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::server) enum ReplayEvent {
    /// A replay has started. The id is the result of the request.
    Started {
        /// Control session id and correlation id of the request.
        requester: RequestIds,
        /// Id of the replay.
        replay_session_id: i64,
    },
    /// A replay failed before or after it had started.
    Failed {
        /// Control session id and correlation id of the request.
        requester: RequestIds,
        /// Reason of the failure.
        error: ArchiveError,
        /// Text for the archive's error log, if the recorded data or the disk has failed. All replays of the data
        /// have the same text.
        damage: Option<String>,
    },
    /// A replay has ended, with or without an error. The replay no longer reads files of the recording.
    Ended {
        /// Recording id.
        recording_id: i64,
    },
}

/// The replays of an archive, from the request to the end.
pub(in crate::server) struct Replays {
    settings: ReplaySettings,
    commands: Sender<ReplayerCommand>,
    events: Receiver<ReplayerEvent>,
    requested: Vec<RequestedReplay>,
    running: Vec<RunningReplay>,
    /// Publications of replays that ended in the last duty cycle. The client may receive their images only now.
    ended: Vec<ReplayIdentity>,
    tokens: ReplayTokens,
    /// Upper 32 bits of the next replay id.
    next_number: i64,
}

/// A replay whose publication the driver has not added yet.
struct RequestedReplay {
    requester: RequestIds,
    owner: Vec<u8>,
    /// Port to which the replay's channel sends.
    port: Option<String>,
    stream: RecordedStream,
    local_start: Arc<AtomicI64>,
    plan: ReplayPlan,
    bounds: ReplayBounds,
    pace: RequestedPace,
    publication: PendingOperation<ExclusivePublication>,
    /// Whether `stop_all` was called for the recording of this replay.
    is_stopping: bool,
}

/// A replay that the replayer runs.
struct RunningReplay {
    requester: RequestIds,
    owner: Vec<u8>,
    recording_id: i64,
    replay_session_id: i64,
    publication: ExclusivePublication,
    identity: ReplayIdentity,
    position: Arc<AtomicI64>,
    local_start: Arc<AtomicI64>,
    is_started: bool,
    /// Whether `stop_all` was called for the recording of this replay.
    is_stopping: bool,
}

/// Identity of the publication of a replay, to recognise its images.
struct ReplayIdentity {
    registration_id: i64,
    session_id: i32,
    stream_id: i32,
    port: Option<String>,
}

impl ReplayIdentity {
    /// Returns whether an image is of this publication. `port` is the port on which the image arrived.
    fn is_source_of(&self, image: &Image, port: Option<&str>) -> bool {
        // In IPC and for a spy, the image has the id of its publication. Over the network, a live publisher may have
        // the same session id on another port.
        self.registration_id == image.correlation_id()
            || (port.is_some()
                && self.port.as_deref() == port
                && self.session_id == image.session_id()
                && self.stream_id == image.stream_id())
    }
}

/// Returns the port of a channel's endpoint, or of its control address. The same host has several names, so only the
/// port is compared.
fn port_of(channel: &ChannelUri) -> Option<&str> {
    let address = channel
        .get(key::ENDPOINT)
        .or_else(|| channel.get(key::CONTROL))?;
    address.rsplit_once(':').map(|(_, port)| port)
}

impl Replays {
    /// Creates an empty set of replays. `random` returns numbers that cannot be guessed.
    pub fn new(
        settings: ReplaySettings,
        commands: Sender<ReplayerCommand>,
        events: Receiver<ReplayerEvent>,
        random: Box<dyn FnMut() -> i64 + Send>,
    ) -> Self {
        Self {
            settings,
            commands,
            events,
            requested: Vec::new(),
            running: Vec::new(),
            ended: Vec::new(),
            tokens: ReplayTokens::new(settings.connect_timeout_ns, random),
            next_number: 1,
        }
    }

    /// Checks a request and asks the driver to add a publication. [`poll`](Self::poll) returns the event for the
    /// response.
    ///
    /// # Errors
    /// The reason why the request is refused.
    pub fn request(
        &mut self,
        aeron: &Aeron,
        request: &ReplayRequested<'_>,
    ) -> Result<(), ArchiveError> {
        let counters = limit_counters(aeron, request)?;
        self.check_room(0)?;
        let recording = request
            .recording
            .ok_or_else(|| ArchiveError::unknown_recording(request.order.recording_id))?;
        let bound = counters.iter().map(LimitCounter::get).min();
        let own_length = self.settings.file_io_max_length;
        let plan = ReplayPlan::new(&request.order.range, recording, bound, own_length)?;
        let stream = RecordedStream::new(&StreamDescription::from(recording))
            .map_err(ArchiveError::generic)?;
        let channel = self
            .channel(request, recording, plan.position)
            .map_err(|error| {
                ArchiveError::generic(format!("failed to process replayChannel - {error}"))
            })?;
        let publication = aeron
            .async_add_exclusive_publication(&channel, request.order.stream_id)
            .map_err(publication_error)?;
        let port = ChannelUri::parse(&channel).ok();
        let port = port.and_then(|channel| port_of(&channel).map(str::to_owned));
        let recording_stop = (!recording.is_unfinished()).then_some(recording.stop_position);
        self.requested.push(RequestedReplay {
            requester: request.requester,
            owner: request.owner.to_vec(),
            port,
            stream,
            local_start: Arc::new(AtomicI64::new(request.local_start)),
            plan,
            bounds: ReplayBounds::new(&plan, recording_stop, counters),
            pace: request.order.pace,
            publication,
            is_stopping: false,
        });
        Ok(())
    }

    /// Runs one duty cycle: processes the replayer's events, and removes expired tokens. Returns the work count.
    pub fn poll(&mut self, now_ns: i64, mut on_event: impl FnMut(ReplayEvent)) -> usize {
        self.tokens.expire(now_ns);
        self.ended.clear();
        let mut work = 0;
        while let Ok(event) = self.events.try_recv() {
            work += 1;
            match event {
                ReplayerEvent::Started { replay_session_id } => {
                    self.on_started(replay_session_id, &mut on_event);
                }
                ReplayerEvent::Ended {
                    replay_session_id,
                    end,
                } => self.on_ended(replay_session_id, end, &mut on_event),
            }
        }
        work
    }

    /// Checks that another replay is allowed in addition to the current replays and to `held`
    /// replays that are not requested yet.
    ///
    /// # Errors
    /// There are too many replays.
    pub fn check_room(&self, held: usize) -> Result<(), ArchiveError> {
        let max = self.settings.max_concurrent_replays;
        match self.count() + held < max {
            true => Ok(()),
            false => Err(ArchiveError::new(
                ArchiveErrorCode::MaxReplays,
                format!("max concurrent replays reached {max}"),
            )),
        }
    }

    /// Returns the number of replays that were accepted and have not ended.
    pub fn count(&self) -> usize {
        self.requested.len() + self.running.len()
    }

    /// Returns the principal of the user who requested a replay; empty if no replay has this id.
    pub fn owner(&self, replay_session_id: i64) -> &[u8] {
        let at = self.find(replay_session_id);
        at.map_or(&[], |at| &self.running[at].owner)
    }

    /// Returns whether an image is of a replay of this archive. `channel` is the channel on which the image arrived.
    pub fn has_published(&self, image: &Image, channel: &ChannelUri) -> bool {
        let port = port_of(channel);
        let running = self.running.iter().map(|replay| &replay.identity);
        let mut publications = running.chain(&self.ended);
        publications.any(|publication| publication.is_source_of(image, port))
    }

    /// Aborts a replay. Does nothing if no replay has this id.
    pub fn stop(&self, replay_session_id: i64) {
        self.send(ReplayerCommand::Stop { replay_session_id });
    }

    /// Aborts the replays of a recording, or all replays. Replays that have not started yet fail at the next
    /// [`poll`](Self::poll).
    pub fn stop_all(&mut self, recording_id: Option<i64>) {
        let is_meant = |id: i64| recording_id.is_none_or(|meant| meant == id);
        for replay in &mut self.requested {
            if is_meant(replay.stream.recording_id()) {
                replay.publication.cancel();
                replay.is_stopping = true;
            }
        }
        for replay in &mut self.running {
            replay.is_stopping |= is_meant(replay.recording_id);
        }
        self.send(ReplayerCommand::StopAll { recording_id });
    }

    /// Ends all replays immediately, because the archive ends. Revokes the publications of the
    /// replays. No events follow.
    pub fn close_all(&mut self) {
        self.requested.clear();
        for replay in self.running.drain(..) {
            replay.publication.revoke();
        }
        self.send(ReplayerCommand::StopAll { recording_id: None });
    }

    /// Returns whether a replay of the recording has not ended yet, although [`stop_all`](Self::stop_all) has stopped
    /// it. Such a replay may still read any segment.
    pub fn is_stopping(&self, recording_id: i64) -> bool {
        let requested = self.requested.iter();
        let requested = requested.map(|replay| (replay.stream.recording_id(), replay.is_stopping));
        let running = self.running.iter();
        let running = running.map(|replay| (replay.recording_id, replay.is_stopping));
        requested
            .chain(running)
            .any(|(id, is_stopping)| id == recording_id && is_stopping)
    }

    /// Returns the lowest position that a replay of the recording may still read. The segment of
    /// this position must not be deleted.
    pub fn lowest_replay_position(&self, recording_id: i64) -> Option<i64> {
        self.replay_positions(recording_id).min()
    }

    /// Returns the lowest position that a replay of local segments may still read. The first of these segments begins
    /// at `first_base`.
    ///
    /// A replay at a lower position reads copies. It continues with copies if the local segments are deleted after
    /// [`set_local_start`](Self::set_local_start).
    pub fn lowest_local_replay_position(&self, recording_id: i64, first_base: i64) -> Option<i64> {
        self.replay_positions(recording_id)
            .filter(|position| *position >= first_base)
            .min()
    }

    /// Returns the positions that a deletion of segments must keep. Copied segments may be deleted although replays
    /// read their copies.
    pub fn local_activity(
        &self,
        recording: &RecordingDescriptor,
        recorded_position: Option<i64>,
    ) -> RecordingActivity {
        let (id, first_base) = (recording.recording_id, recording.first_segment_base());
        RecordingActivity {
            recorded_position,
            lowest_replay_position: self.lowest_local_replay_position(id, first_base),
        }
    }

    /// Tells the replays of a recording that the segments before `position` will be deleted, and have copies.
    pub fn set_local_start(&self, recording_id: i64, position: i64) {
        let requested = self.requested.iter();
        let requested = requested.map(|it| (it.stream.recording_id(), &it.local_start));
        let running = self.running.iter();
        let running = running.map(|it| (it.recording_id, &it.local_start));
        for (id, local_start) in requested.chain(running) {
            if id == recording_id {
                local_start.store(position, Ordering::Release);
            }
        }
    }

    fn replay_positions(&self, recording_id: i64) -> impl Iterator<Item = i64> {
        let requested = self.requested.iter();
        let requested =
            requested.map(|replay| (replay.stream.recording_id(), replay.plan.position));
        let running = self.running.iter();
        let running =
            running.map(|replay| (replay.recording_id, replay.position.load(Ordering::Acquire)));
        requested
            .chain(running)
            .filter(move |&(id, _)| id == recording_id)
            .map(|(_, position)| position)
    }

    /// Creates a token with which a control session may replay a recording.
    pub fn issue_token(&mut self, control_session_id: i64, recording_id: i64, now_ns: i64) -> i64 {
        self.tokens.give(control_session_id, recording_id, now_ns)
    }

    /// Returns the control session of a token for this recording; `None` if the token is unknown or
    /// expired.
    pub fn token_session(&self, token: i64, recording_id: i64, now_ns: i64) -> Option<i64> {
        self.tokens.session(token, recording_id, now_ns)
    }

    /// Removes the tokens of a control session that has ended. The replays of the session continue.
    pub fn on_control_session_ended(&mut self, control_session_id: i64) {
        self.tokens.forget_session(control_session_id);
    }

    fn channel(
        &self,
        request: &ReplayRequested<'_>,
        recording: &RecordingDescriptor,
        position: i64,
    ) -> Result<String, UriError> {
        let start = ReplayStart {
            position,
            initial_term_id: recording.initial_term_id,
            term_length: recording.term_length,
            mtu_length: recording.mtu_length,
            linger_timeout_ns: self.settings.linger_timeout_ns,
        };
        let mut channel = replay_channel(&request.order.channel, &start)?;
        if let Some(correlation_id) = request.order.response_correlation_id {
            channel.put(key::RESPONSE_CORRELATION_ID, correlation_id)?;
        }
        Ok(channel.build().to_string())
    }

    /// Passes replays to the replayer when the driver has added their publications. Returns the work count. In a duty
    /// cycle, this call comes before any image is checked by [`has_published`](Self::has_published): the client may
    /// receive the response of the driver and the image of the publication at once.
    pub fn poll_publications(
        &mut self,
        now_ns: i64,
        mut on_event: impl FnMut(ReplayEvent),
    ) -> usize {
        let mut work = 0;
        let mut at = 0;
        while let Some(replay) = self.requested.get_mut(at) {
            match replay.publication.poll() {
                Ok(None) => {
                    at += 1;
                    continue;
                }
                Ok(Some(publication)) => {
                    let replay = self.requested.remove(at);
                    self.run(replay, publication, now_ns);
                }
                Err(error) => {
                    let replay = self.requested.remove(at);
                    on_event(ReplayEvent::Failed {
                        requester: replay.requester,
                        error: publication_error(error),
                        damage: None,
                    });
                    let recording_id = replay.stream.recording_id();
                    on_event(ReplayEvent::Ended { recording_id });
                }
            }
            work += 1;
        }
        work
    }

    fn run(&mut self, replay: RequestedReplay, publication: ExclusivePublication, now_ns: i64) {
        let replay_session_id = self.next_id(publication.session_id());
        debug_assert!(
            self.find(replay_session_id).is_none(),
            "two replays must not have the id {replay_session_id}"
        );
        let position = Arc::new(AtomicI64::new(replay.plan.position));
        self.running.push(RunningReplay {
            requester: replay.requester,
            owner: replay.owner,
            identity: ReplayIdentity {
                registration_id: publication.registration_id(),
                session_id: publication.session_id(),
                stream_id: publication.stream_id(),
                port: replay.port,
            },
            recording_id: replay.stream.recording_id(),
            replay_session_id,
            publication: publication.clone(),
            position: Arc::clone(&position),
            local_start: Arc::clone(&replay.local_start),
            is_started: false,
            is_stopping: replay.is_stopping,
        });
        self.send(ReplayerCommand::Replay(Box::new(NewReplay {
            replay_session_id,
            stream: replay.stream,
            local_start: replay.local_start,
            plan: replay.plan,
            bounds: replay.bounds,
            pace: replay.pace,
            publication,
            position,
            checksum: self.settings.checksum,
            connect_deadline_ns: now_ns.saturating_add(self.settings.connect_timeout_ns),
        })));
    }

    /// Returns the id of a new replay. The low 32 bits are the session id of the publication,
    /// because clients rely on this.
    fn next_id(&mut self, session_id: i32) -> i64 {
        let number = self.next_number;
        self.next_number = number.wrapping_add(1);
        (number << 32) | i64::from(session_id as u32)
    }

    fn on_started(&mut self, replay_session_id: i64, on_event: &mut impl FnMut(ReplayEvent)) {
        if let Some(at) = self.find(replay_session_id) {
            let replay = &mut self.running[at];
            debug_assert!(
                !replay.is_started,
                "replay {replay_session_id} must not start twice"
            );
            replay.is_started = true;
            on_event(ReplayEvent::Started {
                requester: replay.requester,
                replay_session_id,
            });
        }
    }

    fn on_ended(
        &mut self,
        replay_session_id: i64,
        end: ReplayEnd,
        on_event: &mut impl FnMut(ReplayEvent),
    ) {
        let Some(at) = self.find(replay_session_id) else {
            return;
        };
        let replay = self.running.swap_remove(at);
        self.ended.push(replay.identity);
        match end {
            ReplayEnd::Complete => replay.publication.close(),
            ReplayEnd::Aborted | ReplayEnd::Failed(_) | ReplayEnd::Refused(_) => {
                replay.publication.revoke();
            }
        }
        debug_assert!(
            replay.is_started || end != ReplayEnd::Complete,
            "replay {replay_session_id} must start before it is complete"
        );
        let mut damage = None;
        let error = match end {
            ReplayEnd::Failed(error) => {
                let id = format!(", replaySessionId={replay_session_id}");
                damage = Some(error.message.replace(&id, ""));
                Some(error)
            }
            ReplayEnd::Refused(error) => Some(error),
            ReplayEnd::Complete | ReplayEnd::Aborted => {
                (!replay.is_started).then(|| stopped_before_start(replay.recording_id))
            }
        };
        if let Some(error) = error {
            on_event(ReplayEvent::Failed {
                requester: replay.requester,
                error,
                damage,
            });
        }
        on_event(ReplayEvent::Ended {
            recording_id: replay.recording_id,
        });
    }

    fn find(&self, replay_session_id: i64) -> Option<usize> {
        self.running
            .iter()
            .position(|replay| replay.replay_session_id == replay_session_id)
    }

    fn send(&self, command: ReplayerCommand) {
        // An error is ignored: it means that the replayer has ended, because the archive ends.
        let _ = self.commands.send(command);
    }
}

/// Returns the counters that bound a replay: the position counter of an active recording, and the
/// counter in the request.
fn limit_counters(
    aeron: &Aeron,
    request: &ReplayRequested<'_>,
) -> Result<Vec<LimitCounter>, ArchiveError> {
    let active = request.active_position.map(|counter| counter.id());
    active
        .into_iter()
        .chain(request.order.limit_counter_id)
        .map(|id| {
            LimitCounter::find(&aeron.counters_reader(), id).ok_or_else(|| {
                ArchiveError::generic(format!(
                    "unable to create replay limit counter id= {id} because of: there is no such counter"
                ))
            })
        })
        .collect()
}

fn publication_error(error: aeron_client::Error) -> ArchiveError {
    ArchiveError::generic(format!("failed to create replay publication: {error}"))
}

fn stopped_before_start(recording_id: i64) -> ArchiveError {
    ArchiveError::generic(format!(
        "replay was stopped before it started, recordingId={recording_id}"
    ))
}
