//! Tests of the file of extensions. Its records survive kills and losses of power, and damage to the file is detected.

use aeron_archive::extensions::{
    DamagedExtensions, EXTENSIONS_FILE_NAME, ExtensionChange, Extensions, NamedReader,
    RecordingLabels, RecordingLink, ResumableSubscription, RetentionPolicy, RetentionScope,
    SegmentDeletion, decode_records,
};
use aeron_archive::memory_storage::{MemoryStorage, StorageFault, Survival};
use aeron_archive::storage::{Access, Storage, StorageFile, SyncLevel};
use aeron_protocol::archive::SourceLocation;
use proptest::prelude::*;

type Contents = (
    Vec<NamedReader>,
    Vec<RetentionPolicy>,
    Vec<(i64, RecordingLabels)>,
    Vec<(i64, SegmentDeletion)>,
    Vec<ResumableSubscription>,
);

fn open(storage: &MemoryStorage) -> Extensions<MemoryStorage> {
    Extensions::open(storage.clone(), SyncLevel::None).expect("the file is read")
}

fn contents(extensions: &Extensions<MemoryStorage>) -> Contents {
    (
        extensions.readers().cloned().collect(),
        extensions.policies().cloned().collect(),
        extensions
            .infos()
            .map(|(id, info)| (id, info.clone()))
            .collect(),
        extensions
            .deletions()
            .map(|(id, deletion)| (id, deletion.clone()))
            .collect(),
        extensions.subscriptions().cloned().collect(),
    )
}

fn reader(recording_id: i64, name: &str, position: i64) -> ExtensionChange {
    ExtensionChange::Reader(NamedReader {
        recording_id,
        name: name.to_owned(),
        owner: Vec::new(),
        position,
        committed_ms: 5,
        max_age_ms: None,
        max_lag: Some(1 << 20),
    })
}

fn any_change() -> impl Strategy<Value = ExtensionChange> {
    let limit = || prop::option::of(0..1_000_i64);
    let id = || 0..4_i64;
    let name = || "[a-c]{1,2}";
    let owner = || "[a-c]{0,2}".prop_map(String::into_bytes);
    let readers = (id(), name(), owner(), 0..1_000_i64, limit(), limit()).prop_map(
        |(recording_id, name, owner, position, max_age_ms, max_lag)| {
            ExtensionChange::Reader(NamedReader {
                recording_id,
                name,
                owner,
                position,
                committed_ms: position * 3,
                max_age_ms,
                max_lag,
            })
        },
    );
    let removals = (id(), name())
        .prop_map(|(recording_id, name)| ExtensionChange::ReaderRemoved { recording_id, name });
    let scopes = prop_oneof![
        id().prop_map(RetentionScope::Recording),
        (prop::option::of(-3..3), "[x-z]{0,2}").prop_map(|(stream_id, channel_fragment)| {
            RetentionScope::Matching {
                stream_id,
                channel_fragment,
            }
        }),
    ];
    let policies = (scopes, limit(), limit()).prop_map(|(scope, max_bytes, max_age_ms)| {
        ExtensionChange::Policy(RetentionPolicy {
            scope,
            max_bytes,
            max_age_ms,
        })
    });
    let link =
        (id(), 0..100_i64, limit()).prop_map(|(predecessor_id, gap_from, gap_to)| RecordingLink {
            predecessor_id,
            gap_from,
            gap_to,
        });
    let metadata = prop::collection::vec(any::<u8>(), 0..3_000);
    let infos = (id(), "[n-p]{0,2}", metadata, prop::option::of(link)).prop_map(
        |(recording_id, name, metadata, link)| ExtensionChange::Info {
            recording_id,
            info: RecordingLabels {
                name,
                metadata,
                link,
            },
        },
    );
    let deletions = (id(), 0..3_i64, 0..3_i64, any::<bool>());
    let deletions = deletions.prop_map(|(recording_id, from, to, keeps_indexes)| {
        let range = from..to;
        ExtensionChange::Deleting {
            recording_id,
            deletion: SegmentDeletion {
                range,
                keeps_indexes,
            },
        }
    });
    let channel = || "aeron:ipc\\?alias=[a-c]";
    let locations = prop_oneof![Just(SourceLocation::Local), Just(SourceLocation::Remote)];
    let subscriptions = (channel(), -2..2_i32, locations, prop::option::of(id())).prop_map(
        |(channel, stream_id, source_location, recording_id)| {
            ExtensionChange::Subscription(ResumableSubscription {
                channel,
                stream_id,
                source_location,
                recording_id,
            })
        },
    );
    let stops = (channel(), -2..2_i32).prop_map(|(channel, stream_id)| {
        ExtensionChange::SubscriptionStopped { channel, stream_id }
    });
    prop_oneof![
        readers,
        removals,
        policies,
        infos,
        deletions,
        subscriptions,
        stops
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_reopened_file_has_the_content_after_all_changes(
        batches in prop::collection::vec(prop::collection::vec(any_change(), 1..20), 1..40),
    ) {
        let storage = MemoryStorage::new();
        let mut extensions = open(&storage);
        for batch in batches {
            extensions.apply(batch).unwrap();
        }
        prop_assert_eq!(contents(&open(&storage)), contents(&extensions));
    }

    #[test]
    fn an_incomplete_last_record_is_ignored_and_earlier_changes_stay(
        changes in prop::collection::vec(any_change(), 1..10),
        cut in any::<prop::sample::Index>(),
    ) {
        let storage = MemoryStorage::new();
        let mut extensions = open(&storage);
        let (last, earlier) = changes.split_last().unwrap();
        extensions.apply(earlier.to_vec()).unwrap();
        let before = contents(&extensions);
        let start = length(&storage);
        extensions.apply(vec![last.clone()]).unwrap();
        let after = contents(&extensions);
        let end = length(&storage);
        let kept = start + cut.index((end - start) as usize) as u64;
        storage.open(EXTENSIONS_FILE_NAME, Access::Write).unwrap().set_length(kept).unwrap();

        let mut reopened = open(&storage);

        prop_assert_eq!(reopened.damage(), None);
        prop_assert_eq!(contents(&reopened), before);
        reopened.apply(vec![last.clone()]).unwrap();
        prop_assert_eq!(contents(&open(&storage)), after);
    }

    #[test]
    fn reading_a_file_of_any_bytes_does_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let storage = MemoryStorage::new();
        storage.create(EXTENSIONS_FILE_NAME, 0).unwrap().write_all_at(&bytes, 0).unwrap();
        let _ = decode_records(&bytes);
        let _ = open(&storage);
    }
}

