//! An index file of any content, with checksums that fit: read for times and counts, and made whole when its archive is opened.
#![no_main]

use aeron_archive::memory_storage::MemoryStorage;
use aeron_pipeline::private::{Arrivals, ImageDescription, PrivateArchive};
use libfuzzer_sys::fuzz_target;

const TERM_LENGTH: i32 = 65_536;
const FRAME_LENGTH: usize = 96;
const FRAMES: usize = 40;
const END: i64 = (FRAMES * FRAME_LENGTH) as i64;
const SLOT_LENGTH: usize = 64;

fuzz_target!(|data: &[u8]| {
    let storage = MemoryStorage::new();
    let mut archive = record(&storage);
    storage.put("0-0.idx", &sealed(data));

    let info = archive.recordings().next().expect("it was recorded");
    let hint = data.first().map(|&byte| byte.into());
    let mut arrivals = Arrivals::new(&storage, info.stream, 0, hint).expect("the disk is sound");
    for position in (0..=END).step_by(FRAME_LENGTH) {
        let _ = arrivals.at(position).expect("the disk is sound");
    }
    let index = archive.index(0).expect("it was recorded");
    let _ = index.count(0, END);
    let _ = index.entry_number(END / 2);
    let _ = index.first_message(0, END);
    if let Ok(cut) = index.cut(0, END, |counts| counts.messages <= 3) {
        assert!((0..=END).contains(&cut.position));
    }
    let _ = archive.commit([(0, END)]);

    for _ in 0..2 {
        storage.restart();
        let opened = PrivateArchive::open(storage.clone(), &[], 1 << 30, 1);
        let (mut opened, report) = opened.expect("an index is never missed");
        assert_eq!(report.lost, []);
        let index = opened.index(0).expect("it was recorded");
        let _ = index.count(0, END);
        let _ = opened.commit([(0, END / 2)]);
        let _ = opened.work(1, Some(1));
        if opened.recordings().next().is_none() {
            break;
        }
    }
});

/// A recording of a few messages, in several blocks.
fn record(storage: &MemoryStorage) -> PrivateArchive<MemoryStorage> {
    let mut archive = PrivateArchive::create(storage.clone(), 1 << 30).expect("the disk is sound");
    let image = ImageDescription {
        original_channel: "aeron:ipc".to_owned(),
        stripped_channel: "aeron:ipc".to_owned(),
        stream_id: 1,
        session_id: 2,
        source_identity: "aeron:ipc".to_owned(),
        initial_term_id: 0,
        term_length: TERM_LENGTH,
        mtu_length: 1408,
        join_position: 0,
    };
    let mut writer = archive
        .start_recording(&image, 1)
        .expect("the disk is sound");
    for number in 0..FRAMES {
        let at = number * FRAME_LENGTH;
        let mut frame = [number as u8; FRAME_LENGTH];
        frame[..4].copy_from_slice(&(FRAME_LENGTH as u32).to_le_bytes());
        // Messages of one frame and of two.
        let flags = [0xC0, 0x80, 0x40][number % 3];
        frame[4..8].copy_from_slice(&[0, flags, 1, 0]);
        frame[8..12].copy_from_slice(&(at as u32).to_le_bytes());
        frame[12..32].fill(0);
        frame[12] = 2;
        frame[16] = 1;
        writer
            .append(at as i64, &frame, 1)
            .expect("the disk is sound");
    }
    archive
        .end_recording(writer, false, 1)
        .expect("the disk is sound");
    archive
}

/// The bytes with a right checksum at the end of each slot, but where a slot's last bit says otherwise.
fn sealed(data: &[u8]) -> Vec<u8> {
    let mut bytes = data.to_vec();
    for slot in bytes.chunks_exact_mut(SLOT_LENGTH) {
        let (body, checksum) = slot.split_at_mut(SLOT_LENGTH - 4);
        if checksum[3] & 1 == 0 {
            checksum.copy_from_slice(&crc32fast::hash(body).to_le_bytes());
        }
    }
    bytes
}
