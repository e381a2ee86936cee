//! Features that the first edition of schedules does not have: aborted claims, clients that die with an open claim,
//! more abandoned claims, forged NAKs, bad network conditions for the last messages, and long bursts of messages of
//! equal length in short terms, with subscribers that pause after each poll.

use fastrand::Rng;

use super::{DriverPlan, Event, FAULTS_BEGIN_NS, HEAL_NS, MS, SECOND, StreamPlan, one_of, rarely};
use crate::network::{LossPattern, Weather};

/// Adds the features of this module to the drivers, streams and events. Returns the network conditions for the last
/// messages, each with its start time.
pub fn draw(
    random: &mut Rng,
    drivers: &mut [DriverPlan],
    streams: &mut [StreamPlan],
    events: &mut Vec<(i64, Event)>,
    fair: &Weather,
) -> Vec<(i64, Weather)> {
    let mut subscribers = streams.iter().flat_map(|stream| &stream.subscribers);
    let are_reliable = subscribers.all(|plan| plan.is_reliable);
    let has_hole = are_reliable && random.bool();
    for stream in &mut *streams {
        stream.publisher.aborts_one_in = one_of(random, &[0, 2, 5, 20]);
        stream.publisher.dies_in_claim = random.bool();
    }
    let count = streams.len();
    let mut repeat = |most: usize, event: fn(usize) -> Event| {
        for _ in 0..random.usize(..=most) {
            let at_ns = random.i64(FAULTS_BEGIN_NS..HEAL_NS);
            events.push((at_ns, event(random.usize(..count))));
        }
    };
    repeat(40, Event::ForgeNaks);
    repeat(3, Event::AbandonClaim);
    events.sort_by_key(|(at_ns, _)| *at_ns);
    // With a NAK delay of 10 ms, a receiver repeats a NAK only after 1 s, which is 100 times the delay. The publisher
    // must linger for several repetitions.
    let is_slow = |stream: &StreamPlan| {
        let mut subscribers = stream.subscribers.iter();
        subscribers.any(|plan| plan.channel.contains("nak-delay=10ms"))
    };
    let is_slow = streams.iter().any(is_slow);
    if is_slow {
        for driver in drivers {
            driver.context.publication_linger_timeout_ns += 4 * SECOND;
        }
    }
    let parting = parting(random, Ending { has_hole, is_slow }, fair);
    for (index, stream) in streams.iter_mut().enumerate() {
        if rarely(random, 6) {
            stream.publisher.equal_length = Some(one_of(random, &[224, 1_000, 1_376]));
            lengthen_bursts(events, index);
            stream.publisher.channel = with_short_terms(&stream.publisher.channel);
            let rest_ns = one_of(random, &[0, 2 * MS, 10 * MS]);
            for subscriber in &mut stream.subscribers {
                subscriber.rest_ns = rest_ns;
            }
        }
    }
    parting
}

/// Returns a channel with terms of the minimum length (64 KiB), so that long bursts often cross the end of a term. A
/// publication window in the channel becomes a quarter of a term. The MTU becomes 1408 bytes.
///
/// A channel with a term offset does not change, because the offset may be invalid in a shorter term.
fn with_short_terms(channel: &str) -> String {
    if channel.contains("term-offset=") {
        return channel.to_owned();
    }
    let Some((transport, parameters)) = channel.split_once('?') else {
        return channel.to_owned();
    };
    let replace = |parameter: &str| match parameter.split_once('=') {
        Some(("term-length", _)) => "term-length=65536".to_owned(),
        Some(("mtu", _)) => "mtu=1408".to_owned(),
        Some(("pub-wnd", _)) => "pub-wnd=16384".to_owned(),
        _ => parameter.to_owned(),
    };
    let parameters: Vec<_> = parameters.split('|').map(replace).collect();
    format!("{transport}?{}", parameters.join("|"))
}

/// Makes the bursts of a stream longer, so that its publisher is always ahead of its receivers.
fn lengthen_bursts(events: &mut [(i64, Event)], index: usize) {
    for (_, event) in events {
        if let Event::Publish(stream, burst) = event
            && *stream == index
        {
            *burst *= 3;
        }
    }
}

/// The properties of a schedule that determine the network conditions for its last messages.
#[derive(Clone, Copy)]
struct Ending {
    /// Whether only the shortest messages arrive at first.
    has_hole: bool,
    /// Whether a subscriber's channel has such a NAK delay that its receiver waits for 1 s before it repeats a NAK.
    is_slow: bool,
}

/// Returns the network conditions for the last messages. If the ending has a hole, only heartbeats and the shortest
/// messages arrive at first. So publishers end while much data is missing.
fn parting(random: &mut Rng, ending: Ending, fair: &Weather) -> Vec<(i64, Weather)> {
    let lossy = Weather {
        loss: match (rarely(random, 4), ending.is_slow) {
            (true, _) => LossPattern::None,
            (false, true) => LossPattern::Uniform(0.02),
            (false, false) => LossPattern::Uniform(one_of(random, &[0.01, 0.03, 0.06])),
        },
        duplication: one_of(random, &[0.0, 0.1]),
        reordering: one_of(random, &[0.0, 0.1]),
        ..fair.clone()
    };
    let hole = Weather {
        longest_datagram: 100,
        ..lossy.clone()
    };
    match ending.has_hole {
        true => vec![(0, hole), (random.i64(200 * MS..800 * MS), lossy)],
        false => vec![(0, lossy)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_become_short_in_channels_of_both_transports_unless_the_channel_has_a_term_offset() {
        for (channel, short) in [
            (
                "aeron:ipc?term-length=262144|mtu=8192|pub-wnd=65536|sparse=true",
                "aeron:ipc?term-length=65536|mtu=1408|pub-wnd=16384|sparse=true",
            ),
            (
                "aeron:udp?endpoint=10.0.0.1:20121|term-length=131072|mtu=256|fc=min",
                "aeron:udp?endpoint=10.0.0.1:20121|term-length=65536|mtu=1408|fc=min",
            ),
        ] {
            assert_eq!(with_short_terms(channel), short);
            let with_offset = format!("{channel}|init-term-id=0|term-id=0|term-offset=131040");
            assert_eq!(with_short_terms(&with_offset), with_offset);
        }
    }
}
