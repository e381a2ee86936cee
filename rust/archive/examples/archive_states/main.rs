//! Creates archive directories for the interop tests, which open the directories with other
//! programs. `STATE` is the state of the directory: after a recorder has ended normally, after a
//! recorder was killed, or after operations of a store (`maintained.rs`). The program can also
//! recover such a directory, and read any archive directory.
//!
//! ```text
//! usage: archive_states write STATE DIRECTORY
//!        archive_states recover DIRECTORY [KNOWN_POSITION]
//!        archive_states read DIRECTORY [--any-session]
//!        archive_states open DIRECTORY
//! ```
//!
//! `open` opens a store and prints the recording id, the start and stop position and the original
//! channel of each recording. `recover` prints the recording id and the start and stop position of
//! each recording that it has stopped. `read` prints the id, the start and the end of each recording,
//! each followed by the position, the flags and the payload of its data frames. Flags and payload are
//! in hexadecimal digits.

use aeron_archive::catalog::{Catalog, DEFAULT_CAPACITY, NULL_VALUE, RecordingDescriptor};
use aeron_archive::mark_file::{MarkFile, Owner};
use aeron_archive::reader::RecordingReader;
use aeron_archive::recorder::RecorderSession;
use aeron_archive::recovery::{find_end, recover};
use aeron_archive::storage::{Access, Directory, Storage, StorageFile, SyncLevel};
use aeron_archive::store::{ArchiveStore, DetachedSegments, RecordingActivity, StoreOptions};
use aeron_archive::stream::{RecordedStream, StreamDescription};
use std::error::Error;
use std::fs::File;
use std::time::{SystemTime, UNIX_EPOCH};
use stream::{
    INITIAL_TERM_ID, MTU_LENGTH, Publisher, SEGMENT_LENGTH, SESSION_ID, STREAM_ID, TERM_LENGTH,
    payload,
};

mod maintained;
#[allow(
    dead_code,
    reason = "made for the tests of the crate, which use all of it"
)]
#[path = "../../tests/recordings/stream.rs"]
mod stream;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// An archive directory whose owner is alive.
struct Archive {
    storage: Directory,
    catalog: Catalog<Directory>,
    mark_file: MarkFile<File>,
}

/// A recording in progress.
struct Recording<'a> {
    archive: &'a mut Archive,
    recording_id: i64,
    stream: RecordedStream,
    session: RecorderSession<Directory>,
    publisher: Publisher,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["write", state, directory] => write(state, Directory::new(directory)),
        ["recover", directory] => recover_all(&Directory::new(directory), 0),
        ["recover", directory, known] => recover_all(&Directory::new(directory), known.parse()?),
        ["read", directory] => read_all(&Directory::new(directory), false),
        ["read", directory, "--any-session"] => read_all(&Directory::new(directory), true),
        ["open", directory] => maintained::open(Directory::new(directory)),
        _ => Err("usage: archive_states write STATE DIRECTORY | recover DIRECTORY [KNOWN_POSITION] | read DIRECTORY [--any-session] | open DIRECTORY".into()),
    }
}

fn write(state: &str, storage: Directory) -> Result<()> {
    if let Some(operation) = maintained::operation(state) {
        return maintained::write(operation, storage);
    }
    let mut archive = Archive::create(storage)?;
    match state {
        "stopped" => archive.stopped()?,
        "purged" => archive.purged().map(drop)?,
        "compacted" => archive.compacted()?,
        "undone" => archive.undone()?,
        "killed" => archive.killed()?,
        "torn" => archive.torn()?,
        "zero-page" => archive.zero_page()?,
        "padding" => archive.padding()?,
        "segment-end" => archive.segment_end()?,
        "created" => archive.created()?,
        "undoing" => archive.undoing()?,
        other => return Err(format!("no state {other}").into()),
    }
    match state {
        "stopped" | "purged" | "compacted" | "undone" => Ok(archive.mark_file.close()?),
        _ => Ok(()),
    }
}

/// Creates the mark file of a directory that this process owns.
fn own(storage: &Directory) -> Result<MarkFile<File>> {
    let now_ms = now_ms()?;
    let owner = Owner::without_server(
        std::process::id().into(),
        now_ms,
        "/dev/shm/aeron".to_owned(),
    );
    let mut mark_file = MarkFile::take(storage, &owner, now_ms)?;
    mark_file.ready(now_ms)?;
    Ok(mark_file)
}

impl Archive {
    fn create(storage: Directory) -> Result<Self> {
        let catalog = Catalog::create(&storage, DEFAULT_CAPACITY)?;
        let mark_file = own(&storage)?;
        Ok(Self {
            storage,
            catalog,
            mark_file,
        })
    }

