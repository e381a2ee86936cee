//! [`PersistentSubscription`]: reads a recorded stream without gaps, first from a replay and then
//! live.
//!
//! A persistent subscription is a state machine that its owner polls. Each state is a value with
//! its resources ([`state`]). The data that all states use are in [`core`].

mod context;
mod copies;
mod core;
mod counters;
mod error;
mod listener;
mod listing;
mod live;
mod read_image;
mod replay;
mod set_up;
mod state;
mod status;
mod switch;
#[cfg(test)]
mod tests;
mod turn;

use aeron_client::{
    Action, Aeron, Batch, BatchLimits, Fragment, FragmentAssembler, HandlerOutcome,
};

use self::core::{Core, Transition, TransitionNotice};
use self::counters::Counters;
use self::listener::NoListener;
use self::state::SubscriptionState;
use self::turn::{BatchReceiver, Receiver, Turn};
use super::backoff::Attempts;
use super::error::Result;
use super::link::{ArchiveLink, LinkEvent};

pub use self::context::{FROM_LIVE, FROM_START, PersistentSubscriptionContext, StartPosition};
pub use self::counters::{NO_JOIN_DIFFERENCE, PersistentSubscriptionCounters};
pub use self::error::{FailureReason, PersistentSubscriptionError};
pub use self::listener::PersistentSubscriptionListener;
pub use self::status::{PersistentSubscriptionState, PersistentSubscriptionStatus};

/// Reads a recorded stream, first from a replay of the archive and then live. Delivers each message
/// of the recording once and in order, either from a replay or from the publisher.
///
/// If the live stream is lost, a replay continues after the last delivered data until the
/// subscription joins the live stream again. While the subscription reads the live stream, it does
/// not need the archive. If the archive is lost during a replay, the replay continues when the
/// archive is connected again. If a message would be missing, the subscription fails.
///
/// The owner polls the subscription repeatedly. No call blocks, and the subscription has no thread.
/// Messages are assembled from their fragments, even if a message begins in a replay and ends in
/// the live stream. If the live stream has several publishers, only the messages of the first
/// publisher are delivered. To choose another publisher, set the `session-id` of the live channel.
/// If the first position is within a message, delivery begins with the next message.
///
/// ```no_run
/// use aeron_archive::client::{
///     ArchiveClientContext, PersistentSubscription, PersistentSubscriptionContext, StartPosition,
/// };
/// use aeron_client::{Aeron, Context};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let aeron = Aeron::connect(Context::from_env()?)?;
/// let archive = ArchiveClientContext::new("aeron:ipc", "aeron:ipc");
/// let mut context =
///     PersistentSubscriptionContext::new(archive, 7, "aeron:ipc", 1001, "aeron:ipc", 1002);
/// context.start_position = StartPosition::FromStart;
/// let mut subscription = PersistentSubscription::new(&aeron, context)?;
/// let status = subscription.status();
/// while !status.has_failed() {
///     subscription.poll(|message| println!("{} bytes", message.len()), 10)?;
/// }
/// # Ok(())
/// # }
/// ```
pub struct PersistentSubscription {
    core: Core,
    state: SubscriptionState,
    assembler: FragmentAssembler,
    /// Whether closing the subscription also closes the Aeron client.
    owns_client: bool,
}

/// Making and closing.
impl PersistentSubscription {
    /// Creates a subscription with an existing Aeron client. Closing the subscription does not
    /// close the client. This function waits until the counters are added. Nothing is sent to the
    /// archive before the first poll.
    ///
    /// # Errors
    /// [`ArchiveClientError::Configuration`](super::ArchiveClientError::Configuration),
    /// [`ArchiveClientError::InvalidChannel`](super::ArchiveClientError::InvalidChannel). The error
    /// of the driver if it refuses a counter.
    pub fn new(aeron: &Aeron, context: PersistentSubscriptionContext) -> Result<Self> {
        let settings = context.conclude()?;
        let counters = Counters::add(aeron, context.counters, &settings.streams())?;
        let core = Core {
            aeron: aeron.clone(),
            archive: ArchiveLink::new(aeron, settings.archive.clone()),
            settings,
            counters,
            status: PersistentSubscriptionStatus::new(),
            listener: context.listener.unwrap_or_else(|| Box::new(NoListener)),
            position: context.start_position,
            highest_live_position: None,
            resources: Attempts::new(),
            ended_replay: None,
        };
        Ok(Self {
            core,
            state: SubscriptionState::AwaitArchive,
            assembler: FragmentAssembler::of_one_stream(),
            owns_client: false,
        })
    }

