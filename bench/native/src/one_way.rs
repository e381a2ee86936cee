//! One publisher and one subscriber at full rate.

use std::time::{Duration, Instant};

use aeron_client::{
    Error, ExclusivePublication, ExclusiveWriter, FixedLengthMessages, FragmentAssembler,
};
use rustix::time::{ClockId, clock_gettime};

use crate::arguments::Arguments;
use crate::delay::Delay;
use crate::record::{self, Check};
use crate::turns::Turns;

/// Stream id of the messages.
pub const STREAM_ID: i32 = 1001;
/// Number of messages between two reads of the clock.
const CLOCK_INTERVAL: i64 = 1024;
/// Number of random lengths. After the last one, the first one follows.
const LENGTHS: usize = 1024;

/// Sends for the given time, then sends the message that ends the stream, and waits until the subscriber has left.
pub fn publish(turns: &mut Turns, arguments: &Arguments) -> Result<(), Error> {
    let publication = turns
        .aeron()
        .add_exclusive_publication(&arguments.channel, STREAM_ID)?;
    while !publication.is_connected() {
        std::thread::sleep(Duration::from_millis(1));
    }
    println!("ready");
    let cpu_before = cpu_seconds();
    let sent = match arguments.how.as_str() {
        "batch" => send_batches(&publication, arguments, turns),
        "claim" => send_claims(&publication, arguments, turns),
        _ if arguments.max_length > arguments.length => send_mixed(&publication, arguments, turns),
        _ => send_messages(&publication, arguments, turns),
    };
    let mut last = vec![0; arguments.length];
    record::write(record::END, &mut last);
    turns.until(|| publication.offer(&last).ok());
    println!(
        "{{\"sent\": {sent}, \"sum\": {}, \"position\": {}, \"cpu\": {}}}",
        record::sum(sent),
        publication.position().unwrap_or(-1),
        cpu_seconds() - cpu_before
    );
    while publication.is_connected() {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn send_messages(
    publication: &ExclusivePublication,
    arguments: &Arguments,
    turns: &mut Turns,
) -> i64 {
    let mut writer = writer(publication);
    let mut delay = Delay::in_lumps(arguments.delay_ns);
    let mut message = vec![0; arguments.length];
    let mut number = 0;
    let deadline = Instant::now() + Duration::from_secs_f64(arguments.seconds);
    while number % CLOCK_INTERVAL != 0 || Instant::now() < deadline {
        record::write(number, &mut message);
        turns.until(|| writer.offer(&message).ok());
        delay.after(1);
        number += 1;
    }
    number
}

/// Sends messages of random lengths with a uniform distribution.
fn send_mixed(publication: &ExclusivePublication, arguments: &Arguments, turns: &mut Turns) -> i64 {
    let mut writer = writer(publication);
    let mut delay = Delay::in_lumps(arguments.delay_ns);
    let lengths = lengths(arguments.length, arguments.max_length);
    let mut message = vec![0; arguments.max_length];
    let mut number = 0;
    let deadline = Instant::now() + Duration::from_secs_f64(arguments.seconds);
    while number % CLOCK_INTERVAL != 0 || Instant::now() < deadline {
        record::write(number, &mut message);
        let length = lengths[number as usize % LENGTHS];
        turns.until(|| writer.offer(&message[..length]).ok());
        delay.after(1);
        number += 1;
    }
    number
}

/// Returns random lengths between `least` and `most` bytes. They are the same in every run.
fn lengths(least: usize, most: usize) -> Vec<usize> {
    let mut state: u32 = 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        least + (state >> 8) as usize % (most - least + 1)
    };
    (0..LENGTHS).map(|_| next()).collect()
}

fn send_claims(
    publication: &ExclusivePublication,
    arguments: &Arguments,
    turns: &mut Turns,
) -> i64 {
    let mut writer = writer(publication);
    let mut delay = Delay::in_lumps(arguments.delay_ns);
    let mut message = vec![0; arguments.length];
    let mut number = 0;
    let deadline = Instant::now() + Duration::from_secs_f64(arguments.seconds);
    while number % CLOCK_INTERVAL != 0 || Instant::now() < deadline {
        record::write(number, &mut message);
        turns.until(|| {
            let claim = writer.try_claim(arguments.length).ok()?;
            claim.put(0, &message);
            Some(claim.commit())
        });
        delay.after(1);
        number += 1;
    }
    number
}

fn send_batches(
    publication: &ExclusivePublication,
    arguments: &Arguments,
    turns: &mut Turns,
) -> i64 {
    let mut writer = writer(publication);
    let mut delay = Delay::in_lumps(arguments.delay_ns);
    let (length, batch) = (arguments.length, arguments.batch);
    let mut bytes = vec![0; length * batch];
    let mut number = 0;
    let deadline = Instant::now() + Duration::from_secs_f64(arguments.seconds);
    while Instant::now() < deadline {
        for message in bytes.chunks_exact_mut(length) {
            record::write(number, message);
            number += 1;
        }
        let records =
            FixedLengthMessages::new(&bytes, length, length, batch).expect("as long as the batch");
        let mut first = 0;
        while first < batch {
            first += turns
                .until(|| writer.offer_batch(&records, first).ok())
                .messages;
        }
        delay.after(batch);
    }
    number
}

fn writer(publication: &ExclusivePublication) -> ExclusiveWriter<'_> {
    publication.writer().expect("only this thread writes")
}

