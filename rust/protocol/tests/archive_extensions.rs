//! Tests of the messages that this project adds to the archive's control protocol.

use aeron_protocol::archive::extension::{
    ApplyRetentionRequest, Capabilities, CapabilitiesRequest, ClockNote, CommitReaderRequest,
    CopiedRangeDescriptor, ExtensionNote, ExtensionRequest, ExtensionResponse, FIRST_TEMPLATE_ID,
    FindPositionRequest, ListCopiedRangesRequest, ListReadersRequest, ListRecordingInfoRequest,
    ListRetentionRequest, ReaderDescriptor, RecordingInfo, RemoveReaderRequest,
    ReplayAtRateRequest, RetentionDescriptor, RetentionStep, SetRecordingMetadataRequest,
    SetRecordingNameRequest, SetRetentionRequest, SubscriptionNote, TimePosition,
};
use aeron_protocol::archive::{
    ArchiveDecodeError, ArchiveRequest, ArchiveResponse, RecordingEvent, RequestIds,
    RetentionHolder, SourceLocation, TimeEdge,
};
use proptest::prelude::*;

const IDS: RequestIds = RequestIds {
    control_session_id: 7,
    correlation_id: 31,
};

/// Returns one request of each kind.
fn requests<'a>(values: &[i64; 4], number: i32, text: &'a [u8]) -> Vec<ExtensionRequest<'a>> {
    let RequestIds {
        control_session_id,
        correlation_id,
    } = IDS;
    let [recording_id, position, max_age_ms, max_lag] = *values;
    macro_rules! of {
        ($($kind:ident($message:ident { $($fields:tt)* }),)*) => {
            vec![$(ExtensionRequest::$kind($message {
                control_session_id,
                correlation_id,
                $($fields)*
            })),*]
        };
    }
    of![
        Capabilities(CapabilitiesRequest {}),
        CommitReader(CommitReaderRequest {
            recording_id,
            position,
            max_age_ms,
            max_lag,
            name: text
        }),
        RemoveReader(RemoveReaderRequest {
            recording_id,
            name: text
        }),
        ListReaders(ListReadersRequest {
            recording_id,
            from_index: number,
            count: number,
            name: text
        }),
        SetRetention(SetRetentionRequest {
            recording_id,
            max_bytes: position,
            max_age_ms,
            apply_stream_id: true,
            stream_id: number,
            channel: text,
        }),
        ListRetention(ListRetentionRequest {
            recording_id,
            from_index: number,
            count: number,
            name: text
        }),
        ApplyRetention(ApplyRetentionRequest {
            recording_id,
            dry_run: true,
            trust_clock: true
        }),
        SetRecordingName(SetRecordingNameRequest {
            recording_id,
            name: text
        }),
        SetRecordingMetadata(SetRecordingMetadataRequest {
            recording_id,
            metadata: text
        }),
        ListRecordingInfo(ListRecordingInfoRequest {
            recording_id,
            from_index: number,
            count: number,
            name: text,
        }),
        FindPosition(FindPositionRequest {
            recording_id,
            timestamp_us: position,
            edge: TimeEdge::Until,
            reserved: 0,
        }),
        ReplayAtRate(ReplayAtRateRequest {
            recording_id,
            position,
            length: max_age_ms,
            replay_token: max_lag,
            max_bytes_per_second: position,
            speed_millionths: max_age_ms,
            replay_stream_id: number,
            file_io_max_length: number,
            replay_channel: text,
        }),
        ListCopiedRanges(ListCopiedRangesRequest {
            recording_id,
            from_index: number,
            count: number,
            name: text,
        }),
    ]
}

/// Returns one descriptor of each kind.
fn responses<'a>(values: &[i64; 4], number: i32, text: &'a [u8]) -> Vec<ExtensionResponse<'a>> {
    let (control_session_id, correlation_id) = (IDS.control_session_id, IDS.correlation_id);
    let [recording_id, position, max_age_ms, max_lag] = *values;
    vec![
        ExtensionResponse::Reader(ReaderDescriptor {
            control_session_id,
            correlation_id,
            recording_id,
            position,
            committed_ms: max_age_ms,
            max_age_ms,
            max_lag,
            name: text,
        }),
        ExtensionResponse::Retention(RetentionDescriptor {
            control_session_id,
            correlation_id,
            recording_id,
            max_bytes: position,
            max_age_ms,
            apply_stream_id: false,
            stream_id: number,
            channel: text,
        }),
        ExtensionResponse::RetentionStep(RetentionStep {
            control_session_id,
            correlation_id,
            recording_id,
            start_position: position,
            new_start_position: max_age_ms,
            allowed_position: max_lag,
            is_purge: true,
            held_by: RetentionHolder::Replay,
            reader: text,
        }),
        ExtensionResponse::CopiedRange(CopiedRangeDescriptor {
            control_session_id,
            correlation_id,
            recording_id,
            start_position: position,
            local_start_position: max_age_ms,
            copied_position: max_lag,
        }),
        ExtensionResponse::RecordingInfo(RecordingInfo {
            control_session_id,
            correlation_id,
            recording_id,
            predecessor_id: position,
            gap_from: max_age_ms,
            gap_to: max_lag,
            name: text,
            metadata: text,
        }),
        ExtensionResponse::TimePosition(TimePosition {
            control_session_id,
            correlation_id,
            recording_id,
            position,
            timestamp_us: max_age_ms,
            is_approximate: true,
        }),
    ]
}

