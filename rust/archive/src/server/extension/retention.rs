//! Requests about retention policies.

use aeron_protocol::archive::extension::{
    ApplyRetentionRequest, ExtensionResponse, ListRetentionRequest, MAX_CHANNEL_FRAGMENT_LENGTH,
    RetentionStep, SetRetentionRequest,
};
use aeron_protocol::archive::{NULL_VALUE, RequestIds};

use super::page::encoded;
use super::readers::limit;
use super::{DescriptorPage, not_stored, text_of};
use crate::extensions::{ExtensionChange, MAX_POLICIES, RetentionPolicy, RetentionScope};
use crate::retention::RetentionOutcome;
use crate::server::ArchiveError;
use crate::server::conductor::ArchiveConductor;
use crate::server::retention::ApplyRequest;
use crate::storage::Storage;

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Sets or removes a retention policy. Returns 1 if a policy was replaced or removed, otherwise 0.
    ///
    /// # Errors
    /// The recording does not exist, a value is not valid, there are too many policies, or the file system returns an
    /// error.
    pub(super) fn set_retention(
        &mut self,
        request: &SetRetentionRequest<'_>,
    ) -> Result<i64, ArchiveError> {
        let policy = policy_of(request)?;
        let is_new = self.store.extensions().policy(&policy.scope).is_none();
        if policy.is_empty() && is_new {
            return Ok(0);
        }
        if let RetentionScope::Recording(recording_id) = policy.scope {
            self.store.recording(recording_id)?;
        }
        if is_new && self.store.extensions().policy_count() >= MAX_POLICIES {
            return Err(ArchiveError::generic(format!(
                "max retention policies reached {MAX_POLICIES}: remove some, or use one for several recordings"
            )));
        }
        self.store
            .extensions_mut()
            .apply(vec![ExtensionChange::Policy(policy)])
            .map_err(not_stored)?;
        self.retention.restart();
        Ok(i64::from(!is_new))
    }

    /// Lists retention policies. Policies of single recordings come first.
    ///
    /// # Errors
    /// See [`DescriptorPage::of`].
    pub(super) fn list_retention(
        &self,
        ids: RequestIds,
        request: &ListRetentionRequest<'_>,
    ) -> Result<DescriptorPage, ArchiveError> {
        let policies = self.store.extensions().policies();
        DescriptorPage::of(policies, request.from_index, request.count, |policy| {
            let message = policy.descriptor(ids.control_session_id, ids.correlation_id);
            encoded(&ExtensionResponse::Retention(message))
        })
    }

    /// Begins to apply the policies. In a dry run, only computes the deletions. The response is
    /// sent later.
    ///
    /// # Errors
    /// A dry run is to trust the clock, the recording does not exist, or too many requests are waiting.
    pub(super) fn apply_retention(
        &mut self,
        ids: RequestIds,
        request: &ApplyRetentionRequest,
    ) -> Result<(), ArchiveError> {
        let recording_id = (request.recording_id != NULL_VALUE).then_some(request.recording_id);
        if let Some(recording_id) = recording_id {
            self.store.recording(recording_id)?;
        }
        if request.trust_clock && request.dry_run {
            return Err(ArchiveError::generic(
                "trustClock with dryRun: a dry run changes nothing, so trust the clock without dryRun",
            ));
        }
        self.retention.request(ApplyRequest {
            requester: ids,
            recording_id,
            dry_run: request.dry_run,
        })?;
        if request.trust_clock {
            self.trust_clock();
        }
        Ok(())
    }
}

/// Returns the page of the response to a request that applies the policies.
pub(in crate::server) fn outcomes_page(
    ids: RequestIds,
    outcomes: &[RetentionOutcome],
) -> DescriptorPage {
    DescriptorPage::whole(outcomes.iter().map(|outcome| {
        encoded(&ExtensionResponse::RetentionStep(RetentionStep {
            control_session_id: ids.control_session_id,
            correlation_id: ids.correlation_id,
            recording_id: outcome.recording_id,
            start_position: outcome.start_position,
            new_start_position: outcome.new_start_position,
            allowed_position: outcome.allowed_position,
            is_purge: outcome.is_purge,
            held_by: outcome.held_by,
            reader: outcome.reader.as_bytes(),
        }))
    }))
}

fn policy_of(request: &SetRetentionRequest<'_>) -> Result<RetentionPolicy, ArchiveError> {
    let channel_fragment = text_of("channel", request.channel, MAX_CHANNEL_FRAGMENT_LENGTH)?;
    let stream_id = request.apply_stream_id.then_some(request.stream_id);
    let scope = match request.recording_id {
        NULL_VALUE => RetentionScope::Matching {
            stream_id,
            channel_fragment,
        },
        recording_id if stream_id.is_none() && channel_fragment.is_empty() => {
            RetentionScope::Recording(recording_id)
        }
        recording_id => {
            return Err(ArchiveError::generic(format!(
                "policy of recording {recording_id} with a stream or a channel: set recordingId=-1 for all recordings that match them"
            )));
        }
    };
    Ok(RetentionPolicy {
        scope,
        max_bytes: limit("maxBytes", request.max_bytes)?,
        max_age_ms: limit("maxAge", request.max_age_ms)?,
    })
}
