//! [`IndexProof`]: shows, from a sparse index, whether the last frame of a recording is whole after
//! its recorder was killed.
//!
//! A recorder writes a block, then the block's index entry if one is due, and only then acknowledges the block. For a
//! whole frame with a page of zeros, an entry is always written. Suppose that a recorder was killed, and that the last
//! frame in its file has a page of zeros. If an entry covers the frame, the frame is whole. If no entry covers the
//! frame, the frame was not acknowledged, and its page may never have been written.

use std::io;

use super::IndexFile;
use crate::catalog::RecordingDescriptor;
use crate::ownership::BootId;
use crate::storage::{Access, Storage, SyncLevel};
use crate::stream::RecordedStream;

/// The proven facts about the last segment of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexProof {
    /// Position from which on the proof is valid: the proof says nothing about frames that begin
    /// earlier.
    pub begin_position: i64,
    /// End position of the last entry. Frames up to this position are whole.
    pub told_position: i64,
}

impl IndexProof {
    /// Reads the proof of the index beside the segment at `base`.
    ///
    /// Returns `None` if the index proves nothing, for one of three reasons. The index is missing. The catalog names
    /// another recorder. The machine was restarted, and the recorder had not forced its blocks to the disk.
    ///
    /// # Errors
    /// The file system returns an error.
    pub fn read<S: Storage>(
        storage: &S,
        descriptor: &RecordingDescriptor,
        stream: &RecordedStream,
        base: i64,
        boot_id: Option<BootId>,
    ) -> io::Result<Option<Self>> {
        let file = IndexFile::open(storage, stream.recording_id(), base, Access::Read)?;
        let Some((file, recorder)) = file.and_then(|file| {
            let recorder = *file.recorder()?;
            Some((file, recorder))
        }) else {
            return Ok(None);
        };
        let is_same_boot = boot_id.is_some() && recorder.boot_id == boot_id;
        if !recorder.is_of(descriptor) || !(is_same_boot || recorder.sync_level > SyncLevel::None) {
            return Ok(None);
        }
        let last = file.last_entry(base + stream.segment_length())?;
        Ok(Some(Self {
            begin_position: recorder.begin_position,
            told_position: last.map_or(base, |(_, entry)| entry.end_position),
        }))
    }
}
