//! Round trips. The next message is sent after the previous one has come back.

use std::time::{Duration, Instant};

use aeron_client::Error;

use crate::arguments::Arguments;
use crate::delay::Delay;
use crate::record::{self, Check};
use crate::turns::Turns;

const PING_STREAM_ID: i32 = 1002;
const PONG_STREAM_ID: i32 = 1003;
/// Maximum number of measured round trips. It limits the memory that keeps the time of each round trip.
const MAX_COUNT: usize = 50_000_000;

/// Measures round trips for the given time. Prints percentiles in nanoseconds. Round trips of the warm-up do not count.
pub fn ping(turns: &mut Turns, arguments: &Arguments) -> Result<(), Error> {
    let aeron = turns.aeron();
    let subscription = aeron.add_subscription(&arguments.reply, PONG_STREAM_ID)?;
    let publication = aeron.add_exclusive_publication(&arguments.channel, PING_STREAM_ID)?;
    while !publication.is_connected() || !subscription.is_connected() {
        turns.after(0);
    }
    let mut message = vec![0; arguments.length];
    let mut writer = publication.writer().expect("only this thread writes");
    let mut poller = subscription.poller()?;
    let mut times: Vec<u64> = Vec::new();
    let mut delay = Delay::in_each(arguments.delay_ns);
    let mut now = Instant::now();
    let warm = now + Duration::from_secs_f64(arguments.warmup);
    let deadline = now + Duration::from_secs_f64(arguments.seconds);
    let mut turn = 0;
    while now < deadline && times.len() < MAX_COUNT {
        record::write(turn, &mut message);
        let mut check = Check::expecting(turn);
        let start = Instant::now();
        delay.after(1);
        turns.until(|| writer.offer(&message).ok());
        loop {
            let returned = poller.poll(|fragment| check.take(&fragment), 1)?;
            if returned > 0 {
                break;
            }
            turns.after(0);
        }
        now = Instant::now();
        if start >= warm {
            times.push((now - start).as_nanos() as u64);
        }
        turn += 1;
        assert_eq!(check.faults, 0, "another message came back");
    }
    record::write(record::END, &mut message);
    turns.until(|| writer.offer(&message).ok());
    turns.after(0);
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{{\"count\": {}, \"p50\": {}, \"p90\": {}, \"p99\": {}, \"p999\": {}}}",
        times.len(),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
    );
    Ok(())
}

/// Sends each received message back, until the message that ends the stream.
pub fn pong(turns: &mut Turns, arguments: &Arguments) -> Result<(), Error> {
    let aeron = turns.aeron();
    let subscription = aeron.add_subscription(&arguments.channel, PING_STREAM_ID)?;
    let publication = aeron.add_exclusive_publication(&arguments.reply, PONG_STREAM_ID)?;
    println!("ready");
    while !publication.is_connected() || !subscription.is_connected() {
        turns.after(0);
    }
    let mut writer = publication.writer().expect("only this thread writes");
    let mut poller = subscription.poller()?;
    let mut message = vec![0; arguments.length];
    let mut check = Check::default();
    while !check.ended {
        let mut length = 0;
        let returned = poller.poll(
            |fragment| {
                check.take(&fragment);
                length = fragment.len();
                fragment.copy_to(&mut message[..length]);
            },
            1,
        )?;
        if returned > 0 && !check.ended {
            turns.until(|| writer.offer(&message[..length]).ok());
        }
        turns.after(returned);
    }
    println!(
        "{{\"received\": {}, \"faults\": {}}}",
        check.received, check.faults
    );
    Ok(())
}
