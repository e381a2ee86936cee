//! Error log and loss report of another process. With any bytes, reading comes to an end and stays within the bytes.
#![no_main]

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::words::Words;
use aeron_memory::{error_log, loss_report};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let words = SharedBuffer::heap(data.len().next_multiple_of(8));
    words.copy_in(0, data);

    let errors = error_log::read(&words, i64::MIN);
    assert!(
        errors
            .iter()
            .map(|error| error.text.len() / 3)
            .sum::<usize>()
            <= data.len()
    );
    assert!(error_log::has_errors(&words) || errors.is_empty());

    let losses = loss_report::read(&words);
    assert!(losses.iter().all(|loss| loss.observation_count > 0));
});
