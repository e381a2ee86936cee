//! Tests of invalid and incomplete messages.

use aeron_protocol::EncodeError;
use aeron_protocol::archive::{
    ArchiveDecodeError, ArchiveErrorCode, ArchiveRequest, ArchiveResponse, RecordingEvent,
    RequestIds,
};
use proptest::prelude::*;

use crate::archive_messages::decoded::Decoded;
use crate::archive_messages::schema::{any_message, message, messages};

#[test]
fn a_message_that_is_truncated_at_any_length_is_refused_07_11() {
    for message in messages() {
        let values = message.sample();
        let bytes = message.encode_now(&values);
        let data: usize = values.data.iter().map(|text| 4 + text.len()).sum();
        let whole = 8 + message.block_length + data;
        for length in 0..whole {
            let decoded = Decoded::of(&bytes[..length]);
            assert!(
                decoded.is_err(),
                "{} of {length} bytes: {decoded:?}",
                message.name
            );
        }
        assert!(Decoded::of(&bytes[..whole]).is_ok(), "{}", message.name);
    }
}

#[test]
fn a_text_that_extends_beyond_the_end_of_the_message_is_refused_07_11() {
    let message = message("StartRecordingRequest2");
    let bytes = message.encode_now(&message.sample());
    let length_at = 8 + message.block_length;
    for declared in [23, 1 << 30, u32::MAX] {
        let mut bytes = bytes.clone();
        bytes[length_at..length_at + 4].copy_from_slice(&u32::to_le_bytes(declared));
        let refusal = ArchiveDecodeError::DataBeyondEnd {
            template_id: 63,
            field: "channel",
            declared,
            available: 22,
        };
        assert_eq!(ArchiveRequest::decode(&bytes), Err(refusal));
    }
}

/// Each error text names the invalid value, the limit, and what to do.
#[test]
fn each_refusal_names_the_value_and_the_limit() {
    let request = message("StartRecordingRequest2");
    let bytes = request.encode_now(&request.sample());
    let refusal = |bytes: &[u8]| ArchiveRequest::decode(bytes).unwrap_err().to_string();
    let with = |at: usize, byte: u8| {
        let mut bytes = bytes.clone();
        bytes[at] = byte;
        bytes
    };

    assert_eq!(
        refusal(&bytes[..7]),
        "archive message of 7 bytes is shorter than its header of 8 bytes: drop it"
    );
    assert_eq!(
        refusal(&with(4, 100)),
        "schema id 100 is not 101: drop the message, and look for another protocol on the stream"
    );
    assert_eq!(
        refusal(&with(2, 200)),
        "template id 200 is unknown or belongs on another stream: ignore the message"
    );
    assert_eq!(
        refusal(&with(0, 27)),
        "template id 63: block of 27 bytes is shorter than the 28 bytes of version 13: drop the message"
    );
    assert_eq!(
        refusal(&bytes[..35]),
        "template id 63: block of 28 bytes exceeds the 27 bytes after the header: drop the message"
    );
    assert_eq!(
        refusal(&bytes[..39]),
        "template id 63: the length of channel takes 4 bytes and 3 are left: drop the message"
    );
    assert_eq!(
        refusal(&with(36, 23)),
        "template id 63: channel of 23 bytes exceeds the 22 bytes that are left: drop the message"
    );
    assert_eq!(
        refusal(&with(32, 2)),
        "template id 63: auto_stop=2 is not defined: drop the message"
    );
}

#[test]
fn the_error_for_an_unknown_template_has_the_template_id_07_08() {
    let known: Vec<u16> = messages()
        .iter()
        .map(|message| message.template_id)
        .collect();
    for template_id in (0..=u16::MAX).filter(|id| !known.contains(id)) {
        let mut bytes = [0, 0, 0, 0, 101, 0, 13, 0];
        bytes[2..4].copy_from_slice(&template_id.to_le_bytes());
        let refusal = ArchiveDecodeError::UnknownTemplateId { template_id };
        assert_eq!(Decoded::of(&bytes), Err(refusal));
        assert_eq!(RequestIds::of(&bytes), None);
    }
}

#[test]
fn each_message_is_decoded_on_exactly_one_stream() {
    for message in messages() {
        let bytes = message.encode_now(&message.sample());
        let streams = [
            ArchiveRequest::decode(&bytes).is_ok(),
            ArchiveResponse::decode(&bytes).is_ok(),
            RecordingEvent::decode(&bytes).is_ok(),
        ];
        let count = streams.iter().filter(|is_known| **is_known).count();
        assert_eq!(count, 1, "{}", message.name);
    }
}

#[test]
fn the_error_for_another_schema_has_the_schema_id_07_09() {
    for message in messages() {
        for schema_id in [0_u16, 100, 102, 0x6500] {
            let mut bytes = message.encode_now(&message.sample());
            bytes[4..6].copy_from_slice(&schema_id.to_le_bytes());
            let refusal = ArchiveDecodeError::SchemaId { schema_id };
            assert_eq!(Decoded::of(&bytes), Err(refusal));
            assert_eq!(RequestIds::of(&bytes), None);
        }
    }
}

