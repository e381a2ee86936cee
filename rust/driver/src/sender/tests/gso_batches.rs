//! Tests of GSO batches: which datagrams one call of the socket may send.

use super::rig::*;
use crate::media::transport::{MAX_GSO_BATCH_DATAGRAMS, MAX_GSO_BATCH_LENGTH};

/// Sends messages of these lengths in batches of up to `max` datagrams. Returns the datagrams and the batch sizes.
fn sent(lengths: &[usize], max: usize) -> (Vec<Vec<u8>>, Vec<usize>) {
    let mut rig = Rig::new();
    rig.network.set_max_gso_batch_datagrams(max);
    let endpoint = rig.unicast();
    let options = Options {
        term_length: 16 * TERM,
        ..Options::default()
    };
    let mut publication = rig.publication_with(endpoint, options);
    rig.status(&publication, RECEIVER, 0, 8 * TERM as i32);
    rig.settle();
    rig.network.take_sent();
    rig.network.take_gso_batch_sizes();
    for &length in lengths {
        publication.offer(length);
    }
    rig.settle();
    let mut datagrams: Vec<Vec<u8>> = rig.sent().into_iter().map(|sent| sent.bytes).collect();
    let is_data = |bytes: &Vec<u8>| bytes[..4] != [0; 4];
    datagrams.retain(is_data);
    (datagrams, rig.network.take_gso_batch_sizes())
}

#[test]
fn the_stream_of_datagrams_is_the_same_with_and_without_segmentation() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..20 {
        let longest = random.usize(1..4_000);
        let count = random.usize(1..100_000 / (longest + 32));
        let lengths: Vec<usize> = (0..count).map(|_| random.usize(0..longest)).collect();
        let (plain, plain_batches) = sent(&lengths, 1);
        let (segmented, batches) = sent(&lengths, MAX_GSO_BATCH_DATAGRAMS);
        assert_eq!(plain, segmented);
        assert!(plain_batches.iter().all(|count| *count == 1));
        assert!(batches.len() <= plain_batches.len());
    }
}

#[test]
fn equal_datagrams_are_sent_in_one_batch_and_a_shorter_datagram_ends_the_batch() {
    let (datagrams, batches) = sent(&[32; 100], MAX_GSO_BATCH_DATAGRAMS);
    let lengths: Vec<usize> = datagrams.iter().map(Vec::len).collect();
    assert_eq!(lengths, [1408, 1408, 1408, 1408, 768]);
    assert_eq!(batches, [5]);
    // The lengths of the datagrams are 1056, 1056, 1056, 448, 1408 and 1056. A shorter datagram may end a batch. A
    // longer datagram begins another batch.
    let (_, batches) = sent(
        &[1_000, 1_000, 1_000, 400, 1_376, 1_000],
        MAX_GSO_BATCH_DATAGRAMS,
    );
    assert_eq!(batches, [4, 2]);
}

#[test]
fn a_batch_has_at_most_64_datagrams_and_65507_bytes() {
    let gso_batch_sizes = |mtu_length: i64, message: usize| {
        let mut rig = Rig::new();
        let endpoint = rig.unicast();
        let options = Options {
            mtu_length,
            term_length: 1024 * 1024,
            ..Options::default()
        };
        let mut publication = rig.publication_with(endpoint, options);
        rig.status(&publication, RECEIVER, 0, 512 * 1024);
        rig.settle();
        for _ in 0..400_000 / (message + 32) {
            publication.offer(message);
        }
        rig.network.take_gso_batch_sizes();
        rig.cycle();
        rig.network.take_gso_batch_sizes()
    };
    assert_eq!(gso_batch_sizes(128, 96), [64; 4]);
    let most = MAX_GSO_BATCH_LENGTH / 1408;
    assert_eq!(gso_batch_sizes(1_408, 1_376), [most; 4]);
    assert_eq!(gso_batch_sizes(8_192, 8_160), [7; 4]);
    assert_eq!(gso_batch_sizes(65_504, 65_472), [1; 4]);
}

#[test]
fn the_limit_of_messages_per_send_counts_batches_04_99() {
    let mut rig = Rig::with(|context| context.network_publication_max_messages_per_send = 2);
    let mut publication = rig.connected();
    for length in [1_000, 1_300, 1_000, 1_300, 1_000, 1_300] {
        publication.offer(length);
    }
    rig.network.take_gso_batch_sizes();
    rig.cycle();
    // Lengths of the datagrams; each batch ends at a bar: 1056 | 1344 1056 | ...
    assert_eq!(rig.network.take_gso_batch_sizes(), [1, 2]);
}

#[test]
fn a_batch_that_the_socket_accepts_only_in_part_is_sent_again_from_its_start() {
    let mut rig = Rig::new();
    let mut publication = rig.connected();
    for length in [1_000, 1_000, 1_376, 1_376] {
        publication.offer(length);
    }
    rig.network.set_room(Some(3));
    rig.cycle();
    assert_eq!(
        publication.position(),
        2 * 1056,
        "after the first batch and before the second"
    );
    rig.network.set_room(None);
    rig.sent();
    rig.settle();
    assert_eq!(rig.data(), [(2112, 1408), (3520, 1408)]);
}

#[test]
fn a_batch_may_end_with_padding_but_never_continues_after_it() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let options = Options {
        start_position: TERM - 2 * 1_056 - 64,
        ..Options::default()
    };
    let mut publication = rig.publication_with(endpoint, options);
    rig.connect(&publication);
    rig.network.take_gso_batch_sizes();
    for _ in 0..4 {
        publication.offer(1_000);
    }
    rig.cycle();
    let data = rig.data();
    let lengths: Vec<usize> = data.iter().map(|it| it.1).collect();
    assert_eq!(
        lengths,
        [1056, 1088],
        "the second datagram is longer because of the padding"
    );
    assert_eq!(publication.position(), TERM);
    rig.cycle();
    assert_eq!(rig.data().len(), 2);
}
