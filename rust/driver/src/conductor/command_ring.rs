//! [`CommandRing`]: reads the commands of clients from the to-driver ring buffer.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::ring::RingConsumer;

use super::outlets::ConductorOutlets;

/// The ring buffer of client commands.
pub(super) struct CommandRing {
    consumer: RingConsumer<SharedBuffer>,
    blocked_timer: BlockedCommandTimer,
    /// The memory of the last command, which the next command reuses.
    body: Vec<u8>,
}

/// The bytes of a command.
pub(super) struct CommandBytes {
    pub(super) type_id: i32,
    pub(super) body: Vec<u8>,
}

/// Detects a command that a client claimed and does not complete. In this case, the consumer position does not move,
/// although the producer position is higher.
struct BlockedCommandTimer {
    last_consumer_position: i64,
    time_of_last_movement_ns: i64,
}

impl CommandRing {
    /// Creates the reader. The timer for blocked commands starts at `now_ns`.
    pub(super) fn new(consumer: RingConsumer<SharedBuffer>, now_ns: i64) -> Self {
        Self {
            blocked_timer: BlockedCommandTimer {
                last_consumer_position: consumer.ring().consumer_position(),
                time_of_last_movement_ns: now_ns,
            },
            consumer,
            body: Vec::new(),
        }
    }

    /// Reads the next command. The caller returns the memory of the command with [`recycle`](Self::recycle).
    pub(super) fn read(&mut self, outlets: &ConductorOutlets) -> Option<CommandBytes> {
        let mut type_id_read = None;
        let body = &mut self.body;
        let result = self.consumer.read(1, |type_id, bytes| {
            type_id_read = Some(type_id);
            body.clear();
            body.extend_from_slice(bytes);
        });
        if let Err(corrupt) = result {
            outlets.errors.note(&format!("{corrupt}\n"));
        }
        Some(CommandBytes {
            type_id: type_id_read?,
            body: std::mem::take(&mut self.body),
        })
    }

    /// Stores the memory of a command, so that the next command reuses it.
    pub(super) fn recycle(&mut self, command: CommandBytes) {
        self.body = command.body;
    }

    pub(super) fn next_correlation_id(&self) -> i64 {
        self.consumer.ring().next_correlation_id()
    }

    /// Returns the ring position at which the newest command ends.
    pub(super) fn end_position(&self) -> i64 {
        self.consumer.ring().producer_position()
    }

    /// Returns whether all commands before `position` were read.
    pub(super) fn is_read_up_to(&self, position: i64) -> bool {
        self.consumer.ring().consumer_position() >= position
    }

    /// Writes the driver's heartbeat for the clients.
    pub(super) fn keep_alive(&self, now_ms: i64) {
        self.consumer.ring().set_consumer_heartbeat_ms(now_ms);
    }

    /// Skips a command that has blocked the ring for longer than `timeout_ns`. Returns whether a command was skipped.
    pub(super) fn unblock(&mut self, now_ns: i64, timeout_ns: i64) -> bool {
        let ring = self.consumer.ring();
        let (consumer, producer) = (ring.consumer_position(), ring.producer_position());
        let timer = &mut self.blocked_timer;
        if consumer != timer.last_consumer_position || producer <= consumer {
            timer.last_consumer_position = consumer;
            timer.time_of_last_movement_ns = now_ns;
            return false;
        }
        now_ns - timer.time_of_last_movement_ns > timeout_ns && self.consumer.unblock()
    }
}