/// 07-10: Aeron sends no response to a request with an undefined enum value. `docs/spec/07-archive.md` recommends a
/// response if the ids of the request can be read. Here the ids can be read, even if the rest of the request is
/// refused.
#[test]
fn an_undefined_number_is_an_error_but_the_ids_can_be_read() {
    let mut count = 0;
    for message in messages() {
        let values = message.sample();
        for (index, field) in message.fields.iter().enumerate() {
            if field.codes.is_empty() {
                continue;
            }
            count += 1;
            for undefined in [-1, 8, i64::from(i32::MIN)] {
                let mut values = values.clone();
                values.fields[index] = undefined;
                let bytes = message.encode_now(&values);
                let decoded = Decoded::of(&bytes);
                let Err(ArchiveDecodeError::UndefinedValue {
                    template_id, value, ..
                }) = decoded
                else {
                    panic!("{}: {decoded:?}", message.name);
                };
                assert_eq!(
                    (template_id, i64::from(value)),
                    (message.template_id, undefined)
                );
                if ArchiveRequest::TEMPLATE_IDS.contains(&template_id) {
                    let ids = RequestIds::of(&bytes).expect("ids");
                    let ids = [ids.control_session_id, ids.correlation_id];
                    assert_eq!(ids, values.fields[..2]);
                }
            }
        }
    }
    assert_eq!(count, 9);
}

#[test]
fn the_ids_of_a_request_are_read_even_if_all_later_bytes_are_missing() {
    for message in messages() {
        let values = message.sample();
        let bytes = message.encode_now(&values);
        let has_ids = ArchiveRequest::TEMPLATE_IDS.contains(&message.template_id)
            && message.fields[0].name == "controlSessionId"
            && message.fields.len() > 1;
        let ids = RequestIds::of(&bytes);
        assert_eq!(ids.is_some(), has_ids, "{}", message.name);
        if let Some(ids) = ids {
            assert_eq!(ids.control_session_id, values.fields[0]);
            assert_eq!(ids.correlation_id, values.fields[1]);
            assert_eq!(RequestIds::of(&bytes[..24]), Some(ids));
            assert_eq!(RequestIds::of(&bytes[..23]), None);
            let mut short_block = bytes.clone();
            short_block[0] = 15;
            assert_eq!(RequestIds::of(&short_block), None);
        }
    }
}

#[test]
fn the_version_of_a_challenge_is_ignored_and_written_as_0_07_13() {
    let message = message("Challenge");
    let mut values = message.sample();
    let mut decoded = Vec::new();
    for version in [0, 1, -559_038_737] {
        values.fields[2] = version;
        decoded.push(message.encode_now(&values));
    }
    let challenges: Vec<_> = decoded
        .iter()
        .map(|bytes| Decoded::of(bytes).unwrap())
        .collect();
    assert_eq!(challenges[0], challenges[1]);
    assert_eq!(challenges[0], challenges[2]);
    assert_eq!(challenges[2].encoded(), decoded[0]);
}

/// For an undefined error code, `error_code` returns `None`.
#[test]
fn an_undefined_error_code_is_none() {
    let message = message("ControlResponse");
    for (relevant_id, expected) in [
        (0, Some(ArchiveErrorCode::Generic)),
        (16, Some(ArchiveErrorCode::InvalidPosition)),
        (17, None),
        (-1, None),
        (1 << 32, None),
    ] {
        let mut values = message.sample();
        values.fields[2] = relevant_id;
        values.fields[3] = 1;
        let bytes = message.encode_now(&values);
        let Ok(ArchiveResponse::ControlResponse(response)) = ArchiveResponse::decode(&bytes) else {
            panic!("not a control response");
        };
        assert_eq!(response.error_code(), expected);
    }
}

#[test]
fn a_buffer_that_is_too_short_is_refused() {
    for message in messages() {
        let bytes = message.encode_now(&message.sample());
        let decoded = Decoded::of(&bytes).expect("a message");
        let required = decoded.encoded().len();
        for available in 0..required {
            let refusal = EncodeError {
                required,
                available,
            };
            assert_eq!(decoded.encode(&mut vec![0; available]), Err(refusal));
        }
        assert_eq!(decoded.encode(&mut vec![0; required + 1]), Ok(required));
    }
}

proptest! {
    #[test]
    fn random_bytes_never_make_a_decoder_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Decoded::of(&bytes);
        let _ = RequestIds::of(&bytes);
    }

    #[test]
    fn random_bytes_after_a_valid_header_never_make_a_decoder_panic(
        index in 0..messages().len(),
        version in any::<u16>(),
        block_length in 0_u16..100,
        body in prop::collection::vec(prop_oneof![Just(0), any::<u8>()], 0..200),
    ) {
        let template_id = messages()[index].template_id;
        let header = [block_length, template_id, 101, version];
        let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(body);
        if let Ok(decoded) = Decoded::of(&bytes) {
            let encoded = decoded.encoded();
            prop_assert_eq!(Decoded::of(&encoded), Ok(decoded));
        }
    }

    #[test]
    fn changed_bytes_in_a_message_never_make_a_decoder_panic(
        (index, numbers, texts) in any_message(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let message = &messages()[index];
        let mut bytes = message.encode_now(&message.values(&numbers, &texts));
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(decoded) = Decoded::of(&bytes) {
            let encoded = decoded.encoded();
            prop_assert_eq!(Decoded::of(&encoded), Ok(decoded));
        }
    }
}