    fn record(&mut self, start_position: i64) -> Result<Recording<'_>> {
        let descriptor = descriptor(start_position)?;
        let recording_id = self.catalog.add(descriptor)?;
        let description = StreamDescription {
            recording_id,
            ..stream::description(start_position)
        };
        let stream = RecordedStream::new(&description)?;
        let session = RecorderSession::create(self.storage.clone(), stream, SyncLevel::None)?;
        Ok(Recording {
            archive: self,
            recording_id,
            stream,
            session,
            publisher: Publisher::new(start_position),
        })
    }

    /// Creates four stopped recordings. They end within a segment, exactly at the end of a segment,
    /// within a message, and before any message.
    fn stopped(&mut self) -> Result<()> {
        self.record(0)?.messages(200, 3000)?.stop()?;
        self.record(3 * TERM_LENGTH + 1024)?
            .messages(100, 50)?
            .pad_to_segment_end()?
            .stop()?;
        let mut amid = self.record(96)?.messages(10, 100)?;
        let first_fragment = amid.publisher.data(0x80, &payload(1000));
        amid.block(&first_fragment)?;
        amid.stop()?;
        self.record(TERM_LENGTH)?.stop()
    }

    /// Creates three recordings. The first segment of the first recording is purged. The second
    /// recording has a catalog entry and no files. The third recording is unchanged.
    fn purged(&mut self) -> Result<ArchiveStore<Directory>> {
        let shortened = self.record(64)?.messages(200, 3000)?.stopped_id()?;
        let gone = self.record(0)?.messages(200, 3000)?.stopped_id()?;
        self.record(0)?.messages(10, 10)?.stop()?;
        let options = StoreOptions {
            detached_segments: DetachedSegments::Deleted,
            ..StoreOptions::default()
        };
        let (mut store, _) = ArchiveStore::open(self.storage.clone(), options, now_ms()?)?;
        let unused = RecordingActivity::default();
        let mut segments = store.purge_segments(shortened, SEGMENT_LENGTH, &unused)?;
        while segments.step(&mut store)? {}
        let mut files = store.purge_recording_at(gone, &unused, NULL_VALUE)?;
        while files.step(&mut store)? {}
        Ok(store)
    }

    /// Creates the same recordings as [`purged`](Self::purged), but also removes the entry of the
    /// second recording.
    fn compacted(&mut self) -> Result<()> {
        Ok(self.purged()?.compact(|_| false)?)
    }

    /// Creates a recording that ended because of an error between append and publish.
    fn undone(&mut self) -> Result<()> {
        let mut recording = self.record(0)?.messages(20, 700)?;
        let block = recording.publisher.offer(&payload(9000)).concat();
        recording.session.append(&block, |_| {})?;
        recording.session.undo()?;
        recording.stop()
    }

    /// Creates a stopped recording, and two recordings that were active at the time of a kill.
    fn killed(&mut self) -> Result<()> {
        self.record(0)?.messages(50, 700)?.stop()?;
        self.record(TERM_LENGTH + 32)?.messages(300, 1000)?;
        self.record(0)?.messages(3, 3)?;
        Ok(())
    }

    /// Creates a recording with the state after a kill of the recorder during a write. The file contains only the first
    /// pages of the write, and the last of these pages ends within a frame.
    fn torn(&mut self) -> Result<()> {
        let recording = self.record(0)?.messages(20, 700)?;
        let mut publisher = recording.publisher.clone();
        let block: Vec<u8> = (0..20)
            .flat_map(|_| publisher.data(0xC0, &payload(1000)))
            .collect();
        let begin = recording.publisher.position();
        let written = (begin + block.len() as i64 / 2) / 4096 * 4096 - begin;
        recording.put(begin, &block[..written as usize])
    }

    /// Creates a recording whose last frame is whole but has a page of zeros.
    fn zero_page(&mut self) -> Result<()> {
        let mut recording = self.record(0)?.messages(20, 700)?;
        let frame = recording.publisher.data(0xC0, &[0; 12_000]);
        recording.block(&frame)
    }

    /// Creates a recording whose last frame is padding longer than a page.
    fn padding(&mut self) -> Result<()> {
        let mut recording = self.record(0)?.messages(20, 700)?;
        let padding = recording.publisher.pad(20_000);
        recording.block(&padding)
    }

    /// Creates two recordings that end at the end of a segment. The first recorder was killed before it created the
    /// next segment file. The second recorder was killed after it had created the file.
    fn segment_end(&mut self) -> Result<()> {
        let without = self.record(0)?.messages(20, 700)?.pad_to_segment_end()?;
        let next = without.stream.segment_name(SEGMENT_LENGTH);
        without.archive.storage.remove(&next)?;
        self.record(0)?.messages(20, 700)?.pad_to_segment_end()?;
        Ok(())
    }

    /// Creates two recordings with recorders that were killed at the start. The first has an entry
    /// without a segment, and the second has a segment of length 0.
    fn created(&mut self) -> Result<()> {
        self.catalog.add(descriptor(64)?)?;
        self.record(64)?.set_length(0)
    }

    /// Creates a recording with a recorder that was killed while it undid a failed write. The
    /// segment file is too short.
    fn undoing(&mut self) -> Result<()> {
        let recording = self.record(0)?.messages(20, 700)?;
        let end = recording.publisher.position();
        recording.set_length(end)
    }
}

