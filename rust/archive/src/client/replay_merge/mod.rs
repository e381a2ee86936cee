//! [`ReplayMerge`]: replays a recording, then goes over to the live stream.

mod error;
mod parties;
mod position_query;
mod state;

use std::time::Duration;

use aeron_client::{Batch, BatchLimits, Error, Fragment, HandlerOutcome, Image, Subscription};
use aeron_protocol::archive::NULL_VALUE;

use self::parties::Parties;
use self::state::{Progress, State};
use super::aeron_archive::AeronArchive;

pub use self::error::ReplayMergeError;

type Result<T> = std::result::Result<T, ReplayMergeError>;

/// How often errors of the archive are looked for.
const RESPONSE_INTERVAL_NS: i64 = 100_000_000;
/// The progress timeout, if the program does not say.
const DEFAULT_PROGRESS_TIMEOUT: Duration = Duration::from_secs(5);

/// What is merged: a recording, and the stream that it records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayMergeParams {
    /// Channel of the replay. It has the `session-id` of the recorded stream, so that both arrive as one image.
    pub replay_channel: String,
    /// Destination of the subscription that receives the replay. Its port may be 0.
    pub replay_destination: String,
    /// Destination of the subscription that receives the live stream.
    pub live_destination: String,
    /// The recording.
    pub recording_id: i64,
    /// Position of the first frame; [`NULL_VALUE`] for the start of the recording.
    pub start_position: i64,
    /// Time without progress after which the merge fails.
    pub progress_timeout: Duration,
}

impl ReplayMergeParams {
    /// A merge from the start of the recording on, with a progress timeout of five seconds.
    #[must_use]
    pub fn new(
        replay_channel: impl Into<String>,
        replay_destination: impl Into<String>,
        live_destination: impl Into<String>,
        recording_id: i64,
    ) -> Self {
        Self {
            replay_channel: replay_channel.into(),
            replay_destination: replay_destination.into(),
            live_destination: live_destination.into(),
            recording_id,
            start_position: NULL_VALUE,
            progress_timeout: DEFAULT_PROGRESS_TIMEOUT,
        }
    }
}

/// A replay of a recording that merges with the live stream: every message once, in order, and no gap between the two.
///
/// The subscription has `control-mode=manual`. The merge adds the destination of the replay to it. When the program is near the end of
/// the recording, the merge adds the live destination; when both transports deliver the image, the merge removes the replay.
///
/// The owner calls [`poll`](Self::poll), or [`do_work`](Self::do_work), until [`is_merged`](Self::is_merged). Nothing blocks. From then
/// on the program may poll the subscription itself, and drop the merge.
///
/// Progress is a further state, or a higher position of the image. Other requests of the archive's client may run meanwhile. An error of
/// the archive that no request waits for fails the merge. Dropping a merge that is not complete removes the replay.
///
/// ```no_run
/// use aeron_archive::client::{AeronArchive, ReplayMerge, ReplayMergeParams};
///
/// # fn merge(aeron: &aeron_client::Aeron, archive: &AeronArchive) -> Result<(), Box<dyn std::error::Error>> {
/// let recording = archive.list_recording(7)?.ok_or("no such recording")?;
/// let channel = format!("aeron:udp?control-mode=manual|session-id={}", recording.session_id);
/// let subscription = aeron.add_subscription(&channel, recording.stream_id)?;
/// let params = ReplayMergeParams::new(
///     format!("aeron:udp?session-id={}", recording.session_id),
///     "aeron:udp?endpoint=localhost:0",
///     "aeron:udp?endpoint=localhost:0|control=publisher.example:20121",
///     recording.recording_id,
/// );
/// let mut merge = ReplayMerge::new(&subscription, archive, &params)?;
/// while !merge.is_merged() {
///     merge.poll(|fragment| println!("{} bytes", fragment.len()), 10)?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct ReplayMerge {
    parties: Parties,
    state: State,
    progress: Progress,
    progress_timeout: Duration,
    /// Errors of the archive that came before the merge.
    earlier_refusals: u64,
    next_response_poll_ns: i64,
}

impl ReplayMerge {
    /// Begins a merge: adds the replay destination.
    ///
    /// # Errors
    /// [`ReplayMergeError::IpcChannel`], [`ReplayMergeError::NotManual`], [`ReplayMergeError::NoEndpoint`]; a channel cannot be parsed;
    /// subscription or archive are closed.
    pub fn new(
        subscription: &Subscription,
        archive: &AeronArchive,
        params: &ReplayMergeParams,
    ) -> Result<Self> {
        let now_ns = archive.context().now_ns();
        let earlier_refusals = archive.session()?.unclaimed_refusals().count();
        let parties = Parties::new(subscription, archive, params)?;
        Ok(Self {
            state: State::begin(&parties)?,
            parties,
            progress: Progress::begin(now_ns),
            progress_timeout: params.progress_timeout,
            earlier_refusals,
            next_response_poll_ns: now_ns,
        })
    }

