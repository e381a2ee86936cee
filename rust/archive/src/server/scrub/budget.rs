//! [`ReadBudget`]: limits reads to a number of bytes per second.

const NS_PER_S: i128 = 1_000_000_000;

/// A number of bytes per second. At most the unused bytes of one second are kept for later.
#[derive(Debug)]
pub(super) struct ReadBudget {
    bytes_per_second: i64,
    /// Number of bytes that may be read now. It is negative after a read of more bytes than this number.
    left: i64,
    updated_ns: Option<i64>,
}

impl ReadBudget {
    pub fn new(bytes_per_second: i64) -> Self {
        Self {
            bytes_per_second,
            left: 0,
            updated_ns: None,
        }
    }

    /// Returns whether bytes may be read now.
    pub fn is_open(&mut self, now_ns: i64) -> bool {
        let updated_ns = *self.updated_ns.get_or_insert(now_ns);
        let elapsed_ns = i128::from(now_ns.saturating_sub(updated_ns).max(0));
        let added = elapsed_ns * i128::from(self.bytes_per_second) / NS_PER_S;
        // A time that is too short for one byte is kept for the next call.
        if added > 0 {
            let added = i64::try_from(added).unwrap_or(i64::MAX);
            self.left = self.left.saturating_add(added).min(self.bytes_per_second);
            self.updated_ns = Some(now_ns);
        }
        self.left > 0
    }

    /// Subtracts the number of bytes that were read.
    pub fn spend(&mut self, bytes: i64) {
        debug_assert!(bytes >= 0, "a check cannot read {bytes} bytes");
        self.left = self.left.saturating_sub(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_have_the_configured_rate_and_a_pause_allows_at_most_the_bytes_of_one_second() {
        let mut budget = ReadBudget::new(1_000_000);
        let (mut read, mut now_ns) = (0_i64, 0);
        while now_ns < 10_000_000_000 {
            if budget.is_open(now_ns) {
                budget.spend(70_000);
                read += 70_000;
            }
            now_ns += 999_999;
        }
        assert!((9_800_000..10_100_000).contains(&read), "{read}");
        now_ns += 3_600_000_000_000;
        let mut burst = 0;
        while budget.is_open(now_ns) {
            budget.spend(70_000);
            burst += 70_000;
        }
        assert!(burst <= 1_070_000, "{burst}");
    }
}
