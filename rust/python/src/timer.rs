//! [`Timer`]: a timer for event loops, with a finer resolution than the milliseconds of the loop's own timers.
//!
//! On Linux, such a timer is a file descriptor. Other systems have no `Timer`, and `aeron.aio` uses the timers of the
//! event loop.

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex, PoisonError};
    use std::thread;
    use std::time::Duration;

    use pyo3::prelude::*;

    use crate::argument;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };

    use crate::condition::{Condition, ReadinessCheck};

    /// A one-shot timer with a file that becomes readable when the timer is due.
    ///
    /// The timer can instead watch conditions: a thread checks them without the GIL, and makes the file readable when
    /// one of them is true. A check by the event loop would cost several times as much. Thread-safe.
    #[pyclass(frozen, module = "aeron._aeron", name = "_Timer")]
    pub struct Timer {
        file: Arc<OwnedFd>,
        watch: Mutex<Option<Watch>>,
    }

    /// A thread that checks conditions. After the `Watch` is dropped, the thread ends before its next check.
    struct Watch {
        is_over: Arc<AtomicBool>,
    }

    impl Watch {
        /// Starts a thread that checks the conditions every `interval`. When a condition is true, the thread makes
        /// the file readable and ends.
        fn start(
            looks: Vec<ReadinessCheck>,
            interval: Duration,
            file: Arc<OwnedFd>,
        ) -> std::io::Result<Self> {
            let is_over = Arc::new(AtomicBool::new(false));
            let watch = Self {
                is_over: Arc::clone(&is_over),
            };
            let look = move || {
                while !is_over.load(Ordering::Relaxed) {
                    if looks.iter().any(|look| look()) {
                        // Arming the timer fails only for an invalid time, and this time is valid.
                        let _ = arm(
                            &file,
                            Timespec {
                                tv_sec: 0,
                                tv_nsec: 1,
                            },
                        );
                        return;
                    }
                    thread::sleep(interval);
                }
            };
            let thread = thread::Builder::new().name("aeron-watch".to_owned());
            thread.spawn(look).map(|_| watch)
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            self.is_over.store(true, Ordering::Relaxed);
        }
    }

    /// The time that disarms a timer.
    const NEVER: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };

    /// Makes the file unreadable now, and readable after the time `at`.
    fn arm(file: &OwnedFd, at: Timespec) -> std::io::Result<()> {
        let spec = Itimerspec {
            it_interval: NEVER,
            it_value: at,
        };
        timerfd_settime(file, TimerfdTimerFlags::empty(), &spec)?;
        Ok(())
    }

    impl Timer {
        /// Ends the watch and arms the timer. If the thread of the watch finds at the same moment that a condition is
        /// true, it may still make the file readable. The event loop then makes one unnecessary check.
        fn start_over(&self, at: Timespec) -> PyResult<()> {
            self.replace_watch(None);
            arm(&self.file, at)?;
            Ok(())
        }

        fn replace_watch(&self, watch: Option<Watch>) {
            *self.watch.lock().unwrap_or_else(PoisonError::into_inner) = watch;
        }
    }

    #[pymethods]
    impl Timer {
        #[new]
        fn new() -> PyResult<Self> {
            let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
            let file =
                timerfd_create(TimerfdClockId::Monotonic, flags).map_err(std::io::Error::from)?;
            Ok(Self {
                file: Arc::new(file),
                watch: Mutex::default(),
            })
        }

        fn fileno(&self) -> i32 {
            self.file.as_raw_fd()
        }

        /// Makes the file unreadable now, and readable after `after_ns` nanoseconds.
        fn set(&self, #[pyo3(from_py_with = argument::after_ns)] after_ns: u64) -> PyResult<()> {
            const SECOND: u64 = 1_000_000_000;
            let after_ns = after_ns.max(1);
            let at = Timespec {
                tv_sec: (after_ns / SECOND) as i64,
                tv_nsec: (after_ns % SECOND) as i64,
            };
            self.start_over(at)
        }

        /// Checks the conditions every `interval_ns` nanoseconds, and makes the file readable when one of them is true.
        fn watch(
            &self,
            conditions: Vec<Bound<'_, Condition>>,
            #[pyo3(from_py_with = argument::interval_ns)] interval_ns: u64,
        ) -> PyResult<()> {
            let looks = conditions
                .iter()
                .map(|condition| condition.get().look().cloned())
                .collect::<PyResult<_>>()?;
            self.clear()?;
            let interval = Duration::from_nanos(interval_ns);
            match Watch::start(looks, interval, Arc::clone(&self.file)) {
                Ok(watch) => self.replace_watch(Some(watch)),
                // If no thread can be started, the event loop checks the conditions.
                Err(_) => self.set(interval_ns)?,
            }
            Ok(())
        }

        /// Makes the file unreadable.
        fn clear(&self) -> PyResult<()> {
            self.start_over(NEVER)
        }
    }
}

#[cfg(target_os = "linux")]
pub use linux::Timer;
