//! [`MessageKey`]: creates the reserved values by which a receiver recognizes messages that were sent twice.

/// Maximum number of partitions in a batch with message keys.
pub const MAX_PARTITIONS: u32 = 1 << PARTITION_BITS;
/// Maximum number of messages in a partition with message keys.
pub const MAX_MESSAGES: u64 = 1 << MESSAGE_BITS;

const PARTITION_BITS: u32 = 12;
const MESSAGE_BITS: u32 = 28;
const BATCH_BITS: u32 = 24;

/// Keys for the messages of one partition of one batch. From the highest bit on, a key has 24 bits of the batch id, 12
/// bits of the partition, and 28 bits of the message number within the partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageKey {
    high: u64,
}

impl MessageKey {
    /// Creates the keys for a partition of a batch. The batch id is used modulo 2^24. Returns `None` if `partition` is
    /// not below [`MAX_PARTITIONS`].
    pub fn new(batch: u64, partition: u32) -> Option<Self> {
        let batch = batch & ((1 << BATCH_BITS) - 1);
        (partition < MAX_PARTITIONS).then_some(Self {
            high: (batch << PARTITION_BITS | u64::from(partition)) << MESSAGE_BITS,
        })
    }

    /// Returns the key of the message with this number, which is below [`MAX_MESSAGES`].
    #[inline(always)]
    pub fn of(self, number: u64) -> i64 {
        debug_assert!(number < MAX_MESSAGES);
        (self.high | number) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 08-76
    #[test]
    fn a_key_consists_of_batch_partition_and_message_number() {
        let key = MessageKey::new((1 << 24) + 5, 4095).unwrap();
        assert_eq!(key.of(7), 5 << 40 | 4095 << 28 | 7);
        assert_eq!(key.of(MAX_MESSAGES - 1) & 0xfff_ffff, 0xfff_ffff);
        assert!(MessageKey::new((1 << 24) - 1, 0).unwrap().of(0) < 0);
        assert_eq!(MessageKey::new(0, 4096), None);
    }
}
