//! Compares the layouts with a list of the offset, length and name of each field. The numbers are those of Aeron 1.52.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use aeron_layout::archive_message::{self, extension, request, response};
use aeron_layout::{
    Layout, buffers, catalog, cnc, command, counters, event, frame, log, mark_file,
    private_archive, reports, sbe,
};

/// Each layout with its length, then the offset, length and name of each field. The layouts in `private_archive` and
/// `extension` are from this project and not from Aeron. They must not change either, because files of earlier versions
/// must still open.
const SPECIFICATION: &str = "
FrameHeaderLayout 8
    0 4 frame_length
    4 1 version
    5 1 flags
    6 2 frame_type

DataHeaderLayout 32
    0 8 header
    8 4 term_offset
    12 4 session_id
    16 4 stream_id
    20 4 term_id
    24 8 reserved_value

SetupLayout 40
    0 8 header
    8 4 term_offset
    12 4 session_id
    16 4 stream_id
    20 4 initial_term_id
    24 4 active_term_id
    28 4 term_length
    32 4 mtu_length
    36 4 ttl

NakLayout 28
    0 8 header
    8 4 session_id
    12 4 stream_id
    16 4 term_id
    20 4 term_offset
    24 4 length

StatusMessageLayout 36
    0 8 header
    8 4 session_id
    12 4 stream_id
    16 4 consumption_term_id
    20 4 consumption_term_offset
    24 4 receiver_window
    28 8 receiver_id

ErrorFrameLayout 40
    0 8 header
    8 4 session_id
    12 4 stream_id
    16 8 receiver_id
    24 8 group_tag
    32 4 error_code
    36 4 error_length

RttmLayout 40
    0 8 header
    8 4 session_id
    12 4 stream_id
    16 8 echo_timestamp_ns
    24 8 reception_delta_ns
    32 8 receiver_id

ResponseSetupLayout 20
    0 8 header
    8 4 session_id
    12 4 stream_id
    16 4 response_session_id

ResolutionEntryLayout 8
    0 1 entry_type
    1 1 flags
    2 2 port
    4 4 age_ms

ResolutionIpv4Layout 14
    0 8 entry
    8 4 address
    12 2 name_length

ResolutionIpv6Layout 26
    0 8 entry
    8 16 address
    24 2 name_length

CncHeaderLayout 128
    0 4 version
    4 4 to_driver_length
    8 4 to_clients_length
    12 4 counters_metadata_length
    16 4 counters_values_length
    20 4 error_log_length
    24 8 client_liveness_timeout_ns
    32 8 start_timestamp_ms
    40 8 pid
    48 4 file_page_size
    52 76 reserved

RecordHeaderLayout 8
    0 4 length
    4 4 msg_type_id

RingTrailerLayout 768
    0 128 reserved_before_tail
    128 8 tail_position
    136 120 reserved_after_tail
    256 8 head_cache_position
    264 120 reserved_after_head_cache
    384 8 head_position
    392 120 reserved_after_head
    512 8 correlation_counter
    520 120 reserved_after_correlation
    640 8 consumer_heartbeat_ms
    648 120 reserved_after_heartbeat

BroadcastTrailerLayout 128
    0 8 tail_intent
    8 8 tail
    16 8 latest
    24 104 reserved

CounterValueLayout 128
    0 8 value
    8 8 registration_id
    16 8 owner_id
    24 8 reference_id
    32 96 reserved

CounterMetadataLayout 512
    0 4 state
    4 4 type_id
    8 8 free_for_reuse_deadline_ms
    16 112 key
    128 4 label_length
    132 380 label

StreamKeyLayout 112
    0 8 registration_id
    8 4 session_id
    12 4 stream_id
    16 4 channel_length
    20 92 channel

ChannelKeyLayout 112
    0 4 channel_length
    4 108 channel

LocalAddressKeyLayout 112
    0 4 channel_status_id
    4 4 address_length
    8 103 address
    111 1 reserved

HeartbeatKeyLayout 112
    0 8 client_id
    8 104 reserved

ErrorEntryLayout 24
    0 4 length
    4 4 observation_count
    8 8 last_observation_ms
    16 8 first_observation_ms

LossEntryLayout 40
    0 8 observation_count
    8 8 total_bytes_lost
    16 8 first_observation_ms
    24 8 last_observation_ms
    32 4 session_id
    36 4 stream_id

