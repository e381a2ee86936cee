//! Tests of commands in general: the order of commands, refused commands, and commands without a response.

use aeron_driver::config::TerminationValidator;
use aeron_memory::counters::system::SystemCounter;
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{
    AddSubscription, Command, Destination, GetNextAvailableSessionId, RejectImage,
    RemoveDestinationById, TerminateDriver, type_id,
};
use aeron_protocol::event::Event;

use crate::conductor::harness::{CLIENT, STREAM, TestDriver, names};

/// 03-50, 04-33
#[test]
fn an_unknown_command_is_only_recorded_in_the_error_log() {
    let mut driver = TestDriver::new();
    driver.send_raw(99, &[0; 32]);
    driver.work();
    assert_eq!(names(&driver.hear()), [""; 0]);
    assert_eq!(
        driver.errors(),
        ["(-6) unknown command type id\ncommand=99 unknown\n"]
    );
    driver.add_publication("aeron:ipc", STREAM);
}

/// 03-50, 03-51, 04-34
#[test]
fn a_malformed_command_is_only_recorded_in_the_error_log() {
    let mut driver = TestDriver::new();
    driver.send_raw(type_id::ADD_PUBLICATION, &[0; 16]);
    let mut channel_beyond_the_end = [0; 33];
    channel_beyond_the_end[20..24].copy_from_slice(&10_000_i32.to_le_bytes());
    driver.send_raw(type_id::ADD_PUBLICATION, &channel_beyond_the_end);
    channel_beyond_the_end[20..24].copy_from_slice(&(-1_i32).to_le_bytes());
    driver.send_raw(type_id::ADD_PUBLICATION, &channel_beyond_the_end);
    driver.send_raw(type_id::ADD_SUBSCRIPTION, &[0; 24]);
    driver.work();
    assert_eq!(names(&driver.hear()), [""; 0]);
    let errors = driver.errors();
    assert_eq!(
        errors[0],
        "(-7) malformed command\ncommand=1 too short: length=16\n"
    );
    assert_eq!(
        errors[1],
        "(-7) malformed command\ncommand=1 too short: length=33\n"
    );
    assert!(
        errors[2].starts_with("(-7) malformed command\n"),
        "{}",
        errors[2]
    );
    assert_eq!(
        errors[3],
        "(-7) malformed command\ncommand=4 too short: length=24\n"
    );
    assert_eq!(driver.system(SystemCounter::Errors), 4);
}

/// 03-25, 04-37
#[test]
fn a_removal_without_flags_is_executed_and_a_removal_with_cut_off_flags_is_not() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let mut body = [0; 32];
    body[0..8].copy_from_slice(&CLIENT.to_le_bytes());
    body[8..16].copy_from_slice(&55_i64.to_le_bytes());
    body[16..24].copy_from_slice(&publication.correlation_id.to_le_bytes());
    for (length, answers) in [(25, 0), (31, 0), (24, 1)] {
        driver.hear();
        driver.send_raw(type_id::REMOVE_PUBLICATION, &body[..length]);
        driver.work();
        assert_eq!(driver.hear().len(), answers, "{length} bytes");
    }
}

/// 03-9
#[test]
fn bytes_after_the_fields_of_a_command_are_ignored() {
    let mut driver = TestDriver::new();
    let command = driver.publication_command(CLIENT, "aeron:ipc", STREAM, false);
    let mut body = vec![0xFF; command.encoded_length() + 100];
    command.encode(&mut body).unwrap();
    driver.send_raw(command.type_id(), &body);
    driver.work();
    assert_eq!(names(&driver.hear()), ["CounterReady", "PublicationReady"]);
}

/// 03-4, 04-62
#[test]
fn each_duty_cycle_executes_one_command_and_responses_have_the_order_of_commands() {
    let mut driver = TestDriver::new();
    let mut expected = Vec::new();
    for stream_id in 0..5 {
        let add = driver.publication_command(CLIENT, "aeron:ipc", stream_id, false);
        let bad = driver.publication_command(CLIENT, "garbage", stream_id, false);
        driver.send(add);
        driver.send(bad);
        expected.extend([add.correlation_id(), bad.correlation_id()]);
    }
    let before = driver.cnc.to_driver().consumer_position();
    driver.duty_cycle();
    let taken = driver.cnc.to_driver().consumer_position() - before;
    assert_eq!(taken, 48, "one duty cycle reads one command");
    driver.work();
    let heard = driver.hear();
    let answered = heard.iter().filter_map(|heard| match heard.event() {
        Event::PublicationReady(ready) => Some(ready.correlation_id),
        Event::Error(error) => Some(error.offending_command_correlation_id),
        _ => None,
    });
    assert_eq!(answered.collect::<Vec<_>>(), expected);
}

