//! [`TimedReplay`]: finds the positions of a range of time, and replays the range.

use aeron_protocol::archive::{
    ArchiveErrorCode, NULL_VALUE, REPLAY_ALL_AND_FOLLOW, REPLAY_ALL_AND_STOP, TimeEdge,
};

use super::super::aeron_archive::AeronArchive;
use super::super::call::ArchiveCall;
use super::super::error::{ArchiveClientError, Result};
use super::super::extension::{TimeRange, TimedPosition};
use super::super::params::ReplayParams;
use super::{CallSteps, ReplaySubscription, StartedReplay, Steps};

/// Requests the begin position unless the parameters have it, then the end position if the range
/// has an end, and then the replay.
pub(in super::super) struct TimedReplay {
    recording_id: i64,
    range: TimeRange,
    replay_channel: String,
    replay_stream_id: i32,
    params: ReplayParams,
    is_approximate: bool,
    /// Whether the archive found the position at which the replay begins. Otherwise the caller chose it.
    is_begin_found: bool,
    step: TimedReplayStep,
}

enum TimedReplayStep {
    FindBegin(CallSteps<TimedPosition>),
    FindEnd(CallSteps<TimedPosition>),
    Replay(ReplaySubscription),
}

impl TimedReplay {
    /// Creates the steps. Sends nothing.
    ///
    /// # Errors
    /// [`ArchiveClientError::InvalidArgument`] if a position or length contradicts the range, or the range has neither
    /// begin nor end, or begins after its end.
    pub(in super::super) fn new(
        archive: &AeronArchive,
        recording_id: i64,
        range: TimeRange,
        replay_channel: &str,
        replay_stream_id: i32,
        params: &ReplayParams,
    ) -> Result<Self> {
        check(range, params)?;
        // With the earliest possible time, the archive finds the start of the recording.
        let since_us = range.since_us.unwrap_or(i64::MIN);
        let step = match range.until_us {
            Some(until_us) if params.position != NULL_VALUE => {
                TimedReplayStep::FindEnd(find(archive, recording_id, TimeEdge::Until, until_us)?)
            }
            _ => {
                TimedReplayStep::FindBegin(find(archive, recording_id, TimeEdge::Since, since_us)?)
            }
        };
        Ok(Self {
            recording_id,
            range,
            replay_channel: replay_channel.to_owned(),
            replay_stream_id,
            params: *params,
            is_approximate: false,
            is_begin_found: false,
            step,
        })
    }

    /// Returns the next step, or the started replay. If the current step has to wait, returns
    /// neither.
    fn advance(
        &mut self,
        archive: &AeronArchive,
    ) -> Result<(Option<TimedReplayStep>, Option<StartedReplay>)> {
        let next = match &mut self.step {
            TimedReplayStep::FindBegin(finding) => match finding.poll(archive)? {
                None => None,
                Some(begin) => {
                    self.params.position = begin.position;
                    self.is_begin_found = true;
                    self.is_approximate |= begin.is_approximate;
                    Some(match self.range.until_us {
                        Some(until_us) => TimedReplayStep::FindEnd(find(
                            archive,
                            self.recording_id,
                            TimeEdge::Until,
                            until_us,
                        )?),
                        None => self.replay(archive)?,
                    })
                }
            },
            TimedReplayStep::FindEnd(finding) => match finding.poll(archive)? {
                None => None,
                Some(end) if end.position <= self.params.position => return Err(self.empty()),
                Some(end) => {
                    self.params.length = end.position - self.params.position;
                    self.is_approximate |= end.is_approximate;
                    Some(self.replay(archive)?)
                }
            },
            TimedReplayStep::Replay(replay) => match replay.poll(archive) {
                // The archive found the position: the end of a stopped recording. So the range has no message.
                Err(error)
                    if self.is_begin_found
                        && error.archive_code() == Some(ArchiveErrorCode::InvalidPosition) =>
                {
                    return Err(self.empty());
                }
                started => {
                    let started = started?.map(|started| StartedReplay {
                        is_approximate: self.is_approximate,
                        ..started
                    });
                    return Ok((None, started));
                }
            },
        };
        Ok((next, None))
    }

    fn replay(&self, archive: &AeronArchive) -> Result<TimedReplayStep> {
        let replay = ReplaySubscription::start(
            archive,
            self.recording_id,
            &self.replay_channel,
            self.replay_stream_id,
            &self.params,
        )?;
        Ok(TimedReplayStep::Replay(replay))
    }

    const fn empty(&self) -> ArchiveClientError {
        ArchiveClientError::EmptyTimeRange {
            recording_id: self.recording_id,
        }
    }
}

impl Steps<StartedReplay> for TimedReplay {
    fn correlation_id(&self) -> i64 {
        match &self.step {
            TimedReplayStep::FindBegin(finding) | TimedReplayStep::FindEnd(finding) => {
                finding.correlation_id()
            }
            TimedReplayStep::Replay(replay) => replay.correlation_id(),
        }
    }

    fn poll(&mut self, archive: &AeronArchive) -> Result<Option<StartedReplay>> {
        loop {
            match self.advance(archive)? {
                (Some(next), _) => self.step = next,
                (None, outcome) => return Ok(outcome),
            }
        }
    }

    fn abandon(&mut self, archive: &AeronArchive) {
        match &mut self.step {
            TimedReplayStep::FindBegin(finding) | TimedReplayStep::FindEnd(finding) => {
                finding.abandon(archive);
            }
            TimedReplayStep::Replay(replay) => replay.abandon(archive),
        }
    }
}

fn find(
    archive: &AeronArchive,
    recording_id: i64,
    edge: TimeEdge,
    timestamp_us: i64,
) -> Result<CallSteps<TimedPosition>> {
    let call = ArchiveCall::find_position(recording_id, edge, timestamp_us);
    CallSteps::begin(archive, call)
}

fn check(range: TimeRange, params: &ReplayParams) -> Result<()> {
    let has_length = ![REPLAY_ALL_AND_FOLLOW, REPLAY_ALL_AND_STOP].contains(&params.length);
    let problem = if range.since_us.is_none() && range.until_us.is_none() {
        "neither since nor until is given: start a replay without a range of time"
    } else if range.since_us.is_some() && params.position != NULL_VALUE {
        "both since and a position are given: choose one begin of the replay"
    } else if range.until_us.is_some() && has_length {
        "both until and a length are given: choose one end of the replay"
    } else if range.since_us > range.until_us.or(Some(i64::MAX)) {
        "since is after until: the range of time is empty"
    } else {
        return Ok(());
    };
    Err(ArchiveClientError::InvalidArgument(problem.to_owned()))
}
