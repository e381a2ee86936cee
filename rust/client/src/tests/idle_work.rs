//! Tests that a client runs the network of a driver in the same process only while its polls find nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::action::Action;
use crate::aeron::Aeron;
use crate::lock::lock;
use crate::publication::ExclusivePublication;
use crate::subscription::Subscription;
use crate::testing::FakeDriver;

const NETWORK: &str = "aeron:udp?endpoint=localhost:40123";
const IPC: &str = "aeron:ipc";

/// A client that runs turns of a driver in the same process.
struct Rig {
    driver: Arc<FakeDriver>,
    aeron: Aeron,
    turns: Arc<AtomicUsize>,
}

impl Rig {
    /// Creates a client and counts its turns. Each turn calls `turn`.
    fn new(turn: impl Fn() + Send + Sync + 'static) -> Self {
        let driver = FakeDriver::new();
        let turns = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&turns);
        let aeron = driver.connect(|context| {
            context.driver_turn = Some(Arc::new(move || {
                turn();
                counted.fetch_add(1, Ordering::Relaxed)
            }));
        });
        Self {
            driver,
            aeron,
            turns,
        }
    }

    /// Adds a subscription and an exclusive publication that are connected to each other.
    fn stream(&self, channel: &str, stream_id: i32) -> (Subscription, ExclusivePublication) {
        let subscription = self.aeron.add_subscription(channel, stream_id).unwrap();
        let publication = self
            .aeron
            .add_exclusive_publication(channel, stream_id)
            .unwrap();
        self.driver.run_ms(&self.aeron, 5);
        (subscription, publication)
    }

    /// Returns the number of turns since the last call.
    fn turns(&self) -> usize {
        self.turns.swap(0, Ordering::Relaxed)
    }
}

fn poll(subscription: &Subscription) -> usize {
    subscription.poll(|_| {}, 10).unwrap()
}

#[test]
fn a_poll_takes_a_turn_if_the_previous_poll_found_nothing() {
    let rig = Rig::new(|| {});
    let (subscription, publication) = rig.stream(NETWORK, 1);
    poll(&subscription);
    assert_eq!(rig.turns(), 0);
    poll(&subscription);
    poll(&subscription);
    assert_eq!(rig.turns(), 2);
    publication.offer(b"x").unwrap();
    assert_eq!((poll(&subscription), rig.turns()), (1, 1));
    poll(&subscription);
    assert_eq!(rig.turns(), 0);
}

#[test]
fn a_poll_finds_the_data_of_its_turn_and_calls_its_handler_once() {
    let arriving = Arc::new(Mutex::new(None::<ExclusivePublication>));
    let arrived = Arc::clone(&arriving);
    let rig = Rig::new(move || {
        if let Some(publication) = &*lock(&arrived) {
            publication.offer(b"x").unwrap();
        }
    });
    let (subscription, publication) = rig.stream(NETWORK, 1);
    poll(&subscription);
    *lock(&arriving) = Some(publication);
    let mut calls = 0;
    let abort = |_: crate::Fragment<'_>| {
        calls += 1;
        Action::Abort
    };
    assert_eq!(subscription.controlled_poll(abort, 10).unwrap(), 0);
    assert_eq!((calls, rig.turns()), (1, 1));
    lock(&arriving).take();
}

#[test]
fn a_client_whose_other_subscription_has_data_takes_no_turn() {
    let rig = Rig::new(|| {});
    let (quiet, _first) = rig.stream(NETWORK, 1);
    let (also_quiet, _second) = rig.stream(NETWORK, 2);
    let (ipc, publication) = rig.stream(IPC, 3);
    for _ in 0..10 {
        publication.offer(b"x").unwrap();
        assert_eq!([&quiet, &also_quiet, &ipc].map(poll), [0, 0, 1]);
    }
    assert_eq!(rig.turns(), 0);
    // If IPC has no data either, one turn runs before each poll of the network, from the second round on.
    for expected in [0, 2, 2] {
        assert_eq!([&quiet, &also_quiet, &ipc].map(poll), [0, 0, 0]);
        assert_eq!(rig.turns(), expected);
    }
    // After a subscription is dropped, a turn needs one empty poll less.
    drop(also_quiet);
    publication.offer(b"x").unwrap();
    poll(&ipc);
    poll(&quiet);
    poll(&quiet);
    assert_eq!(rig.turns(), 1);
}

#[test]
fn polls_of_ipc_and_spies_take_no_turns() {
    let rig = Rig::new(|| {});
    let (ipc, _publication) = rig.stream(IPC, 1);
    let spy = rig
        .aeron
        .add_subscription(&format!("aeron-spy:{NETWORK}"), 2)
        .unwrap();
    for _ in 0..10 {
        assert_eq!([&ipc, &spy].map(poll), [0, 0]);
    }
    assert_eq!(rig.turns(), 0);
}

#[test]
fn every_kind_of_poll_takes_turns() {
    let rig = Rig::new(|| {});
    let (subscription, _publication) = rig.stream(NETWORK, 1);
    let mut batch = crate::Batch::default();
    let limits = crate::BatchLimits {
        messages: 10,
        bytes: 1000,
    };
    poll(&subscription);
    subscription.poll(|_| Ok::<_, ()>(()), 10).unwrap();
    subscription.block_poll(|_| {}, 1000).unwrap();
    subscription.raw_poll(|_, _, _| {}, 1000).unwrap();
    subscription.poll_batch(&mut batch, limits).unwrap();
    assert!(!subscription.is_readable());
    assert_eq!(rig.turns(), 5);
}
