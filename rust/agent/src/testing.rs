//! Agents and journals for the tests of this crate.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::{Arc, Mutex};

use crate::agent::{Agent, AgentError};

/// An ordered log of events. Clones share it.
#[derive(Clone, Default)]
pub struct Journal(Arc<Mutex<Vec<String>>>);

impl Journal {
    pub fn note(&self, line: impl Display) {
        self.0.lock().unwrap().push(line.to_string());
    }

    pub fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub fn count(&self, line: &str) -> usize {
        self.lines().iter().filter(|noted| *noted == line).count()
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// An agent that logs each call and returns results from a script. After the end of the script it has no work.
pub struct ScriptedAgent {
    name: String,
    journal: Journal,
    pub start: Option<AgentError>,
    pub work: VecDeque<Result<usize, AgentError>>,
    pub close: Option<AgentError>,
}

impl ScriptedAgent {
    pub fn new(name: &str, journal: &Journal) -> Self {
        Self {
            name: name.to_owned(),
            journal: journal.clone(),
            start: None,
            work: VecDeque::new(),
            close: None,
        }
    }

    pub fn failing_start(mut self, error: AgentError) -> Self {
        self.start = Some(error);
        self
    }

    pub fn working(mut self, script: impl IntoIterator<Item = Result<usize, AgentError>>) -> Self {
        self.work = script.into_iter().collect();
        self
    }

    pub fn failing_close(mut self, error: AgentError) -> Self {
        self.close = Some(error);
        self
    }

    pub fn boxed(self) -> Box<dyn Agent> {
        Box::new(self)
    }
}

impl Agent for ScriptedAgent {
    fn on_start(&mut self) -> Result<(), AgentError> {
        self.journal.note(format_args!("{} start", self.name));
        self.start.take().map_or(Ok(()), Err)
    }

    fn do_work(&mut self) -> Result<usize, AgentError> {
        self.journal.note(format_args!("{} work", self.name));
        self.work.pop_front().unwrap_or(Ok(0))
    }

    fn on_close(&mut self) -> Result<(), AgentError> {
        self.journal.note(format_args!("{} close", self.name));
        self.close.take().map_or(Ok(()), Err)
    }

    fn role_name(&self) -> Cow<'_, str> {
        Cow::Borrowed(&self.name)
    }
}
