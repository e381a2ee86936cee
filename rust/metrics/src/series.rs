//! [`SeriesTable`]: the series of all families. Counters with the same labels belong to one series.

use std::collections::HashMap;
use std::fmt::Write as _;

use crate::family::{CHANNEL_STATES, MetricFamily, Shape};
use crate::streams::StreamId;

/// Index of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FamilyId(usize);

/// Index of a series. Valid until a pass in which no counter belongs to the series.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SeriesId {
    index: usize,
    /// Number of the series among all that there were. A place is used again after its series has ended.
    number: u64,
}

/// A series: a family and labels.
#[derive(Debug)]
pub struct Series {
    number: u64,
    family: FamilyId,
    labels: String,
    /// Stream to which the series belongs.
    pub stream: Option<StreamId>,
    /// Value, without the counts of states.
    value: i64,
    states: [u32; CHANNEL_STATES.len()],
    /// Number of values that were added in this pass.
    added: usize,
    /// Whether the series was created in this pass.
    is_new: bool,
}

/// All families and their series.
#[derive(Debug, Default)]
pub struct SeriesTable {
    families: Vec<MetricFamily>,
    families_by_name: HashMap<String, FamilyId>,
    series: Vec<Option<Series>>,
    by_labels: HashMap<(FamilyId, String), SeriesId>,
    free: Vec<usize>,
    created: u64,
}

impl Series {
    /// Returns whether the series has a value in this pass.
    pub fn is_shown(&self) -> bool {
        self.added > 0
    }
}

impl SeriesTable {
    /// Returns the family with the name of `family`. The first declaration of a name applies.
    pub fn family(&mut self, family: MetricFamily) -> FamilyId {
        let next = FamilyId(self.families.len());
        let id = *self
            .families_by_name
            .entry(family.name.clone())
            .or_insert(next);
        if id == next {
            self.families.push(family);
        }
        id
    }

    /// Returns the series with the labels, and creates it if it does not exist.
    pub fn series(
        &mut self,
        family: FamilyId,
        labels: String,
        stream: Option<StreamId>,
    ) -> SeriesId {
        let key = (family, labels);
        if let Some(found) = self.by_labels.get(&key) {
            return *found;
        }
        self.created += 1;
        let number = self.created;
        let series = Series {
            number,
            family,
            labels: key.1.clone(),
            stream,
            value: 0,
            states: [0; CHANNEL_STATES.len()],
            added: 0,
            is_new: true,
        };
        let index = self.free.pop().unwrap_or(self.series.len());
        let id = SeriesId { index, number };
        match self.series.get_mut(index) {
            Some(place) => *place = Some(series),
            None => self.series.push(Some(series)),
        }
        self.by_labels.insert(key, id);
        id
    }

    /// Returns whether the series was created in this pass.
    pub fn is_new(&self, id: SeriesId) -> bool {
        self.series[id.index]
            .as_ref()
            .is_some_and(|series| series.is_new)
    }

    /// Adds the value of a counter to its series. A total grows by `increment`.
    pub fn add(&mut self, id: SeriesId, value: i64, increment: i64) {
        let place = self.series[id.index].as_mut();
        let Some(series) = place.filter(|series| series.number == id.number) else {
            debug_assert!(
                false,
                "a counter belongs to the series {id:?}, which has ended"
            );
            return;
        };
        let is_first = series.added == 0;
        series.added += 1;
        match self.families[series.family.0].shape {
            Shape::Total => series.value = series.value.saturating_add(increment),
            _ if is_first => series.value = value,
            Shape::Sum => series.value = series.value.saturating_add(value),
            Shape::Max => series.value = series.value.max(value),
            Shape::Min => series.value = series.value.min(value),
            Shape::ChannelStates => (),
        }
        if is_first {
            series.states = [0; CHANNEL_STATES.len()];
        }
        if let Some(state) = CHANNEL_STATES.iter().position(|(code, _)| *code == value) {
            series.states[state] += 1;
        }
    }

    /// Ends a pass: removes the series to which no counter was added.
    pub fn end_pass(&mut self) {
        for (index, place) in self.series.iter_mut().enumerate() {
            match place {
                Some(series) if series.added == 0 => {
                    let key = (series.family, std::mem::take(&mut series.labels));
                    self.by_labels.remove(&key);
                    *place = None;
                    self.free.push(index);
                }
                Some(series) => (series.added, series.is_new) = (0, false),
                None => (),
            }
        }
    }

