//! [`ConductorOutlets`]: queues to the other agents, events, counters, the error log and the time. All parts of the
//! conductor use them.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::system::{SystemCounter, SystemCounters};
use aeron_memory::counters::{AtomicCounter, CountersManager, NewCounter, keys};
use aeron_protocol::ErrorCode;

use super::client_proxy::ClientProxy;
use super::rejections::NotedRejections;
use crate::diagnostics::ErrorRecorder;
use crate::error::DriverError;
use crate::log_storage::LogId;
use crate::queue::QueueProducer;
use crate::receiver::ReceiverCommand;
use crate::resources::{LookupSubject, ResourceCommand, ResourceCommands};
use crate::sender::{PublicationErrorReport, SenderCommand};

/// The id that stands for no registration, no client, no receiver or no tag.
pub(super) const NULL_ID: i64 = -1;

/// The outputs of the conductor and the current time.
pub(super) struct ConductorOutlets {
    /// Events to clients.
    pub(super) events: ClientProxy,
    pub(super) counters: CountersManager<SharedBuffer>,
    pub(super) system_counters: SystemCounters<SharedBuffer>,
    pub(super) errors: ErrorRecorder,
    pub(super) noted_rejections: NotedRejections,
    pub(super) resource_commands: ResourceCommands,
    pub(super) sender_commands: QueueProducer<SenderCommand>,
    pub(super) receiver_commands: QueueProducer<ReceiverCommand>,
    /// Id of the newest lookup.
    pub(super) last_lookup_id: i64,
    /// Source of random values: initial term ids, seeds of NAK delays, and challenge keys of destinations.
    pub(super) random: fastrand::Rng,
    /// Monotonic time of the duty cycle.
    pub(super) now_ns: i64,
    /// Epoch time of the duty cycle.
    pub(super) now_ms: i64,
}

/// The owner of the counters of a stream, and the parts of their labels.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamOwner<'a> {
    pub(super) registration_id: i64,
    /// Id of the owning client, or [`NULL_ID`].
    pub(super) owner_id: i64,
    pub(super) session_id: i32,
    pub(super) stream_id: i32,
    pub(super) channel: &'a str,
}

impl ConductorOutlets {
    /// Moves waiting commands into the queues that have room. Returns the number of moved commands.
    pub(super) fn flush(&mut self) -> usize {
        self.resource_commands.flush()
            + self.sender_commands.flush()
            + self.receiver_commands.flush()
    }

    /// Returns whether the backlog of another agent is so long that the conductor should send no more commands.
    pub(super) fn is_overloaded(&self) -> bool {
        self.resource_commands.is_overloaded()
            || self.sender_commands.is_overloaded()
            || self.receiver_commands.is_overloaded()
    }

    /// Sends the error to the client of the failed command, and records the error in the error log.
    pub(super) fn refuse(&mut self, correlation_id: i64, error: &DriverError) {
        self.errors.record_refusal(error);
        self.events.on_error(correlation_id, error);
    }

    /// Announces the rejection of a publication to the clients, and records the rejection in the error log.
    pub(super) fn announce_publication_error(&mut self, report: &PublicationErrorReport) {
        self.events.on_publication_error(report);
        self.noted_rejections.note(report, &self.errors);
    }

    /// Sends a lookup to the native resource agent. Returns the id of the lookup.
    pub(super) fn look_up(&mut self, what: LookupSubject) -> i64 {
        self.last_lookup_id += 1;
        let id = self.last_lookup_id;
        self.resource_commands
            .send(ResourceCommand::LookUp { id, what });
        id
    }

    /// Requests the removal of a log. No later event to a client may name the log.
    pub(super) fn remove_log(&mut self, log: LogId) {
        self.resource_commands
            .send(ResourceCommand::RemoveLog { log });
    }

    pub(super) fn system_counter(&self, counter: SystemCounter) -> &AtomicCounter<SharedBuffer> {
        self.system_counters.get(counter)
    }

    pub(super) fn allocate_counter(
        &mut self,
        new: &NewCounter<'_>,
    ) -> Result<AtomicCounter<SharedBuffer>, DriverError> {
        self.counters.allocate(new, self.now_ms).map_err(|error| {
            DriverError::coded(
                ErrorCode::GenericError,
                format_args!("failed to allocate counter: {error}"),
            )
        })
    }

    /// Allocates a counter of a stream for each type and name. If there is no room for all of them, allocates none.
    pub(super) fn allocate_stream_counters<const N: usize>(
        &mut self,
        owner: &StreamOwner<'_>,
        names: [(i32, &str); N],
    ) -> Result<[AtomicCounter<SharedBuffer>; N], DriverError> {
        let mut allocated = Vec::with_capacity(N);
        for (type_id, name) in names {
            match self.allocate_stream_counter(owner, type_id, name) {
                Ok(counter) => allocated.push(counter),
                Err(error) => {
                    self.free_counters(allocated.iter().map(AtomicCounter::id));
                    return Err(error);
                }
            }
        }
        Ok(allocated
            .try_into()
            .expect("there are as many counters as names"))
    }

    pub(super) fn allocate_stream_counter(
        &mut self,
        owner: &StreamOwner<'_>,
        type_id: i32,
        name: &str,
    ) -> Result<AtomicCounter<SharedBuffer>, DriverError> {
        let StreamOwner {
            registration_id,
            session_id,
            stream_id,
            channel,
            ..
        } = *owner;
        self.allocate_counter(&NewCounter {
            type_id,
            key: &keys::stream_key(registration_id, session_id, stream_id, channel),
            label: keys::stream_label(name, registration_id, session_id, stream_id, channel)
                .as_bytes(),
            registration_id,
            owner_id: owner.owner_id,
            reference_id: 0,
            value: 0,
        })
    }

    /// Frees a counter. An error means that a client has tampered with the record of the counter.
    pub(super) fn free_counter(&mut self, counter_id: i32) {
        if let Err(error) = self.counters.free(counter_id, self.now_ms) {
            self.errors.note(&format!("{error}\n"));
        }
    }

    pub(super) fn free_counters(&mut self, ids: impl IntoIterator<Item = i32>) {
        ids.into_iter().for_each(|id| self.free_counter(id));
    }
}
