//! Tests with messages of peers that have an older or newer schema.

use aeron_protocol::archive::{ArchiveDecodeError, ArchiveRequest};
use proptest::prelude::*;

use crate::archive_messages::decoded::Decoded;
use crate::archive_messages::schema::{VERSION, any_message, message, messages};

/// Returns a sample of a message as a peer with this version of the schema sends it.
fn sent_by(version: u16, name: &str) -> Vec<u8> {
    let message = message(name);
    message.encode(version, message.block_length_in(version), &message.sample())
}

#[test]
fn a_replay_request_of_an_older_version_has_only_the_fields_of_its_version_07_03() {
    for (version, block_length, has_file_length) in [(6, 44, false), (9, 48, true)] {
        let bytes = sent_by(version, "ReplayRequest");
        assert_eq!(bytes[0], block_length);
        let Ok(ArchiveRequest::Replay(request)) = ArchiveRequest::decode(&bytes) else {
            panic!("not a replay request");
        };
        assert_eq!(request.file_io_max_length != -1, has_file_length);
        assert_eq!(request.replay_token, -1);
        assert_eq!(request.replay_channel, b"aeron:udp?endpoint=a:1");
    }
}

#[test]
fn a_replicate_request_of_an_older_version_has_only_the_fields_of_its_version_07_05() {
    for version in [6, 7, 8, 9, 10] {
        let bytes = sent_by(version, "ReplicateRequest2");
        let Ok(ArchiveRequest::Replicate2(request)) = ArchiveRequest::decode(&bytes) else {
            panic!("not a replicate request");
        };
        assert_eq!(request.encoded_credentials == b"source", version >= 8);
        assert_eq!(request.encoded_credentials.is_empty(), version < 8);
        assert_eq!(request.src_response_channel == b"e", version >= 10);
        assert_eq!(request.src_response_channel.is_empty(), version < 10);
    }
}

#[test]
fn a_connect_request_below_version_12_has_no_client_info_07_06() {
    for version in [0, 11, 12] {
        let message = message("AuthConnectRequest");
        let mut values = message.sample();
        values.data[2] = b"name=app".to_vec();
        let bytes = message.encode(version, 16, &values);
        let Ok(ArchiveRequest::AuthConnect(request)) = ArchiveRequest::decode(&bytes) else {
            panic!("not a connect request");
        };
        let expected: &[u8] = if version < 12 { b"" } else { b"name=app" };
        assert_eq!(request.client_info, expected);
    }
}

#[test]
fn the_blocks_of_older_versions_have_the_lengths_of_the_reference() {
    for (name, version, block_length) in [
        ("ControlResponse", 3, 28),
        ("ConnectRequest", 1, 12),
        ("ReplayRequest", 6, 44),
        ("ReplayRequest", 9, 48),
        ("BoundedReplayRequest", 6, 48),
        ("BoundedReplayRequest", 9, 52),
        ("ReplicateRequest2", 6, 60),
        ("ReplicateRequest2", 7, 64),
    ] {
        let bytes = sent_by(version, name);
        assert_eq!(bytes[0], block_length, "{name}");
        assert!(Decoded::of(&bytes).is_ok(), "{name}");

        let mut shorter = bytes.clone();
        shorter[0] -= 1;
        let refusal = ArchiveDecodeError::BlockTooShort {
            template_id: message(name).template_id,
            version,
            block_length: u16::from(block_length) - 1,
            required: usize::from(block_length),
        };
        assert_eq!(Decoded::of(&shorter), Err(refusal), "{name}");
    }
}

#[test]
fn a_block_that_lacks_fields_of_its_own_version_is_refused() {
    let mut bytes = sent_by(6, "ReplayRequest");
    bytes[6] = 13;
    let refusal = ArchiveDecodeError::BlockTooShort {
        template_id: 6,
        version: 13,
        block_length: 44,
        required: 56,
    };
    assert_eq!(ArchiveRequest::decode(&bytes), Err(refusal));
}

/// A message of the unknown version 14 is decoded like a message of version 13.
#[test]
fn a_message_with_the_header_of_version_14_is_decoded() {
    for message in messages() {
        let values = message.sample();
        let now = message.encode_now(&values);
        let then = message.encode(14, message.block_length, &values);
        assert_eq!(Decoded::of(&then), Decoded::of(&now), "{}", message.name);
        assert!(Decoded::of(&then).is_ok(), "{}", message.name);
    }
}

proptest! {
    /// 07-02: the block length in the header determines where the variable data begin.
    #[test]
    fn a_longer_block_of_a_newer_version_is_read(
        (index, numbers, texts) in any_message(),
        version in VERSION..,
        more in 0_usize..100,
        after in prop::collection::vec(any::<u8>(), 0..20),
    ) {
        let message = &messages()[index];
        let values = message.values(&numbers, &texts);
        let mut bytes = message.encode(version, message.block_length + more, &values);
        bytes.extend(after);
        let decoded = Decoded::of(&bytes);
        prop_assert!(decoded.is_ok(), "{:?}", decoded);
        prop_assert_eq!(decoded.unwrap().text(), message.text(version, &values));
    }

    #[test]
    fn a_message_of_any_older_version_is_read((index, numbers, texts) in any_message(), version in 0..VERSION) {
        let message = &messages()[index];
        let values = message.values(&numbers, &texts);
        let bytes = message.encode(version, message.block_length_in(version), &values);
        let decoded = Decoded::of(&bytes);
        prop_assert!(decoded.is_ok(), "{:?}", decoded);
        let decoded = decoded.unwrap();
        prop_assert_eq!(decoded.text(), message.text(version, &values));
        let encoded = decoded.encoded();
        prop_assert_eq!(Decoded::of(&encoded), Ok(decoded));
    }

    /// A field that the version in the header does not have counts as absent, even if the block has bytes at its
    /// offset.
    #[test]
    fn an_older_version_with_a_full_block_has_no_newer_fields(
        (index, numbers, texts) in any_message(),
        version in 0..VERSION,
    ) {
        let message = &messages()[index];
        let values = message.values(&numbers, &texts);
        let bytes = message.encode(version, message.block_length, &values);
        let decoded = Decoded::of(&bytes);
        prop_assert!(decoded.is_ok(), "{:?}", decoded);
        prop_assert_eq!(decoded.unwrap().text(), message.text(version, &values));
    }
}
