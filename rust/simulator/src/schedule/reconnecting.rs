//! Clients that reconnect, in half of the schedules. Their drivers are killed, also while subscribers do not read, or
//! are paused beyond the driver timeout and then go on.

use fastrand::Rng;

use crate::roles::DRIVER_TIMEOUT_MS;

use super::{Event, FAULTS_BEGIN_NS, HEAL_NS, MS, SECOND, StreamPlan, rarely};

const DRIVER_TIMEOUT_NS: i64 = DRIVER_TIMEOUT_MS as i64 * MS;

/// Draws for each publisher and subscriber whether its client reconnects, and how it notices the end of its driver.
/// Returns more faults, each with its time.
pub fn draw(seed: u64, hosts: usize, streams: &mut [StreamPlan]) -> Vec<(i64, Event)> {
    // A separate random generator, so that the other parts of a schedule do not change.
    let mut random = Rng::with_seed(seed ^ 0x52_C033_EC70);
    if random.bool() {
        return Vec::new();
    }
    for stream in &mut *streams {
        stream.publisher.reconnects = choose(&mut random);
        for subscriber in &mut stream.subscribers {
            subscriber.reconnects = choose(&mut random);
        }
    }
    let mut events = Vec::new();
    for _ in 0..random.usize(1..=4) {
        let at_ns = random.i64(FAULTS_BEGIN_NS..HEAL_NS);
        let host = random.usize(..hosts);
        let away_ns = random.i64(10 * MS..2 * SECOND);
        events.push((at_ns, Event::CrashDriver(host, away_ns)));
        for (index, stream) in streams.iter().enumerate() {
            for (number, subscriber) in stream.subscribers.iter().enumerate() {
                if subscriber.host == host && random.bool() {
                    let stall_ns = random.i64(away_ns..3 * SECOND);
                    let before_ns = random.i64(0..200 * MS);
                    let stall = Event::Stall(index, number, before_ns + stall_ns);
                    events.push((at_ns - before_ns, stall));
                }
            }
        }
    }
    if random.bool() {
        let at_ns = random.i64(FAULTS_BEGIN_NS..HEAL_NS);
        let pause_ns = DRIVER_TIMEOUT_NS + random.i64(-SECOND..3 * SECOND);
        events.push((at_ns, Event::PauseDriver(random.usize(..hosts), pause_ns)));
    }
    events
}

/// In three of four cases, the client reconnects.
fn choose(random: &mut Rng) -> Option<bool> {
    (!rarely(random, 4)).then(|| random.bool())
}
