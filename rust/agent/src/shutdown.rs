//! [`ShutdownSignalBarrier`]: lets threads wait until SIGINT, SIGTERM, or a call requests the end of the program.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::SigId;
use signal_hook::consts::{SIGINT, SIGTERM};

/// Wakes threads that wait for the end of the program.
///
/// While a barrier exists, SIGINT and SIGTERM do not kill the process: they wake the barriers. The main program then
/// cleans up and ends the process. The barrier uses no thread of its own. All methods may be called from any thread.
pub struct ShutdownSignalBarrier {
    inner: Arc<Inner>,
    signals: Mutex<Vec<SigId>>,
}

/// Reason why a barrier was woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// A call of [`ShutdownSignalBarrier::signal`] or [`ShutdownSignalBarrier::signal_all`].
    Requested,
    /// A signal from the system, by its number.
    Signal(i32),
}

struct Inner {
    received: Arc<AtomicUsize>,
    reader: UnixStream,
    writer: UnixStream,
    handler: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    is_closed: AtomicBool,
}

const NOTHING: usize = 0;
/// Value for [`Shutdown::Requested`], larger than the number of any signal.
const REQUESTED: usize = usize::MAX;

/// The barriers that [`ShutdownSignalBarrier::signal_all`] wakes.
static BARRIERS: Mutex<Vec<Weak<Inner>>> = Mutex::new(Vec::new());

impl ShutdownSignalBarrier {
    /// Creates a barrier for SIGINT and SIGTERM.
    pub fn new() -> io::Result<Self> {
        Self::create(None)
    }

    /// Creates a barrier that calls `handler` once, on the thread that notices the signal: a waiting thread, or the
    /// caller of `signal`.
    pub fn with_handler(handler: impl FnOnce() + Send + 'static) -> io::Result<Self> {
        Self::create(Some(Box::new(handler)))
    }

    fn create(handler: Option<Box<dyn FnOnce() + Send>>) -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        writer.set_nonblocking(true)?;
        let received = Arc::new(AtomicUsize::new(NOTHING));
        let mut signals = Vec::new();
        for signal in [SIGINT, SIGTERM] {
            // The flag is set before the pipe is written: a thread that the pipe wakes sees the flag.
            signals.push(signal_hook::flag::register_usize(
                signal,
                Arc::clone(&received),
                signal as usize,
            )?);
            signals.push(signal_hook::low_level::pipe::register(
                signal,
                writer.try_clone()?,
            )?);
        }
        let inner = Arc::new(Inner {
            received,
            reader,
            writer,
            handler: Mutex::new(handler),
            is_closed: AtomicBool::new(false),
        });
        lock(&BARRIERS).push(Arc::downgrade(&inner));
        Ok(Self {
            inner,
            signals: Mutex::new(signals),
        })
    }

    /// Returns the reason why the barrier was woken; `None` if it was not woken. Needs a single load, which is cheap
    /// enough for every duty cycle.
    pub fn received(&self) -> Option<Shutdown> {
        self.inner.received()
    }

    /// Waits until the barrier is woken.
    pub fn wait(&self) -> Shutdown {
        loop {
            if let Some(shutdown) = self.wait_timeout(Duration::from_secs(3_600)) {
                return shutdown;
            }
        }
    }

    /// Waits until the barrier is woken, or `timeout` has passed.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<Shutdown> {
        let start = Instant::now();
        while self.inner.received().is_none() && start.elapsed() < timeout {
            self.inner
                .wait_readable(timeout - start.elapsed().min(timeout));
        }
        let shutdown = self.inner.received()?;
        self.inner.call_handler();
        Some(shutdown)
    }

    /// Wakes this barrier. Also calls its handler, unless the handler was called before.
    pub fn signal(&self) {
        self.inner.signal();
    }

    /// Wakes all barriers of the process.
    pub fn signal_all() {
        let barriers = std::mem::take(&mut *lock(&BARRIERS));
        barriers
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|barrier| barrier.signal());
    }

    /// Disconnects the barrier: afterwards, signals and [`signal_all`](Self::signal_all) have no effect on the barrier.
    pub fn remove(&self) {
        lock(&self.signals).drain(..).for_each(|id| {
            signal_hook::low_level::unregister(id);
        });
        let own = Arc::downgrade(&self.inner);
        lock(&BARRIERS).retain(|barrier| !barrier.ptr_eq(&own) && barrier.strong_count() > 0);
    }

    /// Signals and removes the barrier, and sets its state to closed. May be called again. Dropping also closes the
    /// barrier.
    pub fn close(&self) {
        if !self.inner.is_closed.swap(true, Ordering::AcqRel) {
            self.signal();
            self.remove();
        }
    }

    /// Whether [`close`](Self::close) was called.
    pub fn is_closed(&self) -> bool {
        self.inner.is_closed.load(Ordering::Acquire)
    }
}

