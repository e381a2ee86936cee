//! Waiters: a thread that waits for data is woken, although the writer takes no lock if it sees no waiting thread.

use std::sync::Arc;

use aeron_memory::Waiters;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Condvar, Mutex};
use loom::thread;

use crate::{check, check_fails};

/// The functions of [`Waiters`].
trait Awaited: Default + Send + Sync + 'static {
    fn register(&self);
    fn remove(&self);
    fn is_any(&self) -> bool;
}

impl Awaited for Waiters {
    fn register(&self) {
        self.register();
    }

    fn remove(&self) {
        self.remove();
    }

    fn is_any(&self) -> bool {
        self.is_any()
    }
}

/// A flag without fences.
#[derive(Default)]
struct Flag(AtomicBool);

impl Awaited for Flag {
    fn register(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn remove(&self) {
        self.0.store(false, Ordering::Release);
    }

    fn is_any(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

#[derive(Default)]
struct Scene<A> {
    waiters: A,
    position: AtomicUsize,
    lock: Mutex<()>,
    changed: Condvar,
}

impl<A: Awaited> Scene<A> {
    fn wait(&self) {
        let mut guard = self.lock.lock().unwrap();
        self.waiters.register();
        while self.position.load(Ordering::Acquire) == 0 {
            guard = self.changed.wait(guard).unwrap();
        }
        self.waiters.remove();
    }

    fn publish(&self) {
        self.position.store(64, Ordering::Release);
        if self.waiters.is_any() {
            drop(self.lock.lock().unwrap());
            self.changed.notify_all();
        }
    }
}

/// A writer publishes a position while a thread waits for it. If the thread is not woken, that is a deadlock, which
/// loom finds.
fn wait_and_publish<A: Awaited>() {
    let scene = Arc::new(Scene::<A>::default());
    let waiting = {
        let scene = Arc::clone(&scene);
        thread::spawn(move || scene.wait())
    };
    scene.publish();
    waiting.join().unwrap();
}

#[test]
fn a_waiting_thread_is_woken() {
    check(wait_and_publish::<Waiters>);
}

#[test]
fn without_fences_a_waiting_thread_sleeps_for_ever() {
    check_fails("deadlock", wait_and_publish::<Flag>);
}
