//! Content of messages. Each message has a number, and a value that is computed from the number. A receiver checks the
//! sequence of the numbers and adds up the values.

use aeron_client::Fragment;

/// Length of the number and the value in bytes.
pub const MIN_LENGTH: usize = 16;

/// Number of the message that ends a stream.
pub const END: i64 = -1;

/// Writes message `number`.
#[inline]
pub fn write(number: i64, message: &mut [u8]) {
    message[..8].copy_from_slice(&number.to_le_bytes());
    message[8..16].copy_from_slice(&value(number).to_le_bytes());
}

#[inline]
fn value(number: i64) -> i64 {
    number.wrapping_mul(7) ^ 0x55
}

/// Check of received messages. The number of each message must follow the number of the previous message.
#[derive(Default)]
pub struct Check {
    next: i64,
    pub received: i64,
    pub faults: u64,
    pub sum: i64,
    pub ended: bool,
}

impl Check {
    /// Creates a check that expects `next` as the first number.
    pub fn expecting(next: i64) -> Self {
        Self {
            next,
            ..Self::default()
        }
    }

    #[inline]
    pub fn take(&mut self, fragment: &Fragment<'_>) {
        let mut head = [0; MIN_LENGTH];
        fragment.copy_from(0, &mut head);
        let both = i128::from_le_bytes(head);
        let (number, value) = (both as i64, (both >> 64) as i64);
        if number == END {
            self.ended = true;
            return;
        }
        self.faults += u64::from(number != self.next);
        self.next += 1;
        self.received += 1;
        self.sum = self.sum.wrapping_add(value);
    }
}

/// Returns the sum of the values of the first `count` messages, for the publisher's report.
pub fn sum(count: i64) -> i64 {
    (0..count).fold(0, |sum: i64, number| sum.wrapping_add(value(number)))
}
