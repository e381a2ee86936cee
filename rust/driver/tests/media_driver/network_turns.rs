//! Tests of turns: other threads run the sender and the receiver of a driver.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use aeron_agent::AgentTurns;
use aeron_driver::{Context, MediaDriver, ThreadingMode};

use crate::media_driver::rig::{Place, exchange_datagrams};

fn turns_of(driver: &MediaDriver) -> AgentTurns {
    driver
        .network_turns()
        .expect("sender and receiver share a thread")
        .clone()
}

#[test]
fn a_driver_has_turns_only_if_sender_and_receiver_share_a_thread() {
    for (mode, has_turns) in [
        (ThreadingMode::Shared, true),
        (ThreadingMode::SharedNetwork, true),
        (ThreadingMode::Dedicated, false),
        (ThreadingMode::Invoker, false),
    ] {
        let place = Place::new();
        let driver = MediaDriver::launch_with_main_loop(place.context(mode)).unwrap();
        assert_eq!(driver.network_turns().is_some(), has_turns, "{mode:?}");
    }
}

#[test]
fn turns_exchange_datagrams_while_the_drivers_thread_sleeps() {
    let place = Place::new();
    let mut driver = MediaDriver::launch(Context {
        shared_network_idle_strategy: "sleep-ms".into(),
        shared_network_idle_strategy_init_args: "3600000".into(),
        ..place.context(ThreadingMode::SharedNetwork)
    })
    .unwrap();
    let turns = turns_of(&driver);
    exchange_datagrams(&place, || {
        turns.take();
    });
    driver.close().unwrap();
}

#[test]
fn turns_of_many_threads_lose_no_datagram_and_do_no_work_after_the_driver_closes() {
    let place = Place::new();
    let mut driver = place.launch();
    let turns = turns_of(&driver);
    let is_over = Arc::new(AtomicBool::new(false));
    let takers: Vec<_> = (0..3)
        .map(|_| (turns.clone(), Arc::clone(&is_over)))
        .map(|(turns, is_over)| {
            thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    turns.take();
                    thread::yield_now();
                }
            })
        })
        .collect();
    exchange_datagrams(&place, || {});
    driver.close().unwrap();
    assert_eq!(turns.take(), 0);
    is_over.store(true, Ordering::Relaxed);
    takers.into_iter().for_each(|taker| taker.join().unwrap());
}
