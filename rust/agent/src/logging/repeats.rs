//! [`Repeats`]: a record that repeats is written once a minute, with a count.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::{AUDIT, LOG, Level, LogRecord};

/// Time in which a text is written once.
const INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of texts that are remembered. A peer can cause any number of different texts.
const MAX_REMEMBERED: usize = 1000;

/// Maximum number of records that are written in a second: a client can cause any number of different ones.
const MAX_IN_SECOND: u32 = 100;

/// The texts that were written in the last minute, and the number of records in this second.
#[derive(Debug, Default)]
pub struct Repeats {
    remembered: HashMap<(String, String), Remembered>,
    second: Option<Instant>,
    in_second: u32,
    left_out: u64,
}

#[derive(Debug)]
struct Remembered {
    last: LogRecord,
    repeats: u64,
    end: Instant,
}

impl Repeats {
    /// Returns a record if it is to be written now. Counts it if its text was written in the last minute.
    pub fn admit(&mut self, record: LogRecord, now: Instant) -> Option<LogRecord> {
        // Each line about a request that deletes data counts.
        if record.target == AUDIT || record.target == LOG {
            return Some(record);
        }
        let key = (record.target.clone(), record.text.clone());
        if let Some(known) = self.remembered.get_mut(&key) {
            known.repeats += 1;
            known.last = record;
            return None;
        }
        if !self.has_room(now) {
            self.left_out += 1;
            return None;
        }
        if self.remembered.len() < MAX_REMEMBERED {
            let known = Remembered {
                last: record.clone(),
                repeats: 0,
                end: now + INTERVAL,
            };
            self.remembered.insert(key, known);
        }
        Some(record)
    }

    /// Returns whether another record may be written in this second.
    fn has_room(&mut self, now: Instant) -> bool {
        let is_over = |begin| now.saturating_duration_since(begin) >= Duration::from_secs(1);
        if self.second.is_none_or(is_over) {
            (self.second, self.in_second) = (Some(now), 0);
        }
        self.in_second += 1;
        self.in_second <= MAX_IN_SECOND
    }

    /// Returns a record about those that were left out; `None` if there are none.
    fn left_out(&mut self) -> Option<LogRecord> {
        let count = std::mem::take(&mut self.left_out);
        (count > 0).then(|| LogRecord {
            time_ms: super::now_ms(),
            level: Level::Warn,
            target: LOG.to_owned(),
            text: format!(
                "{count} log records were left out: more than {MAX_IN_SECOND} in a second"
            ),
        })
    }

    /// Returns the records that have repeated, at the end of their minute, with the number of the repeats.
    pub fn ended(&mut self, now: Instant) -> Vec<LogRecord> {
        let mut ended = Vec::new();
        let is_over = |begin| now.saturating_duration_since(begin) >= Duration::from_secs(1);
        if self.second.is_some_and(is_over) {
            ended.extend(self.left_out());
        }
        self.remembered.retain(|_, known| {
            if known.end > now {
                return true;
            }
            if known.repeats == 0 {
                return false;
            }
            ended.push(known.counted());
            (known.repeats, known.end) = (0, now + INTERVAL);
            true
        });
        ended
    }

    /// Returns all records that have repeated: the process ends.
    pub fn all(&mut self) -> Vec<LogRecord> {
        let all = std::mem::take(&mut self.remembered);
        let repeated = all.values().filter(|known| known.repeats > 0);
        let repeated: Vec<_> = repeated.map(Remembered::counted).collect();
        repeated.into_iter().chain(self.left_out()).collect()
    }
}

impl Remembered {
    fn counted(&self) -> LogRecord {
        let times = if self.repeats == 1 { "time" } else { "times" };
        LogRecord {
            text: format!(
                "{} ({} more {times})",
                self.last.text.trim_end(),
                self.repeats
            ),
            ..self.last.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(text: &str) -> LogRecord {
        LogRecord {
            time_ms: 0,
            level: Level::Error,
            target: "aeron.driver".to_owned(),
            text: text.to_owned(),
        }
    }

    fn texts(records: Vec<LogRecord>) -> Vec<String> {
        records.into_iter().map(|record| record.text).collect()
    }

    #[test]
    fn a_text_is_written_once_a_minute_with_its_repeats() {
        let mut repeats = Repeats::default();
        let begin = Instant::now();
        let error = || record("a");
        assert!(repeats.admit(error(), begin).is_some());
        assert!(repeats.admit(record("b"), begin).is_some());
        for _ in 0..5 {
            assert_eq!(repeats.admit(error(), begin), None);
        }
        assert!(repeats.ended(begin + Duration::from_secs(59)).is_empty());
        let minute = begin + INTERVAL;
        assert_eq!(texts(repeats.ended(minute)), ["a (5 more times)"]);
        assert_eq!(repeats.admit(error(), minute), None);
        assert_eq!(texts(repeats.all()), ["a (1 more time)"]);
        // Nothing repeats for a minute: the next one is written at once.
        assert!(repeats.ended(minute + INTERVAL).is_empty());
        assert!(repeats.admit(error(), minute + INTERVAL).is_some());
    }

    #[test]
    fn lines_of_the_audit_are_all_written() {
        let mut repeats = Repeats::default();
        for _ in 0..3 {
            let audited = LogRecord {
                target: AUDIT.to_owned(),
                ..record("a")
            };
            assert!(repeats.admit(audited, Instant::now()).is_some());
        }
    }

    #[test]
    fn of_a_flood_of_different_texts_some_are_written_and_the_others_counted() {
        let mut repeats = Repeats::default();
        let begin = Instant::now();
        let written = (0..5000)
            .filter_map(|number| repeats.admit(record(&number.to_string()), begin))
            .count();
        assert_eq!(written, MAX_IN_SECOND as usize);
        let text = "4900 log records were left out: more than 100 in a second";
        assert!(repeats.ended(begin).is_empty());
        assert_eq!(texts(repeats.ended(begin + Duration::from_secs(1))), [text]);
        for second in 1..30 {
            let now = begin + Duration::from_secs(second);
            for number in 0..100 {
                repeats.admit(record(&format!("{second} {number}")), now);
            }
        }
        assert_eq!(repeats.remembered.len(), MAX_REMEMBERED);
    }
}