    /// Creates a subscription like [`new`](Self::new), but with an Aeron client of its own. The
    /// client's conductor runs in [`poll`](Self::poll). Closing the subscription also closes the
    /// client.
    ///
    /// # Errors
    /// The same errors as [`new`](Self::new). The client cannot connect to the driver.
    pub fn connect(
        client: aeron_client::Context,
        context: PersistentSubscriptionContext,
    ) -> Result<Self> {
        context.conclude()?;
        let client_name = match client.client_name.is_empty() {
            true => "PersistentSubscription".to_owned(),
            false => client.client_name.clone(),
        };
        let aeron = Aeron::connect(aeron_client::Context {
            client_name,
            use_conductor_agent_invoker: true,
            ..client
        })?;
        let mut subscription = Self::new(&aeron, context)?;
        subscription.owns_client = true;
        Ok(subscription)
    }

    /// Returns the status: the state, the reason of a failure, and the join difference.
    #[must_use]
    pub fn status(&self) -> PersistentSubscriptionStatus {
        self.core.status.clone()
    }

    /// Returns the channel of replays, in the same form as in the labels of the counters.
    #[must_use]
    pub fn replay_channel(&self) -> &str {
        &self.core.settings.replay_channel
    }

    /// Stops the replay. Closes the streams, the session with the archive, and the counters that
    /// the subscription has added. Does nothing if the subscription is closed.
    pub fn close(&mut self) {
        if self.core.status.is_closed() {
            return;
        }
        self.core.status.set_closed();
        if let Some(id) = self.state.replay_session_id() {
            let now_ns = self.now_ns();
            self.core.archive.stop_replay(id, now_ns);
        }
        self.state = SubscriptionState::AwaitArchive;
        self.core.archive.close();
        self.core.counters.close();
        if self.owns_client {
            self.core.aeron.close();
        }
    }
}

/// Polling.
impl PersistentSubscription {
    /// Takes one step, and calls `handler` with the messages of up to `fragment_limit` fragments.
    ///
    /// Returns a work count, which is 0 if there was nothing to do. The work count is not the
    /// number of messages.
    ///
    /// The handler returns `()`, an [`Action`], or a `Result` of either. An error consumes the message and ends the
    /// poll. After [`Action::Abort`] the next poll delivers the message again. The position in a header is a
    /// position of the recording. The session id belongs to the stream in which the message began. A subscription
    /// that has failed or is closed does nothing.
    ///
    /// # Errors
    /// The handler returns an error. The log of an image is corrupt
    /// ([`aeron_client::Error::CorruptLog`]): the subscription continues with a replay. There is no
    /// memory for a message.
    pub fn poll<O: HandlerOutcome>(
        &mut self,
        mut handler: impl FnMut(Fragment<'_>) -> O,
        fragment_limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        let mut raised = None;
        let outcome = self.advance(
            &mut |message: Fragment<'_>| match handler(message).into_action() {
                Ok(action) => action,
                Err(error) => {
                    raised = Some(error);
                    Action::Break
                }
            },
            fragment_limit,
        );
        match raised {
            Some(error) => Err(error),
            None => Ok(outcome?),
        }
    }

    /// Does the same as [`poll`](Self::poll). This is Aeron's name for a poll with a handler that
    /// returns an [`Action`].
    ///
    /// # Errors
    /// The same errors as [`poll`](Self::poll).
    pub fn controlled_poll<O: HandlerOutcome>(
        &mut self,
        handler: impl FnMut(Fragment<'_>) -> O,
        fragment_limit: usize,
    ) -> std::result::Result<usize, O::PollError> {
        self.poll(handler, fragment_limit)
    }

    /// Takes one step, and copies messages to the end of `batch`. Returns the number of messages.
    ///
    /// If there is no memory for a message, a later poll delivers the message.
    ///
    /// # Errors
    /// The same errors as [`poll`](Self::poll).
    pub fn poll_batch(
        &mut self,
        batch: &mut Batch,
        limits: BatchLimits,
    ) -> aeron_client::Result<usize> {
        let before = batch.len();
        self.advance(&mut BatchReceiver::new(batch, limits), usize::MAX)?;
        Ok(batch.len() - before)
    }

    /// Takes one step without delivering a message. Returns whether a message can be delivered.
    ///
    /// # Errors
    /// The same errors as [`poll`](Self::poll).
    pub fn look(&mut self) -> aeron_client::Result<bool> {
        let mut has_message = false;
        self.advance(
            &mut |_: Fragment<'_>| {
                has_message = true;
                Action::Abort
            },
            usize::MAX,
        )?;
        Ok(has_message)
    }
}

