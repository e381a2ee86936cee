//! Channel URIs in a command to a driver. A URI is parsed or refused. A parsed URI is printed to a text that parses
//! to the same URI. All parameters are read, and the addresses resolved.
#![no_main]

mod machine;

use aeron_driver::media::destination::send_destination_endpoint;
use aeron_driver::media::{ChannelResolver, ChannelRole, UdpChannel};
use aeron_protocol::uri::{
    ChannelUri, ChannelUriBuilder, ExistingPublication, InitialPosition, NetworkParams,
    PublicationDefaults, PublicationParams, ReceiverGroup, SubscriptionDefaults,
    SubscriptionParams, Transport, UntetheredTimeouts,
};
use libfuzzer_sys::fuzz_target;

const UNTETHERED: UntetheredTimeouts = UntetheredTimeouts {
    window_limit_timeout_ns: 5_000_000_000,
    linger_timeout_ns: None,
    resting_timeout_ns: 10_000_000_000,
};

const PUBLICATION: PublicationDefaults = PublicationDefaults {
    term_length: 64 * 1024,
    mtu_length: 1408,
    window_length: 0,
    linger_timeout_ns: 5_000_000_000,
    is_sparse: true,
    spies_simulate_connection: false,
    max_resend: 16,
    untethered: UNTETHERED,
};

const SUBSCRIPTION: SubscriptionDefaults = SubscriptionDefaults {
    is_reliable: true,
    is_sparse: true,
    is_tether: true,
    is_rejoin: true,
    group: ReceiverGroup::Infer,
    receiver_window_length: 128 * 1024,
    untethered: UNTETHERED,
};

const EXISTING: ExistingPublication = ExistingPublication {
    session_id: 7,
    mtu_length: 1408,
    term_length: 64 * 1024,
    initial_position: InitialPosition {
        initial_term_id: 3,
        term_id: 4,
        term_offset: 64,
    },
};

const ROLES: [ChannelRole; 4] = [
    ChannelRole::Publication,
    ChannelRole::Subscription,
    ChannelRole::Spy,
    ChannelRole::ReceiveDestination,
];

fn check_addresses(channel: &UdpChannel) {
    assert!(channel.canonical_form.starts_with("UDP-"), "{channel:?}");
    assert!(channel.matches_canonical_form(channel), "{channel:?}");
    assert_eq!(
        channel.matches_tag(channel, channel.data_addresses()),
        Ok(channel.tag().is_some()),
        "{channel:?}"
    );
    let group = channel.remote_control.ip();
    assert!(!channel.is_multicast || group.is_multicast(), "{channel:?}");
    assert_eq!(
        channel.remote_data.is_ipv4(),
        channel.remote_control.is_ipv4(),
        "{channel:?}"
    );
}

fuzz_target!(|data: &[u8]| {
    let _ = Transport::of(data);
    let _ = send_destination_endpoint(data);
    for role in ROLES {
        let mut resolver =
            ChannelResolver::new(Box::new(machine::Literals), Box::new(machine::Loopback));
        if let Ok(channel) = resolver.resolve(data, role) {
            check_addresses(&channel);
        }
    }
    let Ok(channel) = ChannelUri::from_bytes(data) else {
        return;
    };
    let printed = channel.to_string();
    // Bytes that are not UTF-8 become three bytes each, so the printed text may be too long to be parsed again.
    if printed.len() <= data.len() {
        assert_eq!(
            ChannelUri::parse(&printed).as_ref(),
            Ok(&channel),
            "{printed}"
        );
    }
    if let Ok(params) = PublicationParams::parse(&channel, &PUBLICATION, |_| Some(EXISTING)) {
        assert!(params.window_length <= params.term_length / 2, "{params:?}");
        let _ = params.check_agrees_with(&EXISTING);
        if let Some(start) = params.initial_position {
            assert!(start.position(params.term_length) >= 0, "{params:?}");
        }
    }
    let _ = SubscriptionParams::parse(&channel, &SUBSCRIPTION);
    let _ = NetworkParams::parse(&channel);
    let _ = channel.flow_control();
    let _ = channel.entity_tag();
    let _ = channel.destination("127.0.0.1:0");
    if let Ok(builder) = ChannelUriBuilder::from_channel(&channel) {
        let _ = builder.validate();
        let rebuilt = ChannelUriBuilder::from_channel(&builder.build());
        assert_eq!(rebuilt, Ok(builder));
    }
});
