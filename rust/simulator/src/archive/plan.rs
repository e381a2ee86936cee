//! [`ArchiveSchedule`]: all events of a run with archives, generated from a seed before the run starts.

use std::io::ErrorKind;

use aeron_archive::memory_storage::StorageFault;
use aeron_archive::recovery::OnTornFragment;
use aeron_archive::server::context::{ArchiveContext, StepSizes};
use aeron_archive::storage::SyncLevel;
use aeron_protocol::archive::SourceLocation;
use fastrand::Rng;

use super::compacting::{CompactionFault, PowerLoss};
use super::disk::FileKind;
use super::operator::OperatorPlan;
use super::server::ArchivePlan;
use super::stock::Stock;
use crate::clock::ClockPlan;
use crate::network::{HostId, LossPattern, Weather, ipv4};
use crate::schedule::clocks;
use crate::schedule::{DriverPlan, MS, SECOND, Timing, one_of, rarely};

/// Start of the faults, in nanoseconds after the start of the schedule.
const FAULTS_BEGIN_NS: i64 = 1_500 * MS;
/// End of the faults, in nanoseconds after the start of the schedule.
pub const HEAL_NS: i64 = 8 * SECOND;
/// Number of hosts, each with a driver and an archive.
pub const HOSTS: usize = 2;
/// Port of an archive's control requests.
const CONTROL_PORT: u16 = 8_010;
/// Channel of requests and responses on one host.
const LOCAL_CONTROL: &str = "aeron:ipc?term-length=64k";

/// The seed modulo this number selects the features of a schedule.
const RETAINING_DIVISOR: u64 = 8;
/// Remainders of the seeds for which clients commit positions of readers and set retention policies.
const RETAINING_REMAINDERS: [u64; 2] = [1, 7];
/// Remainder of the seeds for which the first archive has object storage.
const COPYING_REMAINDER: u64 = 3;
/// Remainder of the seeds for which clients request replays that never arrive.
const LOSING_REMAINDER: u64 = 4;
/// Remainders of the seeds for which the archives compact their catalogs.
const COMPACTING_REMAINDERS: [u64; 2] = [5, 6];
/// Remainder of the seeds in which replays may have the recorded pace.
const SPEEDS_REMAINDER: u64 = 6;
/// Number of faults of compactions in a schedule.
const COMPACTION_FAULTS: usize = 8;
/// Number of steps from the creation of the new catalog to the step after the compaction.
const COMPACTION_STEPS: u64 = 6;
/// Number of steps from the creation of the new catalog to its first write.
const WRITE_OF_A_COMPACTION: u64 = 1;
/// Client liveness timeout in schedules with slow writes, in nanoseconds. It is more than two slow writes.
const SLOW_LIVENESS_NS: i64 = 2_500 * MS;
/// In schedules with policies, recordings wait for retention if the disk has at most this number of free bytes.
const RETAINING_THRESHOLD: u64 = 128 * 1_024;

