//! Tests of the end of streams, images, destinations and endpoints.

use aeron_memory::counters::system::SystemCounter;
use aeron_memory::log::metadata::NO_END_OF_STREAM;

use super::rig::*;
use crate::receiver::*;

const EOS: u8 = 0xE0;
const REVOKED: u8 = 0xF0;

fn released(rig: &mut Rig) -> Vec<i64> {
    rig.events()
        .into_iter()
        .filter_map(|event| match event {
            ReceiverEvent::ImageReleased(id) => Some(id),
            _ => None,
        })
        .collect()
}

/// 02-68. 04-151: the receiver's part.
#[test]
fn the_stream_ends_at_the_position_of_the_first_heartbeat_that_announces_the_end() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    let metadata = image.log.metadata();
    rig.deliver(&endpoint, &{
        let mut data = data(0, 64);
        data[5] |= 0x20;
        data
    });
    assert!(
        !image.status.is_end_of_stream(),
        "only a heartbeat ends a stream"
    );
    assert_eq!(metadata.end_of_stream_position(), NO_END_OF_STREAM);
    rig.deliver(&endpoint, &heartbeat_with(640, EOS));
    assert!(image.status.is_end_of_stream());
    assert!(!image.status.is_revoked());
    assert_eq!(metadata.end_of_stream_position(), 640);
    assert_eq!(image.high_water_mark(), 640);
    rig.deliver(&endpoint, &heartbeat_with(1280, EOS));
    assert_eq!(
        metadata.end_of_stream_position(),
        640,
        "the end of the stream is set once"
    );
}

/// 02-69. 04-153: the receiver's part.
#[test]
fn a_revoked_stream_is_marked_and_its_gaps_are_not_requested() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    rig.deliver(&endpoint, &heartbeat_with(640, REVOKED));
    rig.deliver(&endpoint, &heartbeat_with(640, REVOKED));
    assert!(image.status.is_revoked());
    assert!(image.log.metadata().is_publication_revoked());
    assert_eq!(image.log.metadata().end_of_stream_position(), 640);
    assert_eq!(rig.count(SystemCounter::PublicationImagesRevoked), 1);
    image.status.report_missing(INITIAL_TERM, 0, 640);
    rig.cycle();
    assert_eq!(rig.sent(), []);
}

#[test]
fn the_last_control_frames_of_a_revoked_image_are_sent_before_its_removal() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    rig.deliver(&endpoint, &heartbeat_with(640, REVOKED));
    image.status.begin_ending();
    image.status.request_status_message();
    rig.command(ReceiverCommand::RemoveImage(image.correlation_id));
    assert_eq!(rig.sent(), [Seen::Status(0, WINDOW as i32, true)]);
    assert_eq!(released(&mut rig), [image.correlation_id]);
}

/// 02-70, 04-158
#[test]
fn a_stream_from_several_sources_ends_when_all_sources_have_ended_it() {
    let mut rig = Rig::new();
    let first = rig.subscribed(UNICAST);
    let second = rig.add_destination(&first, "aeron:udp?endpoint=127.0.0.1:24011");
    let image = rig.image(&first, setup());
    rig.deliver(&second, &heartbeat(0));
    rig.deliver(&first, &heartbeat_with(640, EOS));
    assert!(!image.status.is_end_of_stream());
    rig.deliver(&second, &heartbeat_with(320, EOS));
    assert!(image.status.is_end_of_stream());
    assert_eq!(image.log.metadata().end_of_stream_position(), 640);
}

/// 02-72, 04-154: the channel's `rejoin` decides whether the conductor removes the state of the session.
#[test]
fn a_session_that_lost_its_image_is_ignored_until_the_conductor_removes_its_state() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    rig.command(ReceiverCommand::RemoveImage(image.correlation_id));
    rig.deliver(&endpoint, &encoded(|out| setup().encode(out)));
    rig.deliver(&endpoint, &data(0, 64));
    rig.run(5 * SECOND);
    assert_eq!(rig.sent(), []);
    assert!(rig.image_requests().is_empty());
    rig.command(ReceiverCommand::RemoveState {
        endpoint: endpoint.id,
        session: session(SESSION),
        state: ForgettableState::CoolDown,
    });
    rig.image(&endpoint, setup());
}