LogMetadataLayout 508
    0 24 tail_counters
    24 4 active_term_count
    28 100 reserved_after_tails
    128 8 end_of_stream_position
    136 4 is_connected
    140 4 active_transport_count
    144 112 reserved_after_state
    256 8 correlation_id
    264 4 initial_term_id
    268 4 default_frame_header_length
    272 4 mtu_length
    276 4 term_length
    280 4 page_size
    284 4 publication_window_length
    288 4 receiver_window_length
    292 4 socket_sndbuf_length
    296 4 os_default_socket_sndbuf_length
    300 4 os_max_socket_sndbuf_length
    304 4 socket_rcvbuf_length
    308 4 os_default_socket_rcvbuf_length
    312 4 os_max_socket_rcvbuf_length
    316 4 max_resend
    320 32 default_header
    352 96 reserved_after_header
    448 8 entity_tag
    456 8 response_correlation_id
    464 8 linger_timeout_ns
    472 8 untethered_window_limit_timeout_ns
    480 8 untethered_resting_timeout_ns
    488 1 group
    489 1 is_response
    490 1 rejoin
    491 1 reliable
    492 1 sparse
    493 1 signal_eos
    494 1 spies_simulate_connection
    495 1 tether
    496 1 is_publication_revoked
    497 1 log_type
    498 2 reserved_after_type
    500 8 untethered_linger_timeout_ns

ClientCommandLayout 16
    0 8 client_id
    8 8 correlation_id

RemovalLayout 24
    0 8 client_id
    8 8 correlation_id
    16 8 registration_id

RemovePublicationLayout 32
    0 24 removal
    24 8 flags

AddPublicationLayout 20
    0 8 client_id
    8 8 correlation_id
    16 4 stream_id

AddSubscriptionLayout 28
    0 8 client_id
    8 8 correlation_id
    16 8 registration_correlation_id
    24 4 stream_id

DestinationLayout 24
    0 8 client_id
    8 8 correlation_id
    16 8 registration_correlation_id

RemoveDestinationByIdLayout 32
    0 8 client_id
    8 8 correlation_id
    16 8 resource_registration_id
    24 8 destination_registration_id

AddCounterLayout 20
    0 8 client_id
    8 8 correlation_id
    16 4 type_id

AddStaticCounterLayout 28
    0 8 client_id
    8 8 correlation_id
    16 8 registration_id
    24 4 type_id

RejectImageLayout 32
    0 8 client_id
    8 8 correlation_id
    16 8 image_correlation_id
    24 8 position

NextSessionIdLayout 20
    0 8 client_id
    8 8 correlation_id
    16 4 stream_id

ErrorLayout 12
    0 8 offending_command_correlation_id
    8 4 error_code

PublicationReadyLayout 32
    0 8 correlation_id
    8 8 registration_id
    16 4 session_id
    20 4 stream_id
    24 4 publication_limit_counter_id
    28 4 channel_status_indicator_id

SubscriptionReadyLayout 12
    0 8 correlation_id
    8 4 channel_status_indicator_id

AvailableImageLayout 28
    0 8 correlation_id
    8 4 session_id
    12 4 stream_id
    16 8 subscription_registration_id
    24 4 subscriber_position_id

UnavailableImageLayout 20
    0 8 correlation_id
    8 8 subscription_registration_id
    16 4 stream_id

OperationSuccessLayout 8
    0 8 correlation_id

CounterEventLayout 12
    0 8 correlation_id
    8 4 counter_id

ClientTimeoutLayout 8
    0 8 client_id

NextAvailableSessionIdLayout 12
    0 8 correlation_id
    8 4 next_session_id

SocketAddressLayout 20
    0 2 address_type
    2 2 port
    4 16 address

PublicationErrorLayout 64
    0 8 registration_id
    8 8 destination_registration_id
    16 4 session_id
    20 4 stream_id
    24 8 receiver_id
    32 8 group_tag
    40 20 source_address
    60 4 error_code

CatalogHeaderLayout 32
    0 4 version
    4 4 length
    8 8 next_recording_id
    16 4 alignment
    20 12 reserved

EntryHeaderLayout 32
    0 4 length
    4 4 state
    8 4 checksum
    12 20 reserved

RecordingLayout 80
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 8 start_timestamp_ms
    32 8 stop_timestamp_ms
    40 8 start_position
    48 8 stop_position
    56 4 initial_term_id
    60 4 segment_length
    64 4 term_length
    68 4 mtu_length
    72 4 session_id
    76 4 stream_id

