//! [`BackgroundNames`]: resolves names on background threads. A slow name delays only the commands that need it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use aeron_protocol::ErrorCode;

use super::NameResolver;
use crate::error::DriverError;
use crate::media::address::Family;

/// Time for which the first call for a name waits for the result. The hosts file and a nearby name server need less
/// time.
const PATIENCE: Duration = Duration::from_millis(2);
/// Maximum number of threads. Further names wait until a thread has finished.
const MAX_LOOKUPS: usize = 32;

/// Wraps a blocking resolver.
///
/// While a name is being resolved, the result is a [temporary](DriverError::is_temporary) error. The caller must repeat
/// the call in each duty cycle. Otherwise the result is dropped.
pub struct BackgroundNames<N> {
    names: N,
    lookups: HashMap<(Box<str>, Family), NameLookup>,
}

type Answer = Result<IpAddr, DriverError>;

/// The resolution of one name.
enum NameLookup {
    /// A thread is resolving the name.
    Running(Receiver<Answer>),
    /// The thread has ended. `is_wanted` is true if a call has asked for the result since the last duty cycle.
    Done { answer: Answer, is_wanted: bool },
}

impl<N: NameResolver + Clone + 'static> BackgroundNames<N> {
    /// Creates a resolver that uses `names`.
    pub fn new(names: N) -> Self {
        Self {
            names,
            lookups: HashMap::new(),
        }
    }

    fn begin(&self, host: &str, family: Family) -> NameLookup {
        let (sender, receiver) = channel();
        let (mut names, name) = (self.names.clone(), host.to_owned());
        let look_up = move || {
            // Fails if the lookup was dropped in the meantime.
            let _ = sender.send(names.resolve(&name, family));
        };
        let thread = thread::Builder::new().name("aeron-names".into());
        match thread.spawn(look_up) {
            Err(error) => NameLookup::done(Err(DriverError::coded(
                ErrorCode::UnknownHost,
                format_args!("Unable to resolve host=({host}): failed to start thread: {error}"),
            ))),
            Ok(_) => match receiver.recv_timeout(PATIENCE) {
                Ok(answer) => NameLookup::done(answer),
                Err(RecvTimeoutError::Timeout) => NameLookup::Running(receiver),
                Err(RecvTimeoutError::Disconnected) => NameLookup::done(Err(given_up(host))),
            },
        }
    }

    fn running_count(&self) -> usize {
        let is_running = |lookup: &&NameLookup| matches!(lookup, NameLookup::Running(_));
        self.lookups.values().filter(is_running).count()
    }
}

impl NameLookup {
    fn done(answer: Answer) -> Self {
        Self::Done {
            answer,
            is_wanted: true,
        }
    }

    /// Stores the result of the thread, if the thread has one.
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

    /// Returns whether the lookup must be kept, because it is running or was wanted in the last duty cycle. Call this
    /// method once in each duty cycle.
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
        format_args!("Unable to resolve host=({host}): the lookup thread ended without a result"),
    )
}
