//! [`FollowingSchedule`]: all events of a run with followers, generated from a seed before the run starts.

use aeron_archive::client::PersistentSubscriptionState;
use aeron_protocol::archive::SourceLocation;
use fastrand::Rng;

use super::super::disk::{DiskPoint, FileKind};
use super::super::plan::{ArchiveEvent, ArchiveSchedule, HEAL_NS};
use crate::clock::ClockPlan;
use crate::network::{HostId, ipv4};
use crate::schedule::{MS, SECOND, one_of, rarely};

/// Start of deaths and stalls, in nanoseconds after the start of the schedule.
const DEATHS_BEGIN_NS: i64 = 1_000 * MS;
/// If the disk has at most this number of free bytes, recordings wait for retention.
const LOW_SPACE_THRESHOLD: u64 = 128 * 1_024;
/// Bytes per second at which the archive reads sealed segments again.
const SCRUB_RATE: u64 = 1 << 20;
/// Port of the replays of the first follower, if it is fixed.
const FIRST_REPLAY_PORT: u16 = 22_000;
/// One in this number of schedules has a period in which no replay arrives.
const SCHEDULES_PER_SILENCE: u32 = 3;
/// Address of the multicast group.
const GROUP: &str = "224.20.30.39:21002";

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct FollowingSchedule {
    /// The schedule of the drivers, the archives and the network. It has no operators.
    pub archives: ArchiveSchedule,
    /// The streams, each with its source and its follower.
    pub streams: Vec<FollowedStreamPlan>,
    /// Times at which a source or a follower dies, in nanoseconds after the start of the schedule.
    pub deaths: Vec<(i64, Victim)>,
    /// Pauses of followers: the time after the start of the schedule, the index of the follower, and the duration, in
    /// nanoseconds.
    pub stalls: Vec<(i64, usize, i64)>,
    /// Periods in which no datagram arrives at a port: the time after the start of the schedule, the port, and the
    /// duration, in nanoseconds.
    pub silences: Vec<(i64, u16, i64)>,
    /// A kill at a named point.
    pub kill: Option<NamedKill>,
}

/// A process that dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The first archive.
    Archive,
    /// The source of a stream.
    Source(usize),
    /// The follower of a stream.
    Follower(usize),
}

/// A kill that happens when a point is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedKill {
    /// The victim dies when the follower of the first stream is in this state. The `bool` says whether the follower has
    /// left a live stream before.
    InState(PersistentSubscriptionState, bool, Victim),
    /// The first archive dies at a step on its disk.
    OnDisk(DiskPoint),
}

/// How a stream gets to the archive and to its follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamForm {
    /// Over IPC.
    Ipc,
    /// Over unicast to the follower on the other host. The archive spies on the publication.
    Spied,
    /// Over multicast from the other host, where the follower is too.
    Multicast,
}

/// A recorded stream.
#[derive(Clone, Debug)]
pub struct FollowedStreamPlan {
    /// How the stream is sent.
    pub form: StreamForm,
    /// Stream id.
    pub stream_id: i32,
    /// Host of the source.
    pub source_host: HostId,
    /// Host of the follower.
    pub follower_host: HostId,
    /// Channel of the publications.
    pub publication_channel: String,
    /// Channel in the request to record.
    pub recording_channel: String,
    /// Source location in the request to record.
    pub source_location: SourceLocation,
    /// Channel of the live stream, without the session.
    pub live_channel: String,
    /// Channels of the follower's requests and of the responses.
    pub control: [String; 2],
    /// Channel of the follower's replays.
    pub replay_channel: String,
    /// Maximum message length in bytes.
    pub max_message_length: usize,
    /// Whether the archive has indexes. Then frames may contain empty pages, like torn frames.
    pub has_index: bool,
    /// Maximum number of bytes of a recording that retention keeps.
    pub max_bytes: i64,
    /// Longest time between two commits of the follower.
    pub commit_interval_ns: i64,
}

