//! Requests that this project adds to Aeron's archive protocol: capabilities, named readers, names and metadata of
//! recordings, retention, positions by time, replays at a rate, and copies in object storage.

mod copied;
mod info;
mod page;
mod readers;
mod retention;
mod time;

pub(super) use copied::HeldRanges;
pub(super) use page::DescriptorPage;
pub(super) use retention::outcomes_page;
pub(super) use time::TimeSearches;

use aeron_protocol::archive::extension::{Capabilities, ExtensionRequest, MAX_NAME_LENGTH};
use aeron_protocol::archive::{ArchiveDecodeError, RequestIds};

use super::ArchiveError;
use super::conductor::ArchiveConductor;
use super::control::{AuditedRequest, Response, text};
use super::listing::Listing;
use super::replaying::ReplayOrder;
use crate::storage::Storage;
use crate::store::StoreError;

/// The capabilities that this archive reports.
const CAPABILITIES: Capabilities = Capabilities::READERS
    .with(Capabilities::RETENTION)
    .with(Capabilities::RECORDING_INFO)
    .with(Capabilities::TIME)
    .with(Capabilities::REPLAY_RATE)
    .with(Capabilities::OBJECTS);

/// How the response to an accepted request is sent.
pub(super) enum ExtensionResult {
    /// At once, with this result.
    Value(i64),
    /// As descriptors, followed by a result.
    Page(DescriptorPage),
    /// Later, by the operation that the request has started.
    Later,
}

impl<S: Storage + Clone> ArchiveConductor<S> {
    /// Serves a request of an active session.
    pub(super) fn serve_extension(&mut self, ids: RequestIds, request: &ExtensionRequest<'_>) {
        let result = self.execute_extension(ids, request);
        if let Some(audited) = AuditedRequest::of_extension(request) {
            audited.log(&self.sessions, ids, &result);
        }
        match result {
            Ok(ExtensionResult::Value(value)) => self.outbox.respond(ids, Response::Ok(value)),
            Ok(ExtensionResult::Page(page)) => {
                self.list(ids, Listing::descriptors(ids.correlation_id, page));
            }
            Ok(ExtensionResult::Later) => {}
            Err(error) => self.outbox.refuse(ids, error),
        }
    }

    fn execute_extension(
        &mut self,
        ids: RequestIds,
        request: &ExtensionRequest<'_>,
    ) -> Result<ExtensionResult, ArchiveError> {
        use ExtensionRequest as Request;
        let value = match request {
            Request::Capabilities(_) => CAPABILITIES.bits(),
            Request::CommitReader(request) => self.commit_reader(ids, request)?,
            Request::RemoveReader(request) => self.remove_reader(ids, request)?,
            Request::ListReaders(request) => {
                return self.list_readers(ids, request).map(ExtensionResult::Page);
            }
            Request::SetRecordingName(request) => self.set_recording_name(request)?,
            Request::SetRecordingMetadata(request) => self.set_recording_metadata(request)?,
            Request::ListRecordingInfo(request) => {
                return self
                    .list_recording_info(ids, request)
                    .map(ExtensionResult::Page);
            }
            Request::ListCopiedRanges(request) => {
                self.list_copied_ranges(ids, request)?;
                return Ok(ExtensionResult::Later);
            }
            Request::SetRetention(request) => self.set_retention(request)?,
            Request::ListRetention(request) => {
                return self.list_retention(ids, request).map(ExtensionResult::Page);
            }
            Request::ApplyRetention(request) => {
                self.apply_retention(ids, request)?;
                return Ok(ExtensionResult::Later);
            }
            Request::FindPosition(request) => {
                self.find_position(ids, request)?;
                return Ok(ExtensionResult::Later);
            }
            Request::ReplayAtRate(request) => {
                let channel = text("replayChannel", request.replay_channel)?;
                self.replay(&ReplayOrder::of_paced(ids, request, channel)?)?;
                return Ok(ExtensionResult::Later);
            }
        };
        Ok(ExtensionResult::Value(value))
    }
}

/// Returns the extension request in a message that is not a request of Aeron's protocol. Returns `None` if the message
/// is not an extension request either.
pub(super) fn decode_extension(
    message: &[u8],
) -> Option<Result<ExtensionRequest<'_>, ArchiveDecodeError>> {
    match ExtensionRequest::decode(message) {
        Err(ArchiveDecodeError::UnknownTemplateId { .. }) => None,
        decoded => Some(decoded),
    }
}

/// Returns a name as text.
fn name_of(field: &str, bytes: &[u8]) -> Result<String, ArchiveError> {
    text_of(field, bytes, MAX_NAME_LENGTH)
}

/// Returns bytes as text without control characters.
fn text_of(field: &str, bytes: &[u8], max_length: usize) -> Result<String, ArchiveError> {
    let length = bytes.len();
    if length > max_length {
        return Err(ArchiveError::generic(format!(
            "{field} of {length} bytes is longer than {max_length} bytes: choose a shorter one"
        )));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ArchiveError::generic(format!("{field} is not text: {error}")))?;
    if text.chars().any(char::is_control) {
        return Err(ArchiveError::generic(format!(
            "{field} {text:?} contains a control character: use printable characters"
        )));
    }
    Ok(text.to_owned())
}

/// Returns the error for a failed change of the file of extensions.
pub(super) fn not_stored(source: std::io::Error) -> ArchiveError {
    StoreError::storage(crate::extensions::EXTENSIONS_FILE_NAME, "write it", source).into()
}
