//! [`Detaching`]: a request that detaches segments from the start of a recording, or attaches them again. The files
//! stay, so all messages must be there after the attachment.

use aeron_archive::client::{AeronArchive, ArchiveCall, ArchiveClientError, ArchiveOperation};

use super::Operator;
use super::activity::Activity;
use crate::archive::ledger::{Ledger, Tape, UncertainChange};

/// See the [module](self).
pub(super) enum Detaching {
    /// The segments before a position are detached.
    Detach(i64, ArchiveOperation<()>),
    /// All detached segments are attached.
    Attach(ArchiveOperation<i64>),
}

impl Detaching {
    /// Polls the request without waiting. Returns a value when the archive has granted it.
    ///
    /// # Errors
    /// The archive refused the request.
    pub fn poll(&mut self) -> Result<Option<()>, ArchiveClientError> {
        match self {
            Self::Detach(_, operation) => operation.poll(),
            Self::Attach(operation) => Ok(operation.poll()?.map(drop)),
        }
    }

    /// Registers that the archive has granted the request.
    pub fn apply(&self, tape: &mut Tape) {
        tape.doubt = None;
        match self {
            Self::Detach(position, _) => tape.detached_to(*position),
            Self::Attach(_) => tape.attached(),
        }
    }
}

impl Operator {
    /// Detaches all segments of a recording but the last one.
    pub(super) fn detach(
        &mut self,
        tape: usize,
        archive: &AeronArchive,
        ledger: &mut Ledger,
    ) -> Option<Activity> {
        let it = ledger.tape_mut(tape);
        let position = it.segment_base(it.stop?);
        let call = ArchiveCall::detach_segments(it.recording_id?, position);
        let operation = archive.begin(call).ok()?;
        it.doubt = Some(UncertainChange::Detached(position));
        self.verified.remove(&tape);
        Some(Activity::Detaching(
            tape,
            Detaching::Detach(position, operation),
        ))
    }

    /// Attaches the detached segments of a recording.
    pub(super) fn attach(
        &mut self,
        tape: usize,
        archive: &AeronArchive,
        ledger: &mut Ledger,
    ) -> Option<Activity> {
        let it = ledger.tape_mut(tape);
        let call = ArchiveCall::attach_segments(it.recording_id?);
        let operation = archive.begin(call).ok()?;
        it.doubt = Some(UncertainChange::Attached);
        self.verified.remove(&tape);
        Some(Activity::Detaching(tape, Detaching::Attach(operation)))
    }

    /// Returns a stopped tape with detached segments.
    pub(super) fn detached(&self, ledger: &Ledger) -> Option<usize> {
        let mut tapes = self.tapes.iter().copied();
        tapes.find(|tape| {
            let it = ledger.tape(*tape);
            it.is_certain() && it.stop.is_some() && it.detached_from.is_some()
        })
    }
}
