//! Tests of IPC subscriptions and their images.

use aeron_memory::counters::types;
use aeron_protocol::ErrorCode;
use aeron_protocol::command::{AddSubscription, Command, RemoveSubscription};
use aeron_protocol::event::Event;

use crate::conductor::harness::{CLIENT, STREAM, TestDriver, names};

fn subscribe<'a>(driver: &mut TestDriver, channel: &'a str) -> Command<'a> {
    Command::AddSubscription(AddSubscription {
        client_id: CLIENT,
        correlation_id: driver.next_id(),
        registration_correlation_id: -1,
        stream_id: STREAM,
        channel: channel.as_bytes(),
    })
}

/// 03-29, 01-43: the label of `sub-pos`.
#[test]
fn a_subscription_is_announced_before_its_images() {
    let mut driver = TestDriver::new();
    let shared = driver.add_publication("aeron:ipc", STREAM);
    let exclusive = driver.add_exclusive_publication("aeron:ipc", STREAM);
    driver.add_publication("aeron:ipc", STREAM + 1);
    let command = subscribe(&mut driver, "aeron:ipc?alias=mine");
    let heard = driver.ask(command);
    assert_eq!(
        names(&heard),
        ["SubscriptionReady", "AvailableImage", "AvailableImage"]
    );
    let Event::SubscriptionReady(ready) = heard[0].event() else {
        panic!()
    };
    assert_eq!(
        (ready.correlation_id, ready.channel_status_indicator_id),
        (command.correlation_id(), -1)
    );
    for (heard, publication) in heard[1..].iter().zip([&shared, &exclusive]) {
        let Event::AvailableImage(image) = heard.event() else {
            panic!()
        };
        assert_eq!(
            (image.correlation_id, image.session_id),
            (publication.registration_id, publication.session_id)
        );
        assert_eq!(image.subscription_registration_id, command.correlation_id());
        assert_eq!(image.source_identity, b"aeron:ipc");
        let name = format!(
            "/aeron/publications/{}.logbuffer",
            publication.registration_id
        );
        assert_eq!(image.log_file_name, name.as_bytes());
        let record = driver
            .cnc
            .counters()
            .record(image.subscriber_position_id)
            .unwrap();
        assert_eq!(
            (record.type_id, record.registration_id),
            (types::SUBSCRIBER_POSITION, command.correlation_id())
        );
        assert_eq!(
            (record.owner_id, record.reference_id),
            (CLIENT, publication.registration_id)
        );
        let text = format!(
            "{} {} {STREAM}",
            command.correlation_id(),
            publication.session_id
        );
        assert_eq!(
            record.label,
            format!("sub-pos: {text} aeron:ipc?alias=mine @0")
        );
    }
}

/// `docs/spec/03-control-protocol-and-client.md`, section 4.4, rule 4.
#[test]
fn a_publication_is_announced_before_its_images() {
    let mut driver = TestDriver::new();
    driver.add_subscription("aeron:ipc", STREAM);
    let command = driver.publication_command(CLIENT, "aeron:ipc", STREAM, false);
    assert_eq!(
        names(&driver.ask(command)),
        ["PublicationReady", "AvailableImage"]
    );
}

/// 03-30
#[test]
fn a_subscription_with_a_session_id_receives_only_this_session() {
    let mut driver = TestDriver::new();
    driver.add_exclusive_publication("aeron:ipc", STREAM);
    driver.add_exclusive_publication("aeron:ipc?session-id=77", STREAM);
    let (_, images) = driver.add_subscription("aeron:ipc?session-id=77", STREAM);
    assert_eq!(
        images
            .iter()
            .map(|image| image.session_id)
            .collect::<Vec<_>>(),
        [77]
    );
}

/// 03-34, 04-36: the driver sends no event about the images. Any client can remove the subscription.
#[test]
fn removing_a_subscription_sends_no_event_about_its_images() {
    let mut driver = TestDriver::new();
    driver.add_publication("aeron:ipc", STREAM);
    let (subscription, _) = driver.add_subscription("aeron:ipc", STREAM);
    assert_eq!(driver.counters_of(types::SUBSCRIBER_POSITION).len(), 1);
    let of_another_client = RemoveSubscription {
        client_id: 99,
        correlation_id: 5,
        registration_id: subscription,
    };
    assert_eq!(
        names(&driver.ask(Command::RemoveSubscription(of_another_client))),
        ["OperationSuccess"]
    );
    assert!(driver.counters_of(types::SUBSCRIBER_POSITION).is_empty());
    let (code, text) = driver.ask_error(Command::RemoveSubscription(of_another_client));
    assert_eq!(code, ErrorCode::UnknownSubscription);
    assert!(
        text.contains(&format!(
            "unknown subscription client_id=99 registration_id={subscription}"
        )),
        "{text}"
    );
}

/// 03-56: the part about subscriptions.
#[test]
fn a_subscription_with_an_invalid_parameter_is_refused() {
    let mut driver = TestDriver::new();
    let command = subscribe(&mut driver, "aeron:ipc?tether=maybe");
    let (code, text) = driver.ask_error(command);
    assert_eq!(code, ErrorCode::GenericError);
    assert!(
        text.contains("could not parse tether=maybe as bool from URI"),
        "{text}"
    );
}
