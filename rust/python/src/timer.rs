//! [`Timer`]: a timer that an event loop can wait for, finer than the loop's own milliseconds.
//!
//! Linux has timers as files. Elsewhere there is no `Timer`, and `aeron.aio` uses the loop's.

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::{AsRawFd, OwnedFd};

    use pyo3::prelude::*;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };

    /// A one-shot timer whose file becomes readable when it is due.
    #[pyclass(frozen, module = "aeron._aeron", name = "_Timer")]
    pub struct Timer(OwnedFd);

    const ZERO: Timespec = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };

    impl Timer {
        fn arm(&self, at: Timespec) -> PyResult<()> {
            let spec = Itimerspec {
                it_interval: ZERO,
                it_value: at,
            };
            timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &spec)
                .map_err(std::io::Error::from)?;
            Ok(())
        }
    }

    #[pymethods]
    impl Timer {
        #[new]
        fn new() -> PyResult<Self> {
            let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
            let file =
                timerfd_create(TimerfdClockId::Monotonic, flags).map_err(std::io::Error::from)?;
            Ok(Self(file))
        }

        fn fileno(&self) -> i32 {
            self.0.as_raw_fd()
        }

        /// Makes the file readable in `after_ns` nanoseconds, and until then not.
        fn set(&self, after_ns: u64) -> PyResult<()> {
            const SECOND: u64 = 1_000_000_000;
            let after_ns = after_ns.max(1);
            self.arm(Timespec {
                tv_sec: (after_ns / SECOND) as i64,
                tv_nsec: (after_ns % SECOND) as i64,
            })
        }

        /// Makes the file not readable.
        fn clear(&self) -> PyResult<()> {
            self.arm(ZERO)
        }
    }
}

#[cfg(target_os = "linux")]
pub use linux::Timer;
