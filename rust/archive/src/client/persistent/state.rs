//! [`SubscriptionState`]: the states of a persistent subscription, each with its resources.

use super::super::call::Ticket;
use super::copies::CopyLookup;
use super::core::{Core, Transition};
use super::listing;
use super::live::{self, LiveStream, LiveWait};
use super::replay::{AwaitedReplay, Replaying};
use super::set_up::SetUp;
use super::status::PersistentSubscriptionState as Code;
use super::switch::Switching;
use super::turn::Turn;
use crate::catalog::RecordingDescriptor;

/// A state with its resources. Dropping a state closes its publications and subscriptions.
pub(super) enum SubscriptionState {
    AwaitArchive,
    SendListRequest,
    AwaitList(Ticket<Option<RecordingDescriptor>>),
    AwaitCopies(Box<CopyLookup>),
    SetUp(Box<SetUp>),
    AwaitReplayImage(Box<AwaitedReplay>),
    Replay(Box<Replaying>),
    Switch(Box<Switching>),
    AddLive,
    AwaitLive(Box<LiveWait>),
    Live(LiveStream),
    Failed,
}

/// The next state, if the current state has ended.
pub(super) type StateOutcome = aeron_client::Result<Option<Transition>>;

impl SubscriptionState {
    /// Runs one step of the state.
    ///
    /// # Errors
    /// An image returns an error: the image is then closed. There is no memory for a message.
    pub(super) fn step(&mut self, core: &mut Core, turn: &mut Turn<'_>) -> StateOutcome {
        match self {
            Self::AwaitArchive => Ok(core
                .archive
                .is_connected()
                .then(|| Transition::to(Self::SendListRequest))),
            Self::SendListRequest => Ok(Some(listing::send(core, turn.now_ns))),
            Self::AwaitList(ticket) => Ok(listing::receive(core, ticket, turn.now_ns)),
            Self::AwaitCopies(lookup) => Ok(lookup.step(core, turn.now_ns)),
            Self::SetUp(_) | Self::AddLive if !core.resources.is_due(turn.now_ns) => Ok(None),
            Self::SetUp(set_up) => Ok(set_up.step(core, turn.now_ns)),
            Self::AwaitReplayImage(awaited) => Ok(awaited.step(core, turn.now_ns)),
            Self::Replay(replaying) => replaying.step(core, turn),
            Self::Switch(switching) => switching.step(core, turn),
            Self::AddLive => Ok(Some(live::add(core, turn.now_ns))),
            Self::AwaitLive(wait) => Ok(live::join(core, wait, turn.now_ns)),
            Self::Live(live) => live.step(core, turn),
            Self::Failed => Ok(None),
        }
    }

    /// Returns the state that follows a loss of the session; `None` if the current state continues without a session.
    pub(super) fn without_archive(&self, core: &mut Core) -> Option<Self> {
        match self {
            Self::Replay(replaying) => replaying.keep_position(core),
            Self::SendListRequest | Self::AwaitList(_) | Self::AwaitCopies(_) => {}
            Self::SetUp(_) | Self::AwaitReplayImage(_) => {}
            Self::AwaitArchive
            | Self::Switch(_)
            | Self::AddLive
            | Self::AwaitLive(_)
            | Self::Live(_)
            | Self::Failed => return None,
        }
        Some(Self::AwaitArchive)
    }

    /// If the driver runs in this process, runs a turn of it, so that it can receive further data of the stream.
    pub(super) fn bring_more(&self) {
        match self {
            Self::Replay(replaying) => replaying.bring_more(),
            Self::Live(live) => live.bring_more(),
            _ => {}
        }
    }

    /// Returns the id of the active replay, if there is one.
    pub(super) fn replay_session_id(&self) -> Option<i64> {
        match self {
            Self::SetUp(set_up) => set_up.replay_session_id(),
            Self::AwaitReplayImage(awaited) => Some(awaited.replay_session_id()),
            Self::Replay(replaying) => Some(replaying.replay_session_id()),
            Self::Switch(switching) => Some(switching.replay_session_id()),
            _ => None,
        }
    }

    pub(super) fn code(&self) -> Code {
        match self {
            Self::AwaitArchive => Code::AwaitArchiveConnection,
            Self::SendListRequest => Code::SendListRecordingRequest,
            // Aeron's persistent subscription has no state for the lookup of copies.
            Self::AwaitList(_) | Self::AwaitCopies(_) => Code::AwaitListRecordingResponse,
            Self::SetUp(set_up) => set_up.code(),
            Self::AwaitReplayImage(_) | Self::Replay(_) => Code::Replay,
            Self::Switch(_) => Code::AttemptSwitch,
            Self::AddLive => Code::AddLiveSubscription,
            Self::AwaitLive(_) => Code::AwaitLive,
            Self::Live(_) => Code::Live,
            Self::Failed => Code::Failed,
        }
    }
}