/// An event of the schedule. Durations are in nanoseconds.
#[derive(Clone, Debug)]
pub enum ArchiveEvent {
    /// An archive dies between two writes, and starts again after this time.
    Kill(usize, i64),
    /// A fault occurs at one of the next writes of an archive.
    FailWrite(usize, u64, StorageFault),
    /// An archive dies during a write to a file of this kind. At most this number of pages is written.
    TearWrite(usize, FileKind, usize),
    /// An archive ends cleanly, and starts again at once.
    Restart(usize),
    /// The disk of an archive has only this many free bytes.
    FillDisk(usize, u64),
    /// The disk of an archive works again.
    HealDisk(usize),
    /// A fault occurs in the next compaction of an archive's catalog, this number of steps after the creation of the
    /// new catalog.
    FailCompaction(usize, u64, CompactionFault),
    /// A driver dies, and starts again after this time.
    CrashDriver(HostId, i64),
    /// A driver starts.
    StartDriver(HostId),
    /// A machine loses power, and starts again after this time.
    LosePower(HostId, i64),
    /// A client dies.
    CrashOperator(usize),
    /// A bit of a recording is flipped.
    Rot(usize),
    /// The next write to an active recording goes to a wrong place in a stopped recording. If the flag is set, it also
    /// goes to the right place.
    Stray(usize, bool),
    /// The next sync of a file of this kind fails, and the bytes that were not synced are lost.
    FailSync(usize, FileKind),
    /// Some writes of an archive take up to a second.
    SlowDown(usize),
    /// The network conditions change.
    Weather(Weather),
    /// All faults end.
    Heal,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct ArchiveSchedule {
    /// Seed from which the schedule was generated.
    pub seed: u64,
    /// The drivers, one for each host.
    pub drivers: Vec<DriverPlan>,
    /// The wall clocks, one for each host.
    pub clocks: Vec<ClockPlan>,
    /// The archives, one for each host.
    pub archives: Vec<ArchivePlan>,
    /// The clients.
    pub operators: Vec<OperatorPlan>,
    /// Network conditions without faults.
    pub fair: Weather,
    /// Events with their times, in order.
    pub events: Vec<(i64, ArchiveEvent)>,
    /// Minimum and maximum step of virtual time, in nanoseconds. The minimum applies while there is work.
    pub step_ns: (i64, i64),
    /// Seed of the network's random decisions.
    pub network_seed: u64,
}

impl ArchiveSchedule {
    /// Generates the schedule of a seed.
    pub fn draw(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed ^ 0xA5_C417_E000);
        let timing = Timing::draw(&mut random);
        let mut drivers: Vec<_> = (0..HOSTS).map(|_| driver(&mut random, &timing)).collect();
        // Without indexes, an archive may regard a complete frame as torn. Recordings are replicated between the
        // archives, so both archives have the same setting.
        let is_indexed = !seed.is_multiple_of(4);
        let mut archives: Vec<_> = (0..HOSTS)
            .map(|host| archive(&mut random, host, is_indexed))
            .collect();
        let mut operators = operators(&mut random, &archives);
        let retains = RETAINING_REMAINDERS.contains(&(seed % RETAINING_DIVISOR));
        for operator in &mut operators {
            operator.retains = retains;
            operator.has_long_ages = !has_right_clocks(seed);
        }
        if retains {
            for archive in &mut archives {
                archive.retains = true;
                archive.context.low_storage_space_threshold = RETAINING_THRESHOLD;
            }
            archives[0].stock = Stock::draw(seed);
            operators[0].limits_stock = archives[0].stock.map(|stock| stock.max_bytes);
        }
        let loses_replays = seed % RETAINING_DIVISOR == LOSING_REMAINDER;
        for operator in operators.iter_mut().take(2) {
            operator.loses_replays = loses_replays;
        }
        if seed % RETAINING_DIVISOR == COPYING_REMAINDER {
            archives[0].has_copies = true;
            archives[0].context.objects_delete_local = true;
            archives[0].context.objects_local_bytes = seed / RETAINING_DIVISOR % 3 * 64 * 1_024;
            for operator in operators.iter_mut().filter(|it| it.archive == 0) {
                operator.has_copies = true;
            }
        }
        let fair = Weather::fair(random.i64(5_000..500_000));
        let mut events = events(&mut random, &archives, &operators, &fair);
        if COMPACTING_REMAINDERS.contains(&(seed % RETAINING_DIVISOR)) {
            for archive in &mut archives {
                archive.compacts = true;
            }
            events.extend(compaction_faults(seed, &archives));
            let has_speeds = seed % RETAINING_DIVISOR == SPEEDS_REMAINDER;
            operators
                .iter_mut()
                .for_each(|it| it.has_speeds = has_speeds);
        }
        events.extend(disk_defects(seed, &archives, &mut drivers));
        shorten_steps(seed, &mut archives);
        let clocks = match has_right_clocks(seed) {
            true => vec![ClockPlan::default(); HOSTS],
            false => {
                let starts = events.iter().filter(|(_, event)| event.is_start());
                let starts: Vec<_> = starts.map(|(at_ns, _)| *at_ns).collect();
                clocks::draw(seed, HOSTS, &starts, FAULTS_BEGIN_NS..HEAL_NS)
            }
        };
        events.push((HEAL_NS, ArchiveEvent::Heal));
        Self {
            seed,
            drivers,
            clocks,
            archives,
            operators,
            fair,
            events,
            step_ns: (random.i64(50_000..500_000), random.i64(8 * MS..24 * MS)),
            network_seed: random.u64(..),
        }
    }
}