/// Returns one message of each kind that is only in the file of extensions.
fn notes<'a>(values: &[i64; 4], number: i32, text: &'a [u8]) -> Vec<ExtensionNote<'a>> {
    vec![
        ExtensionNote::Subscription(SubscriptionNote {
            control_session_id: IDS.control_session_id,
            correlation_id: IDS.correlation_id,
            recording_id: values[0],
            stream_id: number,
            source_location: SourceLocation::Remote,
            is_removed: true,
            channel: text,
        }),
        ExtensionNote::Clock(ClockNote {
            control_session_id: IDS.control_session_id,
            correlation_id: IDS.correlation_id,
            last_ms: values[1],
            remaining_ms: values[2],
        }),
    ]
}

proptest! {
    #[test]
    fn each_message_decodes_as_it_was_encoded_and_is_unknown_to_the_protocol_of_aeron(
        values in any::<[i64; 4]>(),
        number in any::<i32>(),
        text in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let unknown = |error: Option<ArchiveDecodeError>| {
            matches!(error, Some(ArchiveDecodeError::UnknownTemplateId { .. }))
        };
        for request in requests(&values, number, &text) {
            let mut bytes = vec![0xA5; request.encoded_length()];
            prop_assert_eq!(request.encode(&mut bytes), Ok(bytes.len()));
            prop_assert_eq!(ExtensionRequest::decode(&bytes), Ok(request));
            prop_assert_eq!(RequestIds::of(&bytes), Some(IDS));
            prop_assert!(unknown(ArchiveRequest::decode(&bytes).err()));
        }
        for response in responses(&values, number, &text) {
            let mut bytes = vec![0xA5; response.encoded_length()];
            prop_assert_eq!(response.encode(&mut bytes), Ok(bytes.len()));
            prop_assert_eq!(ExtensionResponse::decode(&bytes), Ok(response));
            prop_assert_eq!(response.ids(), (IDS.control_session_id, IDS.correlation_id));
            prop_assert!(unknown(ArchiveResponse::decode(&bytes).err()));
        }
        for note in notes(&values, number, &text) {
            let mut bytes = vec![0xA5; note.encoded_length()];
            prop_assert_eq!(note.encode(&mut bytes), Ok(bytes.len()));
            prop_assert_eq!(ExtensionNote::decode(&bytes), Ok(note));
            prop_assert!(unknown(ExtensionRequest::decode(&bytes).err()));
            prop_assert!(unknown(ExtensionResponse::decode(&bytes).err()));
        }
    }

    #[test]
    fn any_part_of_a_message_with_any_changed_byte_is_read_or_refused_without_a_panic(
        kind in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let requests = requests(&[1, 2, 3, 4], 5, b"name");
        let request = requests[kind.index(requests.len())];
        let mut bytes = vec![0; request.encoded_length()];
        request.encode(&mut bytes).unwrap();
        let changed = at.index(bytes.len());
        bytes[changed] = byte;
        let part = &bytes[..cut.index(bytes.len() + 1)];
        let _ = (ExtensionRequest::decode(part), ExtensionResponse::decode(part), ExtensionNote::decode(part));
        let _ = RequestIds::of(part);
    }
}

#[test]
fn template_ids_are_unique_and_outside_the_schema_of_aeron() {
    let mut own = [
        ExtensionRequest::TEMPLATE_IDS,
        ExtensionResponse::TEMPLATE_IDS,
        ExtensionNote::TEMPLATE_IDS,
    ]
    .concat();
    own.sort_unstable();
    assert!(own.windows(2).all(|pair| pair[0] < pair[1]));
    assert!(own.iter().all(|id| *id >= FIRST_TEMPLATE_ID));
    let aeron = [
        ArchiveRequest::TEMPLATE_IDS,
        ArchiveResponse::TEMPLATE_IDS,
        RecordingEvent::TEMPLATE_IDS,
    ];
    assert!(aeron.concat().iter().all(|id| *id < FIRST_TEMPLATE_ID));
}

#[test]
fn capabilities_are_a_set_and_unknown_bits_are_ignored() {
    let both = Capabilities::READERS.with(Capabilities::TIME);
    assert!(both.contains(Capabilities::TIME) && !both.contains(Capabilities::RETENTION));
    let newer = Capabilities::from_bits(both.bits() | 1 << 40);
    assert!(newer.contains(both) && !both.contains(newer));
}
