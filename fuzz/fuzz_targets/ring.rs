//! A to-driver ring that a hostile client has filled. Reading ends, and returns only bytes of the ring. After that,
//! reading and writing still return.
#![no_main]

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::ring::{ManyToOneRing, RingConsumer};
use aeron_memory::words::Words;
use libfuzzer_sys::fuzz_target;

const CAPACITY: usize = 1024;
const TRAILER_LENGTH: usize = 768;
const LENGTH: usize = CAPACITY + TRAILER_LENGTH;

fuzz_target!(|data: &[u8]| {
    let words = SharedBuffer::heap(LENGTH);
    words.copy_in(0, &data[..data.len().min(LENGTH)]);
    let ring = ManyToOneRing::new(words).expect("the length is a power of two and a trailer");
    let mut consumer = RingConsumer::new(ring.clone());
    for _ in 0..8 {
        let _ = consumer.read(usize::MAX, |_, payload| {
            assert!(payload.len() <= ring.max_message_length())
        });
        let _ = consumer.unblock();
    }
    let _ = ring.write(1, &data[..data.len().min(ring.max_message_length())]);
});
