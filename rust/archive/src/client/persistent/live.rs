//! The live stream. Waits for the live stream, joins it without a replay, and delivers its
//! messages. The states are `AddLive`, `AwaitLive` and `Live`.

use aeron_client::{PendingOperation, Subscription};

use super::context::StartPosition;
use super::core::{Core, Transition, TransitionNotice, is_past, is_temporary};
use super::error::PersistentSubscriptionError;
use super::read_image::ReadImage;
use super::state::{StateOutcome, SubscriptionState};
use super::turn::Turn;

/// A live stream after it was joined.
#[derive(Clone)]
pub(super) struct LiveStream {
    /// Kept open, because the image ends when its subscription is closed.
    subscription: Subscription,
    pub(super) image: ReadImage,
}

/// The live subscription, until it has an image.
pub(super) enum LiveWait {
    Adding(PendingOperation<Subscription>),
    Added(Subscription, Overdue),
}

/// State of the report that the live image is missing.
pub(super) enum Overdue {
    After { deadline_ns: i64 },
    Reported,
}

/// Why the live subscription could not be added.
pub(super) enum LiveFailure {
    /// A later attempt may succeed.
    Temporary(PersistentSubscriptionError),
    Refused(PersistentSubscriptionError),
}

impl LiveWait {
    /// Asks the driver to add the subscription.
    pub(super) fn subscribe(core: &Core) -> Result<Self, LiveFailure> {
        let settings = &core.settings;
        let (channel, stream_id) = (&settings.live_channel, settings.live_stream_id);
        let adding = core.aeron.async_add_subscription(channel, stream_id);
        adding.map(Self::Adding).map_err(LiveFailure::of)
    }

    /// Returns the live stream when its image is available. If the image is overdue, reports this
    /// once.
    pub(super) fn poll(
        &mut self,
        core: &mut Core,
        now_ns: i64,
    ) -> Result<Option<LiveStream>, LiveFailure> {
        if let Self::Adding(adding) = self {
            let Some(subscription) = adding.poll().map_err(LiveFailure::of)? else {
                return Ok(None);
            };
            core.resources.succeeded();
            let deadline_ns = core.settings.deadline_ns(now_ns);
            *self = Self::Added(subscription, Overdue::After { deadline_ns });
        }
        let Self::Added(subscription, overdue) = self else {
            return Ok(None);
        };
        // Reads only the image of the first publisher, because a persistent subscription reads one stream.
        if let Some(image) = subscription.image_at(0) {
            let subscription = subscription.clone();
            return Ok(Some(LiveStream {
                subscription,
                image: ReadImage::new(image),
            }));
        }
        if matches!(overdue, Overdue::After { deadline_ns } if is_past(*deadline_ns, now_ns)) {
            *overdue = Overdue::Reported;
            let waited = core.settings.archive.message_timeout();
            core.report(&PersistentSubscriptionError::NoLiveImage { waited });
        }
        Ok(None)
    }
}

impl LiveFailure {
    pub(super) fn of(source: aeron_client::Error) -> Self {
        let is_temporary = is_temporary(&source);
        let resource = "live subscription";
        let error = PersistentSubscriptionError::Resource { resource, source };
        match is_temporary {
            true => Self::Temporary(error),
            false => Self::Refused(error),
        }
    }

    /// Returns the transition to another attempt after a pause, or to the failure.
    pub(super) fn into_transition(self, core: &mut Core, now_ns: i64) -> Transition {
        match self {
            Self::Temporary(error) => {
                core.resources.failed(now_ns);
                Transition::noticed(SubscriptionState::AddLive, TransitionNotice::Error(error))
            }
            Self::Refused(error) => Transition::fail(error),
        }
    }
}

/// Adds the live subscription when no replay is active.
pub(super) fn add(core: &mut Core, now_ns: i64) -> Transition {
    match LiveWait::subscribe(core) {
        Ok(wait) => Transition::to(SubscriptionState::AwaitLive(Box::new(wait))),
        Err(failure) => failure.into_transition(core, now_ns),
    }
}

/// Joins the live stream when no replay is active.
pub(super) fn join(core: &mut Core, wait: &mut LiveWait, now_ns: i64) -> Option<Transition> {
    let live = match wait.poll(core, now_ns) {
        Ok(live) => live?,
        Err(failure) => return Some(failure.into_transition(core, now_ns)),
    };
    let joined = live.image.position();
    core.saw_live_position(joined);
    Some(match place_of(joined, core.position) {
        LiveJoinPlace::Reached => {
            core.position = StartPosition::At(joined);
            core.set_join_difference(0);
            Transition::noticed(SubscriptionState::Live(live), TransitionNotice::LiveJoined)
        }
        LiveJoinPlace::Behind { position } => {
            Transition::fail(PersistentSubscriptionError::JoinedBehind { joined, position })
        }
        LiveJoinPlace::Ahead => core.refresh(),
    })
}

/// The begin of the live image compared with the position that the subscription has reached.
#[derive(Debug, PartialEq, Eq)]
enum LiveJoinPlace {
    /// The image begins at the reached position: no message is missing.
    Reached,
    /// The image begins before the reached position: the live stream is not the recorded stream.
    Behind { position: i64 },
    /// The image begins after the reached position: the recording may have the missing messages.
    Ahead,
}

const fn place_of(joined: i64, reached: StartPosition) -> LiveJoinPlace {
    match reached {
        StartPosition::At(position) if joined < position => LiveJoinPlace::Behind { position },
        StartPosition::At(position) if joined > position => LiveJoinPlace::Ahead,
        _ => LiveJoinPlace::Reached,
    }
}

impl LiveStream {
    /// Delivers messages. When the image is closed and all its messages were delivered, looks up
    /// the recording again.
    pub(super) fn step(&mut self, core: &mut Core, turn: &mut Turn<'_>) -> StateOutcome {
        if turn.deliver(&mut self.image)? > 0 || !self.image.is_closed() {
            return Ok(None);
        }
        let position = self.image.position();
        core.saw_live_position(position);
        core.position = StartPosition::At(position);
        Ok(Some(Transition {
            notice: Some(TransitionNotice::LiveLeft),
            ..core.refresh()
        }))
    }

    /// If the driver runs in this process, runs a turn of it, so that it can receive further data of the stream.
    pub(super) fn bring_more(&self) {
        self.subscription.is_readable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 11-27, 11-52
    #[test]
    fn the_begin_of_a_live_image_is_compared_with_the_reached_position() {
        let at = StartPosition::At(64);
        assert_eq!(place_of(64, at), LiveJoinPlace::Reached);
        assert_eq!(place_of(0, StartPosition::FromLive), LiveJoinPlace::Reached);
        assert_eq!(place_of(32, at), LiveJoinPlace::Behind { position: 64 });
        assert_eq!(place_of(96, at), LiveJoinPlace::Ahead);
    }
}
