//! Offsets and partitions from a checkpoint or a task. A text is parsed, or refused with an error. A parsed value is
//! written to a text that parses to the same value.
#![no_main]

use aeron_pipeline::offsets::Offset;
use aeron_pipeline::partition::Partition;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Offset::parse(text) {
        Ok(offset) => {
            let canonical = offset.to_string();
            assert_eq!(Offset::parse(&canonical).as_ref(), Ok(&offset));
            assert_eq!(Offset::parse(&canonical).unwrap().to_string(), canonical);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(partition) = Partition::from_json(text) {
        assert_eq!(Partition::from_json(&partition.to_json()), Ok(partition));
    }
});
