//! Flow control: whose window limits a sender.
//!
//! A strategy belongs to one publication and runs in the sender. It is told of every status message, of setups and of error
//! frames, and answers the *sender limit*: the position up to which the publication may be sent. [`MaxFlowControl`] follows the
//! fastest receiver, [`MinFlowControl`] the slowest, of all or of those with a tag; [`FlowControlSpec`] chooses one from the
//! channel and the driver's settings. Nothing here keeps time: `now_ns` is the sender's clock.
//!
//! Whatever receivers claim, a strategy remembers at most [`MAX_RECEIVERS_PER_PUBLICATION`] of them.

use std::fmt::Debug;

mod max;
mod min;
mod spec;

pub use max::MaxFlowControl;
pub use min::{GroupConfig, MinFlowControl};
pub use spec::{FlowControlSpec, FlowControlSupplier};

/// Receivers of one publication that are remembered; others are heard, but not waited for.
pub const MAX_RECEIVERS_PER_PUBLICATION: usize = 4096;

/// What a status message says of its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverStatus {
    /// Who it is.
    pub receiver_id: i64,
    /// Position up to which its slowest subscriber has consumed.
    pub position: i64,
    /// Bytes that may be sent beyond the position.
    pub window_length: i32,
    /// The group that it belongs to.
    pub group_tag: Option<i64>,
    /// Bytes behind the fixed part of the status message: 0, or 8 with a group tag.
    pub feedback_length: usize,
    /// It will leave: the end of the stream has reached it.
    pub is_end_of_stream: bool,
}

/// What came out of a status message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitUpdate {
    /// The new sender limit.
    pub sender_limit: i64,
    /// What there is to log: the same text each time, so that the error log counts it.
    pub problem: Option<FlowControlProblem>,
}

/// A status message that does not count as its sender may think.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowControlProblem {
    /// It counts as one without a tag.
    #[error(
        "Received a status message for tagged flow control that did not have 0 or 8 bytes for the group_tag"
    )]
    GroupTagLength,
    /// Its receiver is not waited for.
    #[error(
        "flow control already waits for {MAX_RECEIVERS_PER_PUBLICATION} receivers of the publication, further ones are ignored"
    )]
    TooManyReceivers,
}

/// A strategy; see the [module](self).
pub trait FlowControl: Debug + Send {
    /// A status message arrived that does not ask for a setup.
    fn on_status_message(
        &mut self,
        status: &ReceiverStatus,
        sender_limit: i64,
        now_ns: i64,
    ) -> LimitUpdate;

    /// A status message arrived that asks for a setup.
    fn on_setup_elicited(&mut self, status: &ReceiverStatus);

    /// The setup that was asked for is about to be sent.
    fn on_setup(&mut self, sender_limit: i64, now_ns: i64);

    /// A receiver sent an error frame: it takes nothing more.
    fn on_error(&mut self, receiver_id: i64);

    /// Nothing was sent in this duty cycle; answers the new sender limit, which may be lower.
    fn on_idle(&mut self, sender_limit: i64, now_ns: i64) -> i64;

    /// Whether there are enough receivers for the publication to count as connected.
    fn has_required_receivers(&self) -> bool;
}

impl ReceiverStatus {
    /// The position that the receiver has room up to.
    fn limit(&self) -> i64 {
        self.position.saturating_add(self.window_length.into())
    }
}

impl LimitUpdate {
    fn to(sender_limit: i64) -> Self {
        LimitUpdate {
            sender_limit,
            problem: None,
        }
    }
}