/// Whether the wall clocks of a schedule are right. Some checks rely on it: of replays at the recorded pace, and of
/// short ages in half of the schedules with policies.
fn has_right_clocks(seed: u64) -> bool {
    let remainder = seed % RETAINING_DIVISOR;
    remainder == SPEEDS_REMAINDER
        || RETAINING_REMAINDERS.contains(&remainder) && (seed / RETAINING_DIVISOR).is_multiple_of(2)
}

impl ArchiveEvent {
    /// Whether a process starts after this event.
    fn is_start(&self) -> bool {
        matches!(
            self,
            Self::Kill(..)
                | Self::TearWrite(..)
                | Self::FailWrite(..)
                | Self::Restart(_)
                | Self::CrashDriver(..)
                | Self::LosePower(..)
        )
    }
}

/// Plans a driver with short timeouts, so that the driver soon detects dead clients.
fn driver(random: &mut Rng, timing: &Timing) -> DriverPlan {
    let mut plan = DriverPlan::draw(random, timing);
    let context = &mut plan.context;
    context.timer_interval_ns = random.i64(50 * MS..200 * MS);
    context.client_liveness_timeout_ns = SECOND;
    context.publication_unblock_timeout_ns = 1_500 * MS;
    context.image_liveness_timeout_ns = random.i64(800 * MS..1_500 * MS);
    context.publication_linger_timeout_ns = 800 * MS;
    context.publication_connection_timeout_ns = SECOND;
    context.stream_session_limit = i32::MAX;
    plan
}

fn archive(random: &mut Rng, host: HostId, is_indexed: bool) -> ArchivePlan {
    let file_sync_level = one_of(
        random,
        &[SyncLevel::None, SyncLevel::Data, SyncLevel::DataAndMetadata],
    );
    let checksum = one_of(random, &["", "", "CRC-32", "CRC-32C"]);
    let address = ipv4(host);
    let context = ArchiveContext {
        index: is_indexed,
        archive_id: host as i64 + 1,
        control_channel: format!("aeron:udp?endpoint={address}:{CONTROL_PORT}"),
        replication_channel: format!("aeron:udp?endpoint={address}:0"),
        segment_file_length: one_of(random, &[64, 64, 128]) * 1_024,
        file_io_max_length: 64 * 1_024,
        low_storage_space_threshold: 0,
        file_sync_level,
        catalog_file_sync_level: file_sync_level,
        catalog_capacity: one_of(random, &[2_048, 64 * 1_024]),
        record_checksum: checksum.to_owned(),
        replay_checksum: checksum.to_owned(),
        on_torn_fragment: match random.bool() {
            true => OnTornFragment::Refuse,
            false => OnTornFragment::Truncate,
        },
        connect_timeout_ns: 2 * SECOND,
        session_liveness_check_interval_ns: random.i64(100 * MS..500 * MS),
        replay_linger_timeout_ns: random.i64(100 * MS..SECOND),
        ..ArchiveContext::default()
    };
    ArchivePlan {
        host,
        context,
        seed: random.u64(..),
        longest_read: rarely(random, 3).then(|| random.usize(100..5_000)),
        retains: false,
        stock: None,
        has_copies: false,
        compacts: false,
    }
}

/// Plans three clients: one on the host of the first archive, one on the other host, and one that replicates recordings
/// to the second archive.
fn operators(random: &mut Rng, archives: &[ArchivePlan]) -> Vec<OperatorPlan> {
    let [first, second] = [ipv4(0), ipv4(1)];
    let remote_control = archives[0].context.control_channel.clone();
    let mtu = one_of(random, &[1_408, 1_408, 256, 8_192]);
    let term_length = (64 * 1_024) << random.u32(..2);
    let publishing = format!("term-length={term_length}|mtu={mtu}");
    let is_spied = random.bool();
    let local = OperatorPlan {
        host: 0,
        archive: 0,
        control: [LOCAL_CONTROL.to_owned(), LOCAL_CONTROL.to_owned()],
        channel: match is_spied {
            true => format!("aeron:udp?endpoint={second}:21000"),
            false => "aeron:ipc".to_owned(),
        },
        source_location: SourceLocation::Local,
        replay_channel: match random.bool() {
            true => "aeron:ipc".to_owned(),
            false => format!("aeron:udp?endpoint={first}:22000"),
        },
        first_stream_id: 1_000,
        publishing: match is_spied {
            true => format!("{publishing}|ssc=true"),
            false => publishing.clone(),
        },
        segment_length: archives[0].context.segment_file_length as i64,
        max_message_length: random.usize(400..7_000),
        max_tapes: 4,
        has_empty_pages: archives[0].context.index,
        replicates_from: None,
        retains: false,
        has_long_ages: false,
        has_copies: false,
        has_speeds: false,
        loses_replays: false,
        limits_stock: None,
    };
    let remote = OperatorPlan {
        host: 1,
        control: [
            remote_control.clone(),
            format!(
                "aeron:udp?endpoint={second}:{}",
                one_of(random, &[0, 8_020])
            ),
        ],
        channel: format!("aeron:udp?endpoint={first}:21001"),
        source_location: SourceLocation::Remote,
        replay_channel: format!("aeron:udp?endpoint={second}:22001"),
        first_stream_id: 2_000,
        publishing,
        ..local.clone()
    };
    let copying = OperatorPlan {
        archive: 1,
        control: local.control.clone(),
        replay_channel: "aeron:ipc".to_owned(),
        first_stream_id: 3_000,
        segment_length: archives[1].context.segment_file_length as i64,
        replicates_from: Some((0, remote_control)),
        ..remote.clone()
    };
    vec![local, remote, copying]
}

