//! Tests of commands and events: encoded, decoded, truncated, and decoded from random bytes.

use aeron_protocol::command::{self, Command};
use aeron_protocol::event::{self, Event};
use aeron_protocol::{DecodeError, EncodeError, ErrorCode};
use proptest::prelude::*;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

/// Returns one of each command, with the given numbers and bytes.
fn commands<'a>(ids: [i64; 4], number: i32, first: &'a [u8], second: &'a [u8]) -> Vec<Command<'a>> {
    let [client_id, correlation_id, registration_id, other_id] = ids;
    let publication = command::AddPublication {
        client_id,
        correlation_id,
        stream_id: number,
        channel: first,
    };
    let destination = command::Destination {
        client_id,
        correlation_id,
        registration_correlation_id: registration_id,
        channel: first,
    };
    vec![
        Command::AddPublication(publication),
        Command::AddExclusivePublication(publication),
        Command::RemovePublication(command::RemovePublication {
            client_id,
            correlation_id,
            registration_id,
            revoke: number % 2 == 0,
        }),
        Command::AddSubscription(command::AddSubscription {
            client_id,
            correlation_id,
            registration_correlation_id: other_id,
            stream_id: number,
            channel: first,
        }),
        Command::RemoveSubscription(command::RemoveSubscription {
            client_id,
            correlation_id,
            registration_id,
        }),
        Command::ClientKeepalive(command::ClientKeepalive {
            client_id,
            correlation_id,
        }),
        Command::AddDestination(destination),
        Command::RemoveDestination(destination),
        Command::AddRcvDestination(destination),
        Command::RemoveRcvDestination(destination),
        Command::AddCounter(command::AddCounter {
            client_id,
            correlation_id,
            type_id: number,
            key: first,
            label: second,
        }),
        Command::RemoveCounter(command::RemoveCounter {
            client_id,
            correlation_id,
            registration_id,
        }),
        Command::AddStaticCounter(command::AddStaticCounter {
            client_id,
            correlation_id,
            registration_id,
            type_id: number,
            key: first,
            label: second,
        }),
        Command::ClientClose(command::ClientClose {
            client_id,
            correlation_id,
        }),
        Command::TerminateDriver(command::TerminateDriver {
            client_id,
            correlation_id,
            token: first,
        }),
        Command::RejectImage(command::RejectImage {
            client_id,
            correlation_id,
            image_correlation_id: registration_id,
            position: other_id,
            reason: first,
        }),
        Command::RemoveDestinationById(command::RemoveDestinationById {
            client_id,
            correlation_id,
            resource_registration_id: registration_id,
            destination_registration_id: other_id,
        }),
        Command::GetNextAvailableSessionId(command::GetNextAvailableSessionId {
            client_id,
            correlation_id,
            stream_id: number,
        }),
    ]
}

/// Returns one of each event, with the given numbers and bytes.
fn events<'a>(
    ids: [i64; 4],
    numbers: [i32; 4],
    source_address: Option<SocketAddr>,
    first: &'a [u8],
    second: &'a [u8],
) -> Vec<Event<'a>> {
    let [correlation_id, registration_id, receiver_id, group_tag] = ids;
    let [session_id, stream_id, counter_id, code] = numbers;
    let error_code = ErrorCode::from_value(code);
    let ready = event::PublicationReady {
        correlation_id,
        registration_id,
        session_id,
        stream_id,
        publication_limit_counter_id: counter_id,
        channel_status_indicator_id: code,
        log_file_name: first,
    };
    let counter = event::CounterUpdate {
        correlation_id,
        counter_id,
    };
    vec![
        Event::Error(event::Error {
            offending_command_correlation_id: correlation_id,
            error_code,
            error_message: first,
        }),
        Event::PublicationReady(ready),
        Event::ExclusivePublicationReady(ready),
        Event::SubscriptionReady(event::SubscriptionReady {
            correlation_id,
            channel_status_indicator_id: counter_id,
        }),
        Event::AvailableImage(event::AvailableImage {
            correlation_id,
            session_id,
            stream_id,
            subscription_registration_id: registration_id,
            subscriber_position_id: counter_id,
            log_file_name: first,
            source_identity: second,
        }),
        Event::UnavailableImage(event::UnavailableImage {
            correlation_id,
            subscription_registration_id: registration_id,
            stream_id,
            channel: first,
        }),
        Event::OperationSuccess(event::OperationSuccess { correlation_id }),
        Event::CounterReady(counter),
        Event::UnavailableCounter(counter),
        Event::StaticCounter(event::StaticCounter {
            correlation_id,
            counter_id,
        }),
        Event::ClientTimeout(event::ClientTimeout {
            client_id: correlation_id,
        }),
        Event::NextAvailableSessionId(event::NextAvailableSessionId {
            correlation_id,
            next_session_id: session_id,
        }),
        Event::PublicationError(event::PublicationError {
            registration_id,
            destination_registration_id: correlation_id,
            session_id,
            stream_id,
            receiver_id,
            group_tag,
            source_address,
            error_code: code,
            error_message: first,
        }),
    ]
}

