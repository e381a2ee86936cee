//! Converts the archive's context to the settings of its parts.

use std::sync::Arc;
use std::time::Duration;

use aeron_client::{Aeron, ExclusivePublication, PendingOperation};
use aeron_protocol::uri::{ChannelUri, key};

use super::context::{
    ArchiveChoices, ArchiveContext, ArchiveThreadingMode, AuthenticatorKind, AuthorisationKind,
};
use super::control::{ControlStreams, GoneImages, SessionSettings};
use super::counters::CounterLabels;
use super::objects::ObjectSettings;
use super::recording::RecordingSettings;
use super::replay::ReplaySettings;
use super::replication::ReplicationSettings;
use super::scrub::ScrubSettings;
use super::startup::ArchiveStartError;
use super::users::{FunctionAuthenticator, RoleService, Users, UsersAuthenticator};
use super::{AcceptAll, AllowAll, ArchiveError, Authenticator, AuthorisationService, DenyAll};
use crate::channel::ControlStreamDefaults;
use crate::index::IndexForm;
use crate::ownership::BootId;
use crate::store::{DetachedSegments, StoreOptions};

/// Time limit for a step of a replication, in nanoseconds. It is Aeron's default message timeout.
const REPLICATION_MESSAGE_TIMEOUT_NS: i64 = 10_000_000_000;

pub(super) fn labels(context: &ArchiveContext, archive_id: i64) -> CounterLabels<'_> {
    CounterLabels {
        archive_id,
        threading_mode: context.threading_mode.name(),
        is_dedicated: context.threading_mode == ArchiveThreadingMode::Dedicated,
        cycle_thresholds_ns: [
            context.conductor_cycle_threshold_ns,
            context.recorder_cycle_threshold_ns,
            context.replayer_cycle_threshold_ns,
        ],
    }
}

/// Asks the driver to add the subscriptions to the control streams.
pub(super) fn control_streams(
    aeron: &Aeron,
    context: &ArchiveContext,
) -> Result<ControlStreams, ArchiveStartError> {
    let gone = GoneImages::new();
    let add = |channel: &str, stream_id| {
        aeron.async_add_subscription_with(channel, stream_id, gone.handlers())
    };
    let mut subscriptions = Vec::new();
    if context.control_channel_enabled {
        subscriptions.push(add(&control_channel(context)?, context.control_stream_id)?);
    }
    subscriptions.push(add(
        &context.local_control_channel,
        context.local_control_stream_id,
    )?);
    Ok(ControlStreams::new(subscriptions, gone))
}

/// Returns the control channel, with the archive's setting for the parameter `sparse`.
fn control_channel(context: &ArchiveContext) -> Result<String, ArchiveError> {
    let mut channel = ChannelUri::parse(&context.control_channel)?;
    let is_sparse = context.control_term_buffer_sparse;
    channel.put(key::SPARSE, &is_sparse.to_string())?;
    Ok(channel.to_string())
}

/// Asks the driver to add the publication of recording events, if they are enabled.
pub(super) fn recording_events(
    aeron: &Aeron,
    context: &ArchiveContext,
) -> Result<Option<PendingOperation<ExclusivePublication>>, ArchiveStartError> {
    if !context.recording_events_enabled {
        return Ok(None);
    }
    let (channel, stream_id) = (
        &context.recording_events_channel,
        context.recording_events_stream_id,
    );
    let adding = aeron.async_add_exclusive_publication(channel, stream_id)?;
    Ok(Some(adding))
}

pub(super) fn replication_settings(
    context: &ArchiveContext,
    archive_id: i64,
) -> ReplicationSettings {
    ReplicationSettings {
        archive_id,
        replication_channel: context.replication_channel.clone(),
        response_channel: replication_response_channel(context),
        message_timeout_ns: REPLICATION_MESSAGE_TIMEOUT_NS,
        control_term_length: context.control_term_buffer_length as u32,
        is_control_term_sparse: context.control_term_buffer_sparse,
        control_mtu_length: context.control_mtu_length as u32,
    }
}

/// Returns the channel for responses of replication sources. It has the host of the control channel
/// and a port that the driver chooses.
fn replication_response_channel(context: &ArchiveContext) -> String {
    let control = ChannelUri::parse(&context.control_channel).ok();
    let endpoint = control
        .as_ref()
        .and_then(|channel| channel.get(key::ENDPOINT));
    let host = endpoint.and_then(|endpoint| endpoint.rsplit_once(':'));
    let host = host.map_or("localhost", |(host, _)| host);
    format!("aeron:udp?endpoint={host}:0")
}