fn events(
    random: &mut Rng,
    archives: &[ArchivePlan],
    operators: &[OperatorPlan],
    fair: &Weather,
) -> Vec<(i64, ArchiveEvent)> {
    let mut events = Vec::new();
    for (number, archive) in archives.iter().enumerate() {
        if !archive.context.replay_checksum.is_empty() && random.bool() {
            let at_ns = random.i64(FAULTS_BEGIN_NS..HEAL_NS);
            events.push((at_ns, ArchiveEvent::Rot(number)));
        }
    }
    for _ in 0..random.usize(3..8) {
        let at_ns = random.i64(FAULTS_BEGIN_NS..HEAL_NS - SECOND);
        let archive = usize::from(rarely(random, 3));
        let away_ns = random.i64(0..1_500 * MS);
        let end_ns = at_ns + random.i64(50 * MS..SECOND);
        match random.u8(..12) {
            0 => events.push((at_ns, ArchiveEvent::Kill(archive, away_ns))),
            1 => {
                let pages = random.usize(1..4);
                let torn = ArchiveEvent::TearWrite(archive, FileKind::Segment, pages);
                events.push((at_ns, torn));
            }
            2..=4 => {
                let limit = 1 << random.u32(2..9);
                let steps = random.u64(..limit);
                let fault = StorageFault::Kill {
                    progress: random.usize(..4),
                };
                events.push((at_ns, ArchiveEvent::FailWrite(archive, steps, fault)));
            }
            5 | 6 => {
                let steps = random.u64(..50);
                let fault = write_fault(random);
                events.push((at_ns, ArchiveEvent::FailWrite(archive, steps, fault)));
                events.push((end_ns, ArchiveEvent::HealDisk(archive)));
            }
            7 => {
                let room = random.u64(..100_000);
                events.push((at_ns, ArchiveEvent::FillDisk(archive, room)));
                events.push((end_ns, ArchiveEvent::HealDisk(archive)));
            }
            8 => events.push((at_ns, ArchiveEvent::Restart(archive))),
            9 if archives[archive].context.file_sync_level > SyncLevel::None => {
                events.push((at_ns, ArchiveEvent::LosePower(archive, away_ns)));
            }
            9 | 10 if random.bool() => {
                events.push((at_ns, ArchiveEvent::CrashDriver(archive, away_ns)));
            }
            9 | 10 => {
                let operator = random.usize(..operators.len());
                events.push((at_ns, ArchiveEvent::CrashOperator(operator)));
            }
            _ => {
                events.push((at_ns, ArchiveEvent::Weather(bad_weather(random, fair))));
                events.push((end_ns, ArchiveEvent::Weather(fair.clone())));
            }
        }
    }
    events
}

/// Makes the steps of long work short, so that little work also takes several steps. This was added later, so it has
/// random numbers of its own.
fn shorten_steps(seed: u64, archives: &mut [ArchivePlan]) {
    let mut random = Rng::with_seed(seed ^ 0x57_E9_51_2E);
    // In half of the schedules, the file of extensions is not compacted. A compaction after each start would hide that
    // the first change after a kill is written to a wrong place.
    let is_compacted = Rng::with_seed(seed ^ 0xE7_7E_45_10).bool();
    for archive in archives {
        archive.context.step_sizes = StepSizes {
            retention_recordings: random.usize(1..=3),
            retention_reads: random.usize(1..=2),
            copies: random.usize(1..=3),
            extensions_length: random.u64(0..4_096),
        };
        if !is_compacted {
            archive.context.step_sizes.extensions_length = StepSizes::default().extensions_length;
        }
    }
}

