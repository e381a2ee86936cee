//! [`RecordedMessages`]: counts the messages of a recording and finds cuts between them, from the index, the segment
//! files or a replay.

use std::sync::Arc;

use aeron_archive::frame::CheckedFrame;
use aeron_archive::index::{HeadTracker, IndexFile};
use aeron_archive::reader::RecordingReader;
use aeron_archive::storage::Access;
use aeron_objects::reading::CopiedDirectory;

use super::connection::{ArchiveAccess, ArchiveConnections};
use super::partition::SharedPartition;
use super::recordings::SharedRecording;
use super::replay::ReplayedFrames;
use crate::error::{LiveCode, LiveError};
use crate::planning::RecordingMessages;
use crate::private::{Counts, Cut, Index, IndexError};

/// Length of the shortest frame, in bytes.
const MIN_FRAME_LENGTH: i64 = 32;

/// The planner's view of an archive.
#[derive(Clone)]
pub(super) struct ArchiveView {
    pub access: Arc<ArchiveAccess>,
    pub connections: ArchiveConnections,
    pub archive_id: i64,
    /// The directory of the archive, if it is on this machine.
    pub directory: Option<CopiedDirectory>,
    /// Whether rows have their arrival time. Arrival times are known only up to the last entry of an index.
    pub needs_timestamp: bool,
}

/// The messages of one recording.
pub(super) struct RecordedMessages<'a> {
    pub archive: &'a ArchiveView,
    pub recording: &'a SharedRecording,
    /// Whether counts may be upper bounds. If so, a recording without an index is not read only to count its messages.
    pub may_estimate: bool,
}

impl RecordedMessages<'_> {
    /// Returns the end of the last complete message that ends at or before `to`, but at least `from`. `from` must be
    /// between two messages, and `to` between two frames. If rows have arrival times and an active recording has an
    /// index, a message counts only after it is in the index.
    ///
    /// # Errors
    /// The recording cannot be read.
    pub fn head(&self, from: i64, to: i64) -> Result<i64, LiveError> {
        let to = match self.archive.needs_timestamp && self.recording.descriptor.is_unfinished() {
            true => self.indexed_end(to)?,
            false => to,
        };
        if to <= from {
            return Ok(from);
        }
        // The search may start at the term of `to`, because no message crosses the end of a term.
        let from = from.max(self.recording.term_begin(to));
        let all = Counts {
            messages: i64::MAX,
            payload_bytes: i64::MAX,
        };
        Ok(self.cut(from, to, all)?.position)
    }

    /// Returns the greatest end of a block in the index that is at or before `to`; `to` if there is no index.
    fn indexed_end(&self, to: i64) -> Result<i64, LiveError> {
        let stream = &self.recording.stream;
        let base = stream.segment_base(to);
        let Some(directory) = &self.archive.directory else {
            return Ok(to);
        };
        let failed = |error: std::io::Error| {
            let id = self.recording.id();
            LiveError::new(
                LiveCode::Archive,
                format!("index of recording {id}: {error}"),
            )
        };
        let file = IndexFile::open(directory, self.recording.id(), base, Access::Read);
        let Some(file) = file.map_err(failed)? else {
            return Ok(to);
        };
        for number in (0..file.entry_count()).rev() {
            match file.entry(number).map_err(failed)? {
                Some(entry) if entry.end_position <= to => return Ok(entry.end_position),
                _ => {}
            }
        }
        Ok(base.max(self.recording.start()).min(to))
    }

    /// Calls `look` with the index. Returns `None` if the recording has no index on this machine.
    fn by_index<T>(
        &self,
        look: impl FnOnce(&Index<CopiedDirectory>) -> Result<T, IndexError>,
    ) -> Result<Option<T>, LiveError> {
        let Some(directory) = &self.archive.directory else {
            return Ok(None);
        };
        match look(&Index::new(directory.clone(), self.recording.stream)) {
            Ok(found) => Ok(Some(found)),
            // The archive servers of other software write no index.
            Err(IndexError::Damaged { .. }) => Ok(None),
            Err(IndexError::Read(error)) => Err(error.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// Calls `on_message` after each message with the end of the message and the counts so far. Ends when `on_message`
    /// returns `false`.
    fn scan(
        &self,
        from: i64,
        to: i64,
        mut on_message: impl FnMut(Cut) -> bool,
    ) -> Result<(), LiveError> {
        let mut tracker = HeadTracker::default();
        let mut take = |frame: &CheckedFrame<'_>| {
            tracker.take(frame);
            let progress = tracker.progress();
            let is_complete = frame.is_end() && progress.head == Some(frame.end_position());
            !is_complete
                || on_message(Cut {
                    position: frame.end_position(),
                    counts: progress.counts,
                })
        };
        if let Some(directory) = &self.archive.directory {
            let stream = self.recording.stream;
            let mut reader = RecordingReader::new(directory.clone(), stream, from, to)?;
            while reader.next_frame()?.is_some_and(|frame| take(&frame)) {}
            return Ok(());
        }
        let partition = SharedPartition {
            archive_id: self.archive.archive_id,
            recording: self.recording.piece(),
            from,
            to,
        };
        let (connections, access) = (&self.archive.connections, &self.archive.access);
        let mut replay = ReplayedFrames::start(connections, access, &partition)?;
        while replay.next_checked()?.is_some_and(|frame| take(&frame)) {}
        Ok(())
    }
}

impl RecordingMessages for RecordedMessages<'_> {
    type Error = LiveError;

    fn counts(&self, from: i64, to: i64) -> Result<Counts, LiveError> {
        if let Some(counts) = self.by_index(|index| index.count(from, to))? {
            return Ok(counts);
        }
        if self.may_estimate {
            return Ok(Counts {
                messages: (to - from) / MIN_FRAME_LENGTH,
                payload_bytes: to - from,
            });
        }
        let mut counts = Counts::default();
        if from < to {
            self.scan(from, to, |message| {
                counts = message.counts;
                true
            })?;
        }
        Ok(counts)
    }

    fn cut(&self, from: i64, to: i64, quota: Counts) -> Result<Cut, LiveError> {
        let fits = |counts: Counts| {
            counts.messages <= quota.messages && counts.payload_bytes <= quota.payload_bytes
        };
        if let Some(cut) = self.by_index(|index| index.cut(from, to, fits))? {
            return Ok(cut);
        }
        let mut cut = Cut {
            position: from,
            counts: Counts::default(),
        };
        if from < to {
            self.scan(from, to, |message| {
                let is_within = fits(message.counts);
                if is_within {
                    cut = message;
                }
                is_within
            })?;
        }
        Ok(cut)
    }
}
