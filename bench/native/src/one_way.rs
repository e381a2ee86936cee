//! One publisher, one subscriber, as fast as they go.

use std::thread::yield_now;
use std::time::{Duration, Instant};

use aeron_client::{
    Aeron, Error, ExclusivePublication, ExclusiveWriter, FragmentAssembler, Records,
};

use crate::arguments::Arguments;
use crate::record::{self, Check};

const STREAM_ID: i32 = 1001;
/// How many messages pass between two looks at the clock.
const CLOCK_INTERVAL: i64 = 1024;

/// Sends for the given time, then the message that ends the stream, and waits until the subscriber has gone.
pub fn publish(aeron: &Aeron, arguments: &Arguments) -> Result<(), Error> {
    let publication = aeron.add_exclusive_publication(&arguments.channel, STREAM_ID)?;
    while !publication.is_connected() {
        yield_now();
    }
    let seconds = Duration::from_secs_f64(arguments.seconds);
    let sent = match arguments.how.as_str() {
        "batch" => send_batches(&publication, arguments, seconds),
        "claim" => send_claims(&publication, arguments, seconds),
        _ => send_messages(&publication, arguments, seconds),
    };
    let mut last = vec![0; arguments.length];
    record::write(record::END, &mut last);
    while publication.offer(&last).is_err() {
        yield_now();
    }
    println!("{{\"sent\": {sent}, \"sum\": {}}}", record::sum(sent));
    while publication.is_connected() {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn send_messages(publication: &ExclusivePublication, arguments: &Arguments, time: Duration) -> i64 {
    let mut writer = writer(publication);
    let mut message = vec![0; arguments.length];
    let mut number = 0;
    let deadline = Instant::now() + time;
    while number % CLOCK_INTERVAL != 0 || Instant::now() < deadline {
        record::write(number, &mut message);
        while writer.offer(&message).is_err() {
            yield_now();
        }
        number += 1;
    }
    number
}

fn send_claims(publication: &ExclusivePublication, arguments: &Arguments, time: Duration) -> i64 {
    let mut writer = writer(publication);
    let mut message = vec![0; arguments.length];
    let mut number = 0;
    let deadline = Instant::now() + time;
    while number % CLOCK_INTERVAL != 0 || Instant::now() < deadline {
        let frame = loop {
            match writer.try_claim(arguments.length) {
                Ok(frame) => break frame,
                Err(_) => yield_now(),
            }
        };
        record::write(number, &mut message);
        let claim = publication.attach(frame);
        claim.put(0, &message);
        claim.commit();
        number += 1;
    }
    number
}

fn send_batches(publication: &ExclusivePublication, arguments: &Arguments, time: Duration) -> i64 {
    let mut writer = writer(publication);
    let (length, batch) = (arguments.length, arguments.batch);
    let mut bytes = vec![0; length * batch];
    let mut number = 0;
    let deadline = Instant::now() + time;
    while Instant::now() < deadline {
        for message in bytes.chunks_exact_mut(length) {
            record::write(number, message);
            number += 1;
        }
        let records = Records::new(&bytes, length, length, batch).expect("as long as the batch");
        let mut first = 0;
        while first < batch {
            match writer.offer_batch(&records, first) {
                Ok(appended) => first += appended.messages,
                Err(_) => yield_now(),
            }
        }
    }
    number
}

fn writer(publication: &ExclusivePublication) -> ExclusiveWriter<'_> {
    publication.writer().expect("only this thread writes")
}

/// Receives until the end of the stream.
pub fn subscribe(aeron: &Aeron, arguments: &Arguments) -> Result<(), Error> {
    let subscription = aeron.add_subscription(&arguments.channel, STREAM_ID)?;
    println!("ready");
    let mut check = Check::default();
    let mut assembler = FragmentAssembler::default();
    let mut poller = subscription.poller()?;
    let mut start = None;
    while !check.ended {
        let fragments = if arguments.assemble {
            poller.poll(
                |fragment| assembler.on_fragment(fragment, |message| check.take(&message)),
                arguments.limit,
            )?
        } else {
            poller.poll(|fragment| check.take(&fragment), arguments.limit)?
        };
        if fragments == 0 {
            yield_now();
        } else if start.is_none() {
            start = Some((Instant::now(), check.received));
        }
    }
    let (start, before) = start.expect("ended by a message");
    println!(
        "{{\"received\": {}, \"sum\": {}, \"faults\": {}, \"measured\": {}, \"seconds\": {}}}",
        check.received,
        check.sum,
        check.faults,
        check.received - before,
        start.elapsed().as_secs_f64(),
    );
    Ok(())
}