fn encoded_command(command: &Command<'_>) -> Vec<u8> {
    let mut bytes = vec![0xEE; command.encoded_length()];
    assert_eq!(command.encode(&mut bytes), Ok(bytes.len()));
    bytes
}

fn encoded_event(event: &Event<'_>) -> Vec<u8> {
    let mut bytes = vec![0xEE; event.encoded_length()];
    assert_eq!(event.encode(&mut bytes), Ok(bytes.len()));
    bytes
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..40)
}

fn any_address() -> impl Strategy<Value = Option<SocketAddr>> {
    prop_oneof![
        Just(None),
        (any::<u32>(), any::<u16>()).prop_map(|(ip, port)| Some((Ipv4Addr::from(ip), port).into())),
        (any::<u128>(), any::<u16>())
            .prop_map(|(ip, port)| Some((Ipv6Addr::from(ip), port).into())),
    ]
}

proptest! {
    #[test]
    fn an_encoded_command_is_decoded_with_any_bytes_after_it(
        ids: [i64; 4], number: i32, first in any_bytes(), second in any_bytes(), behind in any_bytes(),
    ) {
        for command in commands(ids, number, &first, &second) {
            let mut bytes = encoded_command(&command);
            bytes.extend(&behind);
            prop_assert_eq!(Command::decode(command.type_id(), &bytes), Ok(command));
            prop_assert_eq!((command.client_id(), command.correlation_id()), (ids[0], ids[1]));
        }
    }

    #[test]
    fn an_encoded_event_is_decoded_with_any_bytes_after_it(
        ids: [i64; 4], numbers: [i32; 4], address in any_address(),
        first in any_bytes(), second in any_bytes(), behind in any_bytes(),
    ) {
        for event in events(ids, numbers, address, &first, &second) {
            let mut bytes = encoded_event(&event);
            bytes.extend(&behind);
            prop_assert_eq!(Event::decode(event.type_id(), &bytes), Ok(event));
        }
    }

    /// 03-51
    #[test]
    fn a_negative_length_or_one_beyond_the_message_is_malformed(declared: i32) {
        let channel = b"aeron:ipc";
        prop_assume!(usize::try_from(declared).is_ok_and(|length| length > channel.len()) || declared < 0);
        let command = commands([1; 4], 1001, channel, b"")[0];
        let mut bytes = encoded_command(&command);
        bytes[20..24].copy_from_slice(&declared.to_le_bytes());
        let expected = if declared < 0 {
            DecodeError::NegativeLength { type_id: 1, field: "channel", declared }
        } else {
            DecodeError::TooShort { type_id: 1, length: bytes.len() }
        };
        prop_assert_eq!(Command::decode(1, &bytes), Err(expected));
        prop_assert_eq!(expected.code(), ErrorCode::MalformedCommand);
    }

    #[test]
    fn random_bytes_never_make_a_decoder_panic(
        type_id in prop_oneof![0..0x14_i32, 0x0F00..0x0F0F_i32, any::<i32>()],
        body in prop::collection::vec(prop_oneof![Just(0_u8), Just(0xFF), any::<u8>()], 0..120),
    ) {
        if let Ok(command) = Command::decode(type_id, &body) {
            let written = encoded_command(&command);
            prop_assert_eq!(Command::decode(type_id, &written), Ok(command));
        }
        if let Ok(event) = Event::decode(type_id, &body) {
            let written = encoded_event(&event);
            prop_assert_eq!(Event::decode(type_id, &written), Ok(event));
        }
    }
}