impl Recording<'_> {
    /// Records messages of 0 up to `longest` bytes, and padding before each message that does not fit into the term.
    /// Long messages have several fragments.
    fn messages(mut self, count: usize, longest: usize) -> Result<Self> {
        for number in 0..count {
            for block in self.publisher.offer(&payload(longest * number / count)) {
                self.block(&block)?;
            }
        }
        Ok(self)
    }

    fn pad_to_segment_end(mut self) -> Result<Self> {
        let base = self.session.segment_base();
        while self.session.segment_base() == base {
            let left = TERM_LENGTH - self.publisher.position() % TERM_LENGTH;
            let padding = self.publisher.pad(left);
            self.block(&padding)?;
        }
        Ok(self)
    }

    fn block(&mut self, block: &[u8]) -> Result<()> {
        self.session.append(block, |_| {})?;
        self.session.publish()?;
        Ok(())
    }

    fn stop(self) -> Result<()> {
        self.stopped_id().map(drop)
    }

    fn stopped_id(self) -> Result<i64> {
        let position = self.session.recorded_position();
        self.archive
            .catalog
            .stop(self.recording_id, position, now_ms()?)?;
        Ok(self.recording_id)
    }

    /// Writes to the last segment without the recorder.
    fn put(&self, position: i64, bytes: &[u8]) -> Result<()> {
        let offset = position - self.session.segment_base();
        Ok(self.last_segment()?.write_all_at(bytes, offset as u64)?)
    }

    fn set_length(&self, length: i64) -> Result<()> {
        Ok(self.last_segment()?.set_length(length as u64)?)
    }

    fn last_segment(&self) -> Result<File> {
        let name = self.stream.segment_name(self.session.segment_base());
        Ok(self.archive.storage.open(&name, Access::Write)?)
    }
}

fn recover_all(storage: &Directory, known: i64) -> Result<()> {
    let mut catalog = Catalog::open(storage, DEFAULT_CAPACITY)?;
    let recordings: Vec<_> = catalog.recordings().cloned().collect();
    for descriptor in recordings.iter().filter(|it| it.is_unfinished()) {
        let (id, start) = (descriptor.recording_id, descriptor.start_position);
        let stream = RecordedStream::new(&StreamDescription::from(descriptor))?;
        let end = recover(storage, &stream, known.max(start))?;
        catalog.stop(id, end.position, now_ms()?)?;
        println!("{id} {start} {}", end.position);
    }
    Ok(())
}

fn read_all(storage: &Directory, any_session: bool) -> Result<()> {
    let catalog = Catalog::open_read_only(storage)?;
    for descriptor in catalog.recordings() {
        let mut stream = RecordedStream::new(&StreamDescription::from(descriptor))?;
        if any_session {
            stream = stream.any_session();
        }
        let start = descriptor.start_position;
        let end = match descriptor.is_unfinished() {
            true => find_end(storage, &stream, start)?.position,
            false => descriptor.stop_position,
        };
        println!("recording {} {start} {end}", descriptor.recording_id);
        let mut reader = RecordingReader::new(storage, stream, start, end)?;
        while let Some(frame) = reader.next_frame()? {
            if !frame.is_padding() {
                let digits: String = frame
                    .payload()
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect();
                println!("{} {:02x} {digits}", frame.position(), frame.flags());
            }
        }
    }
    Ok(())
}

fn descriptor(start_position: i64) -> Result<RecordingDescriptor> {
    Ok(RecordingDescriptor {
        control_session_id: 0,
        correlation_id: 0,
        recording_id: 0,
        start_timestamp_ms: now_ms()?,
        stop_timestamp_ms: NULL_VALUE,
        start_position,
        stop_position: NULL_VALUE,
        initial_term_id: INITIAL_TERM_ID,
        segment_length: SEGMENT_LENGTH as i32,
        term_length: TERM_LENGTH as i32,
        mtu_length: MTU_LENGTH as i32,
        session_id: SESSION_ID,
        stream_id: STREAM_ID,
        stripped_channel: "aeron:ipc".into(),
        original_channel: "aeron:ipc?term-length=64k".into(),
        source_identity: "aeron:ipc".into(),
    })
}

fn now_ms() -> Result<i64> {
    Ok(SystemTime::now()
        .duration_since(UNIX_EPOCH)?
        .as_millis()
        .try_into()?)
}
