//! [`ServiceNotifier`]: tells the service manager the state of a program.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use rustix::net::{SendFlags, SocketAddrUnix, sendto};
use sd_notify::NotifyState;

const ADDRESS_VARIABLE: &str = "NOTIFY_SOCKET";
/// Number of signs of life that a program sends within the time-out of the watchdog.
const SIGNS_PER_TIMEOUT: u32 = 2;
/// Maximum time for which a message other than a sign of life waits for room in the queue of the manager.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);

/// Sends the state of a program to its service manager, by the protocol of `sd_notify`.
///
/// The manager, for example systemd with `Type=notify`, names its socket in the environment variable `NOTIFY_SOCKET`.
/// Without the variable, nothing is sent. An error of the socket is ignored: the program works without a manager that
/// listens.
#[derive(Debug)]
pub struct ServiceNotifier {
    manager: Option<Manager>,
    watchdog: Option<Watchdog>,
}

/// The socket of the manager. Its messages are those of the crate `sd-notify`, whose own function waits without a limit
/// while the queue of the manager is full: a manager that hangs would stop the conductor.
#[derive(Debug)]
struct Manager {
    socket: UnixDatagram,
    address: SocketAddrUnix,
}

/// The watchdog of the manager, which ends the program if it is silent for too long.
#[derive(Debug)]
struct Watchdog {
    interval: Duration,
    due: Instant,
}

impl ServiceNotifier {
    /// Creates a notifier with the settings of the manager in the environment: `NOTIFY_SOCKET`, `WATCHDOG_USEC` and
    /// `WATCHDOG_PID`.
    pub fn from_environment() -> Self {
        let watchdog = sd_notify::watchdog_enabled().map(|timeout| Watchdog {
            interval: timeout / SIGNS_PER_TIMEOUT,
            due: Instant::now(),
        });
        Self {
            manager: Manager::from_environment(),
            watchdog,
        }
    }

    /// Sends `READY=1`: the program serves now, after its start or after a reload.
    pub fn ready(&self, status: &str) {
        self.send(&[NotifyState::Ready], status);
    }

    /// Sends a line about the state of the program for its operator.
    pub fn status(&self, status: &str) {
        self.send(&[], status);
    }

    /// Sends `RELOADING=1`. [`ready`](Self::ready) ends the reload.
    pub fn reloading(&self, status: &str) {
        match NotifyState::monotonic_usec_now() {
            // The manager orders reloads by the time, with `Type=notify-reload`.
            Ok(time) => self.send(&[NotifyState::Reloading, time], status),
            Err(_) => self.send(&[NotifyState::Reloading], status),
        }
    }

    /// Sends `STOPPING=1`: the program ends.
    pub fn stopping(&self, status: &str) {
        self.send(&[NotifyState::Stopping], status);
    }

    /// Sends `WATCHDOG=1` if half of the time-out of the watchdog has passed and `take_progress` returns true. Never
    /// waits: if the queue of the manager is full, the sign is dropped.
    ///
    /// The main loop calls it in each of its duty cycles. `take_progress` says whether all other agents of the process
    /// have completed a duty cycle since it last returned true. So the watchdog ends the process if one agent is stuck.
    pub fn on_duty_cycle(&mut self, take_progress: impl FnOnce() -> bool) {
        let (Some(manager), Some(watchdog)) = (&self.manager, &mut self.watchdog) else {
            return;
        };
        let now = Instant::now();
        if now >= watchdog.due && take_progress() {
            watchdog.due = now + watchdog.interval;
            manager.send(&[NotifyState::Watchdog], SendFlags::DONTWAIT);
        }
    }

    fn send(&self, states: &[NotifyState<'_>], status: &str) {
        if let Some(manager) = &self.manager {
            // A line break would begin another assignment of the protocol.
            let status = status.replace('\n', " ");
            let states = [states, &[NotifyState::Status(&status)]].concat();
            manager.send(&states, SendFlags::empty());
        }
    }
}

impl Manager {
    fn from_environment() -> Option<Self> {
        let given = std::env::var_os(ADDRESS_VARIABLE)?;
        let address = match given.as_bytes() {
            #[cfg(target_os = "linux")]
            [b'@', name @ ..] => SocketAddrUnix::new_abstract_name(name),
            path => SocketAddrUnix::new(path),
        };
        let socket = UnixDatagram::unbound().ok()?;
        socket.set_write_timeout(Some(SEND_TIMEOUT)).ok()?;
        Some(Self {
            socket,
            address: address.ok()?,
        })
    }

    fn send(&self, states: &[NotifyState<'_>], flags: SendFlags) {
        let lines: String = states.iter().map(|state| format!("{state}\n")).collect();
        // The manager may be gone.
        let _ = sendto(&self.socket, lines.as_bytes(), flags, &self.address);
    }
}
