//! Flow control: decides the position up to which a sender may send.
//!
//! Each network publication has one strategy. The sender passes every status message, SETUP and error frame to the
//! strategy, which returns the *sender limit*: the position up to which the publication may be sent. [`MaxFlowControl`]
//! follows the fastest receiver. [`MinFlowControl`] follows the slowest of all receivers, or the slowest receiver with
//! a tag. [`FlowControlSpec`] chooses a strategy from the channel and the configuration. The sender passes the time
//! `now_ns`.
//!
//! A strategy remembers at most [`MAX_RECEIVERS_PER_PUBLICATION`] receivers, regardless of the status messages that
//! arrive.

use std::fmt::Debug;

mod max;
mod min;
mod spec;

pub use max::MaxFlowControl;
pub use min::{GroupConfig, MinFlowControl};
pub use spec::{FlowControlSpec, FlowControlSupplier};

/// Maximum number of receivers of one publication that the sender and flow control remember. The sender does not wait
/// for other receivers.
pub const MAX_RECEIVERS_PER_PUBLICATION: usize = 4096;

/// Content of a status message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiverStatus {
    pub receiver_id: i64,
    /// Position up to which the receiver's slowest subscriber has consumed.
    pub position: i64,
    /// Bytes that may be sent after the position.
    pub window_length: i32,
    /// Group tag of the receiver.
    pub group_tag: Option<i64>,
    /// Bytes after the fixed part of the status message: 0, or 8 with a group tag.
    pub feedback_length: usize,
    /// Whether the receiver is about to leave, because it has received the end of the stream.
    pub is_end_of_stream: bool,
}

/// Result of a status message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitUpdate {
    /// The new sender limit.
    pub sender_limit: i64,
    /// A problem to record in the error log. Each problem always has the same text, so the log has one entry with a
    /// count for it.
    pub problem: Option<FlowControlProblem>,
}

/// Reason why a status message has less effect than the receiver may expect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FlowControlProblem {
    /// The message is treated as a message without a tag.
    #[error(
        "Received a status message for tagged flow control that did not have 0 or 8 bytes for the group_tag"
    )]
    GroupTagLength,
    /// The sender does not wait for the receiver.
    #[error(
        "flow control already waits for the maximum of {MAX_RECEIVERS_PER_PUBLICATION} receivers: a new receiver of the publication is ignored"
    )]
    TooManyReceivers,
}

/// A flow control strategy; see the [module](self).
pub trait FlowControl: Debug + Send {
    /// Handles a status message that does not request a SETUP. Returns the new sender limit.
    fn on_status_message(
        &mut self,
        status: &ReceiverStatus,
        sender_limit: i64,
        now_ns: i64,
    ) -> LimitUpdate;

    /// Handles a status message that requests a SETUP.
    fn on_setup_elicited(&mut self, status: &ReceiverStatus);

    /// Called before a requested SETUP is sent.
    fn on_setup(&mut self, sender_limit: i64, now_ns: i64);

    /// Handles an error frame: the receiver has rejected the stream.
    fn on_error(&mut self, receiver_id: i64);

    /// Removes silent receivers after a duty cycle that sent nothing. Returns the new sender limit, which may be lower.
    fn on_idle(&mut self, sender_limit: i64, now_ns: i64) -> i64;

    /// Returns whether there are enough receivers for the publication to be connected.
    fn has_required_receivers(&self) -> bool;
}

impl ReceiverStatus {
    /// Returns the position up to which the receiver has room.
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