MessageHeaderLayout 8
    0 2 block_length
    2 2 template_id
    4 2 schema_id
    6 2 version

MarkFileLayout 128
    0 4 version
    4 4 reserved_after_version
    8 8 activity_timestamp_ms
    16 8 start_timestamp_ms
    24 8 pid
    32 4 control_stream_id
    36 4 local_control_stream_id
    40 4 events_stream_id
    44 4 header_length
    48 4 error_buffer_length
    52 4 reserved_after_lengths
    56 8 archive_id
    64 64 reserved

ConnectLayout 16
    0 8 correlation_id
    8 4 response_stream_id
    12 4 version

SessionLayout 8
    0 8 control_session_id

SessionRequestLayout 16
    0 8 control_session_id
    8 8 correlation_id

RecordingRequestLayout 24
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id

SubscriptionRequestLayout 24
    0 8 control_session_id
    8 8 correlation_id
    16 8 subscription_id

StopReplayLayout 24
    0 8 control_session_id
    8 8 correlation_id
    16 8 replay_session_id

StopReplicationLayout 24
    0 8 control_session_id
    8 8 correlation_id
    16 8 replication_id

StartRecordingLayout 24
    0 8 control_session_id
    8 8 correlation_id
    16 4 stream_id
    20 4 source_location

StartRecording2Layout 28
    0 8 control_session_id
    8 8 correlation_id
    16 4 stream_id
    20 4 source_location
    24 4 auto_stop

StopRecordingLayout 20
    0 8 control_session_id
    8 8 correlation_id
    16 4 stream_id

ExtendRecordingLayout 32
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 4 stream_id
    28 4 source_location

ExtendRecording2Layout 36
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 4 stream_id
    28 4 source_location
    32 4 auto_stop

ReplayLayout 56
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 8 position
    32 8 length
    40 4 replay_stream_id
    44 4 file_io_max_length
    48 8 replay_token

BoundedReplayLayout 60
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 8 position
    32 8 length
    40 4 limit_counter_id
    44 4 replay_stream_id
    48 4 file_io_max_length
    52 8 replay_token

ListRecordingsLayout 28
    0 8 control_session_id
    8 8 correlation_id
    16 8 from_recording_id
    24 4 record_count

ListRecordingsForUriLayout 32
    0 8 control_session_id
    8 8 correlation_id
    16 8 from_recording_id
    24 4 record_count
    28 4 stream_id

FindLastMatchingRecordingLayout 32
    0 8 control_session_id
    8 8 correlation_id
    16 8 min_recording_id
    24 4 session_id
    28 4 stream_id

ListRecordingSubscriptionsLayout 32
    0 8 control_session_id
    8 8 correlation_id
    16 4 pseudo_index
    20 4 subscription_count
    24 4 apply_stream_id
    28 4 stream_id

TruncateRecordingLayout 32
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 8 position

NewStartPositionLayout 32
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 8 new_start_position

MigrateSegmentsLayout 32
    0 8 control_session_id
    8 8 correlation_id
    16 8 src_recording_id
    24 8 dst_recording_id

ReplicateLayout 36
    0 8 control_session_id
    8 8 correlation_id
    16 8 src_recording_id
    24 8 dst_recording_id
    32 4 src_control_stream_id

TaggedReplicateLayout 52
    0 8 control_session_id
    8 8 correlation_id
    16 8 src_recording_id
    24 8 dst_recording_id
    32 8 channel_tag_id
    40 8 subscription_tag_id
    48 4 src_control_stream_id

Replicate2Layout 68
    0 8 control_session_id
    8 8 correlation_id
    16 8 src_recording_id
    24 8 dst_recording_id
    32 8 stop_position
    40 8 channel_tag_id
    48 8 subscription_tag_id
    56 4 src_control_stream_id
    60 4 file_io_max_length
    64 4 replication_session_id

ControlResponseLayout 32
    0 8 control_session_id
    8 8 correlation_id
    16 8 relevant_id
    24 4 code
    28 4 version

ChallengeLayout 20
    0 8 control_session_id
    8 8 correlation_id
    16 4 version

RecordingSubscriptionLayout 28
    0 8 control_session_id
    8 8 correlation_id
    16 8 subscription_id
    24 4 stream_id

