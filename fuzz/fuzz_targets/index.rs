//! An index file of any content, in which the input decides for each slot whether the checksum is correct. The times
//! and counts in the file are read, and opening a private archive repairs the file. An archive server with this file
//! either refuses to start, or starts and extends the recording.
#![no_main]

use aeron_archive::index::{IndexFile, IndexForm};
use aeron_archive::memory_storage::MemoryStorage;
use aeron_archive::ownership::BootId;
use aeron_archive::recovery::OnTornFragment;
use aeron_archive::storage::Access;
use aeron_archive::store::{ArchiveStore, Continuation, NewRecording, StoreOptions};
use aeron_pipeline::private::{Arrivals, ImageDescription, PrivateArchive};
use libfuzzer_sys::fuzz_target;

const TERM_LENGTH: i32 = 65_536;
const FRAME_LENGTH: usize = 96;
const FRAMES: usize = 40;
const END: i64 = (FRAMES * FRAME_LENGTH) as i64;
const SLOT_LENGTH: usize = 64;
/// Length of a frame that may be torn, because some of its pages are empty.
const DOUBTFUL_LENGTH: usize = 9_056;

type Server = ArchiveStore<MemoryStorage>;

fuzz_target!(|data: &[u8]| {
    serve(data);
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
        let (mut opened, report) = opened.expect("the archive opens with any index");
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
    let opened = PrivateArchive::open(storage.clone(), &[], 1 << 30, 1);
    let (mut archive, _) = opened.expect("the disk is sound");
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
        writer
            .append((number * FRAME_LENGTH) as i64, &frame(number), 1)
            .expect("the disk is sound");
    }
    archive
        .end_recording(writer, false, 1)
        .expect("the disk is sound");
    archive
}

fn frame(number: usize) -> [u8; FRAME_LENGTH] {
    let mut frame = [number as u8; FRAME_LENGTH];
    // Messages of one frame and of two frames.
    let flags = [0xC0, 0x80, 0x40][number % 3];
    frame[..32].copy_from_slice(&header(number * FRAME_LENGTH, FRAME_LENGTH, flags));
    frame
}

fn header(at: usize, length: usize, flags: u8) -> [u8; 32] {
    let mut header = [0; 32];
    header[..4].copy_from_slice(&(length as u32).to_le_bytes());
    header[4..8].copy_from_slice(&[0, flags, 1, 0]);
    header[8..12].copy_from_slice(&(at as u32).to_le_bytes());
    header[12] = 2;
    header[16] = 1;
    header
}

/// Checks an archive server with the index. The server was killed while it recorded, and the last frame of its
/// recording may be torn.
fn serve(data: &[u8]) {
    let storage = MemoryStorage::new();
    let mut server = open(&storage, OnTornFragment::Refuse).expect("the disk is sound");
    let recording = NewRecording {
        start_timestamp_ms: 1,
        join_position: 0,
        initial_term_id: 0,
        term_length: TERM_LENGTH,
        mtu_length: 1408,
        session_id: 2,
        stream_id: 1,
        stripped_channel: "aeron:ipc".to_owned(),
        original_channel: "aeron:ipc".to_owned(),
        source_identity: "aeron:ipc".to_owned(),
    };
    let mut session = server
        .start_recording(recording)
        .expect("the disk is sound");
    for number in 0..FRAMES {
        session
            .append(&frame(number), |_| {})
            .expect("a sound frame");
    }
    let mut doubtful = [0; DOUBTFUL_LENGTH];
    doubtful[..32].copy_from_slice(&header(END as usize, DOUBTFUL_LENGTH, 0xC0));
    session.append(&doubtful, |_| {}).expect("a sound frame");
    session.publish().expect("the disk is sound");
    drop((server, session));
    storage.put("0-0.idx", &sealed(data));

    let mut server = open(&storage, OnTornFragment::Refuse)
        .unwrap_or_else(|| open(&storage, OnTornFragment::Truncate).expect("the frame may be cut"));
    let end = server.recording(0).expect("it was recorded").stop_position;
    assert!(end == END || end == END + DOUBTFUL_LENGTH as i64, "{end}");
    let continuation = Continuation {
        join_position: end,
        initial_term_id: 0,
        term_length: TERM_LENGTH,
        mtu_length: 1408,
        session_id: 2,
        control_session_id: 3,
        correlation_id: 4,
    };
    server
        .extend_recording(0, &continuation)
        .expect("the index is made whole");
    let file = IndexFile::open(&storage, 0, 0, Access::Read).expect("the disk is sound");
    let file = file.expect("the index is whole");
    let last = file
        .entry(file.entry_count() - 1)
        .expect("the disk is sound");
    assert_eq!(last.expect("a sound entry").end_position, end);
}

/// Opens the archive of the server. Returns `None` if the archive refuses a frame that may be torn.
fn open(storage: &MemoryStorage, on_torn_fragment: OnTornFragment) -> Option<Server> {
    let options = StoreOptions {
        catalog_capacity: 4096,
        segment_length: TERM_LENGTH,
        low_storage_space_threshold: 0,
        index: Some(IndexForm::Sparse),
        boot_id: BootId::from_bytes([1; 16]),
        on_torn_fragment,
        ..StoreOptions::default()
    };
    ArchiveStore::open(storage.clone(), options, 1)
        .map(|(server, _)| server)
        .map_err(|error| assert!(error.to_string().contains("straddling"), "{error}"))
        .ok()
}

/// Returns the bytes with a correct checksum at the end of each slot. If the lowest bit of a slot's last byte is set,
/// the slot stays as it is.
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
