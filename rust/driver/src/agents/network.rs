//! Sender and receiver: the agents that own the sockets. Without sockets they only keep time.

use std::borrow::Cow;

use aeron_agent::{Agent, AgentError, NanoClock, SystemNanoClock};

use crate::duty_cycle::StallTracker;
use crate::queue::Receiver;

/// What the conductor asks of sender and receiver: nothing, as long as there are no sockets.
#[derive(Debug)]
pub enum NetworkCommand {}

/// The sender or the receiver.
pub struct NetworkAgent {
    role_name: &'static str,
    commands: Receiver<NetworkCommand>,
    stall_tracker: StallTracker,
}

impl NetworkAgent {
    /// An agent that takes `commands`.
    pub fn new(
        role_name: &'static str,
        commands: Receiver<NetworkCommand>,
        stall_tracker: StallTracker,
    ) -> Self {
        Self {
            role_name,
            commands,
            stall_tracker,
        }
    }
}

impl Agent for NetworkAgent {
    fn on_start(&mut self) -> Result<(), AgentError> {
        self.stall_tracker.restart(SystemNanoClock.nano_time());
        Ok(())
    }

    fn do_work(&mut self) -> Result<usize, AgentError> {
        self.stall_tracker
            .on_duty_cycle(SystemNanoClock.nano_time());
        match self.commands.pop() {
            Ok(command) => match command {},
            Err(_) => Ok(0),
        }
    }

    fn role_name(&self) -> Cow<'_, str> {
        self.role_name.into()
    }
}