RecordingSignalLayout 44
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 8 subscription_id
    32 8 position
    40 4 signal

RecordingStartedLayout 24
    0 8 recording_id
    8 8 start_position
    16 4 session_id
    20 4 stream_id

RecordingProgressLayout 24
    0 8 recording_id
    8 8 start_position
    16 8 position

RecordingStoppedLayout 24
    0 8 recording_id
    8 8 start_position
    16 8 stop_position

LockRecordLayout 192
    0 4 magic
    4 4 version
    8 16 archive_id
    24 16 nonce
    40 8 pid
    48 8 start_timestamp_ms
    56 8 reserved_after_owner
    64 64 boot_id
    128 60 reserved
    188 4 checksum

ProgressLayout 32
    0 8 head
    8 8 messages
    16 8 payload_bytes
    24 8 unfinished

IndexHeaderLayout 64
    0 8 magic
    8 8 recording_id
    16 8 base_position
    24 32 progress
    56 4 reserved
    60 4 checksum

IndexRecorderLayout 64
    0 4 magic
    4 4 session_id
    8 8 control_session_id
    16 8 correlation_id
    24 8 begin_position
    32 16 boot_id
    48 4 sync_level
    52 8 reserved
    60 4 checksum

IndexEntryLayout 64
    0 8 end_position
    8 8 arrival_us
    16 8 reserved_after_arrival
    24 32 progress
    56 4 reserved
    60 4 checksum

CommitReaderLayout 48
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 8 position
    32 8 max_age_ms
    40 8 max_lag

ListByNameLayout 32
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 4 from_index
    28 4 count

SetRetentionLayout 48
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 8 max_bytes
    32 8 max_age_ms
    40 4 apply_stream_id
    44 4 stream_id

ApplyRetentionLayout 32
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 4 dry_run
    28 4 reserved

FindPositionLayout 40
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 8 timestamp_us
    32 4 edge
    36 4 reserved

ReplayAtRateLayout 72
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 8 position
    32 8 length
    40 8 replay_token
    48 8 max_bytes_per_second
    56 8 speed_millionths
    64 4 replay_stream_id
    68 4 file_io_max_length

ReaderLayout 56
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 8 position
    32 8 committed_ms
    40 8 max_age_ms
    48 8 max_lag

RetentionLayout 48
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 8 max_bytes
    32 8 max_age_ms
    40 4 apply_stream_id
    44 4 stream_id

RetentionStepLayout 56
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 8 start_position
    32 8 new_start_position
    40 8 allowed_position
    48 4 is_purge
    52 4 held_by

RecordingInfoLayout 48
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 8 predecessor_id
    32 8 gap_from
    40 8 gap_to

CopiedRangeLayout 48
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 8 start_position
    32 8 local_start_position
    40 8 copied_position

SubscriptionNoteLayout 36
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 4 stream_id
    28 4 source_location
    32 4 is_removed

TimePositionLayout 44
    0 8 control_session_id
    8 8 correlation_id
    16 8 recording_id
    24 8 position
    32 8 timestamp_us
    40 4 is_approximate

ExtensionFileLayout 16
    0 8 magic
    8 4 reserved
    12 4 checksum

ExtensionRecordLayout 8
    0 4 length
    4 4 checksum
";

