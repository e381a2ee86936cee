//! [`StreamTable`]: which streams are left out if there are too many series.

use std::collections::{HashMap, HashSet};

/// Index of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(usize);

/// Share of a stream's activity that remains after each pass. So a stream that pauses is not left out at once.
const REMAINING: f64 = 0.9;

#[derive(Debug)]
struct Stream {
    name: String,
    /// Bytes by which positions have grown; those of earlier passes count less.
    activity: f64,
    lines: usize,
}

/// The streams of all drivers: a channel and a stream id.
#[derive(Debug, Default)]
pub struct StreamTable {
    by_name: HashMap<String, StreamId>,
    streams: Vec<Option<Stream>>,
    free: Vec<StreamId>,
}

impl StreamTable {
    /// Returns the stream with a name.
    pub fn stream(&mut self, name: String) -> StreamId {
        if let Some(found) = self.by_name.get(&name) {
            return *found;
        }
        let stream = Stream {
            name: name.clone(),
            activity: 0.0,
            lines: 0,
        };
        let id = self.free.pop().unwrap_or(StreamId(self.streams.len()));
        match self.streams.get_mut(id.0) {
            Some(place) => *place = Some(stream),
            None => self.streams.push(Some(stream)),
        }
        self.by_name.insert(name, id);
        id
    }

    /// Counts bytes by which a position of the stream has grown.
    pub fn grow(&mut self, id: StreamId, bytes: i64) {
        debug_assert!(
            self.streams[id.0].is_some(),
            "a counter belongs to the stream {id:?}, which was forgotten"
        );
        if let Some(stream) = &mut self.streams[id.0] {
            stream.activity += bytes.max(0) as f64;
        }
    }

    /// Ends a pass. Returns the streams that are left out so that at most `max_lines` lines remain: those with the
    /// lowest rate. `lines` has the streams of all lines. A stream without lines is forgotten.
    pub fn end_pass(
        &mut self,
        lines: impl Iterator<Item = (Option<StreamId>, usize)>,
        max_lines: usize,
    ) -> HashSet<StreamId> {
        let mut total = 0;
        for (id, count) in lines {
            total += count;
            if let Some(stream) = id.and_then(|id| self.streams[id.0].as_mut()) {
                stream.lines += count;
            }
        }
        let left_out = self.slowest(total.saturating_sub(max_lines));
        for (index, place) in self.streams.iter_mut().enumerate() {
            match place {
                Some(stream) if stream.lines == 0 => {
                    self.by_name.remove(&stream.name);
                    *place = None;
                    self.free.push(StreamId(index));
                }
                Some(stream) => {
                    stream.lines = 0;
                    stream.activity *= REMAINING;
                }
                None => (),
            }
        }
        left_out
    }

    /// Returns the streams with the lowest rate that have `lines` lines together.
    fn slowest(&self, lines: usize) -> HashSet<StreamId> {
        let mut slowest = HashSet::new();
        if lines == 0 {
            return slowest;
        }
        let known = self.streams.iter().enumerate();
        let mut order: Vec<_> = known
            .filter_map(|(index, stream)| Some((StreamId(index), stream.as_ref()?)))
            .filter(|(_, stream)| stream.lines > 0)
            .collect();
        order.sort_by(|(_, one), (_, other)| {
            let by_activity = one.activity.total_cmp(&other.activity);
            by_activity.then_with(|| other.name.cmp(&one.name))
        });
        let mut rest = lines;
        for (id, stream) in order {
            if rest == 0 {
                break;
            }
            rest = rest.saturating_sub(stream.lines);
            slowest.insert(id);
        }
        slowest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_streams_with_the_lowest_rate_are_left_out() {
        let mut table = StreamTable::default();
        let [slow, fast, idle] = ["slow", "fast", "idle"].map(|name| table.stream(name.to_owned()));
        table.grow(slow, 10);
        table.grow(fast, 1000);
        let lines = [(Some(slow), 3), (Some(fast), 3), (Some(idle), 3), (None, 4)];
        for (max_lines, expected) in [
            (13, vec![]),
            (12, vec![idle]),
            (10, vec![idle]),
            (9, vec![slow, idle]),
            (0, vec![slow, fast, idle]),
        ] {
            let mut left_out: Vec<_> = table
                .end_pass(lines.into_iter(), max_lines)
                .into_iter()
                .collect();
            left_out.sort_unstable();
            assert_eq!(left_out, expected, "{max_lines}");
        }
    }

    #[test]
    fn a_stream_without_lines_is_forgotten() {
        let mut table = StreamTable::default();
        let ended = table.stream("ended".to_owned());
        let left_out = table.end_pass(std::iter::empty(), 10);
        assert!(left_out.is_empty());
        assert_eq!(table.stream("new".to_owned()), ended);
        assert_eq!(table.by_name.len(), 1);
    }
}
