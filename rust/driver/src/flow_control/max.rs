//! [`MaxFlowControl`]: flow control by the fastest receiver.

use super::{FlowControl, LimitUpdate, ReceiverStatus};

/// Sends up to the limit of the fastest receiver. Slower receivers lose data. A single receiver counts as the fastest.
#[derive(Clone, Copy, Debug, Default)]
pub struct MaxFlowControl;

impl FlowControl for MaxFlowControl {
    fn on_status_message(
        &mut self,
        status: &ReceiverStatus,
        sender_limit: i64,
        _now_ns: i64,
    ) -> LimitUpdate {
        LimitUpdate::to(sender_limit.max(status.limit()))
    }

    fn on_setup_elicited(&mut self, _status: &ReceiverStatus) {}

    fn on_setup(&mut self, _sender_limit: i64, _now_ns: i64) {}

    fn on_error(&mut self, _receiver_id: i64) {}

    fn on_idle(&mut self, sender_limit: i64, _now_ns: i64) -> i64 {
        sender_limit
    }

    fn has_required_receivers(&self) -> bool {
        true
    }
}
