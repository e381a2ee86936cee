//! The slowest receiver's window: of all receivers, or of those that carry the group's tag.

use aeron_memory::SharedBuffer;
use aeron_memory::counters::AtomicCounter;

use super::{
    FlowControl, FlowControlProblem, LimitUpdate, MAX_RECEIVERS_PER_PUBLICATION, ReceiverStatus,
};

const GROUP_TAG_LENGTH: usize = 8;

/// Which receivers count, and how many there must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// Only receivers with this tag count; without one, all do.
    pub group_tag: Option<i64>,
    /// With fewer receivers nothing is sent, and the publication is not connected.
    pub group_min_size: usize,
    /// A receiver that is silent for longer is forgotten.
    pub receiver_timeout_ns: i64,
}

/// Sends as far as every receiver of the group has room.
///
/// As long as nobody is in the group and nobody is required to be, it sends as far as any receiver has room.
#[derive(Debug)]
pub struct MinFlowControl {
    config: GroupConfig,
    receivers: Vec<Receiver>,
    /// The number of receivers, for those who watch.
    receiver_count: AtomicCounter<SharedBuffer>,
    is_setup_elicited: bool,
    pin: Option<Pin>,
}

#[derive(Debug)]
struct Receiver {
    id: i64,
    limit: i64,
    time_of_last_status_ns: i64,
    is_leaving: bool,
}

/// Holds the limit where it was when a setup was sent to a receiver that wants to join, so that the stream does not run away
/// from it meanwhile.
#[derive(Clone, Copy, Debug)]
struct Pin {
    limit: i64,
    time_ns: i64,
}

impl MinFlowControl {
    /// A group without receivers, whose number `receiver_count` will show.
    pub fn new(config: GroupConfig, receiver_count: AtomicCounter<SharedBuffer>) -> Self {
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

    /// The pin, or no limit at all.
    fn pinned_limit(&mut self, now_ns: i64) -> i64 {
        self.pin = self
            .pin
            .filter(|pin| !is_over(pin.time_ns, self.config.receiver_timeout_ns, now_ns));
        self.pin.map_or(i64::MAX, |pin| pin.limit)
    }

    /// Takes the news of a receiver that is known; answers whether it is.
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

    /// The group waits for this receiver from now on, if there is room for it.
    fn admit(&mut self, status: &ReceiverStatus, now_ns: i64) -> Option<FlowControlProblem> {
        if self.receivers.len() >= MAX_RECEIVERS_PER_PUBLICATION {
            return Some(FlowControlProblem::TooManyReceivers);
        }
        self.receivers.push(Receiver {
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
            // One that lies a whole window behind the others would stop them for what it can no longer get.
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