#[test]
fn a_truncated_command_is_refused_except_a_removal_without_flags() {
    for command in commands([1, 2, 3, 4], 1001, b"some bytes", b"and more") {
        let bytes = encoded_command(&command);
        for length in 0..bytes.len() {
            let legacy = length == 24 && matches!(command, Command::RemovePublication(_));
            let decoded = Command::decode(command.type_id(), &bytes[..length]);
            assert_eq!(decoded.is_ok(), legacy, "{command:?} cut to {length}");
        }
    }
}

#[test]
fn a_truncated_event_is_refused() {
    for event in events(
        [1, 2, 3, 4],
        [5, 6, 7, 11],
        None,
        b"some bytes",
        b"and more",
    ) {
        let bytes = encoded_event(&event);
        for length in 0..bytes.len() {
            assert!(Event::decode(event.type_id(), &bytes[..length]).is_err());
        }
    }
}

#[test]
fn encoding_into_a_buffer_that_is_too_short_is_refused() {
    for command in commands([1, 2, 3, 4], 1001, b"some bytes", b"and more") {
        let required = command.encoded_length();
        for available in 0..required {
            let refused = command.encode(&mut vec![0; available]);
            assert_eq!(
                refused,
                Err(EncodeError {
                    required,
                    available
                })
            );
        }
    }
}

/// 03-25: a driver does not respond to the commands that are refused here.
#[test]
fn a_remove_publication_of_24_bytes_has_no_flags_and_25_to_31_bytes_are_malformed() {
    let remove = Command::RemovePublication(command::RemovePublication {
        client_id: 1,
        correlation_id: 2,
        registration_id: 3,
        revoke: true,
    });
    let bytes = encoded_command(&remove);
    assert_eq!(Command::decode(2, &bytes), Ok(remove));
    let legacy = Command::decode(2, &bytes[..24]);
    assert!(matches!(legacy, Ok(Command::RemovePublication(c)) if !c.revoke));
    for length in 25..32 {
        let error = DecodeError::TooShort { type_id: 2, length };
        assert_eq!(Command::decode(2, &bytes[..length]), Err(error));
    }
}

#[test]
fn a_rejection_is_padded_for_c_drivers_and_a_shorter_rejection_is_decoded() {
    let reject = |reason| {
        Command::RejectImage(command::RejectImage {
            client_id: 0,
            correlation_id: 0,
            image_correlation_id: 7,
            position: 64,
            reason,
        })
    };
    assert_eq!(reject(b"").encoded_length(), 40);
    assert_eq!(reject(b"late").encoded_length(), 40);
    assert_eq!(reject(b"later").encoded_length(), 41);
    let bytes = encoded_command(&reject(b""));
    assert_eq!(Command::decode(0x10, &bytes[..36]), Ok(reject(b"")));
}

/// 03-48
#[test]
fn a_publication_error_is_at_least_72_bytes_with_the_address_in_network_order() {
    let error = Event::PublicationError(event::PublicationError {
        registration_id: 1,
        destination_registration_id: -1,
        session_id: 2,
        stream_id: 3,
        receiver_id: -1,
        group_tag: -1,
        source_address: Some((Ipv4Addr::LOCALHOST, 0).into()),
        error_code: ErrorCode::ImageRejected.value(),
        error_message: b"no",
    });
    let bytes = encoded_event(&error);
    assert_eq!(bytes.len(), 72);
    assert_eq!(bytes[40..44], [1, 0, 0, 0]);
    assert_eq!(bytes[44..48], [127, 0, 0, 1]);
    assert_eq!(bytes[48..60], [0; 12]);
    assert_eq!(bytes[64..68], 2_i32.to_le_bytes());
}
