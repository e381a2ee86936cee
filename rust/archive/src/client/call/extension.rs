//! Creates the [`ArchiveCall`]s that this project adds to Aeron's protocol.
//! [`AeronArchive`](super::super::AeronArchive) sends these calls to archives that support them.

use aeron_protocol::archive::extension::{Capabilities, MAX_LISTED};
use aeron_protocol::archive::{ControlResponseCode, NULL_VALUE, TimeEdge};

use super::super::answer::{Answer, Expected};
use super::super::error::{ArchiveClientError, Result};
use super::super::extension::{ExtensionPage, ListedInfo, OfDescriptor, TimedPosition};
use super::{ArchiveCall, calls, extension_request, nothing, value};
use crate::extensions::{NamedReader, RetentionPolicy, RetentionScope};
use crate::objects::CopiedRange;
use crate::retention::RetentionOutcome;

const FIND_POSITION: &str = "find position";

calls! {
    /// Requests the capabilities of the archive, as bits. Aeron's archive does not respond.
    capabilities() -> i64 =
        with_response("capabilities"),
        extension_request Capabilities(CapabilitiesRequest {}), value;

    /// Creates a named reader, or stores the position of an existing reader. The result is the
    /// position.
    commit_reader(
        recording_id: i64, name: &str, position: i64, max_age_ms: Option<i64>, max_lag: Option<i64>
    ) owns name -> i64 =
        with_response("commit reader"),
        extension_request CommitReader(CommitReaderRequest {
            recording_id, position, max_age_ms: max_age_ms.unwrap_or(NULL_VALUE),
            max_lag: max_lag.unwrap_or(NULL_VALUE), name: name.as_bytes()
        }), value, requires READERS;

    /// Removes a named reader. The result is 1, or 0 if the reader does not exist.
    remove_reader(recording_id: i64, name: &str) owns name -> i64 =
        with_response("remove reader"),
        extension_request RemoveReader(RemoveReaderRequest { recording_id, name: name.as_bytes() }),
        value, requires READERS;

    /// Replaces the name of a recording. An empty name removes the old name.
    set_recording_name(recording_id: i64, name: &str) owns name -> () =
        with_response("set recording name"),
        extension_request SetRecordingName(SetRecordingNameRequest { recording_id, name: name.as_bytes() }),
        nothing, requires RECORDING_INFO;

    /// Replaces the metadata of a recording. Empty metadata remove the old metadata.
    set_recording_metadata(recording_id: i64, metadata: &[u8]) owns metadata -> () =
        with_response("set recording metadata"),
        extension_request SetRecordingMetadata(SetRecordingMetadataRequest { recording_id, metadata: &metadata }),
        nothing, requires RECORDING_INFO;

    /// Lists named readers from an index on. Without `recording_id`, lists the readers of all
    /// recordings. If `name` is empty, lists readers with any name.
    list_readers(recording_id: Option<i64>, name: &str, from_index: i32) owns name -> ExtensionPage<NamedReader> =
        listing("list readers", Expected::Page),
        extension_request ListReaders(ListReadersRequest {
            recording_id: recording_id.unwrap_or(NULL_VALUE), from_index, count: MAX_LISTED, name: name.as_bytes()
        }), page_of, requires READERS;

    /// Lists retention policies from an index on. Policies of single recordings come first.
    list_retention(from_index: i32) -> ExtensionPage<RetentionPolicy> =
        listing("list retention", Expected::Page),
        extension_request ListRetention(ListRetentionRequest {
            recording_id: NULL_VALUE, from_index, count: MAX_LISTED, name: &[]
        }), page_of, requires RETENTION;

    /// Applies the retention policies to one recording. Without `recording_id`, applies them to all
    /// recordings. With `dry_run`, nothing is deleted. The page has all recordings from which the
    /// policies would delete data, even if readers or replays keep all these data. With `trust_clock`, the archive
    /// trusts the wall clock from now on.
    apply_retention(recording_id: Option<i64>, dry_run: bool, trust_clock: bool) -> ExtensionPage<RetentionOutcome> =
        listing("apply retention", Expected::Page),
        extension_request ApplyRetention(ApplyRetentionRequest {
            recording_id: recording_id.unwrap_or(NULL_VALUE), dry_run, trust_clock
        }), page_of, requires RETENTION;

    /// Lists the recordings that have a name, metadata or a link, from an index on. Without `recording_id`, lists all
    /// of them. If `name` is empty, lists recordings with any name and without a name.
    list_recording_info(recording_id: Option<i64>, name: &str, from_index: i32) owns name -> ExtensionPage<ListedInfo> =
        listing("list recording info", Expected::Page),
        extension_request ListRecordingInfo(ListRecordingInfoRequest {
            recording_id: recording_id.unwrap_or(NULL_VALUE), from_index, count: MAX_LISTED, name: name.as_bytes()
        }), page_of, requires RECORDING_INFO;

    /// Lists the ranges of recordings that were copied to object storage, from an index on. Without `recording_id`,
    /// lists the ranges of all recordings.
    list_copied_ranges(recording_id: Option<i64>, from_index: i32) -> ExtensionPage<CopiedRange> =
        listing("list copied ranges", Expected::Page),
        extension_request ListCopiedRanges(ListCopiedRangesRequest {
            recording_id: recording_id.unwrap_or(NULL_VALUE), from_index, count: MAX_LISTED, name: &[]
        }), page_of, requires OBJECTS;

    /// Finds a position in a recording by a time. `timestamp_us` is in microseconds since the epoch. `edge` says
    /// whether a range begins or ends at the position.
    find_position(recording_id: i64, edge: TimeEdge, timestamp_us: i64) -> TimedPosition =
        listing(FIND_POSITION, Expected::Page),
        extension_request FindPosition(FindPositionRequest { recording_id, timestamp_us, edge, reserved: 0 }),
        found_position, requires TIME;
}

