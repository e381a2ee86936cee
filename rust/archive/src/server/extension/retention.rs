//! Requests about retention policies.

use std::collections::BTreeSet;

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
use crate::server::control::log_policy_of_file;
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
        if let RetentionScope::Recording(recording_id) = policy.scope {
            self.store.recording(recording_id)?;
        } else if let Some(path) = &self.retention_file {
            return Err(ArchiveError::generic(format!(
                "policies of streams and channels are in the retention file {}: change the file and reload the archive",
                path.display()
            )));
        }
        let is_new = self.store.extensions().policy(&policy.scope).is_none();
        if policy.is_empty() && is_new {
            return Ok(0);
        }
        self.set_policies(vec![policy])?;
        Ok(i64::from(!is_new))
    }

    /// Sets the policies of the retention file, and removes the other policies of streams and channels. Returns the
    /// number of changes.
    ///
    /// # Errors
    /// There are too many policies, or the file system returns an error. Then nothing has changed.
    pub(in crate::server) fn set_policies_of_file(
        &mut self,
        policies: Vec<RetentionPolicy>,
    ) -> Result<usize, ArchiveError> {
        let set = self.store.extensions().policies();
        let of_file = set.filter(|set| matches!(set.scope, RetentionScope::Matching { .. }));
        let gone = of_file.filter(|set| !policies.iter().any(|policy| policy.scope == set.scope));
        let mut changes: Vec<_> = gone.cloned().map(RetentionPolicy::without_limits).collect();
        let extensions = self.store.extensions();
        let is_change = |policy: &RetentionPolicy| extensions.policy(&policy.scope) != Some(policy);
        changes.extend(policies.into_iter().filter(is_change));
        self.set_policies(changes.clone())?;
        changes.iter().for_each(log_policy_of_file);
        Ok(changes.len())
    }

    /// Sets policies, and removes those without limits. Changes all of them or none.
    fn set_policies(&mut self, policies: Vec<RetentionPolicy>) -> Result<(), ArchiveError> {
        let extensions = self.store.extensions();
        let mut scopes: BTreeSet<_> = extensions.policies().map(|policy| &policy.scope).collect();
        for policy in &policies {
            match policy.is_empty() {
                true => scopes.remove(&policy.scope),
                false => scopes.insert(&policy.scope),
            };
        }
        if scopes.len() > MAX_POLICIES.max(extensions.policy_count()) {
            return Err(ArchiveError::generic(format!(
                "max retention policies reached {MAX_POLICIES}: remove some, or use one for several recordings"
            )));
        }
        if policies.is_empty() {
            return Ok(());
        }
        let changes = policies.into_iter().map(ExtensionChange::Policy).collect();
        self.store
            .extensions_mut()
            .apply(changes)
            .map_err(not_stored)?;
        self.retention.restart();
        Ok(())
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