/// Plans defects of the disks: failed syncs that lose data, writes at wrong places, and slow writes. They were added
/// later, so they have random numbers of their own.
fn disk_defects(
    seed: u64,
    archives: &[ArchivePlan],
    drivers: &mut [DriverPlan],
) -> Vec<(i64, ArchiveEvent)> {
    let mut random = Rng::with_seed(seed ^ 0xD1_5C_DE_FE);
    let mut events = Vec::new();
    for (number, archive) in archives.iter().enumerate() {
        let at_ns = random.i64(FAULTS_BEGIN_NS..HEAL_NS - SECOND);
        match random.u8(..8) {
            0 | 1 if archive.context.file_sync_level > SyncLevel::None => {
                let file = one_of(
                    &mut random,
                    &[FileKind::Segment, FileKind::Catalog, FileKind::Index],
                );
                events.push((at_ns, ArchiveEvent::FailSync(number, file)));
                let end_ns = at_ns + random.i64(50 * MS..SECOND);
                events.push((end_ns, ArchiveEvent::HealDisk(number)));
            }
            2 | 3 if !archive.context.replay_checksum.is_empty() => {
                let is_doubled = random.bool();
                events.push((at_ns, ArchiveEvent::Stray(number, is_doubled)));
            }
            4 => {
                // The archive keeps its client alive only between two writes.
                for driver in &mut *drivers {
                    driver.context.client_liveness_timeout_ns = SLOW_LIVENESS_NS;
                    driver.context.publication_unblock_timeout_ns = SLOW_LIVENESS_NS + 500 * MS;
                }
                events.push((at_ns, ArchiveEvent::SlowDown(number)));
                let end_ns = at_ns + random.i64(200 * MS..2 * SECOND);
                events.push((end_ns, ArchiveEvent::HealDisk(number)));
            }
            _ => {}
        }
    }
    events
}

/// Plans faults of compactions. They were added later, so they have random numbers of their own.
fn compaction_faults(seed: u64, archives: &[ArchivePlan]) -> Vec<(i64, ArchiveEvent)> {
    let mut random = Rng::with_seed(seed ^ 0xC0_4A_C7);
    let fault = |_| {
        let at_ns = random.i64(0..HEAL_NS - SECOND);
        let archive = usize::from(rarely(&mut random, 3));
        let mut steps = random.u64(..COMPACTION_STEPS);
        let has_power_loss = archives[archive].context.file_sync_level > SyncLevel::None;
        let fault = match random.u8(..8) {
            kind @ 0..=3 if has_power_loss => CompactionFault::PowerLoss(PowerLoss {
                after_ns: match kind {
                    0 => 0,
                    _ => random.i64(1..10 * MS),
                },
                away_ns: random.i64(0..1_500 * MS),
            }),
            0..=4 => CompactionFault::Disk(StorageFault::Kill {
                progress: random.usize(..4),
            }),
            5 | 6 => {
                steps = WRITE_OF_A_COMPACTION;
                CompactionFault::Disk(write_fault(&mut random))
            }
            _ => CompactionFault::Removal,
        };
        (at_ns, ArchiveEvent::FailCompaction(archive, steps, fault))
    };
    (0..COMPACTION_FAULTS).map(fault).collect()
}

fn write_fault(random: &mut Rng) -> StorageFault {
    match random.u8(..4) {
        0 => StorageFault::Short(random.usize(1..2_000)),
        1 => StorageFault::ShortPages(random.usize(1..3)),
        2 => StorageFault::Error(ErrorKind::Interrupted),
        _ => StorageFault::Error(one_of(random, &[ErrorKind::StorageFull, ErrorKind::Other])),
    }
}

fn bad_weather(random: &mut Rng, fair: &Weather) -> Weather {
    let mut weather = fair.clone();
    match random.u8(..3) {
        0 => weather.loss = LossPattern::Uniform(random.f64() / 5.0),
        1 => {
            weather.duplication = 0.1;
            weather.reordering = 0.1;
        }
        _ => weather.cut = vec![(0, 1), (1, 0)],
    }
    weather
}
