//! The live stream: waiting for it, joining it without a replay, and delivering it (states 14 to 16).

use aeron_client::{PendingOperation, Subscription};

use super::context::StartPosition;
use super::core::{Core, Notice, Transition, is_past, is_temporary};
use super::error::PersistentSubscriptionError;
use super::read_image::ReadImage;
use super::state::{State, Step};
use super::turn::Turn;

/// A live stream that was joined.
#[derive(Clone)]
pub(super) struct LiveStream {
    /// Keeps the image.
    subscription: Subscription,
    pub(super) image: ReadImage,
}

/// The live subscription, until it has an image.
pub(super) enum LiveWait {
    Adding(PendingOperation<Subscription>),
    Added(Subscription, Overdue),
}

/// When a missing image is reported.
pub(super) enum Overdue {
    After { deadline_ns: i64 },
    Reported,
}

/// Why there is no live subscription.
pub(super) enum LiveFailure {
    /// It may be added later.
    Temporary(PersistentSubscriptionError),
    Refused(PersistentSubscriptionError),
}

impl LiveWait {
    /// Asks the driver for the subscription.
    pub(super) fn subscribe(core: &Core) -> Result<Self, LiveFailure> {
        let settings = &core.settings;
        let (channel, stream_id) = (&settings.live_channel, settings.live_stream_id);
        let adding = core.aeron.async_add_subscription(channel, stream_id);
        adding.map(Self::Adding).map_err(LiveFailure::of)
    }

    /// Returns the live stream once there is one. Reports once if it is overdue.
    pub(super) fn poll(
        &mut self,
        core: &mut Core,
        now_ns: i64,
    ) -> Result<Option<LiveStream>, LiveFailure> {
        if let Self::Adding(adding) = self {
            let Some(subscription) = adding.poll().map_err(LiveFailure::of)? else {
                return Ok(None);
            };
            let deadline_ns = core.settings.deadline_ns(now_ns);
            *self = Self::Added(subscription, Overdue::After { deadline_ns });
        }
        let Self::Added(subscription, overdue) = self else {
            return Ok(None);
        };
        // Only the first publisher's: a persistent subscription reads one stream.
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
    fn of(source: aeron_client::Error) -> Self {
        let is_temporary = is_temporary(&source);
        let resource = "live subscription";
        let error = PersistentSubscriptionError::Resource { resource, source };
        match is_temporary {
            true => Self::Temporary(error),
            false => Self::Refused(error),
        }
    }

    /// Tries again, or fails.
    fn into_transition(self) -> Transition {
        match self {
            Self::Temporary(error) => Transition::noticed(State::AddLive, Notice::Error(error)),
            Self::Refused(error) => Transition::fail(error),
        }
    }
}

/// Adds the live subscription where no replay runs.
pub(super) fn add(core: &Core) -> Transition {
    match LiveWait::subscribe(core) {
        Ok(wait) => Transition::to(State::AwaitLive(Box::new(wait))),
        Err(failure) => failure.into_transition(),
    }
}

/// Joins the live stream where no replay runs.
pub(super) fn join(core: &mut Core, wait: &mut LiveWait, now_ns: i64) -> Option<Transition> {
    let live = match wait.poll(core, now_ns) {
        Ok(live) => live?,
        Err(failure) => return Some(failure.into_transition()),
    };
    let joined = live.image.position();
    core.saw_live_position(joined);
    Some(match place_of(joined, core.position) {
        Place::Reached => {
            core.position = StartPosition::At(joined);
            core.set_join_difference(0);
            Transition::noticed(State::Live(live), Notice::LiveJoined)
        }
        Place::Behind { position } => {
            Transition::fail(PersistentSubscriptionError::JoinedBehind { joined, position })
        }
        Place::Ahead => core.refresh(),
    })
}

/// Where a live image was joined.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    /// At the position that was reached: nothing is missing.
    Reached,
    /// Before it: the stream is another one.
    Behind { position: i64 },
    /// After it: the recording may have what is missing.
    Ahead,
}

const fn place_of(joined: i64, reached: StartPosition) -> Place {
    match reached {
        StartPosition::At(position) if joined < position => Place::Behind { position },
        StartPosition::At(position) if joined > position => Place::Ahead,
        _ => Place::Reached,
    }
}

impl LiveStream {
    /// Delivers messages. Looks up the recording again when the image is gone and everything of it was delivered.
    pub(super) fn step(&mut self, core: &mut Core, turn: &mut Turn<'_>) -> Step {
        if turn.deliver(&mut self.image)? > 0 || !self.image.is_closed() {
            return Ok(None);
        }
        let position = self.image.position();
        core.saw_live_position(position);
        core.position = StartPosition::At(position);
        Ok(Some(Transition {
            notice: Some(Notice::LiveLeft),
            ..core.refresh()
        }))
    }

    /// Lets a driver of this process bring what the stream waits for.
    pub(super) fn bring_more(&self) {
        self.subscription.is_readable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 11-27, 11-52
    #[test]
    fn a_live_stream_joined_elsewhere_is_behind_or_ahead() {
        let at = StartPosition::At(64);
        assert_eq!(place_of(64, at), Place::Reached);
        assert_eq!(place_of(0, StartPosition::FromLive), Place::Reached);
        assert_eq!(place_of(32, at), Place::Behind { position: 64 });
        assert_eq!(place_of(96, at), Place::Ahead);
    }
}
