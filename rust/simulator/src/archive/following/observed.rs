//! [`ObservedRecordings`]: the recordings of all streams as their counters show them, and the comparison with the disk.

use std::collections::BTreeMap;

use aeron_archive::catalog::{Catalog, RecordingDescriptor};
use aeron_archive::client::RecordingPositionKey;
use aeron_archive::extensions::{
    EXTENSIONS_FILE_NAME, ExtensionChange, RecordingLink, decode_records,
};
use aeron_archive::reader::RecordingReader;
use aeron_archive::stream::RecordedStream;

use super::super::disk::SimulatedDisk;
use super::super::server::ArchiveServer;
use super::follower::Follower;
use super::source::FollowedSource;
use super::tape::{SessionTape, StreamTape};
use crate::host::Host;
use crate::payload::Message;
use crate::truth::Finding;

/// The recordings of an archive by id.
#[derive(Debug, Default)]
pub struct ObservedRecordings {
    recordings: BTreeMap<i64, ObservedRecording>,
}

/// A recording that had a counter.
#[derive(Clone, Copy, Debug)]
pub struct ObservedRecording {
    /// Number of the stream.
    pub stream: usize,
    /// Session id.
    pub session_id: i32,
    /// Number of the archive process that began the recording.
    pub life: u64,
    /// Highest position that the counter had.
    pub recorded: i64,
    /// First position of the recording.
    pub start: i64,
    /// Whether a later archive process has extended the recording.
    pub is_extended: bool,
}

impl ObservedRecordings {
    /// Reads the counters of active recordings.
    ///
    /// # Errors
    /// A recording is beyond the published data.
    pub fn observe(
        &mut self,
        archive: &ArchiveServer,
        host: &Host,
        sources: &[FollowedSource],
    ) -> Result<(), Finding> {
        let Some(cnc) = host.cnc() else {
            return Ok(());
        };
        let counters = cnc.counters();
        for id in counters.ids() {
            let key = RecordingPositionKey::of(counters, id);
            let (Some(key), Some(position)) = (key, counters.value(id)) else {
                continue;
            };
            let mut tapes = sources.iter().map(FollowedSource::tape).enumerate();
            let owner = tapes.find_map(|(at, tape)| Some((at, tape.session(key.session_id)?)));
            let Some((stream, tape)) = owner else {
                continue;
            };
            if position > tape.end {
                return Err(format!(
                    "recording {} is at {}, beyond {}, the end of what was published",
                    key.recording_id, position, tape.end
                ));
            }
            let begin = || ObservedRecording {
                stream,
                session_id: key.session_id,
                life: archive.lives(),
                recorded: position,
                start: start_of(archive.disk(), key.recording_id).unwrap_or(position),
                is_extended: false,
            };
            let observed = self.recordings.entry(key.recording_id);
            let observed = observed.or_insert_with(begin);
            if position > observed.recorded {
                observed.recorded = position;
                observed.is_extended |= archive.lives() > observed.life;
            }
        }
        Ok(())
    }

    /// Returns the newest recording of a session.
    pub fn last_of(&self, session_id: i32) -> Option<(i64, ObservedRecording)> {
        let mut newest_first = self.recordings.iter().rev();
        let (id, recording) = newest_first.find(|(_, it)| it.session_id == session_id)?;
        Some((*id, *recording))
    }

    /// Returns the number of recordings, and how many of them were extended by a later archive process.
    pub fn counts(&self) -> (u64, u64) {
        let extended = self.recordings.values().filter(|it| it.is_extended);
        (self.recordings.len() as u64, extended.count() as u64)
    }

    /// Compares catalog, segments and links on the disk with everything that was published, observed and committed.
    /// Returns the number of recorded messages, and the number of links.
    ///
    /// # Errors
    /// A recording, a message or a link on the disk is missing or wrong.
    pub fn check(
        &self,
        archive: &ArchiveServer,
        sources: &[FollowedSource],
        followers: &[Follower],
        seed: u64,
    ) -> Result<(u64, u64), Finding> {
        let disk = archive.disk();
        let catalog = Catalog::open_read_only(disk).map_err(|error| error.to_string())?;
        let recordings: Vec<_> = catalog.recordings().cloned().collect();
        for (id, observed) in &self.recordings {
            let follower = &followers[observed.stream];
            let is_there = recordings.iter().any(|it| it.recording_id == *id);
            if !is_there && !follower.has_committed(*id, observed.recorded) {
                return Err(format!("recording {id} is lost: {observed:?}"));
            }
        }
        let links = links(disk)?;
        let mut messages = 0;
        for (at, (source, follower)) in sources.iter().zip(followers).enumerate() {
            let own = |it: &&RecordingDescriptor| it.stream_id == follower.stream_id();
            let own: Vec<_> = recordings.iter().filter(own).collect();
            for recording in &own {
                self.check_range(recording, follower)?;
                messages += check_bytes(disk, recording, source.tape(), seed)?;
            }
            let chains = Chains {
                recordings: &own,
                observed: &self.recordings,
                links: &links,
                errors: &archive.errors(),
                granted_life: followers[at].granted_life(),
            };
            chains.check()?;
        }
        Ok((messages, links.len() as u64))
    }

    fn check_range(
        &self,
        recording: &RecordingDescriptor,
        follower: &Follower,
    ) -> Result<(), Finding> {
        let id = recording.recording_id;
        let Some(observed) = self.recordings.get(&id) else {
            return Ok(());
        };
        let (start, stop) = (recording.start_position, recording.stop_position);
        if stop < observed.recorded {
            return Err(format!("recording {id} ends at {stop}: {observed:?}"));
        }
        if start > observed.start && !follower.has_committed(id, start) {
            return Err(format!(
                "recording {id} begins at {start}, which its reader has not committed: {observed:?}"
            ));
        }
        Ok(())
    }
}

