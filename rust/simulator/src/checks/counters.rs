//! Invariants of the counters of each driver. They must be true at any time.

use std::collections::BTreeMap;

use aeron_driver::log_storage::LogId;
use aeron_memory::counters::system::SystemCounter;
use aeron_memory::counters::{CountersReader, types};
use aeron_memory::log::frame::{
    FRAME_ALIGNMENT, HEADER_LENGTH, aligned_length, frame_type, offset as field,
};
use aeron_memory::{SharedBuffer, Words};

use crate::host::Host;
use crate::network::HostId;
use crate::roles::Graveyard;
use crate::truth::Finding;

/// A counter of a driver.
type Key = (HostId, i32);

/// Checks the counters of the drivers, and keeps their values until the next check.
#[derive(Debug, Default)]
pub struct CounterChecks {
    positions: BTreeMap<Key, SeenCounter>,
    /// Labels of the counters. They identify a counter's resource more exactly than its registration id.
    labels: BTreeMap<Key, String>,
    /// Windows by host and registration id: the number of bytes by which a publisher limit or an image may be ahead of
    /// its consumer.
    windows: BTreeMap<(HostId, i64), i64>,
    fingerprint: u64,
    /// Length of the longest block that a publication appends at once, in bytes.
    longest_append: i64,
    /// The counters of one driver during a check. Kept between checks to reuse the memory.
    current: Vec<SeenCounter>,
}

#[derive(Clone, Copy, Debug)]
struct SeenCounter {
    id: i32,
    type_id: i32,
    registration_id: i64,
    reference_id: i64,
    value: i64,
}

/// Types of position counters, which only increase.
const POSITIONS: [i32; 5] = [
    types::PUBLISHER_POSITION,
    types::SENDER_POSITION,
    types::RECEIVER_HWM,
    types::RECEIVER_POSITION,
    types::SUBSCRIBER_POSITION,
];

/// Types of counters that exist as long as the driver: system counters, and the counters of a name resolver.
const OF_DRIVER: [i32; 4] = [
    types::SYSTEM,
    types::RESOLVER_NEIGHBORS,
    types::RESOLVER_CACHE_ENTRIES,
    types::BOOTSTRAP_NEIGHBOR,
];

/// Checks that no driver has timed out a living client.
///
/// # Errors
/// The drivers have timed out more clients than have died.
pub fn check_timeouts(hosts: &[Host], graveyard: &Graveyard) -> Result<(), Finding> {
    let timeouts = |host: &Host| {
        let counter = host
            .cnc()?
            .counters()
            .counter(SystemCounter::ClientTimeouts.id())?;
        usize::try_from(counter.get()).ok()
    };
    let count: usize = hosts.iter().filter_map(timeouts).sum();
    let dead = graveyard.count();
    match count <= dead {
        true => Ok(()),
        false => Err(format!(
            "{count} clients were timed out, and only {dead} have died or were paused"
        )),
    }
}

impl CounterChecks {
    /// Creates checks of streams that may append blocks of up to `longest_append` bytes. A block that begins below the
    /// publisher limit may end above it.
    pub fn with_blocks(longest_append: i64) -> Self {
        Self {
            longest_append,
            ..Self::default()
        }
    }

    /// Checks all positions and limits of all drivers.
    ///
    /// # Errors
    /// A position decreased, or is outside its limits.
    pub fn look(&mut self, hosts: &[Host]) -> Result<(), Finding> {
        for host in hosts {
            let Some(cnc) = host.cnc() else { continue };
            let counters = cnc.counters();
            let mut current = std::mem::take(&mut self.current);
            current.clear();
            current.extend(
                counters
                    .ids()
                    .filter_map(|id| SeenCounter::of(counters, id)),
            );
            for seen in &current {
                if POSITIONS.contains(&seen.type_id) {
                    self.check_rising(host, counters, *seen)?;
                }
                self.check_limit(host, &current, *seen)?;
            }
            self.current = current;
        }
        Ok(())
    }

    /// Forgets the counters of a host with a dead driver. The next driver starts with new counters.
    pub fn forget(&mut self, host: HostId) {
        self.positions.retain(|(other, _), _| *other != host);
        self.labels.retain(|(other, _), _| *other != host);
        self.windows.retain(|(other, _), _| *other != host);
    }

    /// Returns a number computed from all positions seen so far.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    /// Checks that a driver without clients has no resources of former clients.
    ///
    /// # Errors
    /// A counter, a log or another object of a former client still exists.
    pub fn check_left(&self, host: &Host) -> Result<(), Finding> {
        let Some(cnc) = host.cnc() else { return Ok(()) };
        let left: Vec<_> = cnc
            .counters()
            .records()
            .filter(|record| !OF_DRIVER.contains(&record.type_id))
            .map(|record| record.label)
            .collect();
        if !left.is_empty() {
            return Err(format!("host {}: counters are left: {left:?}", host.id()));
        }
        match host.log_count() {
            0 => {}
            logs => return Err(format!("host {}: {logs} logs are left", host.id())),
        }
        match host.remains() {
            remains if remains.is_empty() => Ok(()),
            remains => Err(format!("host {}: objects are left: {remains:?}", host.id())),
        }
    }

