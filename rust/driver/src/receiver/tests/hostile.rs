//! Property test with arbitrary datagrams. The receiver must continue to work, and must store data only inside the
//! window and on allocated pages.

use std::ops::Range;

use aeron_memory::log::gap;
use aeron_protocol::frame::{DataHeader, flags};
use proptest::prelude::*;

use super::rig::*;

/// An event of an image.
#[derive(Clone, Debug)]
enum Step {
    Datagram(Vec<u8>),
    /// A data frame with this header arrives in a datagram of this length.
    Data(DataHeader, usize),
    /// The conductor schedules a status message for the high-water mark minus this distance.
    Schedule(i64),
    /// The conductor scans for gaps.
    Scan,
    /// This number of bytes is allocated in addition.
    Allocate(i64),
}

fn header() -> impl Strategy<Value = DataHeader> {
    let any_or = |near: Range<i32>| prop_oneof![8 => near, 1 => any::<i32>()];
    let term_offset = prop_oneof![
        8 => (0..TERM as i32 / 32).prop_map(|count| count * 32),
        1 => any::<i32>(),
    ];
    let frame_length = prop_oneof![
        4 => (1..64i32).prop_map(|count| count * 32),
        2 => 0..2048i32,
        1 => any::<i32>(),
    ];
    let flags = prop_oneof![4 => Just(flags::UNFRAGMENTED), 1 => any::<u8>()];
    (
        term_offset,
        any_or(INITIAL_TERM - 1..INITIAL_TERM + 3),
        frame_length,
        flags,
        any::<bool>(),
    )
        .prop_map(
            |(term_offset, term_id, frame_length, flags, is_padding)| DataHeader {
                frame_length,
                flags,
                is_padding,
                term_offset,
                term_id,
                ..header_at(0)
            },
        )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => prop::collection::vec(any::<u8>(), 0..128).prop_map(Step::Datagram),
        8 => (header(), 0..2048usize).prop_map(|(header, length)| Step::Data(header, length)),
        8 => header().prop_map(|header| {
            let length = header.frame_length.clamp(32, 2048) as usize;
            Step::Data(header, length.next_multiple_of(32))
        }),
        2 => (0..4096i64).prop_map(|behind| Step::Schedule(behind & !31)),
        2 => Just(Step::Scan),
        2 => (0..4i64).prop_map(|pages| Step::Allocate(pages * 4096)),
    ]
}

fn datagram(header: DataHeader, length: usize) -> Vec<u8> {
    let mut bytes = vec![0x55; length.max(32)];
    header.encode(&mut bytes);
    bytes.truncate(length);
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// 02-107, 02-109
    #[test]
    fn data_is_stored_only_after_the_join_position_and_on_allocated_pages(
        join in (0..TERM as i64 / 32).prop_map(|count| count * 32),
        is_reliable: bool,
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut rig = Rig::new();
        let endpoint = rig.subscribed(UNICAST);
        let mut end = (join & !4095) + 4096;
        let options = Options { is_reliable, allocated_end: end, ..Options::default() };
        let image = rig.image_with(&endpoint, setup_at(join), options);
        let (mut told, mut before) = (join, join);
        for step in steps {
            match step {
                Step::Datagram(bytes) => rig.deliver(&endpoint, &bytes),
                Step::Data(header, length) => rig.deliver(&endpoint, &datagram(header, length)),
                Step::Schedule(behind) => {
                    told = told.max(before - behind);
                    image.status.schedule_status_message(told, WINDOW);
                    rig.cycle();
                }
                Step::Scan => report(&image, told, before),
                Step::Allocate(length) => {
                    end += length;
                    image.status.set_allocated_end(end);
                }
            }
            let high_water_mark = image.high_water_mark();
            prop_assert!(high_water_mark >= before, "the high-water mark never falls");
            // A padding frame may end after the limit: on an allocated page, or at the end of its term.
            let limit = end.min(told + TERM as i64 / 2);
            let end_of_term = (limit as usize).next_multiple_of(TERM) as i64;
            prop_assert!(high_water_mark <= end.max(end_of_term).max(join));
            before = high_water_mark;
        }
        rig.cycle();
        let untouched = |from: i64, to: i64| {
            (from..to).step_by(32).all(|at| image.bytes(at, 32) == [0; 32])
        };
        prop_assert!(untouched(0, join), "no data before the join position");
        prop_assert!(untouched(end, 3 * TERM as i64), "no data after the allocated pages");
    }
}

/// Reports the first gap after `from`, as the conductor does.
fn report(image: &Image, from: i64, high_water_mark: i64) {
    let positions = image.log.positions();
    let (begin, offset) = (positions.term_begin(from), positions.term_offset(from));
    let limit = (high_water_mark - begin).min(TERM as i64) as usize;
    if let Ok(scanned) = gap::scan(image.log.term_at(from), begin, offset, limit)
        && let Some(gap) = scanned.gap
    {
        let term_id = positions.term_id(from);
        image.status.report_missing(term_id, gap.offset, gap.length);
    }
}
