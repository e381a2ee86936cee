//! [`ReceiverAgent`]: runs the receiver with the clock of this machine.

use std::borrow::Cow;

use aeron_agent::{Agent, AgentError, NanoClock, SystemNanoClock};

use crate::receiver::Receiver;

pub struct ReceiverAgent(Receiver);

impl ReceiverAgent {
    pub fn new(receiver: Receiver) -> Self {
        Self(receiver)
    }
}

impl Agent for ReceiverAgent {
    fn on_start(&mut self) -> Result<(), AgentError> {
        self.0.restart_stall_tracker(SystemNanoClock.nano_time());
        Ok(())
    }

    fn do_work(&mut self) -> Result<usize, AgentError> {
        Ok(self.0.do_work(SystemNanoClock.nano_time()))
    }

    fn role_name(&self) -> Cow<'_, str> {
        "receiver".into()
    }
}
