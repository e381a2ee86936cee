//! Time from the offer of a message until the archive's counter shows it as recorded.

use std::error::Error;
use std::time::{Duration, Instant};

use aeron_client::{Aeron, AtomicCounter, SharedBuffer};

use crate::arguments::Arguments;
use crate::one_way::STREAM_ID;
use crate::record;
use crate::turns::Turns;

/// Type id of the counter with the position of a recording.
const RECORDING_POSITION_TYPE_ID: i32 = 100;
/// Offset of the session id in the key of that counter.
const SESSION_ID_OFFSET: usize = 8;
const INTERVAL: Duration = Duration::from_micros(500);
const WAIT: Duration = Duration::from_secs(30);

/// Offers at most 2,000 messages per second for the given time. Offers each message only after the message before it is
/// recorded, and does not make up for missed times.
///
/// Prints percentiles of the times from the offer of a message until it is recorded, in nanoseconds. The first tenth of
/// the messages does not count.
pub fn measure(turns: &mut Turns, arguments: &Arguments) -> Result<(), Box<dyn Error>> {
    let publication = turns
        .aeron()
        .add_exclusive_publication(&arguments.channel, STREAM_ID)?;
    while !publication.is_connected() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let counter = recorded_position(turns.aeron(), publication.session_id())?;
    println!("ready");
    let mut message = vec![0; arguments.length];
    let mut times: Vec<u64> = Vec::new();
    let begin = Instant::now();
    let mut due = begin;
    while due - begin < Duration::from_secs_f64(arguments.seconds) {
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        record::write(times.len() as i64, &mut message);
        let start = Instant::now();
        let position = turns.until(|| publication.offer(&message).ok());
        while counter.get() < position {
            std::hint::spin_loop();
        }
        times.push(start.elapsed().as_nanos() as u64);
        due = (due + INTERVAL).max(Instant::now());
    }
    times.drain(..times.len() / 10);
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{{\"count\": {}, \"p50\": {}, \"p99\": {}}}",
        times.len(),
        at(0.5),
        at(0.99)
    );
    Ok(())
}

/// Waits for the position counter of a session's recording. The archive adds the counter after the image is available.
fn recorded_position(
    aeron: &Aeron,
    session_id: i32,
) -> Result<AtomicCounter<SharedBuffer>, Box<dyn Error>> {
    let counters = aeron.counters_reader();
    let session = session_id.to_le_bytes();
    let deadline = Instant::now() + WAIT;
    while Instant::now() < deadline {
        let found = counters.records().find(|record| {
            record.type_id == RECORDING_POSITION_TYPE_ID
                && record.key[SESSION_ID_OFFSET..].starts_with(&session)
        });
        if let Some(counter) = found.and_then(|record| counters.counter(record.id)) {
            return Ok(counter);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Err("no archive records the publication".into())
}
