//! [`MinFlowControl`]: flow control by the slowest receiver, for the policies `min` (all receivers) and `tagged` (the
//! receivers with the group's tag).

use aeron_memory::SharedBuffer;
use aeron_memory::counters::AtomicCounter;

use super::{
    FlowControl, FlowControlProblem, LimitUpdate, MAX_RECEIVERS_PER_PUBLICATION, ReceiverStatus,
};

const GROUP_TAG_LENGTH: usize = 8;

/// The conditions for receivers of the group, and the required number of receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// Only receivers with this tag belong to the group. If the tag is `None`, all receivers do.
    pub group_tag: Option<i64>,
    /// Minimum number of receivers. If the group has fewer, the sender limit does not rise and the publication is not
    /// connected.
    pub group_min_size: usize,
    /// Time without a status message after which a receiver is removed.
    pub receiver_timeout_ns: i64,
}

/// Sends up to the lowest limit of the receivers in the group.
///
/// If the group is empty and no receiver is required, any receiver can raise the limit.
#[derive(Debug)]
pub struct MinFlowControl {
    config: GroupConfig,
    receivers: Vec<TrackedReceiver>,
    /// Counter of the number of receivers.
    receiver_count: AtomicCounter<SharedBuffer>,
    is_setup_elicited: bool,
    pin: Option<Pin>,
}

#[derive(Debug)]
struct TrackedReceiver {
    id: i64,
    limit: i64,
    time_of_last_status_ns: i64,
    is_leaving: bool,
}

/// Holds the limit at the value that the limit had when a SETUP was sent to a receiver that wants to join.
///
/// Otherwise the sender might send data before the new receiver joins, and the receiver would miss this data.
#[derive(Clone, Copy, Debug)]
struct Pin {
    limit: i64,
    time_ns: i64,
}

impl MinFlowControl {
    /// Creates a group without receivers; `receiver_count` shows their number.
    pub fn new(config: GroupConfig, receiver_count: AtomicCounter<SharedBuffer>) -> Self {
        debug_assert!(
            config.receiver_timeout_ns >= 0,
            "receivers with a timeout of {} ns are removed at once",
            config.receiver_timeout_ns
        );
        MinFlowControl {
            config,
            receivers: Vec::new(),
            receiver_count,
            is_setup_elicited: false,
            pin: None,
        }
    }

    fn is_in_group(&self, status: &ReceiverStatus) -> bool {
        self.config.group_tag.is_none() || self.config.group_tag == status.group_tag
    }

    fn problem_with(&self, status: &ReceiverStatus) -> Option<FlowControlProblem> {
        let is_right = matches!(status.feedback_length, 0 | GROUP_TAG_LENGTH);
        (self.config.group_tag.is_some() && !is_right).then_some(FlowControlProblem::GroupTagLength)
    }

    /// Returns the limit of the pin, `i64::MAX` if there is no pin.
    fn pinned_limit(&mut self, now_ns: i64) -> i64 {
        self.pin = self
            .pin
            .filter(|pin| !is_over(pin.time_ns, self.config.receiver_timeout_ns, now_ns));
        self.pin.map_or(i64::MAX, |pin| pin.limit)
    }

    /// Updates a receiver from its status message. Returns whether the receiver is known.
    fn refresh(&mut self, status: &ReceiverStatus, now_ns: i64) -> bool {
        let known = self
            .receivers
            .iter_mut()
            .find(|receiver| receiver.id == status.receiver_id);
        if let Some(receiver) = known {
            receiver.limit = status.limit();
            receiver.is_leaving = status.is_end_of_stream;
            receiver.time_of_last_status_ns = now_ns;
            return true;
        }
        false
    }

    /// Adds a receiver to the group, if there is room for it.
    fn admit(&mut self, status: &ReceiverStatus, now_ns: i64) -> Option<FlowControlProblem> {
        if self.receivers.len() >= MAX_RECEIVERS_PER_PUBLICATION {
            return Some(FlowControlProblem::TooManyReceivers);
        }
        debug_assert!(
            self.receivers
                .iter()
                .all(|receiver| receiver.id != status.receiver_id),
            "receiver {} is in the group already: its first entry would never be updated again",
            status.receiver_id
        );
        self.receivers.push(TrackedReceiver {
            id: status.receiver_id,
            limit: status.limit(),
            time_of_last_status_ns: now_ns,
            is_leaving: false,
        });
        self.pin = None;
        self.receiver_count.set(self.receivers.len() as i64);
        None
    }

    fn slowest_limit(&self) -> i64 {
        let limits = self.receivers.iter().map(|receiver| receiver.limit);
        limits.min().unwrap_or(i64::MAX)
    }
}

impl FlowControl for MinFlowControl {
    fn on_status_message(
        &mut self,
        status: &ReceiverStatus,
        sender_limit: i64,
        now_ns: i64,
    ) -> LimitUpdate {
        let mut problem = self.problem_with(status);
        let is_in_group = self.is_in_group(status);
        let is_known = is_in_group && self.refresh(status, now_ns);
        let mut limit = self.pinned_limit(now_ns).min(self.slowest_limit());
        if is_in_group && !is_known && !status.is_end_of_stream {
            // The new receiver's limit may be lower than the group's limit by more than a window. If such a receiver
            // joined, it would hold back the group because of data that the receiver can no longer get.
            let nearest = limit.saturating_sub(status.window_length.into());
            if self.receivers.is_empty() || status.limit() >= nearest {
                problem = problem.or(self.admit(status, now_ns));
                limit = limit.min(self.slowest_limit());
            }
        }
        let sender_limit = if !self.has_required_receivers() {
            sender_limit
        } else if self.receivers.is_empty() {
            sender_limit.max(status.limit())
        } else {
            sender_limit.max(limit)
        };
        LimitUpdate {
            sender_limit,
            problem,
        }
    }

    fn on_setup_elicited(&mut self, status: &ReceiverStatus) {
        self.is_setup_elicited |= self.is_in_group(status);
    }

    fn on_setup(&mut self, sender_limit: i64, now_ns: i64) {
        if self.is_setup_elicited && !self.receivers.is_empty() {
            self.pin = Some(Pin {
                limit: sender_limit,
                time_ns: now_ns,
            });
        }
        self.is_setup_elicited = false;
    }

    fn on_error(&mut self, receiver_id: i64) {
        for receiver in &mut self.receivers {
            receiver.is_leaving |= receiver.id == receiver_id;
        }
    }

    fn on_idle(&mut self, sender_limit: i64, now_ns: i64) -> i64 {
        let timeout_ns = self.config.receiver_timeout_ns;
        let count = self.receivers.len();
        self.receivers.retain(|receiver| {
            !receiver.is_leaving && !is_over(receiver.time_of_last_status_ns, timeout_ns, now_ns)
        });
        if self.receivers.len() != count {
            self.receiver_count.set(self.receivers.len() as i64);
        }
        let pinned_limit = self.pinned_limit(now_ns);
        if self.receivers.is_empty() || !self.has_required_receivers() {
            return sender_limit;
        }
        pinned_limit.min(self.slowest_limit())
    }

    fn has_required_receivers(&self) -> bool {
        self.receivers.len() >= self.config.group_min_size
    }
}

fn is_over(start_ns: i64, timeout_ns: i64, now_ns: i64) -> bool {
    now_ns > start_ns.saturating_add(timeout_ns)
}