/// 03-54, 03-56, 03-58, 03-59, 04-38, 04-46, 04-47
#[test]
fn an_invalid_channel_is_refused_and_recorded_and_leaves_no_resource() {
    let mut driver = TestDriver::new();
    let cases = [
        (
            "garbage",
            ErrorCode::InvalidChannel,
            "invalid URI scheme or transport: garbage",
        ),
        (
            "aeron:tcp",
            ErrorCode::InvalidChannel,
            "invalid URI scheme or transport: aeron:tcp",
        ),
        ("aeron:udp", ErrorCode::InvalidChannel, "aeron:udp"),
        (
            "aeron:ipcx",
            ErrorCode::InvalidChannel,
            "invalid URI scheme or transport: aeron:ipcx",
        ),
        (
            "aeron-spy:aeron:udp?endpoint=localhost:1",
            ErrorCode::InvalidChannel,
            "aeron-spy",
        ),
        (
            "aeron:ipc?term-length=100",
            ErrorCode::GenericError,
            "term length less than min length of 65536: length=100",
        ),
        (
            "aeron:ipc?term-length=96k",
            ErrorCode::GenericError,
            "term length not a power of 2: length=98304",
        ),
        (
            "aeron:ipc?mtu=100",
            ErrorCode::GenericError,
            "mtuLength must be a multiple of FRAME_ALIGNMENT: mtuLength=100",
        ),
        (
            "aeron:ipc?init-term-id=7|term-id=8",
            ErrorCode::GenericError,
            "params: init-term-id term-id term-offset must be used as a complete set",
        ),
        (
            "aeron:ipc?init-term-id=7|term-id=8|term-offset=33",
            ErrorCode::GenericError,
            "Param term-offset=33 must be multiple of FRAME_ALIGNMENT",
        ),
        (
            "aeron:ipc?init-term-id=7|term-id=8|term-offset=65568",
            ErrorCode::GenericError,
            "Param term-offset=65568 > term-length=65536",
        ),
        (
            "aeron:ipc?pub-wnd=512",
            ErrorCode::GenericError,
            "pub-wnd=512 cannot be less than the mtu=1408",
        ),
        (
            "aeron:ipc?pub-wnd=64k",
            ErrorCode::GenericError,
            "pub-wnd=65536 must not exceed half the term-length=65536",
        ),
    ];
    for (index, (channel, expected, text)) in cases.into_iter().enumerate() {
        let command = driver.publication_command(CLIENT, channel, STREAM, index % 2 == 0);
        let (code, message) = driver.ask_error(command);
        assert_eq!(code, expected, "{channel}");
        assert!(message.contains(text), "{channel}: {message}");
        assert!(driver.errors()[index].contains(text));
        assert_eq!(driver.system(SystemCounter::Errors), index as i64 + 1);
    }
    assert_eq!(
        (driver.logs.count(), driver.cnc.counters().records().count()),
        (0, 46)
    );
}

/// 03-53, 05-3
#[test]
fn a_channel_of_more_than_4095_bytes_is_refused() {
    let mut driver = TestDriver::new();
    let channel = |length: usize| format!("aeron:ipc?alias={}", "a".repeat(length - 16));
    driver.add_publication(&channel(4095), STREAM);
    let too_long = channel(4096);
    let command = driver.publication_command(CLIENT, &too_long, STREAM, false);
    assert_eq!(driver.ask_error(command).0, ErrorCode::InvalidChannel);
    let subscription = AddSubscription {
        client_id: CLIENT,
        correlation_id: 5,
        registration_correlation_id: -1,
        stream_id: STREAM,
        channel: too_long.as_bytes(),
    };
    assert_eq!(
        driver.ask_error(Command::AddSubscription(subscription)).0,
        ErrorCode::InvalidChannel
    );
}

