//! A CnC file of any content. The file is refused, or the code of driver, client and tools opens it and reads every
//! section.
#![no_main]

use aeron_memory::broadcast::BroadcastReceiver;
use aeron_memory::buffer::SharedBuffer;
use aeron_memory::cnc::{Cnc, Reader};
use aeron_memory::error_log;
use aeron_memory::ring::RingConsumer;
use aeron_memory::words::Words;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let words = SharedBuffer::heap(data.len().next_multiple_of(8));
    words.copy_in(0, data);
    let _ = Cnc::open(words.clone(), Reader::Client);
    let Ok(cnc) = Cnc::open(words, Reader::Tool) else {
        return;
    };

    let _ = (
        cnc.identity(),
        cnc.file_page_size(),
        cnc.driver_state(0, 10_000),
        cnc.is_active(i64::MAX, 10_000),
    );
    read_counters(&cnc);
    let _ = error_log::read(cnc.error_log(), 0);

    let mut receiver =
        BroadcastReceiver::new(cnc.to_clients().clone()).expect("checked when the file was opened");
    for _ in 0..64 {
        let _ = receiver.receive(|_, _| ());
    }
    let mut consumer = RingConsumer::new(cnc.to_driver().clone());
    for _ in 0..8 {
        let _ = consumer.read(usize::MAX, |_, _| ());
        let _ = consumer.unblock();
    }
});

fn read_counters(cnc: &Cnc<SharedBuffer>) {
    let counters = cnc.counters();
    for record in counters.records() {
        assert_eq!(counters.type_id(record.id), Some(record.type_id));
        counters.append_to_label(
            record.id,
            " and more text than fits when it is done a few times",
        );
        let _ = counters.find_by_registration(record.type_id, record.registration_id);
    }
    for id in [i32::MIN, -1, 0, counters.max_counter_id(), i32::MAX] {
        let _ = (
            counters.state(id),
            counters.value(id),
            counters.key(id),
            counters.free_for_reuse_deadline_ms(id),
        );
    }
}
