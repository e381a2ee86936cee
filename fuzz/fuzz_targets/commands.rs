//! Records of the ring and of the broadcast. Any type id with any body is decoded or refused. A decoded record
//! survives a round trip through the encoder.
#![no_main]

use aeron_protocol::command::Command;
use aeron_protocol::event::Event;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((type_id, body)) = data.split_first_chunk::<4>() else {
        return;
    };
    let type_id = i32::from_le_bytes(*type_id);

    if let Ok(command) = Command::decode(type_id, body) {
        let mut encoded = vec![0; command.encoded_length()];
        assert_eq!(command.encode(&mut encoded), Ok(encoded.len()));
        assert_eq!(Command::decode(command.type_id(), &encoded), Ok(command));
    }
    if let Ok(event) = Event::decode(type_id, body) {
        let mut encoded = vec![0; event.encoded_length()];
        assert_eq!(event.encode(&mut encoded), Ok(encoded.len()));
        assert_eq!(Event::decode(event.type_id(), &encoded), Ok(event));
    }
});