impl FollowingSchedule {
    /// Generates the schedule of a seed.
    pub fn draw(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed ^ 0xF0_11_0E_35);
        let mut schedule = Self::without_faults(seed, &mut random);
        let form = one_of(&mut random, &[StreamForm::Ipc, StreamForm::Spied]);
        schedule.add_stream(form, &mut random);
        schedule.add_stream(StreamForm::Multicast, &mut random);
        schedule.deaths = (0..random.usize(0..4))
            .map(|_| {
                let stream = random.usize(..2);
                let victim = match rarely(&mut random, 3) {
                    true => Victim::Source(stream),
                    false => Victim::Follower(stream),
                };
                (random.i64(DEATHS_BEGIN_NS..HEAL_NS), victim)
            })
            .collect();
        schedule.stalls = (0..random.usize(0..4))
            .map(|_| {
                let at_ns = random.i64(DEATHS_BEGIN_NS..HEAL_NS);
                // The driver regards a client as dead if the client does nothing for a second.
                let longest_ns = one_of(&mut random, &[950 * MS, 950 * MS, 3 * SECOND]);
                let length_ns = random.i64(50 * MS..longest_ns);
                (at_ns, random.usize(..2), length_ns)
            })
            .collect();
        if random.bool() {
            let at_ns = random.i64(DEATHS_BEGIN_NS..HEAL_NS);
            let torn = ArchiveEvent::TearWrite(0, FileKind::Extensions, 1);
            schedule.archives.events.push((at_ns, torn));
        }
        schedule.silences = silences(seed, schedule.streams.len());
        schedule
    }

    /// Generates a schedule with one stream and few faults: a kill at a named point, and a kill of the archive at 2.5
    /// s. From 4 s to 8 s, the follower pauses for 950 ms in each second, so that it loses the live stream.
    pub fn with_kill(seed: u64, form: StreamForm, kill: NamedKill) -> Self {
        let mut random = Rng::with_seed(seed ^ 0xF0_11_0E_36);
        let mut schedule = Self::without_faults(seed, &mut random);
        schedule.archives.events = vec![
            (2_500 * MS, ArchiveEvent::Kill(0, 600 * MS)),
            (HEAL_NS, ArchiveEvent::Heal),
        ];
        schedule.stalls = (4..8).map(|at| (at * SECOND, 0, 950 * MS)).collect();
        schedule.kill = Some(kill);
        schedule.add_stream(form, &mut random);
        schedule
    }

    /// Returns the schedule with replays over a response channel. Its control address is on the host of the archive.
    #[must_use]
    pub fn with_response_channel(mut self) -> Self {
        for stream in &mut self.streams {
            let host = ipv4(0);
            stream.replay_channel = format!("aeron:udp?control-mode=response|control={host}:23000");
        }
        self
    }

    fn without_faults(seed: u64, random: &mut Rng) -> Self {
        let mut archives = ArchiveSchedule::draw(seed);
        // Searches by time are checked with the true time.
        archives.clocks.fill(ClockPlan::default());
        archives
            .archives
            .iter_mut()
            .for_each(|it| it.compacts = false);
        archives.events.retain(|(_, event)| {
            !matches!(
                event,
                ArchiveEvent::CrashOperator(_)
                    | ArchiveEvent::Rot(_)
                    | ArchiveEvent::Stray(..)
                    | ArchiveEvent::FailCompaction(..)
            )
        });
        for driver in &mut archives.drivers {
            let untethered_ns = random.i64(50 * MS..250 * MS);
            driver.context.untethered_window_limit_timeout_ns = untethered_ns;
            driver.context.untethered_linger_timeout_ns = Some(untethered_ns);
            driver.context.untethered_resting_timeout_ns = untethered_ns;
        }
        let archive = &mut archives.archives[0];
        archive.retains = true;
        archive.has_copies = false;
        archive.stock = None;
        archive.context.resume = true;
        archive.context.scrub_rate = SCRUB_RATE;
        archive.context.scrub_interval_ns = 500 * MS;
        archive.context.low_storage_space_threshold = match random.bool() {
            true => LOW_SPACE_THRESHOLD,
            false => 0,
        };
        Self {
            archives,
            streams: Vec::new(),
            deaths: Vec::new(),
            stalls: Vec::new(),
            silences: Vec::new(),
            kill: None,
        }
    }

    fn add_stream(&mut self, form: StreamForm, random: &mut Rng) {
        let [first, second] = [ipv4(0), ipv4(1)];
        let archive = &self.archives.archives[0].context;
        let mtu = one_of(random, &[1_408, 1_408, 256, 8_192]);
        let term_length = (64 * 1_024) << random.u32(..2);
        let parameters = format!("term-length={term_length}|mtu={mtu}");
        let [is_first_host, has_dynamic_port] = [random.bool(), random.bool()];
        let follower_host = usize::from(form != StreamForm::Ipc);
        let unicast = format!("aeron:udp?endpoint={second}:21000");
        let group = |host| format!("aeron:udp?endpoint={GROUP}|interface={host}");
        // A tethered follower holds the source back. Kills at named points need a follower that loses the live stream.
        let is_tethered = self.kill.is_none() && random.bool();
        let local = "aeron:ipc?term-length=64k".to_owned();
        let plan = FollowedStreamPlan {
            form,
            stream_id: 1_000 + self.streams.len() as i32,
            source_host: usize::from(form == StreamForm::Multicast),
            follower_host,
            publication_channel: match form {
                StreamForm::Ipc => format!("aeron:ipc?{parameters}"),
                StreamForm::Spied => format!("{unicast}|{parameters}|ssc=true"),
                StreamForm::Multicast => format!("{}|{parameters}", group(second)),
            },
            recording_channel: match form {
                StreamForm::Ipc => "aeron:ipc".to_owned(),
                StreamForm::Spied => unicast.clone(),
                StreamForm::Multicast => group(first),
            },
            source_location: match form {
                StreamForm::Ipc | StreamForm::Spied => SourceLocation::Local,
                StreamForm::Multicast => SourceLocation::Remote,
            },
            live_channel: match form {
                StreamForm::Ipc => format!("aeron:ipc?tether={is_tethered}"),
                StreamForm::Spied => format!("{unicast}|tether={is_tethered}"),
                StreamForm::Multicast => format!("{}|tether={is_tethered}", group(second)),
            },
            control: match follower_host {
                0 => [local.clone(), local],
                _ => [
                    archive.control_channel.clone(),
                    format!("aeron:udp?endpoint={second}:0"),
                ],
            },
            replay_channel: match (follower_host, is_first_host, has_dynamic_port) {
                (0, true, _) => "aeron:ipc".to_owned(),
                (host, _, true) => format!("aeron:udp?endpoint={}:0", ipv4(host)),
                (host, _, false) => {
                    format!(
                        "aeron:udp?endpoint={}:{}",
                        ipv4(host),
                        usize::from(FIRST_REPLAY_PORT) + self.streams.len()
                    )
                }
            },
            max_message_length: random.usize(400..7_000),
            has_index: archive.index,
            max_bytes: random.i64(1..4) * 128 * 1_024,
            commit_interval_ns: random.i64(5 * MS..500 * MS),
        };
        self.streams.push(plan);
    }
}

/// Draws a period in which the replays of a follower do not arrive, although its requests do. It was added later, so it
/// has random numbers of its own.
fn silences(seed: u64, streams: usize) -> Vec<(i64, u16, i64)> {
    let mut random = Rng::with_seed(seed ^ 0x51_1E_4C_E5);
    if !rarely(&mut random, SCHEDULES_PER_SILENCE) {
        return Vec::new();
    }
    let at_ns = random.i64(0..HEAL_NS - 4 * SECOND);
    let port = FIRST_REPLAY_PORT + random.u16(..streams as u16);
    vec![(at_ns, port, random.i64(SECOND..4 * SECOND))]
}
