//! The names of the hosts, and how they are resolved. The draws use random numbers of their own.

use fastrand::Rng;

use super::streams::Form;
use super::{DriverPlan, FAULTS_BEGIN_NS, HEAL_NS, MS, SECOND, StreamPlan, one_of};
use crate::network::{HostId, ipv4};

/// Port of the protocol between the drivers' name resolvers.
const GOSSIP_PORT: u16 = 8_050;
/// Maximum number of periods in which lookups fail.
const MAX_OUTAGES: usize = 4;

/// How a schedule resolves the names of hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamePlan {
    /// Whether the drivers exchange the names.
    pub is_gossip: bool,
    /// Periods in which other hosts cannot be looked up, in nanoseconds after the start of the schedule. If the flag is
    /// set, lookups instead return an address that no host has.
    pub outages: Vec<(std::ops::Range<i64>, bool)>,
}

/// Returns the name of a host.
pub fn host_name(host: HostId) -> String {
    format!("host-{host}")
}

/// Draws the way in which names are resolved, and puts names into some of the channels. Half of the schedules have no
/// names.
pub fn draw(seed: u64, drivers: &mut [DriverPlan], streams: &mut [StreamPlan]) -> NamePlan {
    let mut random = Rng::with_seed(seed ^ 0x4A_3E_50_F5);
    let plan = match random.u8(..4) {
        0 | 1 => return NamePlan::default(),
        2 => NamePlan {
            is_gossip: true,
            outages: Vec::new(),
        },
        _ => NamePlan {
            is_gossip: false,
            outages: (0..random.usize(1..=MAX_OUTAGES))
                .map(|_| {
                    let begin_ns = random.i64(0..HEAL_NS - SECOND);
                    let end_ns = begin_ns + random.i64(SECOND..4 * FAULTS_BEGIN_NS);
                    (begin_ns..end_ns.min(HEAL_NS - SECOND), random.bool())
                })
                .collect(),
        },
    };
    let hosts = drivers.len();
    for (host, driver) in drivers.iter_mut().enumerate() {
        let context = &mut driver.context;
        context.re_resolution_check_interval_ns = random.i64(200 * MS..SECOND);
        if plan.is_gossip {
            context.name_resolver_supplier = "driver".into();
            context.resolver_name = host_name(host);
            context.resolver_interface = format!("{}:{GOSSIP_PORT}", ipv4(host));
            // The first host relays the names of the others.
            let neighbor = usize::from(host == 0);
            context.resolver_bootstrap_neighbor = format!("{}:{GOSSIP_PORT}", ipv4(neighbor));
            context.resolver_self_resolution_interval_ns = random.i64(100 * MS..500 * MS);
            context.resolver_neighbor_resolution_interval_ns = random.i64(200 * MS..SECOND);
            context.resolver_bootstrap_neighbor_resolution_interval_ns =
                random.i64(500 * MS..2 * SECOND);
            context.resolver_neighbor_timeout_ns = one_of(&mut random, &[3, 5, 10]) * SECOND;
        }
    }
    for stream in streams {
        if !matches!(stream.form, Form::Multicast | Form::Ipc) && random.bool() {
            let texts = stream.subscribers.iter_mut().flat_map(|plan| {
                let destinations = plan.destinations.iter_mut();
                destinations.chain([&mut plan.channel])
            });
            let publisher = &mut stream.publisher;
            let own = publisher.destinations.iter_mut();
            for text in texts.chain(own).chain([&mut publisher.channel]) {
                *text = with_names(text, hosts);
            }
        }
    }
    plan
}

/// Returns a channel with names instead of the IPv4 addresses of hosts.
fn with_names(channel: &str, hosts: usize) -> String {
    (0..hosts).fold(channel.to_owned(), |channel, host| {
        channel.replace(
            &format!("={}:", ipv4(host)),
            &format!("={}:", host_name(host)),
        )
    })
}