/// Receives from each channel until the end of its stream. Prints counts, sums and the rate after the warm-up.
pub fn subscribe(turns: &mut Turns, arguments: &Arguments) -> Result<(), Error> {
    let subscriptions = arguments
        .channel
        .split(' ')
        .map(|channel| turns.aeron().add_subscription(channel, STREAM_ID))
        .collect::<Result<Vec<_>, _>>()?;
    println!("ready");
    let mut streams = Vec::new();
    for subscription in &subscriptions {
        streams.push((subscription.poller()?, Check::default()));
    }
    let mut assembler = FragmentAssembler::default();
    let warmup = Duration::from_secs_f64(arguments.warmup);
    let (mut first, mut start, mut first_ns) = (None, None, 0);
    let mut open = streams.len();
    while open > 0 {
        let mut fragments = 0;
        for (poller, check) in streams.iter_mut().filter(|(_, check)| !check.ended) {
            fragments += if arguments.assemble {
                poller.poll(
                    |fragment| assembler.on_fragment(fragment, |message| check.take(&message)),
                    arguments.limit,
                )?
            } else {
                poller.poll(|fragment| check.take(&fragment), arguments.limit)?
            };
            open -= usize::from(check.ended);
        }
        turns.after(fragments);
        if fragments > 0 && start.is_none() {
            let now = Instant::now();
            if first.is_none() {
                first_ns = nanoseconds(ClockId::Monotonic);
            }
            if now - *first.get_or_insert(now) >= warmup {
                start = Some((now, cpu_seconds(), streams[0].1.received));
            }
        }
    }
    let (start, cpu_before, before) = start.expect("messages arrived after the warm-up");
    let checks = || streams.iter().map(|(_, check)| check);
    println!(
        "{{\"received\": {}, \"sum\": {}, \"faults\": {}, \"measured\": {}, \"seconds\": {}, \"first_ns\": {first_ns}, \"cpu\": {}}}",
        checks().map(|check| check.received).min().unwrap_or(0),
        checks().next().map_or(0, |check| check.sum),
        checks().map(|check| check.faults).sum::<u64>(),
        streams[0].1.received - before,
        start.elapsed().as_secs_f64(),
        cpu_seconds() - cpu_before,
    );
    Ok(())
}

/// Returns the CPU time of this process on all cores, in seconds.
pub fn cpu_seconds() -> f64 {
    nanoseconds(ClockId::ProcessCPUTime) as f64 * 1e-9
}

fn nanoseconds(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}