#[test]
fn a_session_that_has_ended_can_get_a_new_image_at_once() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    rig.deliver(&endpoint, &heartbeat_with(0, EOS));
    rig.command(ReceiverCommand::RemoveImage(image.correlation_id));
    rig.events();
    rig.image(&endpoint, setup());
}

/// 04-156
#[test]
fn a_subscription_that_is_added_again_while_the_image_drains_gets_another_image() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let old = rig.image(&endpoint, setup());
    rig.command(ReceiverCommand::RemoveSubscription {
        endpoint: endpoint.id,
        stream_id: STREAM,
    });
    rig.deliver(&endpoint, &data(0, 64));
    assert!(old.is_empty(), "no subscription matches");
    rig.command(ReceiverCommand::AddSubscription {
        endpoint: endpoint.id,
        stream_id: STREAM,
    });
    rig.deliver(&endpoint, &data(0, 64));
    assert_eq!(rig.sent(), [Seen::SetupRequest(SESSION, STREAM)]);
    let new = rig.image(&endpoint, setup_at(64));
    rig.deliver(&endpoint, &data(64, 64));
    assert!(old.is_empty());
    assert_eq!(new.high_water_mark(), 128);
    rig.after(201 * MS);
    let status = Seen::Status(64, WINDOW as i32, false);
    assert_eq!(rig.sent(), [status], "only the newer image sends");
    rig.command(ReceiverCommand::RemoveImage(old.correlation_id));
    rig.deliver(&endpoint, &data(128, 64));
    assert_eq!(new.high_water_mark(), 192);
}

#[test]
fn an_image_without_a_remaining_subscription_receives_no_data() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    rig.deliver(&endpoint, &encoded(|out| setup().encode(out)));
    let request = rig.image_requests().remove(0);
    rig.command(ReceiverCommand::RemoveSubscription {
        endpoint: endpoint.id,
        stream_id: STREAM,
    });
    let image = rig.create_image(&request, Options::default());
    rig.deliver(&endpoint, &data(0, 64));
    assert!(image.is_empty());
    rig.command(ReceiverCommand::RemoveImage(image.correlation_id));
    assert_eq!(released(&mut rig), [image.correlation_id]);
}

#[test]
fn a_subscription_to_one_session_outlives_the_subscription_to_all_sessions() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    rig.command(ReceiverCommand::AddSubscriptionBySession {
        endpoint: endpoint.id,
        session: session(SESSION),
    });
    let image = rig.image(&endpoint, setup());
    let remove_all = ReceiverCommand::RemoveSubscription {
        endpoint: endpoint.id,
        stream_id: STREAM,
    };
    rig.command(remove_all);
    rig.deliver(&endpoint, &data(0, 64));
    assert_eq!(image.high_water_mark(), 64);
    rig.command(ReceiverCommand::RemoveSubscriptionBySession {
        endpoint: endpoint.id,
        session: session(SESSION),
    });
    rig.deliver(&endpoint, &data(64, 64));
    assert_eq!(image.high_water_mark(), 64);
}

#[test]
fn a_removed_destination_receives_no_data_and_sends_no_frames() {
    let mut rig = Rig::new();
    let first = rig.subscribed(UNICAST);
    let second = rig.add_destination(&first, EXPLICIT);
    let image = rig.image(&second, setup());
    rig.command(ReceiverCommand::RemoveDestination {
        endpoint: first.id,
        destination: second.destination,
    });
    assert!(matches!(
        rig.events()[..],
        [ReceiverEvent::DestinationReleased { endpoint, destination }]
            if endpoint == first.id && destination == second.destination
    ));
    rig.deliver(&second, &data(0, 64));
    rig.run(5 * SECOND);
    assert_eq!(rig.sent(), [], "no request, no status");
    rig.deliver(&first, &data(0, 64));
    assert_eq!(image.high_water_mark(), 64);
    rig.run(SECOND);
    assert!(!rig.sent().is_empty());
}

