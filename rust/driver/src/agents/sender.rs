//! [`SenderAgent`]: runs the sender with the clock of this machine.

use std::borrow::Cow;

use aeron_agent::{Agent, AgentError, NanoClock, SystemNanoClock};

use crate::sender::Sender;

pub struct SenderAgent(Sender);

impl SenderAgent {
    pub fn new(sender: Sender) -> Self {
        Self(sender)
    }
}

impl Agent for SenderAgent {
    fn on_start(&mut self) -> Result<(), AgentError> {
        self.0.restart_stall_tracker(SystemNanoClock.nano_time());
        Ok(())
    }

    fn do_work(&mut self) -> Result<usize, AgentError> {
        Ok(self.0.do_work(SystemNanoClock.nano_time()))
    }

    fn role_name(&self) -> Cow<'_, str> {
        "sender".into()
    }
}