#[test]
fn ipc_publications_and_subscriptions_cannot_have_destinations() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let (subscription, _) = driver.add_subscription("aeron:ipc", STREAM);
    let destination = |id, channel: &'static str| Destination {
        client_id: CLIENT,
        correlation_id: 5,
        registration_correlation_id: id,
        channel: channel.as_bytes(),
    };
    let udp = "aeron:udp?endpoint=localhost:40123";
    for id in [publication.registration_id, 12345] {
        for command in [
            Command::AddDestination(destination(id, udp)),
            Command::RemoveDestination(destination(id, udp)),
            Command::RemoveDestinationById(RemoveDestinationById {
                client_id: CLIENT,
                correlation_id: 5,
                resource_registration_id: id,
                destination_registration_id: 1,
            }),
        ] {
            let (code, text) = driver.ask_error(command);
            assert_eq!(code, ErrorCode::UnknownPublication);
            assert!(
                text.contains(&format!("unknown publication registration_id={id}")),
                "{text}"
            );
        }
    }
    for id in [subscription, 12345] {
        for channel in [udp, "aeron:ipc"] {
            let add = driver.ask_error(Command::AddRcvDestination(destination(id, channel)));
            let remove = driver.ask_error(Command::RemoveRcvDestination(destination(id, channel)));
            assert_eq!(
                (add.0, remove.0),
                (
                    ErrorCode::UnknownSubscription,
                    ErrorCode::UnknownSubscription
                )
            );
        }
    }
    let garbage = Command::AddRcvDestination(destination(subscription, "garbage"));
    assert_eq!(driver.ask_error(garbage).0, ErrorCode::InvalidChannel);
}

/// 03-46, 04-161: images of IPC publications.
#[test]
fn a_rejection_of_an_unknown_image_or_with_a_reason_that_is_too_long_is_refused() {
    let mut driver = TestDriver::new();
    let publication = driver.add_publication("aeron:ipc", STREAM);
    let reject = |image_correlation_id, reason| {
        Command::RejectImage(RejectImage {
            client_id: CLIENT,
            correlation_id: 5,
            image_correlation_id,
            position: 0,
            reason,
        })
    };
    let (code, text) = driver.ask_error(reject(12345, b"abcd"));
    assert_eq!(code, ErrorCode::GenericError);
    assert!(
        text.contains("Unable to resolve image for correlationId=12345"),
        "{text}"
    );
    let (code, text) = driver.ask_error(reject(publication.registration_id, &[b'a'; 1024]));
    assert_eq!(code, ErrorCode::GenericError);
    assert!(
        text.contains("Invalidation reason_text must be 1023 bytes or less"),
        "{text}"
    );
    assert_eq!(
        names(&driver.ask(reject(publication.registration_id, &[b'a'; 1023])))
            .last()
            .unwrap(),
        "OperationSuccess"
    );
    // This driver accepts a rejection of 36 bytes, with an empty reason. A C driver refuses rejections below 40 bytes.
    let mut body = [0; 36];
    body[8..16].copy_from_slice(&77_i64.to_le_bytes());
    body[16..24].copy_from_slice(&publication.registration_id.to_le_bytes());
    driver.send_raw(type_id::REJECT_IMAGE, &body);
    driver.work();
    assert_eq!(names(&driver.hear()).last().unwrap(), "OperationSuccess");
}

/// 03-52
#[test]
fn a_session_id_request_that_is_too_short_has_no_response() {
    let mut driver = TestDriver::new();
    driver.send_raw(type_id::GET_NEXT_AVAILABLE_SESSION_ID, &[0; 16]);
    driver.work();
    assert_eq!(names(&driver.hear()), [""; 0]);
    let command = GetNextAvailableSessionId {
        client_id: 1,
        correlation_id: 2,
        stream_id: 3,
    };
    assert_eq!(
        names(&driver.ask(Command::GetNextAvailableSessionId(command))),
        ["NextAvailableSessionId"]
    );
}

/// 03-49, 04-22
#[test]
fn a_client_can_terminate_only_a_driver_that_allows_it() {
    let terminate = Command::TerminateDriver(TerminateDriver {
        client_id: 1,
        correlation_id: -1,
        token: b"token",
    });
    let mut driver = TestDriver::new();
    assert_eq!(names(&driver.ask(terminate)), [""; 0]);
    assert!(!driver.is_terminated());
    assert_eq!(driver.errors().len(), 0);

    let mut driver =
        TestDriver::with(|context| context.termination_validator = TerminationValidator::Allow);
    assert_eq!(names(&driver.ask(terminate)), [""; 0]);
    assert!(driver.is_terminated());
}

/// 03-58: a repeated refusal increases the count of its entry in the error log, and adds no entry.
#[test]
fn a_repeated_refusal_does_not_fill_the_error_log() {
    let mut driver = TestDriver::new();
    for _ in 0..100 {
        let command = driver.publication_command(CLIENT, "aeron:ipc?mtu=100", STREAM, false);
        driver.ask_error(command);
    }
    assert_eq!(driver.errors().len(), 1);
    assert_eq!(driver.system(SystemCounter::Errors), 100);
}
