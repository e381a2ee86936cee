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
const SPECIFICATION: &str = include_str!("specification.txt");

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
        text_of::<extension::ClockNoteLayout>(),
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