    /// Returns the series and their numbers of lines.
    pub fn lines(&self) -> impl Iterator<Item = (&Series, usize)> {
        self.series
            .iter()
            .flatten()
            .map(|series| (series, self.families[series.family.0].shape.lines()))
    }

    /// Writes the series for which `is_shown` holds, in the order of the names of their families.
    pub fn write(&self, text: &mut String, is_shown: impl Fn(&Series) -> bool) {
        let mut by_family: Vec<Vec<&Series>> = vec![Vec::new(); self.families.len()];
        for series in self
            .series
            .iter()
            .flatten()
            .filter(|series| is_shown(series))
        {
            by_family[series.family.0].push(series);
        }
        let mut order: Vec<_> = (0..self.families.len()).collect();
        order.sort_by_key(|index| &self.families[*index].name);
        for index in order {
            if !by_family[index].is_empty() {
                write_family(text, &self.families[index], &by_family[index]);
            }
        }
    }
}

/// Writes the two lines before the samples of a family.
pub fn write_head(text: &mut String, name: &str, type_name: &str, help: &str) {
    let help = help.replace('\\', "\\\\").replace('\n', "\\n");
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {type_name}");
}

fn write_family(text: &mut String, family: &MetricFamily, series: &[&Series]) {
    write_head(text, &family.name, family.shape.type_name(), &family.help);
    for series in series {
        match family.shape {
            Shape::ChannelStates => write_states(text, family, series),
            _ => write_sample(text, family, series),
        }
    }
}

fn write_sample(text: &mut String, family: &MetricFamily, series: &Series) {
    text.push_str(&family.name);
    if !series.labels.is_empty() {
        text.push('{');
        text.push_str(&series.labels);
        text.push('}');
    }
    let _ = match family.units_per_second {
        None => writeln!(text, " {}", series.value),
        Some(units) => writeln!(text, " {}", series.value as f64 / units),
    };
}

fn write_states(text: &mut String, family: &MetricFamily, series: &Series) {
    let separator = if series.labels.is_empty() { "" } else { "," };
    for ((_, name), count) in CHANNEL_STATES.iter().zip(series.states) {
        let (family, labels) = (&family.name, &series.labels);
        let _ = writeln!(
            text,
            "{family}{{{labels}{separator}state=\"{name}\"}} {count}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(shape: Shape) -> (SeriesTable, FamilyId) {
        let mut table = SeriesTable::default();
        let family = table.family(MetricFamily {
            name: "x".to_owned(),
            help: "h".to_owned(),
            shape,
            units_per_second: None,
        });
        (table, family)
    }

    fn text(table: &SeriesTable) -> String {
        let mut text = String::new();
        table.write(&mut text, |_| true);
        text.lines().skip(2).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn counters_with_the_same_labels_are_one_series() {
        for (shape, expected) in [
            (Shape::Sum, "x{a=\"1\"} 8"),
            (Shape::Max, "x{a=\"1\"} 5"),
            (Shape::Min, "x{a=\"1\"} 3"),
            (Shape::Total, "x{a=\"1\"} 30"),
        ] {
            let (mut table, family) = table(shape);
            for (value, increment) in [(3, 10), (5, 20)] {
                let id = table.series(family, "a=\"1\"".to_owned(), None);
                table.add(id, value, increment);
            }
            assert_eq!(text(&table), expected);
        }
    }

    #[test]
    fn a_series_without_counters_ends_and_its_place_is_used_again() {
        let (mut table, family) = table(Shape::Total);
        let first = table.series(family, "a=\"1\"".to_owned(), None);
        table.add(first, 7, 7);
        table.end_pass();
        assert!(!table.is_new(first));
        table.end_pass();
        assert_eq!(text(&table), "");
        let second = table.series(family, "a=\"2\"".to_owned(), None);
        assert_eq!(second.index, first.index);
        assert_ne!(second, first);
        assert!(table.is_new(second));
        table.add(second, 1, 1);
        assert_eq!(text(&table), "x{a=\"2\"} 1");
    }

    #[test]
    fn a_channel_has_a_line_for_each_state() {
        let (mut table, family) = table(Shape::ChannelStates);
        for value in [1, 1, -1, 77] {
            let id = table.series(family, String::new(), None);
            table.add(id, value, 0);
        }
        let expected = "x{state=\"errored\"} 1 x{state=\"initializing\"} 0 x{state=\"active\"} 2 x{state=\"closing\"} 0";
        assert_eq!(text(&table), expected);
    }
}
