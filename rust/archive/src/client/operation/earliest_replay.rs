//! [`EarliestReplay`]: finds the first position that the archive has of a recording, and replays from there.

use super::super::aeron_archive::AeronArchive;
use super::super::call::ArchiveCall;
use super::super::error::{ArchiveClientError, Result};
use super::super::params::ReplayParams;
use super::{ListingSteps, ReplaySubscription, StartedReplay, Steps};
use crate::objects::CopiedRange;

/// Requests the range of the recording that object storage has, and then the replay. If there are no copies, or the
/// archive does not support this request, the replay begins at the start position of the catalog.
pub(in super::super) struct EarliestReplay {
    recording_id: i64,
    replay_channel: String,
    replay_stream_id: i32,
    params: ReplayParams,
    step: EarliestReplayStep,
}

enum EarliestReplayStep {
    FindCopies(ListingSteps<CopiedRange>),
    Replay(ReplaySubscription),
}

impl EarliestReplay {
    /// Creates the steps. Sends nothing. The position of the parameters is not used.
    pub(in super::super) fn new(
        archive: &AeronArchive,
        recording_id: i64,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<Self> {
        let page = move |from| ArchiveCall::list_copied_ranges(Some(recording_id), from);
        let finding = ListingSteps::begin(archive, page)?;
        Ok(Self {
            recording_id,
            replay_channel: replay_channel.to_owned(),
            replay_stream_id,
            params: ReplayParams {
                position: aeron_protocol::archive::NULL_VALUE,
                ..*params
            },
            step: EarliestReplayStep::FindCopies(finding),
        })
    }

    fn replay_from(
        &mut self,
        archive: &AeronArchive,
        ranges: &[CopiedRange],
    ) -> Result<EarliestReplayStep> {
        if let Some(range) = ranges.first() {
            self.params.position = range.start_position;
        }
        let replay = ReplaySubscription::start(
            archive,
            self.recording_id,
            &self.replay_channel,
            self.replay_stream_id,
            &self.params,
        )?;
        Ok(EarliestReplayStep::Replay(replay))
    }
}

impl Steps<StartedReplay> for EarliestReplay {
    fn correlation_id(&self) -> i64 {
        match &self.step {
            EarliestReplayStep::FindCopies(finding) => finding.correlation_id(),
            EarliestReplayStep::Replay(replay) => replay.correlation_id(),
        }
    }

    fn poll(&mut self, archive: &AeronArchive) -> Result<Option<StartedReplay>> {
        let finding = match &mut self.step {
            EarliestReplayStep::FindCopies(finding) => finding,
            EarliestReplayStep::Replay(replay) => return replay.poll(archive),
        };
        let ranges = match finding.poll(archive) {
            Ok(None) => return Ok(None),
            Ok(Some(ranges)) => ranges,
            Err(ArchiveClientError::NotSupported { .. }) => Vec::new(),
            Err(error) => return Err(error),
        };
        self.step = self.replay_from(archive, &ranges)?;
        self.poll(archive)
    }

    fn abandon(&mut self, archive: &AeronArchive) {
        match &mut self.step {
            EarliestReplayStep::FindCopies(finding) => finding.abandon(archive),
            EarliestReplayStep::Replay(replay) => replay.abandon(archive),
        }
    }
}