fn length(storage: &MemoryStorage) -> u64 {
    match storage.open(EXTENSIONS_FILE_NAME, Access::Read) {
        Ok(file) => file.length().unwrap(),
        Err(_) => 0,
    }
}

#[test]
fn an_archive_without_extensions_has_no_file() {
    let storage = MemoryStorage::new();
    let mut extensions = open(&storage);
    extensions.apply(Vec::new()).unwrap();
    assert!(storage.names().unwrap().is_empty());
}

#[test]
fn a_file_with_a_damaged_record_is_renamed_and_no_record_is_used() {
    let storage = MemoryStorage::new();
    let mut extensions = open(&storage);
    extensions
        .apply(vec![reader(1, "one", 64), reader(1, "two", 128)])
        .unwrap();
    let file = storage.open(EXTENSIONS_FILE_NAME, Access::Write).unwrap();
    file.write_all_at(&[0xFF], 40).unwrap();

    let reopened = open(&storage);

    let name = "archive-extensions.damaged";
    assert_eq!(reopened.damage(), Some(&DamagedExtensions { name }));
    assert_eq!(reopened.reader_count(), 0);
    assert_eq!(storage.names().unwrap(), [name]);
}

#[test]
fn a_file_of_a_later_version_is_refused_and_unchanged() {
    let storage = MemoryStorage::new();
    let mut extensions = open(&storage);
    extensions.apply(vec![reader(1, "one", 64)]).unwrap();
    let file = storage.open(EXTENSIONS_FILE_NAME, Access::Write).unwrap();
    file.write_all_at(&[2], 4).unwrap();
    let mut header = [0; 12];
    file.read_exact_at(&mut header, 0).unwrap();
    let checksum = crc32fast::hash(&header).to_le_bytes();
    file.write_all_at(&checksum, 12).unwrap();
    let steps = storage.steps();

    let errors = [
        Extensions::check_version(&storage).unwrap_err(),
        Extensions::open(storage.clone(), SyncLevel::None).unwrap_err(),
    ];

    for error in errors {
        assert_eq!(
            error.to_string(),
            "the file has version 2, and this software reads versions up to 1: use the software that wrote it"
        );
    }
    assert_eq!(storage.names().unwrap(), [EXTENSIONS_FILE_NAME]);
    assert_eq!(storage.steps(), steps, "no change of the directory");
}

#[test]
fn a_file_that_has_grown_by_repeated_commits_is_compacted() {
    let storage = MemoryStorage::new();
    let mut extensions = open(&storage);
    for position in 0..20_000 {
        extensions.apply(vec![reader(1, "bars", position)]).unwrap();
    }
    assert!(length(&storage) < 512 * 1024, "{} bytes", length(&storage));
    assert_eq!(open(&storage).reader(1, "bars").unwrap().position, 19_999);
    assert_eq!(storage.names().unwrap(), [EXTENSIONS_FILE_NAME]);
}

