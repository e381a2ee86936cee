//! Draws conversations over response channels. They were added later, so they have random numbers of their own.

use fastrand::Rng;

use super::{DriverPlan, FAULTS_BEGIN_NS, HEAL_NS, SECOND, one_of, rarely};
use crate::network::{HostId, ipv4};
use crate::roles::ConversationPlan;

/// One in this number of schedules has a conversation.
const SCHEDULES_PER_CONVERSATION: u32 = 8;
/// Maximum number of deaths of a conversation's processes.
const MAX_DEATHS: usize = 3;
const STREAM_ID: i32 = 1_101;
const REQUEST_PORT: u16 = 20_801;
const RESPONSE_PORT: u16 = 20_802;

/// Draws a conversation, and the times at which a process of it dies, in nanoseconds after the start of the schedule,
/// each with the number of the process. Process 0 is the server.
pub fn draw(seed: u64, drivers: &[DriverPlan]) -> Option<(ConversationPlan, Vec<(i64, usize)>)> {
    let mut random = Rng::with_seed(seed ^ 0x4E_5B_0E_5E);
    // The requests of both clients are sessions of one stream.
    let is_limited = |driver: &DriverPlan| driver.context.stream_session_limit == 1;
    if !rarely(&mut random, SCHEDULES_PER_CONVERSATION) || drivers.iter().any(is_limited) {
        return None;
    }
    let hosts = drivers.len();
    let server = random.usize(..hosts);
    let others: Vec<HostId> = (0..hosts).filter(|host| *host != server).collect();
    // A client on another host, and one on any host: response channels also work within a host.
    let clients = vec![one_of(&mut random, &others), random.usize(..hosts)];
    let mtu = one_of(&mut random, &[256, 1_408]);
    let parameters = format!("term-length=65536|mtu={mtu}");
    let address = ipv4(server);
    let control = format!("control-mode=response|control={address}:{RESPONSE_PORT}");
    let deaths = (0..random.usize(..=MAX_DEATHS))
        .map(|_| {
            let at_ns = random.i64(FAULTS_BEGIN_NS..HEAL_NS - SECOND);
            (at_ns, random.usize(..=clients.len()))
        })
        .collect();
    let plan = ConversationPlan {
        server,
        clients,
        request_channel: format!("aeron:udp?endpoint={address}:{REQUEST_PORT}|{parameters}"),
        response_channel: format!("aeron:udp?{control}|{parameters}"),
        stream_id: STREAM_ID,
        max_message_length: random.usize(100..1_000),
    };
    Some((plan, deaths))
}
