//! Lines of the log about requests that delete data, change a policy, stop a recording, or are refused: the user, the
//! request and the result.

use aeron_agent::logging::AUDIT;
use aeron_client::Image;
use aeron_protocol::archive::extension::ExtensionRequest;
use aeron_protocol::archive::{ArchiveRequest, NULL_VALUE, RequestIds};

use super::translate::ClientMessage;
use crate::extensions::{RetentionPolicy, RetentionScope};
use crate::server::ArchiveError;

/// Maximum number of characters of a text of a client.
const MAX_QUOTED: usize = 256;

/// A request that has a line.
pub(super) struct AuditedRequest(String);

impl AuditedRequest {
    /// Returns name and subject of a request; `None` if the request has no line.
    pub fn of(message: &ClientMessage<'_>) -> Option<Self> {
        match message {
            ClientMessage::Aeron(request) => Self::of_aeron(request),
            ClientMessage::Addition(request) => Self::of_addition(request),
        }
    }

    fn of_aeron(request: &ArchiveRequest<'_>) -> Option<Self> {
        use ArchiveRequest as Request;
        let on = |name: &str, recording_id: i64| format!("{name} recording={recording_id}");
        Some(Self(match request {
            Request::StopRecording(request) => format!(
                "StopRecording channel={} stream_id={}",
                quoted(request.channel),
                request.stream_id
            ),
            Request::StopRecordingSubscription(request) => {
                format!(
                    "StopRecordingSubscription subscription={}",
                    request.subscription_id
                )
            }
            Request::StopRecordingByIdentity(request) => {
                on("StopRecordingByIdentity", request.recording_id)
            }
            Request::TruncateRecording(request) => format!(
                "{} position={}",
                on("TruncateRecording", request.recording_id),
                request.position
            ),
            Request::PurgeRecording(request) => on("PurgeRecording", request.recording_id),
            Request::DetachSegments(request) => format!(
                "{} new_start_position={}",
                on("DetachSegments", request.recording_id),
                request.new_start_position
            ),
            Request::PurgeSegments(request) => format!(
                "{} new_start_position={}",
                on("PurgeSegments", request.recording_id),
                request.new_start_position
            ),
            Request::DeleteDetachedSegments(request) => {
                on("DeleteDetachedSegments", request.recording_id)
            }
            Request::MigrateSegments(request) => format!(
                "MigrateSegments source={} destination={}",
                request.src_recording_id, request.dst_recording_id
            ),
            _ => return None,
        }))
    }

    fn of_addition(request: &ExtensionRequest<'_>) -> Option<Self> {
        use ExtensionRequest as Request;
        Some(Self(match request {
            Request::SetRetention(request) => set_retention(
                request.recording_id,
                request.channel,
                request.apply_stream_id.then_some(request.stream_id),
                [request.max_bytes, request.max_age_ms],
            ),
            Request::ApplyRetention(request) if !request.dry_run => format!(
                "ApplyRetention recording={} trust_clock={}",
                request.recording_id, request.trust_clock
            ),
            Request::RemoveReader(request) => format!(
                "RemoveReader recording={} name={}",
                request.recording_id,
                quoted(request.name)
            ),
            _ => return None,
        }))
    }

    /// Writes the line. An accepted request may still fail: then its error is in the log too.
    pub fn log<T>(
        &self,
        principal: &[u8],
        session_id: i64,
        address: Option<&str>,
        result: &Result<T, ArchiveError>,
    ) {
        let result = match result {
            Ok(_) => "accepted".to_owned(),
            Err(error) => format!("refused reason={}", quoted(error.message.as_bytes())),
        };
        log(
            &user(principal),
            session_id,
            address.unwrap_or("gone"),
            &self.0,
            &result,
        );
    }
}

/// Writes the line of a policy that the retention file sets, or that is not in the file.
pub(in crate::server) fn log_policy_of_file(policy: &RetentionPolicy) {
    let RetentionScope::Matching {
        stream_id,
        channel_fragment,
    } = &policy.scope
    else {
        return;
    };
    let limit = |limit: Option<i64>| limit.unwrap_or(NULL_VALUE);
    log(
        "none",
        NULL_VALUE,
        "retention-file",
        &set_retention(
            NULL_VALUE,
            channel_fragment.as_bytes(),
            *stream_id,
            [limit(policy.max_bytes), limit(policy.max_age_ms)],
        ),
        "accepted",
    );
}

/// Returns name and subject of a request that sets a policy.
fn set_retention(
    recording_id: i64,
    channel: &[u8],
    stream_id: Option<i32>,
    [max_bytes, max_age_ms]: [i64; 2],
) -> String {
    let stream_id = stream_id.map_or_else(|| "all".to_owned(), |id| id.to_string());
    format!(
        "SetRetention recording={recording_id} channel={} stream_id={stream_id} max_bytes={max_bytes} max_age_ms={max_age_ms}",
        quoted(channel)
    )
}

/// Writes the line of a request that its user may not send.
pub(super) fn log_unauthorised(principal: &[u8], ids: RequestIds, image: &Image, template_id: u16) {
    let session_id = ids.control_session_id;
    log(
        &user(principal),
        session_id,
        image.source_identity(),
        &format!("template {template_id}"),
        "refused reason=\"unauthorised\"",
    );
}

/// Writes the line of a client that the authenticator has rejected.
pub(super) fn log_rejected(session_id: i64, image: &Image) {
    log(
        "none",
        session_id,
        image.source_identity(),
        "connect",
        "refused reason=\"credentials\"",
    );
}

fn log(user: &str, session_id: i64, address: &str, request: &str, result: &str) {
    log::info!(
        target: AUDIT,
        "user={user} session={session_id} address={address} request={request} result={result}"
    );
}

/// Returns the name of a user; `none` without authentication.
fn user(principal: &[u8]) -> String {
    match principal {
        [] => "none".to_owned(),
        _ => quoted(principal),
    }
}

/// Returns a text of a client in quotes, without control characters. A long one is cut: the parts of the line that
/// follow must have room.
fn quoted(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    match text.char_indices().nth(MAX_QUOTED) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
