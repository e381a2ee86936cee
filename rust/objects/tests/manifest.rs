//! Manifests: a written manifest is read again unchanged, and any other text is refused.

use aeron_archive::catalog::RecordingDescriptor;
use aeron_objects::key::SegmentKey;
use aeron_objects::manifest::{Manifest, ManifestError, ObjectCopy};
use proptest::prelude::*;

const SEGMENT: i64 = 64 * 1024;

fn recording(channel: &str) -> RecordingDescriptor {
    RecordingDescriptor {
        control_session_id: 0,
        correlation_id: 0,
        recording_id: 7,
        start_timestamp_ms: 1_700_000_000_000,
        stop_timestamp_ms: -1,
        start_position: 96,
        stop_position: -1,
        initial_term_id: -3,
        segment_length: SEGMENT as i32,
        term_length: SEGMENT as i32,
        mtu_length: 1408,
        session_id: -5,
        stream_id: 1001,
        stripped_channel: channel.into(),
        original_channel: channel.into(),
        source_identity: "aeron:ipc".into(),
    }
}

fn copies() -> impl Strategy<Value = Vec<ObjectCopy>> {
    let copy = (0_i64..40, 0..SEGMENT, any::<u32>(), any::<Option<i64>>());
    let copy = copy.prop_map(|(number, after, crc32c, modified_ns)| ObjectCopy {
        base: number * SEGMENT,
        from: number * SEGMENT + after,
        crc32c,
        modified_ns,
    });
    prop::collection::vec(copy, 0..20)
}

fn manifest(copies: &[ObjectCopy]) -> Manifest {
    let mut manifest = Manifest::new(&recording("aeron:udp?endpoint=\"ü\n"));
    copies.iter().for_each(|copy| manifest.insert(*copy));
    manifest
}

proptest! {
    #[test]
    fn a_manifest_is_read_as_it_was_written(copies in copies()) {
        let manifest = manifest(&copies);
        prop_assert_eq!(Manifest::decode(manifest.encode().as_bytes()).unwrap(), manifest);
    }

    #[test]
    fn a_changed_byte_is_noticed(copies in copies(), at: prop::sample::Index, bits in 1_u8..) {
        let mut text = manifest(&copies).encode().into_bytes();
        // The last byte is not changed: it is the newline after the second line, and a text without it is valid too.
        let at = at.index(text.len() - 1);
        text[at] ^= bits;
        prop_assert!(Manifest::decode(&text).is_err() || text[at] == b'\n');
    }

    #[test]
    fn a_manifest_that_was_cut_off_is_refused(copies in copies(), at: prop::sample::Index) {
        let text = manifest(&copies).encode();
        let cut = at.index(text.len() - 1);
        prop_assert!(Manifest::decode(&text.as_bytes()[..cut]).is_err());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Manifest::decode(&bytes);
    }

    #[test]
    fn a_lost_manifest_is_rebuilt_from_the_names_of_the_objects(copies in copies(), lost in any::<bool>()) {
        let whole = manifest(&copies);
        let mut rebuilt = match lost {
            true => manifest(&[]),
            false => whole.clone(),
        };
        rebuilt.add_listed(whole.copies().map(|copy| SegmentKey::parse(&copy.key().name()).unwrap()));
        let keys = |manifest: &Manifest| manifest.copies().map(ObjectCopy::key).collect::<Vec<_>>();
        prop_assert_eq!(keys(&rebuilt), keys(&whole));
        // The names do not contain the times of the local files. A local file is not deleted if its copy has no time.
        prop_assert!(!lost || rebuilt.copies().all(|copy| copy.modified_ns.is_none()));
    }

    #[test]
    fn a_truncation_removes_copies_beyond_its_position(copies in copies(), position in 0..50 * SEGMENT) {
        let mut truncated = manifest(&copies);
        let before = truncated.copies().count();
        let has_changed = truncated.truncate(position);
        prop_assert_eq!(has_changed, truncated.copies().count() < before);
        prop_assert!(truncated.copies().all(|copy| copy.base + SEGMENT <= position));
    }
}

#[test]
fn the_last_listed_object_with_a_base_counts_unless_the_manifest_names_one() {
    let mut manifest = manifest(&[]);
    let key = |crc32c| SegmentKey {
        base: SEGMENT,
        from: SEGMENT,
        crc32c,
    };
    manifest.add_listed([key(1), key(2)]);
    assert_eq!(manifest.get(SEGMENT).unwrap().crc32c, 2);
    manifest.add_listed([key(3)]);
    assert_eq!(manifest.get(SEGMENT).unwrap().crc32c, 2);
}

#[test]
fn a_later_version_is_refused_by_its_number() {
    let text = manifest(&[])
        .encode()
        .replace("\"version\":1", "\"version\":2");
    let error = Manifest::decode(text.as_bytes()).unwrap_err();
    assert!(matches!(error, ManifestError::Version { version: 2 }));
    assert!(
        error
            .to_string()
            .starts_with("has version 2, and this software reads version 1")
    );
}
