//! [`ServiceNotifier`]: tells the service manager the state of a program.

use std::time::{Duration, Instant};

/// Sends the state of a program to its service manager, by the protocol of `sd_notify`.
///
/// The manager, for example systemd with `Type=notify`, names its socket in the environment variable `NOTIFY_SOCKET`.
/// Without the variable, and on systems other than Linux, nothing is sent. An error of the socket is ignored: the
/// program works without a manager that listens.
#[derive(Debug)]
pub struct ServiceNotifier {
    watchdog: Option<Watchdog>,
}

/// The watchdog of the manager, which ends the program if it is silent for too long.
#[derive(Debug)]
struct Watchdog {
    interval: Duration,
    due: Instant,
}

/// Duration after the last sign of life for which the manager waits, in units of the interval of the signs.
const INTERVALS_PER_TIMEOUT: u32 = 2;

impl ServiceNotifier {
    /// Creates a notifier with the settings of the manager in the environment: `NOTIFY_SOCKET`, `WATCHDOG_USEC` and
    /// `WATCHDOG_PID`.
    pub fn from_environment() -> Self {
        let watchdog = manager::watchdog_timeout().map(|timeout| Watchdog {
            interval: timeout / INTERVALS_PER_TIMEOUT,
            due: Instant::now(),
        });
        Self { watchdog }
    }

    /// Sends `READY=1`: the program serves now, after its start or after a reload.
    pub fn ready(&self, status: &str) {
        manager::send(Message::Ready, status);
    }

    /// Sends a line about the state of the program for its operator.
    pub fn status(&self, status: &str) {
        manager::send(Message::Status, status);
    }

    /// Sends `RELOADING=1`. [`ready`](Self::ready) ends the reload.
    pub fn reloading(&self, status: &str) {
        manager::send(Message::Reloading, status);
    }

    /// Sends `STOPPING=1`: the program ends.
    pub fn stopping(&self, status: &str) {
        manager::send(Message::Stopping, status);
    }

    /// Sends `WATCHDOG=1` if half of the time-out of the watchdog has passed and `take_progress` returns true.
    ///
    /// The main loop calls it in each of its duty cycles. `take_progress` says whether all other agents of the process
    /// have completed a duty cycle since it last returned true. So the watchdog ends the process if one agent is stuck.
    pub fn on_duty_cycle(&mut self, take_progress: impl FnOnce() -> bool) {
        let Some(watchdog) = &mut self.watchdog else {
            return;
        };
        let now = Instant::now();
        if now >= watchdog.due && take_progress() {
            watchdog.due = now + watchdog.interval;
            manager::send(Message::Alive, "");
        }
    }
}

/// A change of the program's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Message {
    Ready,
    Status,
    Reloading,
    Stopping,
    Alive,
}

#[cfg(target_os = "linux")]
mod manager {
    use std::time::Duration;

    use sd_notify::NotifyState;

    use super::Message;

    pub fn watchdog_timeout() -> Option<Duration> {
        sd_notify::watchdog_enabled()
    }

    pub fn send(message: Message, status: &str) {
        // A line break would begin another assignment of the protocol.
        let status = status.replace('\n', " ");
        let status = NotifyState::Status(&status);
        let _ = match message {
            Message::Ready => sd_notify::notify(&[NotifyState::Ready, status]),
            Message::Status => sd_notify::notify(&[status]),
            // The manager orders reloads by the time, with `Type=notify-reload`.
            Message::Reloading => match NotifyState::monotonic_usec_now() {
                Ok(time) => sd_notify::notify(&[NotifyState::Reloading, time, status]),
                Err(_) => sd_notify::notify(&[NotifyState::Reloading, status]),
            },
            Message::Stopping => sd_notify::notify(&[NotifyState::Stopping, status]),
            Message::Alive => sd_notify::notify(&[NotifyState::Watchdog]),
        };
    }
}

#[cfg(not(target_os = "linux"))]
mod manager {
    use std::time::Duration;

    use super::Message;

    pub fn watchdog_timeout() -> Option<Duration> {
        None
    }

    pub fn send(_message: Message, _status: &str) {}
}
