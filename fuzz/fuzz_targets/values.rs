//! Text of the configuration: sizes, durations, booleans, idle strategies and property files.
#![no_main]

use aeron_agent::IdleStrategySpec;
use aeron_agent::properties;
use aeron_agent::value::{
    format_duration_ns, format_size, parse_config_bool, parse_duration_ns, parse_size,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Ok(parsed) = properties::parse(data) {
        assert!(parsed.iter().all(|property| !property.name.is_empty()));
    }
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(bytes) = parse_size(text) {
        assert_eq!(parse_size(&format_size(bytes)), Ok(bytes));
    }
    if let Ok(duration_ns) = parse_duration_ns(text) {
        assert_eq!(
            parse_duration_ns(&format_duration_ns(duration_ns)),
            Ok(duration_ns)
        );
    }
    let _ = parse_config_bool(text);
    for name in ["backoff", "sleep-ns", "sleep-ms", text] {
        let _ = IdleStrategySpec::parse(name, Some(text));
    }
});
