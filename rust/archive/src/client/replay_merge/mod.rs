//! [`ReplayMerge`]: replays a recording and then switches to the live stream.

mod error;
mod parties;
mod position_query;
mod state;

use std::time::Duration;

use aeron_client::{Batch, BatchLimits, Error, Fragment, HandlerOutcome, Image, Subscription};
use aeron_protocol::archive::NULL_VALUE;

use self::parties::Parties;
use self::state::{MergeProgress, MergeState};
use super::aeron_archive::AeronArchive;

pub use self::error::ReplayMergeError;

type MergeResult<T> = std::result::Result<T, ReplayMergeError>;

/// Interval of the polls for errors of the archive, in nanoseconds.
const RESPONSE_INTERVAL_NS: i64 = 100_000_000;
/// Default of the progress timeout.
const DEFAULT_PROGRESS_TIMEOUT: Duration = Duration::from_secs(5);

/// The recording, its live stream, and the settings of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayMergeParams {
    /// Channel of the replay. It must have the `session-id` of the recorded stream, so that the
    /// replay and the live stream arrive as one image.
    pub replay_channel: String,
    /// Destination of the subscription that receives the replay. Its port may be 0.
    pub replay_destination: String,
    /// Destination of the subscription that receives the live stream.
    pub live_destination: String,
    /// Recording id.
    pub recording_id: i64,
    /// Position of the first frame; [`NULL_VALUE`] for the start of the recording.
    pub start_position: i64,
    /// Time without progress after which the merge fails.
    pub progress_timeout: Duration,
}

impl ReplayMergeParams {
    /// Creates the parameters for a merge from the start of the recording, with a progress timeout of five seconds.
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

/// Replays a recording and merges with the live stream. Delivers every message once and in order,
/// without a gap between the replay and the live stream.
///
/// The subscription has `control-mode=manual`. The merge adds the replay destination to the
/// subscription. When the image is near the end of the recording, the merge adds the live
/// destination. When both transports deliver the image, the merge removes the replay destination.
///
/// The owner calls [`poll`](Self::poll), or [`do_work`](Self::do_work), until [`is_merged`](Self::is_merged). These
/// calls never block. After that, the program may poll the subscription itself, and drop the merge.
///
/// A merge makes progress if its state advances, or if the position of the image increases. During
/// a merge, the archive client may be used for other requests. If the archive sends an error that
/// no request waits for, the merge fails. Dropping an incomplete merge removes the replay.
///
/// ```no_run
/// use aeron_archive::client::{ArchiveCall, AeronArchive, ReplayMerge, ReplayMergeParams};
///
/// # fn merge(aeron: &aeron_client::Aeron, archive: &AeronArchive) -> Result<(), Box<dyn std::error::Error>> {
/// let recording = archive.call(ArchiveCall::list_recording(7))?.ok_or("no such recording")?;
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
    state: MergeState,
    progress: MergeProgress,
    progress_timeout: Duration,
    /// Number of the archive's errors before the merge. These errors do not concern the merge.
    earlier_refusals: u64,
    next_response_poll_ns: i64,
}

impl ReplayMerge {
    /// Begins a merge: adds the replay destination.
    ///
    /// # Errors
    /// [`ReplayMergeError::IpcChannel`], [`ReplayMergeError::NotManual`],
    /// [`ReplayMergeError::NoEndpoint`]. A channel cannot be parsed, the subscription is closed, or
    /// a handler of the archive client calls this function.
    pub fn new(
        subscription: &Subscription,
        archive: &AeronArchive,
        params: &ReplayMergeParams,
    ) -> MergeResult<Self> {
        let now_ns = archive.context().now_ns();
        let earlier_refusals = archive.session()?.unclaimed_refusals().count();
        let parties = Parties::new(subscription, archive, params)?;
        Ok(Self {
            state: MergeState::begin(&parties)?,
            parties,
            progress: MergeProgress::begin(now_ns),
            progress_timeout: params.progress_timeout,
            earlier_refusals,
            next_response_poll_ns: now_ns,
        })
    }

