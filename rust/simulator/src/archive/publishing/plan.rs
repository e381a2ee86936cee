//! [`PublishingSchedule`]: all events of a run with recorded publishers, generated from a seed before the run starts.

use fastrand::Rng;

use super::super::plan::{ArchiveEvent, ArchiveSchedule, HEAL_NS};
use super::publisher::PublishingPlan;
use crate::network::HostId;
use crate::schedule::{MS, one_of, rarely};

/// Start of the publishers' deaths, in nanoseconds after the start of the schedule.
const DEATHS_BEGIN_NS: i64 = 1_000 * MS;
/// Maximum time between the kill of an archive and its next start.
const MAX_AWAY_NS: i64 = 500 * MS;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct PublishingSchedule {
    /// The schedule of the drivers, the archives and the network. It has no operators.
    pub archives: ArchiveSchedule,
    /// The publishers.
    pub publishers: Vec<PublishingPlan>,
    /// Times at which publishers die, in nanoseconds after the start of the schedule, each with the index of the
    /// publisher.
    pub deaths: Vec<(i64, usize)>,
    /// Kills of the first archive: the earliest time of the kill, and the time until the archive starts again. The kill
    /// comes as soon as the last recorded frame is not the end of a message. The archive loses this frame.
    pub cuts: Vec<(i64, i64)>,
}

impl PublishingSchedule {
    /// Generates the schedule of a seed.
    pub fn draw(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed ^ 0x9B_11_5E_D0);
        let mut archives = ArchiveSchedule::draw(seed);
        archives.archives[0].has_copies = false;
        archives.archives[0].stock = None;
        archives
            .archives
            .iter_mut()
            .for_each(|it| it.compacts = false);
        let operators = std::mem::take(&mut archives.operators);
        archives.events.retain(|(_, event)| {
            !matches!(
                event,
                ArchiveEvent::CrashOperator(_)
                    | ArchiveEvent::Rot(_)
                    | ArchiveEvent::Stray(..)
                    | ArchiveEvent::FailCompaction(..)
            )
        });
        let deaths: Vec<_> = (0..random.usize(0..3))
            .map(|_| (random.i64(DEATHS_BEGIN_NS..HEAL_NS), random.usize(..2)))
            .collect();
        // These parts were added later, so they have random numbers of their own.
        let mut cutting = Rng::with_seed(seed ^ 0xC0_77_1A_57);
        let cuts = (0..cutting.usize(1..4))
            .map(|_| {
                (
                    cutting.i64(DEATHS_BEGIN_NS..HEAL_NS),
                    cutting.i64(0..MAX_AWAY_NS),
                )
            })
            .collect();
        let dies = |publisher: usize, host: HostId| {
            let mut events = archives.events.iter();
            deaths.iter().any(|(_, dying)| *dying == publisher)
                || events.any(
                    |(_, event)| matches!(event, ArchiveEvent::LosePower(it, _) if *it == host),
                )
        };
        let publishers = operators
            .iter()
            .take(2)
            .enumerate()
            .map(|(number, operator)| PublishingPlan {
                host: operator.host,
                control: operator.control.clone(),
                channel: operator.channel.clone(),
                parameters: operator.publishing.clone(),
                source_location: operator.source_location,
                stream_id: operator.first_stream_id,
                max_message_length: operator.max_message_length,
                has_empty_pages: operator.has_empty_pages,
                buffer_length: one_of(&mut random, &[64, 256, 1_024]) * 1_024,
                is_found_by_alias: random.bool(),
                initial_position: rarely(&mut random, 2).then(|| random.u32(1..2_000) * 32),
                offers_batches: !dies(number, operator.host),
            })
            .collect();
        Self {
            archives,
            publishers,
            deaths,
            cuts,
        }
    }
}
