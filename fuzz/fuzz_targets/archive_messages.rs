//! Messages of the archive's control protocol, and the messages that this project adds. Any bytes are decoded or
//! refused on each of the three streams. A decoded message survives encoding and decoding. `RequestIds`, which decodes
//! only the ids of a request, finds the same ids in the input and in the encoded message.
#![no_main]

use aeron_protocol::archive::extension::{ExtensionRequest, ExtensionResponse};
use aeron_protocol::archive::{ArchiveRequest, ArchiveResponse, RecordingEvent, RequestIds};
use libfuzzer_sys::fuzz_target;

macro_rules! survives {
    ($set:ident, $data:expr) => {
        if let Ok(message) = $set::decode($data) {
            let mut encoded = vec![0xA5; message.encoded_length()];
            assert_eq!(message.encode(&mut encoded), Ok(encoded.len()));
            assert_eq!($set::decode(&encoded), Ok(message));
            assert_eq!(RequestIds::of(&encoded), RequestIds::of($data));
        }
    };
}

fuzz_target!(|data: &[u8]| {
    survives!(ArchiveRequest, data);
    survives!(ArchiveResponse, data);
    survives!(RecordingEvent, data);
    survives!(ExtensionRequest, data);
    survives!(ExtensionResponse, data);
});