    fn check_rising(
        &mut self,
        host: &Host,
        counters: &CountersReader<SharedBuffer>,
        seen: SeenCounter,
    ) -> Result<(), Finding> {
        self.fingerprint = (self.fingerprint ^ seen.value as u64)
            .wrapping_mul(0x0000_0100_0000_01B3)
            .rotate_left(17);
        let key = (host.id(), seen.id);
        let before = self.positions.insert(key, seen).filter(|before| {
            (before.type_id, before.registration_id) == (seen.type_id, seen.registration_id)
        });
        let label = || counters.label(seen.id).unwrap_or_default();
        match before {
            Some(before) if before.value <= seen.value => Ok(()),
            // The counter is new, or its id was reused after another counter was freed.
            before if self.labels.insert(key, label()) != Some(label()) || before.is_none() => {
                Ok(())
            }
            before => Err(format!(
                "host {}: {} fell from {} to {}",
                host.id(),
                label(),
                before.map_or(0, |before| before.value),
                seen.value
            )),
        }
    }

    /// Checks positions against windows. A publisher limit may be ahead of the sent or consumed position by at most its
    /// window, and an image may be ahead of the consumed position by at most its window. Padding at the end of an image
    /// may end after the window, but its header must be within the window (rule 04-196).
    fn check_limit(
        &mut self,
        host: &Host,
        all: &[SeenCounter],
        seen: SeenCounter,
    ) -> Result<(), Finding> {
        let id = seen.registration_id;
        let of_same = |type_id: i32| {
            all.iter()
                .find(|other| other.type_id == type_id && other.registration_id == id)
                .map(|other| other.value)
        };
        let readers = all.iter().filter(|other| {
            other.type_id == types::SUBSCRIBER_POSITION && other.reference_id == id
        });
        let fastest = readers.map(|reader| reader.value).max();
        let (what, limit) = match seen.type_id {
            types::PUBLISHER_LIMIT => {
                let Some(consumer) = of_same(types::SENDER_POSITION).or(fastest) else {
                    return Ok(());
                };
                let window = self.window(host, LogId::Publication(id));
                ("the publisher limit", consumer.saturating_add(window))
            }
            types::RECEIVER_HWM => {
                let Some(fastest) = fastest else {
                    return Ok(());
                };
                // Checks run between duty cycles. In the duty cycle in which subscribers begin to see data, the
                // receiver also raises the highest received position. So no subscriber is beyond it here.
                if fastest > seen.value {
                    return Err(format!(
                        "host {}: a subscriber of registration {id} is at {fastest}, beyond {}, the highest position received",
                        host.id(),
                        seen.value
                    ));
                }
                let limit = fastest.saturating_add(self.window(host, LogId::Image(id)));
                if seen.value > limit && ends_with_padding(host, id, limit, seen.value) {
                    return Ok(());
                }
                ("the highest position received", limit)
            }
            _ => return Ok(()),
        };
        if seen.value <= limit {
            return Ok(());
        }
        Err(format!(
            "host {}: {what} of registration {id} is at {}, beyond {limit}",
            host.id(),
            seen.value
        ))
    }

    /// Returns the window of a publication or image in bytes. For a publication, it is the term window plus the length
    /// of the longest message or block. For an image, it is half a term.
    fn window(&mut self, host: &Host, log: LogId) -> i64 {
        let longest_append = self.longest_append;
        let (LogId::Publication(id) | LogId::Image(id)) = log;
        *self.windows.entry((host.id(), id)).or_insert_with(|| {
            let described = host.log(log).map(|log| log.metadata().description());
            match (log, described) {
                (LogId::Publication(_), Some(log)) => {
                    let message_length = i64::from(log.term_length / 8);
                    i64::from(log.publication_window_length) + message_length.max(longest_append)
                }
                (LogId::Image(_), Some(log)) => i64::from(log.term_length / 2),
                (_, None) => i64::MAX,
            }
        })
    }
}

/// Returns whether the last frame before the position `end` of an image is padding with its header before `limit`.
///
/// Only the header of padding is sent. So no other bytes are between the header and `end`.
fn ends_with_padding(host: &Host, image: i64, limit: i64, end: i64) -> bool {
    let Some(log) = host.log(LogId::Image(image)) else {
        return false;
    };
    let term = log.term_at(end - 1);
    let end_offset = log.positions().term_offset(end - 1) + 1;
    let mut offset = end_offset;
    while let Some(before) = offset.checked_sub(FRAME_ALIGNMENT) {
        offset = before;
        let length = term.load_i32_acquire(offset + field::FRAME_LENGTH);
        if length == 0 {
            continue;
        }
        let header_end = end - (end_offset - offset - HEADER_LENGTH) as i64;
        let is_padding = term.load_u16_relaxed(offset + field::TYPE) == frame_type::PADDING;
        let is_last = length > 0 && offset + aligned_length(length as usize) == end_offset;
        return is_padding && is_last && header_end <= limit;
    }
    false
}

impl SeenCounter {
    fn of(counters: &CountersReader<SharedBuffer>, id: i32) -> Option<Self> {
        let type_id = counters.type_id(id).filter(|id| *id != types::SYSTEM)?;
        let counter = counters.counter(id)?;
        Some(Self {
            id,
            type_id,
            registration_id: counter.registration_id(),
            reference_id: counter.reference_id(),
            value: counter.get(),
        })
    }
}
