//! The ring of client commands.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::ring::RingConsumer;

use super::outlets::Outlets;

/// See the [module](self).
pub(super) struct CommandRing {
    consumer: RingConsumer<SharedBuffer>,
    blocked_timer: BlockedCommandTimer,
    /// The memory of the newest command, to be used again.
    body: Vec<u8>,
}

/// The bytes of a command.
pub(super) struct CommandBytes {
    pub(super) type_id: i32,
    pub(super) body: Vec<u8>,
}

/// Notices a command that its client will not finish: the ring stands still although something was claimed.
struct BlockedCommandTimer {
    last_consumer_position: i64,
    time_of_last_movement_ns: i64,
}

impl CommandRing {
    /// The ring that `consumer` reads from `now_ns` on.
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

    /// Reads the next command. To be given back by [`recycle`](Self::recycle).
    pub(super) fn read(&mut self, outlets: &Outlets) -> Option<CommandBytes> {
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

    /// Takes back the memory of a command.
    pub(super) fn recycle(&mut self, command: CommandBytes) {
        self.body = command.body;
    }

    pub(super) fn next_correlation_id(&self) -> i64 {
        self.consumer.ring().next_correlation_id()
    }

    /// Where the commands end that are there now.
    pub(super) fn end_position(&self) -> i64 {
        self.consumer.ring().producer_position()
    }

    /// Whether all commands before `position` were read.
    pub(super) fn is_read_up_to(&self, position: i64) -> bool {
        self.consumer.ring().consumer_position() >= position
    }

    /// Tells clients that the driver is alive.
    pub(super) fn keep_alive(&self, now_ms: i64) {
        self.consumer.ring().set_consumer_heartbeat_ms(now_ms);
    }

    /// Skips a command that has blocked the ring for longer than `timeout_ns`; returns whether there was one.
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