    /// Makes progress without waiting. Returns a work count. If the merge is complete, has failed or is closed, it only
    /// sends the removal of the replay destination again, as long as the driver's command buffer was full.
    ///
    /// # Errors
    /// See [`ReplayMergeError`]. After an error, the merge has failed, unless the archive client refused
    /// a call because it was made in a handler.
    pub fn do_work(&mut self) -> MergeResult<usize> {
        if self.state.is_final() {
            self.parties.retry_removal();
            return Ok(0);
        }
        let now_ns = self.parties.archive.context().now_ns();
        match self.advance(now_ns) {
            Err(error) if !error.is_reentrant_call() => {
                self.state.fail(&self.parties);
                Err(error)
            }
            outcome => outcome,
        }
    }

    /// Makes progress, then calls `handler` for up to `limit` fragments of the image. Returns the
    /// number of fragments; 0 without an image.
    ///
    /// Messages of several fragments are not joined. The image can also be polled after a failure.
    ///
    /// # Errors
    /// The same errors as [`do_work`](Self::do_work) and [`Subscription::poll`].
    pub fn poll<O: HandlerOutcome<PollError = Error>>(
        &mut self,
        handler: impl FnMut(Fragment<'_>) -> O,
        limit: usize,
    ) -> MergeResult<usize> {
        self.do_work()?;
        match &self.parties.image {
            Some(image) => Ok(self
                .parties
                .subscription
                .poll_image(image, handler, limit)?),
            None => Ok(0),
        }
    }

    /// Makes progress, and then copies messages to the end of `batch`. Messages of several
    /// fragments are joined. Returns the number of messages.
    ///
    /// # Errors
    /// The same errors as [`poll`](Self::poll).
    pub fn poll_batch(&mut self, batch: &mut Batch, limits: BatchLimits) -> MergeResult<usize> {
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

    /// Returns the image; `None` until the image is available. It is the same image before and
    /// after the live stream joins.
    #[must_use]
    pub fn image(&self) -> Option<&Image> {
        self.parties.image.as_ref()
    }

    /// Returns the subscription.
    #[must_use]
    pub fn subscription(&self) -> &Subscription {
        &self.parties.subscription
    }

    /// Returns whether the merge is complete. The driver may not have removed the replay destination yet.
    #[must_use]
    pub const fn is_merged(&self) -> bool {
        matches!(self.state, MergeState::Merged)
    }

    /// Returns whether an error has ended the merge.
    #[must_use]
    pub const fn has_failed(&self) -> bool {
        matches!(self.state, MergeState::Failed)
    }

    /// Returns whether [`do_work`](Self::do_work) still has work to do: the merge is not over, or the removal of the
    /// replay destination must be sent again, because the driver's command buffer was full.
    #[must_use]
    pub const fn has_work(&self) -> bool {
        !self.state.is_final() || self.parties.is_removal_unsent()
    }

    /// Returns whether the live destination was added. The driver may still be processing the command.
    #[must_use]
    pub const fn is_live_added(&self) -> bool {
        self.parties.is_live_added
    }

    /// Returns Aeron's name of the state.
    #[must_use]
    pub const fn state_name(&self) -> &'static str {
        self.state.name()
    }

    /// Ends the merge. If the merge is not complete, the replay is removed and stopped. The
    /// subscription and the archive client stay open.
    pub fn close(&mut self) {
        if matches!(self.state, MergeState::Closed) {
            self.parties.retry_removal();
            return;
        }
        match self.is_merged() {
            true => self.parties.retry_removal(),
            false => {
                self.state.fail(&self.parties);
                self.parties.give_up();
            }
        }
        self.state = MergeState::Closed;
    }
}

impl ReplayMerge {
    fn advance(&mut self, now_ns: i64) -> MergeResult<usize> {
        self.poll_responses(now_ns)?;
        self.parties.check_destinations()?;
        let next = self.state.advance(&mut self.parties, now_ns)?;
        let is_next = next.is_some();
        if let Some(next) = next {
            debug_assert!(
                self.state.may_become(&next),
                "a merge must not go from state {} to {}",
                self.state.name(),
                next.name()
            );
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

    /// Fails if the archive has sent an error that no request was waiting for, for example the error of a replay that
    /// ended early.
    fn poll_responses(&mut self, now_ns: i64) -> MergeResult<()> {
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
