//! Default settings of a driver, for parameters that a channel does not set.

use aeron_protocol::uri::{
    PublicationDefaults, ReceiverGroup, SubscriptionDefaults, UntetheredTimeouts,
};

const UNTETHERED: UntetheredTimeouts = UntetheredTimeouts {
    window_limit_timeout_ns: 5_000_000_000,
    linger_timeout_ns: None,
    resting_timeout_ns: 10_000_000_000,
};

pub const PUBLICATION: PublicationDefaults = PublicationDefaults {
    term_length: 16 << 20,
    mtu_length: 1408,
    window_length: 0,
    linger_timeout_ns: 5_000_000_000,
    is_sparse: true,
    spies_simulate_connection: false,
    max_resend: 16,
    untethered: UNTETHERED,
};

pub const SUBSCRIPTION: SubscriptionDefaults = SubscriptionDefaults {
    is_reliable: true,
    is_sparse: true,
    is_tether: true,
    is_rejoin: true,
    group: ReceiverGroup::Infer,
    receiver_window_length: 128 * 1024,
    untethered: UNTETHERED,
};
