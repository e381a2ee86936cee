//! Property tests with clients that write arbitrary data into the shared memory.

use std::time::Duration;

use aeron_memory::words::Words;
use aeron_protocol::command::{Command, type_id};
use proptest::prelude::*;

use crate::conductor::harness::{CLIENT, STREAM, TERM, TestDriver};

/// Generates the type id and the body of a command. Some bodies have small ids and a channel that is often valid. The
/// other bodies are random bytes.
fn command() -> impl Strategy<Value = (i32, Vec<u8>)> {
    let channel = prop_oneof![
        Just("aeron:ipc".to_owned()),
        Just("aeron:ipc?term-length=64k|tether=false".to_owned()),
        Just("aeron:ipc?session-id=7|mtu=64|alias=é".to_owned()),
        Just("aeron:udp?endpoint=localhost:1".to_owned()),
        "aeron:ipc\\?[a-z-]{1,8}=[0-9a-z|=:]{0,12}",
        any::<String>(),
    ];
    let fields = (0_i64..4, 0_i64..40, 0_i64..40, 0_i32..3, channel);
    let body = fields.prop_map(|(client, correlation, registration, stream, channel)| {
        let mut body = Vec::new();
        body.extend(client.to_le_bytes());
        body.extend(correlation.to_le_bytes());
        body.extend(registration.to_le_bytes());
        body.extend(stream.to_le_bytes());
        body.extend((channel.len() as i32).to_le_bytes());
        body.extend(channel.as_bytes());
        body
    });
    let add = (0_i64..4, 0_i64..40, 0_i32..3, "aeron:ipc(\\?tether=false)?").prop_map(
        |(client, correlation, stream, channel)| {
            let mut body = Vec::new();
            body.extend(client.to_le_bytes());
            body.extend(correlation.to_le_bytes());
            body.extend(stream.to_le_bytes());
            body.extend((channel.len() as i32).to_le_bytes());
            body.extend(channel.as_bytes());
            body
        },
    );
    prop_oneof![
        (
            0_i32..20,
            prop_oneof![body, proptest::collection::vec(any::<u8>(), 0..80)]
        ),
        (
            prop_oneof![
                Just(type_id::ADD_PUBLICATION),
                Just(type_id::ADD_EXCLUSIVE_PUBLICATION)
            ],
            add
        ),
    ]
    .prop_filter("type ids below 1 are not commands", |(type_id, _)| {
        *type_id > 0
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// 03-50, 03-51
    #[test]
    fn no_sequence_of_commands_stops_the_driver(commands in proptest::collection::vec((command(), 0_u64..300), 0..60)) {
        let mut driver = TestDriver::with(|context| context.client_liveness_timeout_ns = 1_000_000_000);
        for ((type_id, body), pause_ms) in commands {
            driver.send_raw(type_id, &body);
            driver.advance(Duration::from_millis(pause_ms));
            driver.hear();
        }
        driver.advance(Duration::from_secs(3));
        driver.hear();
        driver.add_publication_for(77, "aeron:ipc", 99, true);
        driver.close();
        prop_assert_eq!(driver.logs.count(), 0);
    }

    /// A hostile client may write any value into positions, limits, tails and frame lengths.
    #[test]
    fn no_values_in_positions_tails_and_logs_stop_the_driver(
        writes in proptest::collection::vec((0_usize..8, any::<i64>(), 0_u64..200), 0..30),
    ) {
        let mut driver = TestDriver::with(|context| context.publication_unblock_timeout_ns = 10_100_000_000);
        let publication = driver.add_publication("aeron:ipc", STREAM);
        let (_, tethered) = driver.add_subscription("aeron:ipc", STREAM);
        let (_, untethered) = driver.add_subscription("aeron:ipc?tether=false", STREAM);
        driver.work();
        let memory = driver.publication_log(&publication).unwrap();
        let metadata = memory.slice(memory.len() - 4096, 4096);
        for (place, value, pause_ms) in writes {
            match place {
                0 => tethered[0].position.set(value),
                1 => untethered[0].position.set(value % (4 * TERM)),
                2 => publication.limit.set(value),
                3..6 => metadata.store_i64_release(8 * (place - 3), value),
                6 => metadata.store_i32_release(24, value as i32),
                _ => memory.store_i32_release((value.unsigned_abs() as usize % (3 * TERM as usize)) & !3, value as i32),
            }
            driver.advance(Duration::from_millis(pause_ms));
            driver.hear();
        }
        driver.advance(Duration::from_secs(12));
        driver.hear();
        driver.remove_publication(&publication, false);
        driver.advance(Duration::from_secs(1));
        driver.add_publication("aeron:ipc", STREAM + 1);
    }
}

#[test]
fn a_corrupt_ring_is_recorded_in_the_error_log_and_the_driver_continues() {
    let mut driver = TestDriver::new();
    let command = driver.publication_command(CLIENT, "aeron:ipc", STREAM, false);
    driver.send(command);
    driver
        .cnc
        .to_driver()
        .words()
        .store_i32_release(0, i32::MAX);
    driver.work();
    assert!(
        driver.errors()[0].contains("corrupt record in the ring buffer"),
        "{:?}",
        driver.errors()
    );
    driver.add_publication("aeron:ipc", STREAM);
    let Command::AddPublication(_) = command else {
        panic!()
    };
}