impl Drop for ShutdownSignalBarrier {
    fn drop(&mut self) {
        self.close();
    }
}

impl Inner {
    fn received(&self) -> Option<Shutdown> {
        match self.received.load(Ordering::Acquire) {
            NOTHING => None,
            REQUESTED => Some(Shutdown::Requested),
            signal => Some(Shutdown::Signal(signal as i32)),
        }
    }

    fn signal(&self) {
        let unset =
            self.received
                .compare_exchange(NOTHING, REQUESTED, Ordering::AcqRel, Ordering::Acquire);
        if unset.is_ok() {
            // The pipe has room, because it only contains this byte and one byte for each signal.
            let _ = (&self.writer).write(&[1]);
        }
        self.call_handler();
    }

    fn call_handler(&self) {
        let handler = lock(&self.handler).take();
        if let Some(handler) = handler {
            handler();
        }
    }

    /// The pipe is never read, so after a wake it stays readable for all waiting threads. A signal may end the wait
    /// early.
    fn wait_readable(&self, timeout: Duration) {
        let timeout = timeout.try_into().ok();
        let _ = poll(
            &mut [PollFd::new(&self.reader, PollFlags::IN)],
            timeout.as_ref(),
        );
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use signal_hook::low_level::raise;

    /// Signals and `signal_all` reach every barrier of the process, so these tests run one at a time.
    static TURN: Mutex<()> = Mutex::new(());

    const SOON: Duration = Duration::from_secs(60);

    #[test]
    fn waiting_ends_when_the_barrier_is_signalled_03_122() {
        let _turn = lock(&TURN);
        let barrier = ShutdownSignalBarrier::new().unwrap();
        assert_eq!(
            (
                barrier.received(),
                barrier.wait_timeout(Duration::from_millis(1))
            ),
            (None, None)
        );
        std::thread::scope(|scope| {
            let waiting: Vec<_> = (0..3).map(|_| scope.spawn(|| barrier.wait())).collect();
            barrier.signal();
            for thread in waiting {
                assert_eq!(thread.join().unwrap(), Shutdown::Requested);
            }
        });
        assert_eq!(barrier.wait(), Shutdown::Requested);
    }

    #[test]
    fn a_signal_for_all_wakes_each_barrier_that_was_not_removed_03_122() {
        let _turn = lock(&TURN);
        let barriers = [(); 3].map(|()| ShutdownSignalBarrier::new().unwrap());
        barriers[2].remove();
        ShutdownSignalBarrier::signal_all();
        let woken = barriers.each_ref().map(ShutdownSignalBarrier::received);
        assert_eq!(
            woken,
            [Some(Shutdown::Requested), Some(Shutdown::Requested), None]
        );
    }

    #[test]
    fn a_signal_wakes_each_barrier_and_does_not_kill_the_process_03_122() {
        let _turn = lock(&TURN);
        for signal in [SIGINT, SIGTERM] {
            let barriers = [(); 2].map(|()| ShutdownSignalBarrier::new().unwrap());
            raise(signal).unwrap();
            for barrier in &barriers {
                assert_eq!(barrier.wait_timeout(SOON), Some(Shutdown::Signal(signal)));
                assert!(!barrier.is_closed());
                barrier.close();
                assert!(barrier.is_closed());
            }
        }
    }

    #[test]
    fn a_thread_that_waits_is_woken_by_a_signal() {
        let _turn = lock(&TURN);
        let barrier = ShutdownSignalBarrier::new().unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| barrier.wait_timeout(SOON));
            raise(SIGTERM).unwrap();
            assert_eq!(waiting.join().unwrap(), Some(Shutdown::Signal(SIGTERM)));
        });
    }

    #[test]
    fn the_handler_is_called_once_03_122() {
        let _turn = lock(&TURN);
        let calls = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&calls);
        let handler = move || {
            count.fetch_add(1, Ordering::Relaxed);
        };
        let barrier = ShutdownSignalBarrier::with_handler(handler).unwrap();
        barrier.signal();
        barrier.signal();
        barrier.wait();
        barrier.close();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }

    /// Closing a barrier wakes the threads that wait for it.
    #[test]
    fn closing_wakes_a_waiting_thread_03_122() {
        let _turn = lock(&TURN);
        let barrier = ShutdownSignalBarrier::new().unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| barrier.wait_timeout(SOON));
            barrier.close();
            barrier.close();
            assert_eq!(waiting.join().unwrap(), Some(Shutdown::Requested));
        });
    }
}
