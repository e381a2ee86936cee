//! Invariants of the ids of counters: a freed id is not reused too early, and it is reused before a new id is used.

use std::collections::BTreeMap;

use aeron_memory::SharedBuffer;
use aeron_memory::counters::{CountersReader, types};

use crate::clock::VirtualClock;
use crate::host::Host;
use crate::network::HostId;
use crate::truth::Finding;

/// Tolerance in ns: the driver measures the reuse time with its wall clock, in milliseconds.
const TOLERANCE_NS: i64 = 2_000_000;

/// State of a record that no counter has had.
const UNUSED: i32 = 0;

/// A time on both clocks of a host. The wall clock may be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Moment {
    monotonic_ns: i64,
    wall_ns: i64,
}

impl Moment {
    /// Returns the time since `earlier` on the clock that shows less and on the clock that shows more, in ns.
    fn since(self, earlier: Self) -> (i64, i64) {
        let monotonic_ns = self.monotonic_ns - earlier.monotonic_ns;
        let wall_ns = self.wall_ns - earlier.wall_ns;
        (monotonic_ns.min(wall_ns), monotonic_ns.max(wall_ns))
    }
}

/// The ids of all hosts at the last check.
#[derive(Debug, Default)]
pub struct CounterIdChecks {
    hosts: BTreeMap<HostId, SeenIds>,
}

/// The ids that a driver has used for objects of clients and peers.
#[derive(Debug, Default)]
struct SeenIds {
    ids: BTreeMap<i32, SeenId>,
    /// The largest id that was ever used, at the last check.
    newest: Option<i32>,
    last_check: Moment,
}

/// An id, and the counter that has it or had it last.
#[derive(Debug)]
struct SeenId {
    type_id: i32,
    registration_id: i64,
    label: String,
    /// Time of the last check at which the counter existed.
    existed: Moment,
    /// Time of the first check at which the counter was freed, with the latest time that the wall clock could show when
    /// it was freed; `None` while it exists.
    freed: Option<Moment>,
}

impl CounterIdChecks {
    /// Checks the ids of a host.
    ///
    /// # Errors
    /// An id was reused before its reuse time, or a new id was used although another id could be reused.
    pub fn look(&mut self, host: &Host, clock: &VirtualClock) -> Result<(), Finding> {
        let Some(cnc) = host.cnc() else { return Ok(()) };
        let now = Moment {
            monotonic_ns: clock.now_ns(),
            wall_ns: clock.now_ms(host.id()) * 1_000_000,
        };
        let seen = self.hosts.entry(host.id()).or_default();
        let timeout_ns = host.context().counter_free_to_reuse_timeout_ns;
        let found = seen.check(cnc.counters(), timeout_ns, now);
        found.map_err(|finding| format!("host {}: {finding}", host.id()))
    }

    /// Forgets the ids of a host with a dead driver. The next driver starts with new counters.
    pub fn forget(&mut self, host: HostId) {
        self.hosts.remove(&host);
    }
}

impl SeenIds {
    fn check(
        &mut self,
        counters: &CountersReader<SharedBuffer>,
        timeout_ns: i64,
        now: Moment,
    ) -> Result<(), Finding> {
        for seen in self.ids.values_mut() {
            // If the wall clock was set back since the last check, the id may have been freed before that.
            let since_ns = now.monotonic_ns - seen.existed.monotonic_ns;
            let wall_ns = now.wall_ns.max(seen.existed.wall_ns + since_ns);
            seen.freed.get_or_insert(Moment { wall_ns, ..now });
        }
        for (id, seen) in &mut self.ids {
            // Another counter may have had the id between two checks. Then the reuse time has begun again.
            let deadline_ms = counters.free_for_reuse_deadline_ms(*id).unwrap_or(0);
            let deadline_ns = deadline_ms.saturating_mul(1_000_000);
            if let Some(freed) = &mut seen.freed
                && deadline_ns - timeout_ns > freed.wall_ns + TOLERANCE_NS
                && deadline_ns - timeout_ns <= now.wall_ns
            {
                *freed = Moment {
                    monotonic_ns: now.monotonic_ns,
                    wall_ns: deadline_ns - timeout_ns,
                };
            }
        }
        for id in counters.ids() {
            let (Some(type_id), Some(counter)) = (counters.type_id(id), counters.counter(id))
            else {
                continue;
            };
            if type_id != types::SYSTEM {
                let registration_id = counter.registration_id();
                self.see(id, type_id, registration_id, timeout_ns, now, || {
                    counters.label(id).unwrap_or_default()
                })?;
            }
        }
        // An id may have been used and freed between two checks. Its record shows that.
        let is_used = |id: &i32| counters.state(*id).is_some_and(|state| state != UNUSED);
        let newest = (0..).take_while(is_used).last();
        if self.newest.is_some() && newest > self.newest {
            self.check_all_are_in_use(newest, timeout_ns, now)?;
        }
        self.newest = newest;
        self.last_check = now;
        Ok(())
    }

    fn see(
        &mut self,
        id: i32,
        type_id: i32,
        registration_id: i64,
        timeout_ns: i64,
        now: Moment,
        label: impl FnOnce() -> String,
    ) -> Result<(), Finding> {
        let last_check = self.last_check;
        if let Some(seen) = self.ids.get_mut(&id) {
            let is_same = (seen.type_id, seen.registration_id) == (type_id, registration_id);
            if is_same && seen.existed == last_check {
                (seen.existed, seen.freed) = (now, None);
                return Ok(());
            }
            let (_, after_ns) = now.since(seen.existed);
            let label = label();
            // Counters of one object may have the same type and registration id. Their labels differ.
            if after_ns < timeout_ns - TOLERANCE_NS && label != seen.label {
                return Err(format!(
                    "the id {id} of {:?} was reused for {label:?} within {after_ns} ns",
                    seen.label
                ));
            }
            *seen = SeenId {
                type_id,
                registration_id,
                label,
                existed: now,
                freed: None,
            };
            return Ok(());
        }
        let seen = SeenId {
            type_id,
            registration_id,
            label: label(),
            existed: now,
            freed: None,
        };
        self.ids.insert(id, seen);
        Ok(())
    }

    /// Checks that no id could be reused since the last check, because in this time a new id was used.
    fn check_all_are_in_use(
        &self,
        newest: Option<i32>,
        timeout_ns: i64,
        now: Moment,
    ) -> Result<(), Finding> {
        for (id, seen) in &self.ids {
            let could_be_reused = seen.freed.is_some_and(|freed| {
                // If the wall clock was set back since the last check, the reuse time begins again.
                let moments = [self.last_check, now].into_iter();
                let after_ns = moments.map(|moment| moment.since(freed).0).min();
                after_ns.is_some_and(|after_ns| after_ns > timeout_ns + TOLERANCE_NS)
            });
            if could_be_reused {
                return Err(format!(
                    "the id {id} of {:?} was not reused, but the new id {newest:?} was used",
                    seen.label
                ));
            }
        }
        Ok(())
    }
}