    /// Makes progress without waiting. Returns a work count. Does nothing once the merge is complete, has failed or is closed.
    ///
    /// # Errors
    /// See [`ReplayMergeError`]. The merge has failed then.
    pub fn do_work(&mut self) -> Result<usize> {
        if self.state.is_final() {
            return Ok(0);
        }
        let now_ns = self.parties.archive.context().now_ns();
        match self.advance(now_ns) {
            Err(error) if !error.is_reentrant_call() => {
                self.state = State::Failed;
                Err(error)
            }
            outcome => outcome,
        }
    }

    /// Makes progress, then calls `handler` for up to `limit` fragments of the image. Returns the number of fragments, 0 without an image.
    ///
    /// Messages of several fragments are not joined. The image can be polled after a failure too.
    ///
    /// # Errors
    /// As [`do_work`](Self::do_work), and as [`Subscription::poll`].
    pub fn poll<O: HandlerOutcome<PollError = Error>>(
        &mut self,
        handler: impl FnMut(Fragment<'_>) -> O,
        limit: usize,
    ) -> Result<usize> {
        self.do_work()?;
        match &self.parties.image {
            Some(image) => Ok(self
                .parties
                .subscription
                .poll_image(image, handler, limit)?),
            None => Ok(0),
        }
    }

    /// Makes progress, then copies whole messages, their fragments joined, to the end of `batch`. Returns the number of messages.
    ///
    /// # Errors
    /// As [`poll`](Self::poll).
    pub fn poll_batch(&mut self, batch: &mut Batch, limits: BatchLimits) -> Result<usize> {
        self.do_work()?;
        let Parties {
            subscription,
            image,
            ..
        } = &self.parties;
        match image {
            Some(image) => Ok(subscription.poll_image_batch(image, batch, limits)?),
            None => Ok(0),
        }
    }

    /// The image, once there is one. It stays the same when the live stream joins.
    #[must_use]
    pub fn image(&self) -> Option<&Image> {
        self.parties.image.as_ref()
    }

    /// The subscription.
    #[must_use]
    pub fn subscription(&self) -> &Subscription {
        &self.parties.subscription
    }

    /// Whether the merge is complete. The driver may not have removed the replay destination yet.
    #[must_use]
    pub const fn is_merged(&self) -> bool {
        matches!(self.state, State::Merged)
    }

    /// Whether an error has ended the merge.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        matches!(self.state, State::Failed)
    }

    /// Whether the live destination was added. The driver may not have done it yet.
    #[must_use]
    pub const fn is_live_added(&self) -> bool {
        self.parties.is_live_added
    }

    /// Name of the state, as the real client has it.
    #[must_use]
    pub const fn state_name(&self) -> &'static str {
        self.state.name()
    }

    /// Ends the merge. If it is not complete, the replay is removed and stopped. Subscription and archive stay open.
    pub fn close(&mut self) {
        if matches!(self.state, State::Closed) {
            return;
        }
        if !self.is_merged() {
            self.parties.give_up();
        }
        self.state = State::Closed;
    }
}

impl ReplayMerge {
    fn advance(&mut self, now_ns: i64) -> Result<usize> {
        self.poll_responses(now_ns)?;
        self.parties.check_destinations()?;
        let next = self.state.advance(&mut self.parties, now_ns)?;
        let is_next = next.is_some();
        if let Some(next) = next {
            self.state = next;
        }
        let idle_ns = self.progress.update(&self.state, &self.parties, now_ns);
        if !self.state.is_final() && i128::from(idle_ns) > self.progress_timeout.as_nanos() as i128
        {
            return Err(ReplayMergeError::NoProgress {
                state: self.state.name(),
                active_transport_count: self.parties.active_transport_count(),
            });
        }
        Ok(usize::from(is_next))
    }

    /// Fails for an error of the archive that no request was waiting for, such as that of a replay that ended early.
    fn poll_responses(&mut self, now_ns: i64) -> Result<()> {
        if now_ns.wrapping_sub(self.next_response_poll_ns) < 0 {
            return Ok(());
        }
        self.next_response_poll_ns = now_ns + RESPONSE_INTERVAL_NS;
        let earlier = self.earlier_refusals;
        let refusal = self.parties.archive.poll_session(|session| {
            let refusal = session.unclaimed_refusals().last_after(earlier)?;
            Some(Ok(refusal.clone()))
        })?;
        match refusal {
            Some(refusal) => Err(refusal.into()),
            None => Ok(()),
        }
    }
}

impl Drop for ReplayMerge {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for ReplayMerge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplayMerge")
            .field("state", &self.state.name())
            .field("is_live_added", &self.is_live_added())
            .field("image", &self.parties.image)
            .finish_non_exhaustive()
    }
}