pub(super) fn store_options(
    context: &ArchiveContext,
    choices: &ArchiveChoices,
    boot_id: Option<BootId>,
) -> StoreOptions {
    StoreOptions {
        catalog_capacity: context.catalog_capacity,
        segment_length: context.segment_file_length as i32,
        file_sync_level: context.file_sync_level,
        catalog_sync_level: context.catalog_file_sync_level,
        record_checksum: choices.record_checksum,
        on_torn_fragment: context.on_torn_fragment,
        index: context.index.then_some(IndexForm::Sparse),
        detached_segments: DetachedSegments::Kept,
        boot_id,
        low_storage_space_threshold: context.low_storage_space_threshold,
        extensions_length: context.step_sizes.extensions_length,
    }
}

pub(super) fn session_settings(context: &ArchiveContext, archive_id: i64) -> SessionSettings {
    SessionSettings {
        archive_id,
        connect_timeout_ns: context.connect_timeout_ns,
        liveness_check_interval_ns: context.session_liveness_check_interval_ns,
        response_defaults: ControlStreamDefaults {
            mtu_length: context.control_mtu_length as i32,
            term_length: context.control_term_buffer_length as i32,
            is_sparse: context.control_term_buffer_sparse,
        },
    }
}

pub(super) fn recording_settings(context: &ArchiveContext, archive_id: i64) -> RecordingSettings {
    RecordingSettings {
        archive_id,
        max_concurrent_recordings: context.max_concurrent_recordings as usize,
        block_limit: context.file_io_max_length,
        is_resuming: context.resume,
        on_failure: context.recording_on_failure,
    }
}

pub(super) fn replay_settings(
    context: &ArchiveContext,
    choices: &ArchiveChoices,
) -> ReplaySettings {
    ReplaySettings {
        max_concurrent_replays: context.max_concurrent_replays as usize,
        connect_timeout_ns: context.connect_timeout_ns,
        linger_timeout_ns: context.replay_linger_timeout_ns,
        file_io_max_length: context.file_io_max_length as i32,
        checksum: choices.replay_checksum,
    }
}

pub(super) fn object_settings(context: &ArchiveContext) -> ObjectSettings {
    ObjectSettings {
        is_local_deleted: context.objects_delete_local,
        local_bytes: i64::try_from(context.objects_local_bytes).unwrap_or(i64::MAX),
        copies_per_cycle: context.step_sizes.copies,
    }
}

pub(super) fn scrub_settings(context: &ArchiveContext, choices: &ArchiveChoices) -> ScrubSettings {
    ScrubSettings {
        bytes_per_second: i64::try_from(context.scrub_rate).unwrap_or(i64::MAX),
        interval_ns: context.scrub_interval_ns,
        checksum: choices.replay_checksum,
    }
}

/// The authenticator and the authorisation service.
pub(super) struct Security {
    pub authenticator: Box<dyn Authenticator>,
    pub authorisation: Box<dyn AuthorisationService>,
}

impl Security {
    /// Creates the authenticator and the authorisation service from the settings. Reads the users file, if the settings
    /// name one.
    pub fn of(
        context: &ArchiveContext,
        choices: &ArchiveChoices,
    ) -> Result<Self, ArchiveStartError> {
        let users = context.users_file.as_ref().map(|path| Users::load(path));
        let users = users.transpose()?.map(Arc::new);
        let authorisation: Box<dyn AuthorisationService> = match (choices.authorisation, &users) {
            (AuthorisationKind::AllowAll, _) => Box::new(AllowAll),
            (AuthorisationKind::Roles, Some(users)) => {
                Box::new(RoleService::new(Arc::clone(users)))
            }
            // Without a users file, no client has a role.
            (AuthorisationKind::DenyAll, _) | (AuthorisationKind::Roles, None) => Box::new(DenyAll),
        };
        let thread = |source| ArchiveStartError::Thread { source };
        let authenticator: Box<dyn Authenticator> = match (&choices.authenticator, users) {
            (AuthenticatorKind::Function(function), _) => {
                let timeout = Duration::from_nanos(context.connect_timeout_ns.max(0) as u64);
                let started = FunctionAuthenticator::start(function.clone(), timeout);
                Box::new(started.map_err(thread)?)
            }
            (AuthenticatorKind::UsersFile(path), users) => {
                let users = match users {
                    Some(users) => users,
                    None => Arc::new(Users::load(path)?),
                };
                Box::new(UsersAuthenticator::start(users).map_err(thread)?)
            }
            (AuthenticatorKind::AcceptAll, _) => Box::new(AcceptAll),
        };
        Ok(Self {
            authenticator,
            authorisation,
        })
    }
}