impl ArchiveCall<i64> {
    /// Sets a retention policy. A policy without limits removes the policy of its scope. The result is 1 if a policy
    /// was replaced or removed, otherwise 0.
    pub fn set_retention(policy: &RetentionPolicy) -> Self {
        let policy = policy.clone();
        let (recording_id, stream_id, channel) = match policy.scope {
            RetentionScope::Recording(recording_id) => (recording_id, None, String::new()),
            RetentionScope::Matching {
                stream_id,
                channel_fragment,
            } => (NULL_VALUE, stream_id, channel_fragment),
        };
        Self::with_response(
            "set retention",
            extension_request!(SetRetention(SetRetentionRequest {
                recording_id,
                max_bytes: policy.max_bytes.unwrap_or(NULL_VALUE),
                max_age_ms: policy.max_age_ms.unwrap_or(NULL_VALUE),
                apply_stream_id: stream_id.is_some(),
                stream_id: stream_id.unwrap_or(0),
                channel: channel.as_bytes(),
            })),
            value,
        )
        .requires(Capabilities::RETENTION)
    }
}

fn found_position(outcome: Result<Answer>) -> Result<TimedPosition> {
    let missing = || ArchiveClientError::UnexpectedResponse {
        request: FIND_POSITION,
        correlation_id: NULL_VALUE,
        code: ControlResponseCode::Ok,
        relevant_id: NULL_VALUE,
    };
    let page: ExtensionPage<TimedPosition> = page_of(outcome)?;
    page.entries.first().copied().ok_or_else(missing)
}

/// Returns a page with the descriptors of one kind.
fn page_of<D: OfDescriptor>(outcome: Result<Answer>) -> Result<ExtensionPage<D>> {
    let (descriptors, next_index) = outcome?.into_page();
    Ok(ExtensionPage {
        entries: descriptors.into_iter().filter_map(D::select).collect(),
        next_index: i32::try_from(next_index).ok().filter(|index| *index >= 0),
    })
}