/// Returns the layouts of this crate in the form of the specification.
fn declared() -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        text_of::<frame::FrameHeaderLayout>(),
        text_of::<frame::DataHeaderLayout>(),
        text_of::<frame::SetupLayout>(),
        text_of::<frame::NakLayout>(),
        text_of::<frame::StatusMessageLayout>(),
        text_of::<frame::ErrorFrameLayout>(),
        text_of::<frame::RttmLayout>(),
        text_of::<frame::ResponseSetupLayout>(),
        text_of::<frame::ResolutionEntryLayout>(),
        text_of::<frame::ResolutionIpv4Layout>(),
        text_of::<frame::ResolutionIpv6Layout>(),
        text_of::<cnc::CncHeaderLayout>(),
        text_of::<buffers::RecordHeaderLayout>(),
        text_of::<buffers::RingTrailerLayout>(),
        text_of::<buffers::BroadcastTrailerLayout>(),
        text_of::<counters::CounterValueLayout>(),
        text_of::<counters::CounterMetadataLayout>(),
        text_of::<counters::StreamKeyLayout>(),
        text_of::<counters::ChannelKeyLayout>(),
        text_of::<counters::LocalAddressKeyLayout>(),
        text_of::<counters::HeartbeatKeyLayout>(),
        text_of::<reports::ErrorEntryLayout>(),
        text_of::<reports::LossEntryLayout>(),
        text_of::<log::LogMetadataLayout>(),
        text_of::<command::ClientCommandLayout>(),
        text_of::<command::RemovalLayout>(),
        text_of::<command::RemovePublicationLayout>(),
        text_of::<command::AddPublicationLayout>(),
        text_of::<command::AddSubscriptionLayout>(),
        text_of::<command::DestinationLayout>(),
        text_of::<command::RemoveDestinationByIdLayout>(),
        text_of::<command::AddCounterLayout>(),
        text_of::<command::AddStaticCounterLayout>(),
        text_of::<command::RejectImageLayout>(),
        text_of::<command::NextSessionIdLayout>(),
        text_of::<event::ErrorLayout>(),
        text_of::<event::PublicationReadyLayout>(),
        text_of::<event::SubscriptionReadyLayout>(),
        text_of::<event::AvailableImageLayout>(),
        text_of::<event::UnavailableImageLayout>(),
        text_of::<event::OperationSuccessLayout>(),
        text_of::<event::CounterEventLayout>(),
        text_of::<event::ClientTimeoutLayout>(),
        text_of::<event::NextAvailableSessionIdLayout>(),
        text_of::<event::SocketAddressLayout>(),
        text_of::<event::PublicationErrorLayout>(),
        text_of::<catalog::CatalogHeaderLayout>(),
        text_of::<catalog::EntryHeaderLayout>(),
        text_of::<catalog::RecordingLayout>(),
        text_of::<sbe::MessageHeaderLayout>(),
        text_of::<mark_file::MarkFileLayout>(),
        text_of::<request::ConnectLayout>(),
        text_of::<request::SessionLayout>(),
        text_of::<request::SessionRequestLayout>(),
        text_of::<request::RecordingRequestLayout>(),
        text_of::<request::SubscriptionRequestLayout>(),
        text_of::<request::StopReplayLayout>(),
        text_of::<request::StopReplicationLayout>(),
        text_of::<request::StartRecordingLayout>(),
        text_of::<request::StartRecording2Layout>(),
        text_of::<request::StopRecordingLayout>(),
        text_of::<request::ExtendRecordingLayout>(),
        text_of::<request::ExtendRecording2Layout>(),
        text_of::<request::ReplayLayout>(),
        text_of::<request::BoundedReplayLayout>(),
        text_of::<request::ListRecordingsLayout>(),
        text_of::<request::ListRecordingsForUriLayout>(),
        text_of::<request::FindLastMatchingRecordingLayout>(),
        text_of::<request::ListRecordingSubscriptionsLayout>(),
        text_of::<request::TruncateRecordingLayout>(),
        text_of::<request::NewStartPositionLayout>(),
        text_of::<request::MigrateSegmentsLayout>(),
        text_of::<request::ReplicateLayout>(),
        text_of::<request::TaggedReplicateLayout>(),
        text_of::<request::Replicate2Layout>(),
        text_of::<response::ControlResponseLayout>(),
        text_of::<response::ChallengeLayout>(),
        text_of::<response::RecordingSubscriptionLayout>(),
        text_of::<response::RecordingSignalLayout>(),
        text_of::<archive_message::event::RecordingStartedLayout>(),
        text_of::<archive_message::event::RecordingProgressLayout>(),
        text_of::<archive_message::event::RecordingStoppedLayout>(),
        text_of::<private_archive::LockRecordLayout>(),
        text_of::<private_archive::ProgressLayout>(),
        text_of::<private_archive::IndexHeaderLayout>(),
        text_of::<private_archive::IndexRecorderLayout>(),
        text_of::<private_archive::IndexEntryLayout>(),
        text_of::<private_archive::ExtensionFileLayout>(),
        text_of::<private_archive::ExtensionRecordLayout>(),
        text_of::<extension::CommitReaderLayout>(),
        text_of::<extension::ListByNameLayout>(),
        text_of::<extension::SetRetentionLayout>(),
        text_of::<extension::ApplyRetentionLayout>(),
        text_of::<extension::FindPositionLayout>(),
        text_of::<extension::ReplayAtRateLayout>(),
        text_of::<extension::ReaderLayout>(),
        text_of::<extension::RetentionLayout>(),
        text_of::<extension::RetentionStepLayout>(),
        text_of::<extension::RecordingInfoLayout>(),
        text_of::<extension::CopiedRangeLayout>(),
        text_of::<extension::SubscriptionNoteLayout>(),
        text_of::<extension::TimePositionLayout>(),
    ])
}