#[test]
fn a_removed_endpoint_frees_its_addresses_and_drops_its_images() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(UNICAST);
    let image = rig.image(&endpoint, setup());
    rig.deliver(&endpoint, &data_of(other_session(), 64));
    rig.command(ReceiverCommand::RemoveEndpoint(endpoint.id));
    assert!(matches!(
        rig.events()[..],
        [ReceiverEvent::EndpointReleased(id)] if id == endpoint.id
    ));
    rig.sent();
    rig.deliver(&endpoint, &data(0, 64));
    rig.run(5 * SECOND);
    assert!(image.is_empty());
    assert_eq!(rig.sent(), []);
    let again = rig.subscribed(UNICAST);
    assert_eq!(again.address, endpoint.address);
    rig.command(ReceiverCommand::RemoveImage(image.correlation_id));
    assert_eq!(released(&mut rig), [image.correlation_id]);
    rig.image(&again, setup());
}

fn other_session() -> aeron_protocol::frame::DataHeader {
    aeron_protocol::frame::DataHeader {
        session_id: SESSION + 1,
        ..header_at(0)
    }
}

#[test]
fn commands_for_removed_objects_have_no_effect() {
    let mut rig = Rig::new();
    let gone = rig.endpoint(UNICAST, None);
    rig.command(ReceiverCommand::RemoveEndpoint(gone.id));
    rig.events();
    rig.command(ReceiverCommand::RemoveEndpoint(gone.id));
    rig.command(ReceiverCommand::AddSubscription {
        endpoint: gone.id,
        stream_id: STREAM,
    });
    rig.add_destination(&gone, UNICAST);
    rig.command(ReceiverCommand::RemoveImage(7));
    rig.command(ReceiverCommand::RejectImage {
        correlation_id: 7,
        reason: Box::default(),
    });
    rig.command(ReceiverCommand::ResolutionChange {
        endpoint: gone.id,
        destination: gone.destination,
        address: sender(),
    });
    assert!(rig.events().is_empty());
    assert_eq!(rig.count(SystemCounter::ResolutionChanges), 0);
}

/// 04-172: control addresses of receive endpoints.
#[test]
fn the_name_of_a_silent_control_address_is_looked_up_and_the_new_address_is_used() {
    let mut rig = Rig::new();
    let endpoint = rig.subscribed(EXPLICIT);
    let other = rig.subscribed(UNICAST);
    rig.run(5 * SECOND);
    assert!(rig.events().is_empty());
    rig.run(1_010 * MS);
    let events = rig.events();
    let [
        ReceiverEvent::ReResolveControl {
            endpoint: id,
            destination,
            name,
            current,
        },
    ] = events.as_slice()
    else {
        panic!("expected one event, and not about {other:?}: {events:?}");
    };
    assert_eq!((*id, *destination), (endpoint.id, endpoint.destination));
    assert_eq!(name, "127.0.0.1:24004");
    assert_eq!(*current, address("127.0.0.1:24004"));
    let moved = address("127.0.0.2:24004");
    rig.command(ReceiverCommand::ResolutionChange {
        endpoint: endpoint.id,
        destination: endpoint.destination,
        address: moved,
    });
    assert_eq!(rig.count(SystemCounter::ResolutionChanges), 1);
    rig.sent();
    rig.run(1_010 * MS);
    assert_eq!(rig.sent_to(), [(moved, Seen::SetupRequest(0, 0))]);
    for _ in 0..10 {
        rig.run(SECOND);
        rig.deliver(&endpoint, &data(0, 64));
    }
    assert!(rig.events().is_empty(), "the sender is active again");
}

#[test]
fn names_are_not_looked_up_again_if_re_resolution_is_turned_off() {
    let mut rig = Rig::with(|context| context.re_resolution_check_interval_ns = 0);
    rig.subscribed(EXPLICIT);
    rig.run(20 * SECOND);
    assert!(rig.events().is_empty());
}