#[test]
fn a_file_does_not_grow_from_start_to_start() {
    let storage = MemoryStorage::new();
    for start in 0..40 {
        let mut extensions = open(&storage);
        let before = length(&storage);
        for position in 0..2000 {
            let change = reader(1, "bars", start * 2000 + position);
            extensions.apply(vec![change]).unwrap();
        }
        assert!(length(&storage) < 512 * 1024, "{before} at start {start}");
    }
    assert_eq!(open(&storage).reader(1, "bars").unwrap().position, 79_999);
}

#[test]
fn the_data_of_a_deleted_recording_are_removed_but_links_to_it_stay() {
    let storage = MemoryStorage::new();
    let mut extensions = open(&storage);
    let policy = |scope| {
        ExtensionChange::Policy(RetentionPolicy {
            scope,
            max_bytes: Some(1),
            max_age_ms: None,
        })
    };
    let info = |link| RecordingLabels {
        name: String::new(),
        metadata: vec![1],
        link,
    };
    let link = RecordingLink {
        predecessor_id: 1,
        gap_from: 64,
        gap_to: None,
    };
    let everywhere = RetentionScope::Matching {
        stream_id: None,
        channel_fragment: String::new(),
    };
    extensions
        .apply(vec![
            reader(1, "a", 0),
            reader(2, "a", 0),
            policy(RetentionScope::Recording(1)),
            policy(everywhere.clone()),
            ExtensionChange::Info {
                recording_id: 1,
                info: info(None),
            },
            ExtensionChange::Info {
                recording_id: 2,
                info: info(Some(link)),
            },
        ])
        .unwrap();

    extensions.retain(|id| id != 1).unwrap();

    for state in [&extensions, &open(&storage)] {
        assert_eq!(state.readers_of(1).count(), 0);
        assert_eq!(state.readers_of(2).count(), 1);
        assert_eq!(
            state
                .policies()
                .map(|policy| &policy.scope)
                .collect::<Vec<_>>(),
            [&everywhere]
        );
        assert_eq!(state.infos().map(|(id, _)| id).collect::<Vec<_>>(), [2]);
        assert_eq!(state.info(2).link, Some(link));
    }
}

#[test]
fn a_loss_of_power_during_a_write_keeps_the_earlier_change_whichever_sectors_survive() {
    let sync = SyncLevel::Data;
    let long_name = "n".repeat(250);
    for survivors in 0..=255 {
        for killed_step in 0..7 {
            let storage = MemoryStorage::new();
            let mut extensions = Extensions::open(storage.clone(), sync).unwrap();
            let stored = reader(1, &long_name, 7);
            extensions.apply(vec![stored]).unwrap();
            let before = contents(&extensions);
            storage.fail_at(
                storage.steps() + killed_step,
                StorageFault::Kill { progress: 1 },
            );
            let changes = (2..5).map(|id| reader(id, &long_name, id)).collect();
            let is_done = extensions.apply(changes).is_ok();
            storage.lose_power_in_sectors(|| Survival::Sectors(survivors));
            let extensions = Extensions::open(storage.clone(), sync).unwrap();
            let text = format!("sectors {survivors:b}, step {killed_step}");
            assert_eq!(extensions.damage(), None, "{text}");
            assert_eq!(extensions.readers().next(), before.0.first(), "{text}");
            assert!(!is_done || extensions.reader_count() == 4, "{text}");
        }
    }
}

#[test]
fn a_change_that_fails_on_a_full_disk_has_no_effect_and_a_later_change_is_stored() {
    let storage = MemoryStorage::new();
    let mut extensions = open(&storage);
    extensions.apply(vec![reader(1, "a", 32)]).unwrap();
    // Only a part of this change fits into the page that is already allocated.
    let long = RecordingLabels {
        metadata: vec![7; 16_000],
        ..RecordingLabels::default()
    };
    let long = || ExtensionChange::Info {
        recording_id: 1,
        info: long.clone(),
    };
    storage.set_capacity(storage.used_bytes());
    assert!(extensions.apply(vec![reader(1, "a", 64), long()]).is_err());
    for state in [&extensions, &open(&storage)] {
        assert_eq!(state.reader(1, "a").unwrap().position, 32);
        assert_eq!(state.infos().count(), 0);
    }
    storage.set_capacity(u64::MAX);
    extensions.apply(vec![reader(1, "a", 96), long()]).unwrap();
    assert_eq!(open(&storage).reader(1, "a").unwrap().position, 96);
    assert_eq!(open(&storage).info(1).metadata.len(), 16_000);
}