/// The recordings of a stream, and their links.
struct Chains<'a> {
    recordings: &'a [&'a RecordingDescriptor],
    observed: &'a BTreeMap<i64, ObservedRecording>,
    links: &'a BTreeMap<i64, RecordingLink>,
    errors: &'a [String],
    /// Number of the archive process that granted the request to record.
    granted_life: Option<u64>,
}

impl Chains<'_> {
    /// Checks that the recordings of one session do not overlap, and that each link describes the gap before its
    /// recording.
    fn check(&self) -> Result<(), Finding> {
        for (at, recording) in self.recordings.iter().enumerate() {
            let mut former = self.recordings[..at].iter().rev();
            let former = former.find(|it| it.session_id == recording.session_id);
            let link = self.links.get(&recording.recording_id);
            // If retention has deleted the previous recording, there is nothing to compare with.
            if let Some(former) = former {
                self.check_link(former, recording, link)?;
            }
        }
        Ok(())
    }

    fn check_link(
        &self,
        former: &RecordingDescriptor,
        recording: &RecordingDescriptor,
        link: Option<&RecordingLink>,
    ) -> Result<(), Finding> {
        let id = recording.recording_id;
        let observed = self.observed.get(&id);
        let start = observed.map_or(recording.start_position, |it| it.start);
        if start < former.stop_position {
            return Err(format!(
                "recording {id} begins at {start}, before the end of recording {} at {}",
                former.recording_id, former.stop_position
            ));
        }
        let expected = RecordingLink {
            predecessor_id: former.recording_id,
            gap_from: former.stop_position,
            gap_to: Some(start),
        };
        match link {
            Some(link) if *link == expected => Ok(()),
            Some(link) => Err(format!(
                "recording {id} has the link {link:?}, not {expected:?}"
            )),
            None if self.must_be_linked(id) => Err(format!(
                "recording {id} has no link: {expected:?} is missing"
            )),
            None => Ok(()),
        }
    }

    /// Returns whether a recording must have a link. A link is necessary if the archive process that began the
    /// recording had resumed the subscription, and no error says that storing the link failed.
    fn must_be_linked(&self, id: i64) -> bool {
        let began = self.observed.get(&id).map(|it| it.life);
        let failed = format!("the link from recording {id} to");
        let is_resumed = began
            .zip(self.granted_life)
            .is_some_and(|(began, granted)| began > granted);
        is_resumed && !self.errors.iter().any(|error| error.contains(&failed))
    }
}

fn start_of(disk: &SimulatedDisk, recording_id: i64) -> Option<i64> {
    let catalog = Catalog::open_read_only(disk).ok()?;
    let recording = catalog.recording(recording_id).ok()?;
    Some(recording.start_position)
}

/// Returns the links in the file of extensions.
fn links(disk: &SimulatedDisk) -> Result<BTreeMap<i64, RecordingLink>, Finding> {
    let Some(bytes) = disk.storage.bytes(EXTENSIONS_FILE_NAME) else {
        return Ok(BTreeMap::new());
    };
    let changes = decode_records(&bytes).ok_or("the file of extensions is damaged")?;
    let mut links = BTreeMap::new();
    for change in changes {
        if let ExtensionChange::Info { recording_id, info } = change {
            match info.link {
                Some(link) => links.insert(recording_id, link),
                None => links.remove(&recording_id),
            };
        }
    }
    Ok(links)
}

/// Compares the whole messages of a recording with those that were published. Returns their number.
fn check_bytes(
    disk: &SimulatedDisk,
    recording: &RecordingDescriptor,
    tape: &StreamTape,
    seed: u64,
) -> Result<u64, Finding> {
    let id = recording.recording_id;
    let session = tape
        .session(recording.session_id)
        .ok_or_else(|| format!("recording {id} is of an unknown session"))?;
    let stream = RecordedStream::of_recording(recording).map_err(|error| error.to_string())?;
    let (start, stop) = (recording.start_position, recording.stop_position);
    let mut reader = RecordingReader::new(disk.clone(), stream, start, stop)
        .map_err(|error| error.to_string())?;
    let (mut position, mut count) = (start, 0);
    let mut message: Option<Vec<u8>> = None;
    while let Some(frame) = reader.next_frame().map_err(|error| error.to_string())? {
        if frame.is_padding() {
            continue;
        }
        if frame.is_begin() {
            message = Some(Vec::new());
        }
        // The recording may begin within a message.
        let Some(bytes) = &mut message else {
            continue;
        };
        bytes.extend_from_slice(frame.payload());
        if frame.is_end() {
            let end = frame.end_position();
            let found = Message::recognise(bytes, seed);
            position = check_next(session, position, found, end)
                .map_err(|finding| format!("recording {id}: {finding}"))?;
            (message, count) = (None, count + 1);
        }
    }
    match session.next_at(position) {
        Some(missing) if missing.end <= stop => {
            Err(format!("recording {id} up to {stop} lacks {missing:?}"))
        }
        _ => Ok(count),
    }
}

/// Checks that a message is the next one of a session after a position. Returns the position after it.
///
/// # Errors
/// The message is not the next one, or it ends at another position.
pub fn check_next(
    session: &SessionTape,
    position: i64,
    found: Option<Message>,
    end: i64,
) -> Result<i64, Finding> {
    let expected = session.next_at(position);
    match expected {
        Some(expected) if Some(expected.message) == found && expected.end == end => Ok(end),
        _ => Err(format!(
            "{found:?} came at {end}, expected {expected:?} after {position}"
        )),
    }
}
