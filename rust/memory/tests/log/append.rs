//! Appending messages one by one.

use aeron_memory::Words;
use aeron_memory::log::{AppendError, ConcurrentAppender, ExclusiveAppender, RawTail};

use crate::common::*;

/// 01-59, 01-60, 01-61, 01-62: the operations of the capture leave the captured bytes.
#[test]
fn the_captured_operations_write_the_captured_bytes() {
    let expected = expectation("log-ipc-concurrent.json");
    let log = captured_log("log-ipc-concurrent-meta.bin");
    // As before the first operation.
    let fresh = log_of(&log.metadata().description(), 0);
    let appender = ConcurrentAppender::new(fresh.clone());
    let operations = expected["operations_in_order"].as_array().unwrap();
    for operation in operations {
        let length = int(&operation["length"]) as usize;
        let payload = match operation["payload_hex"].as_str() {
            Some(hex) => unhex(hex),
            None => (0..length).map(|i| (7 * i + 2) as u8).collect(),
        };
        let position = match operation["op"].as_str().unwrap() {
            "offer" if int(&operation["reserved_value"]) != 0 => {
                let value = int(&operation["reserved_value"]);
                appender
                    .offer_with(NO_LIMIT, &payload[..], |_| value)
                    .unwrap()
            }
            "offer" => appender.offer(NO_LIMIT, &payload).unwrap(),
            "tryClaim+commit" => {
                let claim = appender.try_claim(NO_LIMIT, length).unwrap();
                claim.put(0, &payload);
                claim.commit()
            }
            "tryClaim+abort" => {
                let claim = appender.try_claim(NO_LIMIT, length).unwrap();
                claim.put(0, &payload);
                let position = claim.position();
                claim.abort();
                position
            }
            "offer vectored 10+20" => {
                let (first, second) = payload.split_at(10);
                appender.offer_parts(NO_LIMIT, &[first, second]).unwrap()
            }
            other => panic!("unknown operation {other}"),
        };
        assert_eq!(position, int(&operation["result"]), "{operation}");
    }
    let written = bytes_of(fresh.term(0), 0, 4096);
    assert_eq!(written, vector("log-ipc-concurrent-term0-head.bin"));
}

#[test]
fn a_full_term_is_padded_and_the_next_attempt_goes_to_the_next_term_01_63() {
    let (shared, own) = (log(), log());
    let concurrent = ConcurrentAppender::new(shared.clone());
    let mut exclusive = ExclusiveAppender::new(own.clone()).unwrap();
    let mut messages = Vec::new();
    for count in 0..120u8 {
        let message = vec![count; 1000];
        let result = concurrent.offer(NO_LIMIT, &message);
        assert_eq!(exclusive.offer(NO_LIMIT, &message), result);
        match count {
            61 => assert_eq!(result, Ok(65_472)),
            62 => assert_eq!(result, Err(AppendError::AdminAction)),
            63 => assert_eq!(result, Ok(66_592)),
            _ => assert!(result.is_ok()),
        }
        if result.is_ok() {
            messages.push(message);
        }
    }
    assert!(terms_of(&shared) == terms_of(&own));
    assert_eq!(shared.term(0).load_i32_relaxed(65_472), 64);
    for log in [&shared, &own] {
        assert_eq!(log.metadata().tail(0), RawTail::new(INITIAL_TERM, 66_528));
        assert_eq!(log.metadata().active_term_count(), 1);
        assert_eq!(
            read_all(log, 0),
            (messages.clone(), log.producer_position())
        );
    }
}