impl PersistentSubscription {
    fn now_ns(&self) -> i64 {
        self.core.archive.context().now_ns()
    }

    /// Runs the client's conductor, the session with the archive, and one step of the state. Returns a work count.
    fn advance(
        &mut self,
        receiver: &mut dyn Receiver,
        fragment_limit: usize,
    ) -> aeron_client::Result<usize> {
        if self.core.status.is_closed() || matches!(self.state, SubscriptionState::Failed) {
            return Ok(0);
        }
        let mut work = self.core.aeron.do_work();
        let now_ns = self.now_ns();
        if let Some(event) = self.core.archive.poll(now_ns, &mut work) {
            work += 1;
            self.on_link_event(event);
        }
        let mut turn = Turn {
            now_ns,
            fragment_limit,
            receiver,
            assembler: &mut self.assembler,
            work,
        };
        let code = self.state.code();
        let outcome = self.state.step(&mut self.core, &mut turn);
        let work = turn.work;
        if let Some(transition) = outcome? {
            self.go(transition);
            return Ok(work + 1);
        }
        if self.state.code() == code {
            if work == 0 {
                self.state.bring_more();
            }
            return Ok(work);
        }
        self.show_state();
        Ok(work + 1)
    }

    fn on_link_event(&mut self, event: LinkEvent) {
        match event {
            LinkEvent::Connected => {}
            LinkEvent::Lost => {
                if let Some(state) = self.state.without_archive(&mut self.core) {
                    self.core.forget_join_difference();
                    self.go(Transition::to(state));
                }
            }
            LinkEvent::AttemptFailed(error) => {
                self.core
                    .report(&PersistentSubscriptionError::Archive(error));
            }
            LinkEvent::Unusable(error) => {
                let error = PersistentSubscriptionError::Archive(error);
                self.go(Transition::fail(error));
            }
        }
    }

    /// Changes to another state. The listener is called last.
    fn go(&mut self, transition: Transition) {
        debug_assert!(
            !matches!(self.state, SubscriptionState::Failed),
            "a persistent subscription that has failed must not go to state {:?}",
            transition.to.code()
        );
        debug_assert!(
            !matches!(transition.notice, Some(TransitionNotice::LiveJoined))
                || matches!(transition.to, SubscriptionState::Live(_)),
            "the listener hears of a joined live stream, but the next state is {:?}",
            transition.to.code()
        );
        debug_assert!(
            !matches!(transition.notice, Some(TransitionNotice::LiveLeft))
                || matches!(self.state, SubscriptionState::Live(_)),
            "the listener hears of a left live stream, but the state was {:?}",
            self.state.code()
        );
        debug_assert_eq!(
            matches!(transition.notice, Some(TransitionNotice::Failure(_))),
            matches!(transition.to, SubscriptionState::Failed),
            "a persistent subscription must fail with a reason, and only with a reason"
        );
        self.state = transition.to;
        if let Some(TransitionNotice::Failure(error)) = &transition.notice {
            self.core.status.set_failure(error.clone());
            self.core.archive.close();
        }
        self.show_state();
        match transition.notice {
            None => {}
            Some(TransitionNotice::LiveJoined) => {
                self.core.counters.count_live_joined();
                self.core.listener.on_live_joined();
            }
            Some(TransitionNotice::LiveLeft) => {
                self.core.counters.count_live_left();
                self.core.listener.on_live_left();
            }
            Some(TransitionNotice::Error(error) | TransitionNotice::Failure(error)) => {
                self.core.listener.on_error(&error);
            }
        }
    }

    fn show_state(&self) {
        let state = self.state.code();
        self.core.status.set_state(state);
        self.core.counters.show_state(state);
    }
}

impl Drop for PersistentSubscription {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for PersistentSubscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PersistentSubscription")
            .field("recording_id", &self.core.settings.recording_id)
            .field("state", &self.core.status.state())
            .field("position", &self.core.position)
            .finish_non_exhaustive()
    }
}
