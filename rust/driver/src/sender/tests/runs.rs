//! Runs: what one call may send.

use super::rig::*;
use crate::media::transport::{MAX_RUN_DATAGRAMS, MAX_RUN_LENGTH};

/// Datagrams and run lengths of a publication with messages of these lengths, when a run has up to `max` datagrams.
fn sent(lengths: &[usize], max: usize) -> (Vec<Vec<u8>>, Vec<usize>) {
    let mut rig = Rig::new();
    rig.network.set_max_run_datagrams(max);
    let endpoint = rig.unicast();
    let options = Options {
        term_length: 16 * TERM,
        ..Options::default()
    };
    let mut publication = rig.publication_with(endpoint, options);
    rig.status(&publication, RECEIVER, 0, 8 * TERM as i32);
    rig.settle();
    rig.network.take_sent();
    rig.network.take_run_lengths();
    for &length in lengths {
        publication.offer(length);
    }
    rig.settle();
    let mut datagrams: Vec<Vec<u8>> = rig.sent().into_iter().map(|sent| sent.bytes).collect();
    let is_data = |bytes: &Vec<u8>| bytes[..4] != [0; 4];
    datagrams.retain(is_data);
    (datagrams, rig.network.take_run_lengths())
}

#[test]
fn the_stream_of_datagrams_is_the_same_with_and_without_segmentation() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..20 {
        let longest = random.usize(1..4_000);
        let count = random.usize(1..100_000 / (longest + 32));
        let lengths: Vec<usize> = (0..count).map(|_| random.usize(0..longest)).collect();
        let (plain, plain_runs) = sent(&lengths, 1);
        let (segmented, runs) = sent(&lengths, MAX_RUN_DATAGRAMS);
        assert_eq!(plain, segmented);
        assert!(plain_runs.iter().all(|count| *count == 1));
        assert!(runs.len() <= plain_runs.len());
    }
}

#[test]
fn equal_datagrams_leave_in_one_run_and_a_shorter_one_ends_it() {
    let (datagrams, runs) = sent(&[32; 100], MAX_RUN_DATAGRAMS);
    let lengths: Vec<usize> = datagrams.iter().map(Vec::len).collect();
    assert_eq!(lengths, [1408, 1408, 1408, 1408, 768]);
    assert_eq!(runs, [5]);
    // 1056 three times, 160, 1056: the shorter one may end a run, the longer one begins another.
    let (_, runs) = sent(&[1_000, 1_000, 1_000, 400, 1_376, 1_000], MAX_RUN_DATAGRAMS);
    assert_eq!(runs, [4, 2]);
}

#[test]
fn a_run_has_at_most_64_datagrams_and_65507_bytes() {
    let run_lengths = |mtu_length: i64, message: usize| {
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
        rig.network.take_run_lengths();
        rig.cycle();
        rig.network.take_run_lengths()
    };
    assert_eq!(run_lengths(128, 96), [64; 4]);
    let most = MAX_RUN_LENGTH / 1408;
    assert_eq!(run_lengths(1_408, 1_376), [most; 4]);
    assert_eq!(run_lengths(8_192, 8_160), [7; 4]);
    assert_eq!(run_lengths(65_504, 65_472), [1; 4]);
}

#[test]
fn the_limit_of_messages_per_send_counts_runs_04_99() {
    let mut rig = Rig::with(|context| context.network_publication_max_messages_per_send = 2);
    let mut publication = rig.connected();
    for length in [1_000, 1_300, 1_000, 1_300, 1_000, 1_300] {
        publication.offer(length);
    }
    rig.network.take_run_lengths();
    rig.cycle();
    // 1056 | 1344 1056 | ...
    assert_eq!(rig.network.take_run_lengths(), [1, 2]);
}

#[test]
fn what_follows_a_run_that_was_refused_waits_for_it() {
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
        "past the first run, before the second"
    );
    rig.network.set_room(None);
    rig.sent();
    rig.settle();
    assert_eq!(rig.data(), [(2112, 1408), (3520, 1408)]);
}

#[test]
fn a_run_may_end_with_padding_and_never_goes_on_behind_it() {
    let mut rig = Rig::new();
    let endpoint = rig.unicast();
    let options = Options {
        start_position: TERM - 2 * 1_056 - 64,
        ..Options::default()
    };
    let mut publication = rig.publication_with(endpoint, options);
    rig.connect(&publication);
    rig.network.take_run_lengths();
    for _ in 0..4 {
        publication.offer(1_000);
    }
    rig.cycle();
    let data = rig.data();
    let lengths: Vec<usize> = data.iter().map(|it| it.1).collect();
    assert_eq!(
        lengths,
        [1056, 1088],
        "the second one with padding is longer"
    );
    assert_eq!(publication.position(), TERM);
    rig.cycle();
    assert_eq!(rig.data().len(), 2);
}
