//! [`WaitRecorded`]: waits until an archive has recorded a stream up to a position.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aeron_archive::catalog::RecordingDescriptor;
use aeron_archive::client::{
    ArchiveCall, ArchiveClientError, ArchiveOperation, RecordingPositionKey, Result,
};
use aeron_client::{Operation, OperationSteps, Waiter};

use super::link::Link;

/// Interval between two requests to an archive on another driver. The counters of that driver are not visible here.
const QUERY_INTERVAL: Duration = Duration::from_millis(20);

/// The recorded stream.
pub struct PublicationStream {
    pub session_id: i32,
    pub stream_id: i32,
}

/// Waits until a recording of a stream has reached a position. The result is the recording.
///
/// An archive on the client's driver has a counter for each active recording. For any other archive, the wait
/// sends requests.
pub struct WaitRecorded {
    link: Arc<Link>,
    stream: PublicationStream,
    position: i64,
    step: RecordedStep,
    correlation_id: i64,
}

enum RecordedStep {
    /// Looks for the counter of the recording until this time. Then requests the recording id from the archive.
    Find(Instant),
    AwaitId(ArchiveOperation<Option<i64>>),
    /// Reads the counter with this counter id, of the recording with this recording id.
    Watch(i32, i64),
    /// Waits until this time, and then requests the position of the recording with this id.
    Pause(Instant, i64),
    AwaitPosition(ArchiveOperation<i64>, i64),
    AwaitDescriptor(ArchiveOperation<Option<RecordingDescriptor>>),
}

impl WaitRecorded {
    pub fn begin(
        link: &Arc<Link>,
        stream: PublicationStream,
        position: i64,
    ) -> ArchiveOperation<RecordingDescriptor> {
        Operation::new(Self {
            link: Arc::clone(link),
            stream,
            position,
            step: RecordedStep::Find(Instant::now() + QUERY_INTERVAL),
            correlation_id: -1,
        })
    }

    /// Returns the next step; `None` if the current step must wait.
    fn advance(&mut self) -> Result<Option<RecordedStep>> {
        let counters = &self.link.archive.aeron().counters_reader();
        match &mut self.step {
            RecordedStep::Find(query_time) => {
                let archive_id = Some(self.link.archive.archive_id());
                let session_id = self.stream.session_id;
                let found = RecordingPositionKey::find_by_session(counters, session_id, archive_id);
                let key = found.and_then(|id| Some((id, RecordingPositionKey::of(counters, id)?)));
                match key {
                    Some((id, key)) => Ok(Some(RecordedStep::Watch(id, key.recording_id))),
                    None if Instant::now() < *query_time => Ok(None),
                    None => self.find_id().map(Some),
                }
            }
            RecordedStep::AwaitId(finding) => Ok(finding.poll()?.map(|found| match found {
                Some(recording_id) => RecordedStep::Pause(Instant::now(), recording_id),
                None => RecordedStep::Find(Instant::now() + QUERY_INTERVAL),
            })),
            RecordedStep::Watch(counter_id, recording_id) => {
                let (counter_id, recording_id) = (*counter_id, *recording_id);
                let reached = counters.value(counter_id);
                if !RecordingPositionKey::is_active(counters, counter_id, recording_id) {
                    return Ok(Some(RecordedStep::Pause(Instant::now(), recording_id)));
                }
                match reached.is_some_and(|reached| reached >= self.position) {
                    true => self.describe(recording_id).map(Some),
                    // The poll fails after the end of the session. The failure ends this wait.
                    false => self.link.archive.poll().map(|_| None),
                }
            }
            RecordedStep::Pause(until, recording_id) => match Instant::now() < *until {
                true => Ok(None),
                false => {
                    let recording_id = *recording_id;
                    let call = ArchiveCall::max_recorded_position(recording_id);
                    let asking = self.link.archive.begin(call)?;
                    Ok(Some(RecordedStep::AwaitPosition(asking, recording_id)))
                }
            },
            RecordedStep::AwaitPosition(asking, recording_id) => {
                let recording_id = *recording_id;
                match asking.poll()? {
                    None => Ok(None),
                    Some(reached) if reached >= self.position => {
                        self.describe(recording_id).map(Some)
                    }
                    Some(_) => {
                        let again = Instant::now() + QUERY_INTERVAL;
                        Ok(Some(RecordedStep::Pause(again, recording_id)))
                    }
                }
            }
            RecordedStep::AwaitDescriptor(_) => Ok(None),
        }
    }

    fn find_id(&mut self) -> Result<RecordedStep> {
        let PublicationStream {
            session_id,
            stream_id,
        } = self.stream;
        let call = ArchiveCall::find_last_matching_recording(0, "", stream_id, session_id);
        Ok(RecordedStep::AwaitId(self.link.archive.begin(call)?))
    }

    fn describe(&self, recording_id: i64) -> Result<RecordedStep> {
        let call = ArchiveCall::list_recording(recording_id);
        Ok(RecordedStep::AwaitDescriptor(
            self.link.archive.begin(call)?,
        ))
    }
}

impl RecordedStep {
    fn correlation_id(&self) -> Option<i64> {
        match self {
            Self::AwaitId(operation) => Some(operation.correlation_id()),
            Self::AwaitPosition(operation, _) => Some(operation.correlation_id()),
            Self::AwaitDescriptor(operation) => Some(operation.correlation_id()),
            Self::Find(_) | Self::Watch(..) | Self::Pause(..) => None,
        }
    }
}

impl OperationSteps<RecordingDescriptor, ArchiveClientError> for WaitRecorded {
    fn correlation_id(&self) -> i64 {
        self.correlation_id
    }

    fn poll(&mut self) -> Result<Option<RecordingDescriptor>> {
        while let Some(next) = self.advance()? {
            self.step = next;
            if let Some(id) = self.step.correlation_id() {
                self.correlation_id = id;
            }
        }
        let RecordedStep::AwaitDescriptor(asking) = &mut self.step else {
            return Ok(None);
        };
        match asking.poll()? {
            None => Ok(None),
            Some(None) => Err(ArchiveClientError::InvalidArgument(
                "the recording was purged during the wait for its position".to_owned(),
            )),
            Some(descriptor) => Ok(descriptor),
        }
    }

    fn waiter(&self) -> &dyn Waiter {
        &self.link.archive
    }
}