fn text_of<L: Layout>() -> (&'static str, String) {
    let mut text = format!("{} {}", L::NAME, L::LENGTH);
    for field in L::FIELDS {
        text += &format!("\n    {} {} {}", field.offset, field.length, field.name);
    }
    (L::NAME, text)
}

fn specified() -> BTreeMap<&'static str, String> {
    SPECIFICATION
        .trim()
        .split("\n\n")
        .map(|layout| {
            let name = layout.split_once(' ').expect("a name and a length").0;
            (name, layout.to_owned())
        })
        .collect()
}

#[test]
fn each_layout_has_the_offsets_and_lengths_of_the_specification() {
    let specified = specified();
    for (name, text) in &declared() {
        assert_eq!(Some(text), specified.get(name), "{name}");
    }
    assert_eq!(declared().len(), specified.len());
}

#[test]
fn every_declared_layout_is_in_the_specification() {
    let declared = declared();
    let mut found = 0;
    for name in names_in(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))) {
        assert!(declared.contains_key(name.as_str()), "{name}");
        found += 1;
    }
    assert_eq!(found, declared.len());
}

/// Returns the names of the structs that `layout!` declares in the files of a directory.
fn names_in(directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).expect("a directory of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            names.extend(names_in(&path));
            continue;
        }
        let source = fs::read_to_string(&path).expect("a source file");
        let declarations = source
            .lines()
            .filter_map(|line| line.trim().strip_prefix("pub struct ")?.strip_suffix(" {"));
        names.extend(
            declarations
                .filter_map(|declaration| declaration.split_once(": "))
                .filter(|(_, length)| length.parse::<usize>().is_ok())
                .map(|(name, _)| name.to_owned()),
        );
    }
    names
}

#[test]
fn a_layout_is_a_view_of_the_first_bytes_and_too_few_bytes_are_refused() {
    let mut bytes = [0xFF; 40];
    bytes[12..16].copy_from_slice(&7_i32.to_le_bytes());
    let header = frame::DataHeaderLayout::first_in(&bytes).expect("40 bytes hold a header");
    assert_eq!(header.session_id.get(), 7);
    assert!(frame::DataHeaderLayout::first_in(&bytes[..31]).is_none());

    let header = frame::DataHeaderLayout::first_in_mut(&mut bytes[..32]).expect("32 bytes");
    header.term_id.set(0x0102_0304);
    assert_eq!(bytes[20..24], [4, 3, 2, 1]);
    assert!(frame::DataHeaderLayout::first_in_mut(&mut bytes[..31]).is_none());
}

#[test]
fn the_words_of_a_header_contain_the_fields() {
    use aeron_layout::IntoBytes;
    use frame::{DataHeaderLayout, FirstWord, FrameHeaderLayout, place_word, stream_word};
    let header = DataHeaderLayout {
        header: FrameHeaderLayout {
            frame_length: (-40).into(),
            version: 0,
            flags: 0xA5,
            frame_type: 0x0102.into(),
        },
        term_offset: 0x1122_3344.into(),
        session_id: (-7).into(),
        stream_id: (-1001).into(),
        term_id: (-3).into(),
        reserved_value: 0.into(),
    };
    let word = |at: usize| u64::from_le_bytes(header.as_bytes()[at..at + 8].try_into().unwrap());
    let first = FirstWord::new(-40, 0xA5, 0x0102);
    assert_eq!(first.0 as u64, word(0));
    assert_eq!((first.frame_length(), first.flags()), (-40, 0xA5));
    assert_eq!((first.version(), first.frame_type()), (0, 0x0102));
    assert_eq!(first.version_and_type(), FirstWord::of_type(0x0102));
    let of_other_version = FirstWord(first.0 | 1 << 32);
    assert_eq!(of_other_version.version(), 1);
    assert_ne!(
        of_other_version.version_and_type(),
        FirstWord::of_type(0x0102)
    );
    assert_eq!(place_word(0x1122_3344, -7), word(8));
    assert_eq!(stream_word(-1001, -3), word(16));
}
