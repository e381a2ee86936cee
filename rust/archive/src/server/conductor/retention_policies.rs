//! Sets, lists and applies retention policies.

use std::collections::BTreeSet;

use aeron_protocol::archive::extension::MAX_CHANNEL_FRAGMENT_LENGTH;

use super::recording_labels::{check_limit, check_text};
use super::{ArchiveConductor, Caller, Later};
use crate::extensions::{ExtensionChange, MAX_POLICIES, RetentionPolicy, RetentionScope};
use crate::server::ArchiveError;
use crate::server::listing::{DescriptorPage, Listing, PageEntry, PageRange};
use crate::server::retention::ApplyRequest;
use crate::storage::Storage;

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Sets or removes a retention policy. Returns 1 if a policy was replaced or removed, otherwise 0.
    ///
    /// # Errors
    /// The recording does not exist, a value is not valid, there are too many policies, or the file system returns an
    /// error.
    pub(super) fn set_retention(&mut self, policy: RetentionPolicy) -> Result<i64, ArchiveError> {
        if let RetentionScope::Matching {
            channel_fragment, ..
        } = &policy.scope
        {
            check_text("channel", channel_fragment, MAX_CHANNEL_FRAGMENT_LENGTH)?;
        }
        check_limit("maxBytes", policy.max_bytes)?;
        check_limit("maxAge", policy.max_age_ms)?;
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
    /// changes. A policy without limits was removed.
    ///
    /// # Errors
    /// There are too many policies, or the file system returns an error. Then nothing has changed.
    pub fn set_policies_of_file(
        &mut self,
        policies: Vec<RetentionPolicy>,
    ) -> Result<Vec<RetentionPolicy>, ArchiveError> {
        let set = self.store.extensions().policies();
        let of_file = set.filter(|set| matches!(set.scope, RetentionScope::Matching { .. }));
        let gone = of_file.filter(|set| !policies.iter().any(|policy| policy.scope == set.scope));
        let mut changes: Vec<_> = gone.cloned().map(RetentionPolicy::without_limits).collect();
        let extensions = self.store.extensions();
        let is_change = |policy: &RetentionPolicy| extensions.policy(&policy.scope) != Some(policy);
        changes.extend(policies.into_iter().filter(is_change));
        self.set_policies(changes.clone())?;
        Ok(changes)
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
            .map_err(ArchiveError::not_stored)?;
        self.retention.restart();
        Ok(())
    }

    /// Lists retention policies. Policies of single recordings come first.
    ///
    /// # Errors
    /// See [`DescriptorPage::of`].
    pub(super) fn list_retention(&self, range: PageRange) -> Result<Listing, ArchiveError> {
        let policies = self.store.extensions().policies();
        let entry = |policy: &RetentionPolicy| PageEntry::Policy(policy.clone());
        DescriptorPage::of(policies, range, entry).map(Listing::from)
    }

    /// Begins to apply the policies. In a dry run, only computes the deletions. The response is
    /// sent later.
    ///
    /// # Errors
    /// A dry run is to trust the clock, the recording does not exist, or too many requests are waiting.
    pub(super) fn apply_retention(
        &mut self,
        caller: &Caller<'_>,
        recording_id: Option<i64>,
        dry_run: bool,
        trust_clock: bool,
    ) -> Result<Later, ArchiveError> {
        if let Some(recording_id) = recording_id {
            self.store.recording(recording_id)?;
        }
        if trust_clock && dry_run {
            return Err(ArchiveError::generic(
                "trustClock with dryRun: a dry run changes nothing, so trust the clock without dryRun",
            ));
        }
        self.retention.request(ApplyRequest {
            requester: caller.ids,
            recording_id,
            dry_run,
        })?;
        if trust_clock {
            self.retention.trust_clock(&self.outlets);
        }
        Ok(Later)
    }
}
