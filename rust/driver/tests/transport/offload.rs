//! Tests of segmentation (GSO) and coalescing (GRO). The same datagrams must arrive with and without these offloads.

use aeron_driver::config::Context;
use aeron_driver::media;
use aeron_driver::media::transport::{
    GsoBatch, MAX_GSO_BATCH_DATAGRAMS, MAX_GSO_BATCH_LENGTH, Socket, SocketSpec,
};
use aeron_driver::media::udp::Offload;
use aeron_memory::SharedBuffer;

use super::support::{FULL, distinct_memory, open_with, payloads, receiver, sender};

const BATCHES: usize = 200;

/// Returns random GSO batches within the limits of a sender. `seed` determines the batches.
fn batches(memory: &SharedBuffer, seed: u64) -> Vec<GsoBatch<'_>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut batch = || {
        let datagram_length = 32 * random.usize(1..=44);
        let count = random.usize(1..=MAX_GSO_BATCH_DATAGRAMS);
        let rest = random.usize(0..datagram_length);
        let length = (count * datagram_length).saturating_sub(rest);
        let offset = 32 * random.usize(0..1000);
        let length = length.clamp(1, MAX_GSO_BATCH_LENGTH);
        GsoBatch::new(memory, offset..offset + length, datagram_length)
    };
    (0..BATCHES).map(|_| batch()).collect()
}

/// Sends `batches` a few at a time. Returns the datagrams that arrive.
fn travel(batches: &[GsoBatch<'_>], sending: Offload, receiving: Offload) -> Vec<Vec<u8>> {
    let spec = SocketSpec {
        receive_buffer_length: 4 << 20,
        ..receiver("127.0.0.1:0")
    };
    let mut to = open_with(receiving, &spec);
    let mut from = open_with(sending, &sender("127.0.0.1:0", to.local_address()));
    let mut arrived = Vec::new();
    for few in batches.chunks(3) {
        send_all(from.as_mut(), few);
        let count = few.iter().map(GsoBatch::datagram_count).sum::<usize>();
        arrived.extend(payloads(to.as_mut(), count));
    }
    arrived
}

fn send_all(socket: &mut dyn Socket, batches: &[GsoBatch<'_>]) {
    let mut taken = 0;
    while taken < batches.len() {
        taken += socket.send_gso_batches(None, &batches[taken..]).unwrap();
    }
}

#[test]
fn the_stream_of_datagrams_is_the_same_with_and_without_offload() {
    let memory = distinct_memory();
    let batches = batches(&memory, 1);
    let plain = travel(&batches, Offload::NONE, Offload::NONE);
    assert_eq!(
        plain.len(),
        batches.iter().map(GsoBatch::datagram_count).sum::<usize>()
    );
    let segmentation_only = Offload {
        coalescing: false,
        ..FULL
    };
    for (sending, receiving) in [
        (FULL, FULL),
        (FULL, segmentation_only),
        (Offload::NONE, FULL),
    ] {
        assert!(travel(&batches, sending, receiving) == plain);
    }
}

#[test]
fn without_segmentation_the_maximum_batch_is_one_datagram() {
    let to = open_with(FULL, &receiver("127.0.0.1:0"));
    let spec = sender("127.0.0.1:0", to.local_address());
    assert_eq!(
        open_with(Offload::NONE, &spec).max_gso_batch_datagrams(None),
        1
    );
}

#[cfg(target_os = "linux")]
#[test]
fn the_configuration_can_turn_off_each_offload() {
    let memory = distinct_memory();
    let batch = super::support::batch(&memory, 4, 64, 0);
    for (udp_gso, udp_gro) in [(true, true), (true, false), (false, true), (false, false)] {
        let context = Context {
            udp_gso,
            udp_gro,
            ..Context::default()
        };
        let (mut network, _) = media::network(&context);
        let mut to = network.open(&receiver("127.0.0.1:0")).unwrap();
        let spec = sender("127.0.0.1:0", to.local_address());
        let mut from = network.open(&spec).unwrap();
        let expected = if udp_gso { MAX_GSO_BATCH_DATAGRAMS } else { 1 };
        assert_eq!(from.max_gso_batch_datagrams(None), expected);
        let mut segmenting = open_with(FULL, &spec);
        segmenting.send_gso_batches(None, &[batch]).unwrap();
        from.send_gso_batches(None, &[batch]).unwrap();
        assert_eq!(payloads(to.as_mut(), 8).len(), 8);
        segmenting.send_gso_batches(None, &[batch]).unwrap();
        let mut first = 0;
        while first == 0 {
            to.receive(1, &mut |_| first += 1).unwrap();
        }
        assert_eq!(first, if udp_gro { 4 } else { 1 });
    }
}

#[cfg(target_os = "linux")]
#[test]
fn trains_are_received_as_a_whole_unless_receive_timestamps_are_enabled() {
    let memory = distinct_memory();
    let batch = super::support::batch(&memory, 40, 1408, 0);
    // After a pause, the first call receives one datagram. Later calls receive up to four, the limit in `receive_once`.
    let one_by_one = [&[1][..], &[4; 9], &[3]].concat();
    for (receive_timestamps, expected) in [(false, vec![40]), (true, one_by_one)] {
        let spec = SocketSpec {
            receive_buffer_length: 1 << 20,
            receive_timestamps,
            ..receiver("127.0.0.1:0")
        };
        let mut to = open_with(FULL, &spec);
        let mut from = open_with(FULL, &sender("127.0.0.1:0", to.local_address()));
        from.send_gso_batches(None, &[batch]).unwrap();
        let mut counts = Vec::new();
        while counts.iter().sum::<usize>() < 40 {
            let count = super::support::receive_once(to.as_mut()).len();
            counts.extend((count > 0).then_some(count));
        }
        assert_eq!(counts, expected);
    }
}
