//! Looks names up on threads of their own: a name that takes long holds up whoever needs it, and nobody else.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use aeron_protocol::ErrorCode;

use super::NameResolver;
use crate::error::DriverError;
use crate::media::address::Family;

/// How long the first one who asks for a name waits: the hosts file and a name server nearby are faster.
const PATIENCE: Duration = Duration::from_millis(2);
/// Threads that look names up at a time; the next name waits until one of them is done.
const MAX_LOOKUPS: usize = 32;

/// A resolver in front of one that blocks. It answers that it [does not know yet](DriverError::is_temporary) while a name is looked
/// up; who wants the answer asks again in each duty cycle, and not later, or the answer is forgotten.
pub struct BackgroundNames<N> {
    names: N,
    lookups: HashMap<(Box<str>, Family), Lookup>,
}

type Answer = Result<IpAddr, DriverError>;

/// A name that somebody asked for.
enum Lookup {
    /// A thread waits for the answer.
    Running(Receiver<Answer>),
    /// The answer, and whether somebody asked for it since the last duty cycle.
    Done { answer: Answer, is_wanted: bool },
}

impl<N: NameResolver + Clone + 'static> BackgroundNames<N> {
    /// Asks `names`.
    pub fn new(names: N) -> Self {
        Self {
            names,
            lookups: HashMap::new(),
        }
    }

    fn begin(&self, host: &str, family: Family) -> Lookup {
        let (sender, receiver) = channel();
        let (mut names, name) = (self.names.clone(), host.to_owned());
        let look_up = move || {
            // Nobody may be there any more to hear it.
            let _ = sender.send(names.resolve(&name, family));
        };
        let thread = thread::Builder::new().name("aeron-names".into());
        match thread.spawn(look_up) {
            Err(error) => Lookup::done(Err(DriverError::coded(
                ErrorCode::UnknownHost,
                format_args!("Unable to resolve host=({host}): no thread to look it up: {error}"),
            ))),
            Ok(_) => match receiver.recv_timeout(PATIENCE) {
                Ok(answer) => Lookup::done(answer),
                Err(RecvTimeoutError::Timeout) => Lookup::Running(receiver),
                Err(RecvTimeoutError::Disconnected) => Lookup::done(Err(given_up(host))),
            },
        }
    }

    fn running_count(&self) -> usize {
        let is_running = |lookup: &&Lookup| matches!(lookup, Lookup::Running(_));
        self.lookups.values().filter(is_running).count()
    }
}

impl Lookup {
    fn done(answer: Answer) -> Self {
        Self::Done {
            answer,
            is_wanted: true,
        }
    }

    /// Takes the answer of its thread if it is there.
    fn update(&mut self, host: &str) {
        let Self::Running(receiver) = self else {
            return;
        };
        match receiver.try_recv() {
            Ok(answer) => *self = Self::done(answer),
            Err(TryRecvError::Disconnected) => *self = Self::done(Err(given_up(host))),
            Err(TryRecvError::Empty) => {}
        }
    }

    /// Whether somebody may still come for it; to be asked once per duty cycle.
    fn is_kept(&mut self) -> bool {
        match self {
            Self::Running(_) => true,
            Self::Done { is_wanted, .. } => std::mem::take(is_wanted),
        }
    }

    fn answer(&mut self, host: &str) -> Answer {
        self.update(host);
        match self {
            Self::Running(_) => Err(not_yet(host)),
            Self::Done { answer, is_wanted } => {
                *is_wanted = true;
                answer.clone()
            }
        }
    }
}

impl<N: NameResolver + Clone + 'static> NameResolver for BackgroundNames<N> {
    fn resolve(&mut self, host: &str, family: Family) -> Answer {
        if host.parse::<IpAddr>().is_ok() {
            return self.names.resolve(host, family);
        }
        let key = (Box::from(host), family);
        if let Some(lookup) = self.lookups.get_mut(&key) {
            return lookup.answer(host);
        }
        if self.running_count() >= MAX_LOOKUPS {
            return Err(not_yet(host));
        }
        let mut lookup = self.begin(host, family);
        let answer = lookup.answer(host);
        self.lookups.insert(key, lookup);
        answer
    }

    fn do_work(&mut self) -> usize {
        self.lookups.retain(|(host, _), lookup| {
            lookup.update(host);
            lookup.is_kept()
        });
        self.names.do_work()
    }
}

fn not_yet(host: &str) -> DriverError {
    DriverError::coded(
        ErrorCode::ResourceTemporarilyUnavailable,
        format_args!("host=({host}) is being looked up"),
    )
}

fn given_up(host: &str) -> DriverError {
    DriverError::coded(
        ErrorCode::UnknownHost,
        format_args!("Unable to resolve host=({host}): the lookup ended without an answer"),
    )
}
