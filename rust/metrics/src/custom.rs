//! [`CustomMetrics`]: names, kinds, units and labels of an application's counters, from a TOML file.
//!
//! ```toml
//! [[counter]]
//! type_id = 1001
//! name = "orders_received"
//! kind = "counter"
//! help = "Orders that a gateway has received."
//! [counter.labels]
//! venue = { label = "venue" }            # the word after `venue=` in the label of the counter
//! shard = { key = 8, type = "i32" }      # four bytes of the key
//! ```

use std::collections::HashMap;

use aeron_memory::counters::MAX_KEY_LENGTH;
use aeron_memory::counters::meaning::{CounterKind, CounterUnit};
use aeron_memory::counters::types::CounterType;
use toml::{Table, Value};

use crate::family::{MetricFamily, Shape};
use crate::labels::Labels;

const KINDS: [CounterKind; 5] = [
    CounterKind::Counter,
    CounterKind::Gauge,
    CounterKind::Position,
    CounterKind::State,
    CounterKind::Timestamp,
];
const UNITS: [CounterUnit; 3] = [
    CounterUnit::Bytes,
    CounterUnit::Nanoseconds,
    CounterUnit::Milliseconds,
];

/// The declarations are not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("declarations of counters: {0}")]
pub struct CustomError(String);

/// Declarations of an application's counters, by type id.
#[derive(Clone, Debug, Default)]
pub struct CustomMetrics {
    by_type: HashMap<i32, CustomMetric>,
}

/// The declaration of a type.
#[derive(Clone, Debug)]
pub(crate) struct CustomMetric {
    /// MetricFamily.
    pub family: MetricFamily,
    labels: Vec<(String, Part)>,
}

/// Part of a counter that becomes a label.
#[derive(Clone, Debug)]
enum Part {
    /// The word after `NAME=` in the label of the counter.
    Word(String),
    /// An integer of `length` bytes at an offset of the key.
    Integer { offset: usize, length: usize },
}

impl CustomMetrics {
    /// Reads declarations.
    ///
    /// # Errors
    /// The text is not TOML, or a declaration is not valid.
    pub fn parse(text: &str) -> Result<Self, CustomError> {
        let refuse = |error: String| CustomError(error);
        let table: Table =
            toml::from_str(text).map_err(|error| refuse(error.message().to_owned()))?;
        refuse_unknown(&table, &["counter"]).map_err(refuse)?;
        let declared = match table.get("counter") {
            None => return Ok(Self::default()),
            Some(Value::Array(declared)) => declared,
            Some(_) => return Err(refuse("write [[counter]] before each counter".to_owned())),
        };
        let mut by_type = HashMap::new();
        let mut names = HashMap::new();
        for each in declared {
            let (type_id, metric) = declaration(each).map_err(refuse)?;
            if let Some(other) = names.insert(metric.family.name.clone(), type_id) {
                let name = &metric.family.name;
                return Err(refuse(format!(
                    "types {other} and {type_id} have the same name {name}"
                )));
            }
            if by_type.insert(type_id, metric).is_some() {
                return Err(refuse(format!("type {type_id} is declared twice")));
            }
        }
        Ok(Self { by_type })
    }

    /// Returns the families of the declarations.
    pub(crate) fn families(&self) -> impl Iterator<Item = &MetricFamily> {
        self.by_type.values().map(|metric| &metric.family)
    }

    /// Returns the declaration of a type.
    pub(crate) fn of(&self, type_id: i32) -> Option<&CustomMetric> {
        self.by_type.get(&type_id)
    }
}

impl CustomMetric {
    /// Appends the labels of a counter.
    pub fn label(&self, mut labels: Labels, key: &[u8; MAX_KEY_LENGTH], label: &str) -> Labels {
        for (name, part) in &self.labels {
            labels = match part {
                Part::Word(word) => match word_after(label, word) {
                    Some(value) => labels.with(name, value),
                    None => labels,
                },
                Part::Integer { offset, length } => {
                    labels.with_number(name, integer(&key[*offset..*offset + *length]))
                }
            };
        }
        labels
    }
}

fn declaration(declared: &Value) -> Result<(i32, CustomMetric), String> {
    let table = declared
        .as_table()
        .ok_or("write [[counter]] before each counter")?;
    refuse_unknown(
        table,
        &["type_id", "name", "kind", "unit", "help", "labels"],
    )?;
    let type_id = table.get("type_id").and_then(Value::as_integer);
    let type_id = type_id.and_then(|id| i32::try_from(id).ok());
    let type_id = type_id.ok_or("type_id: pass an integer of 32 bits")?;
    if type_id < 1000 || CounterType::of(type_id).is_some() {
        return Err(format!(
            "type_id = {type_id} belongs to Aeron: types of applications begin at 1000"
        ));
    }
    let name = text(table, "name")?.ok_or_else(|| format!("type {type_id} has no name"))?;
    if !is_name(name) || name.starts_with("aeron_") {
        return Err(format!(
            "name = \"{name}\": use letters, digits and underscores, and do not begin with a digit or aeron_"
        ));
    }
    let kind = choice(
        text(table, "kind")?,
        "kind",
        &KINDS.map(|kind| (kind.name(), kind)),
    )?
    .unwrap_or(CounterKind::Gauge);
    let units = UNITS.map(|unit| (unit.name().unwrap_or_default(), unit));
    let unit = choice(text(table, "unit")?, "unit", &units)?.unwrap_or(CounterUnit::Number);
    if kind == CounterKind::Timestamp && unit == CounterUnit::Number {
        return Err(format!(
            "type {type_id} is a timestamp, which needs a unit: milliseconds or nanoseconds"
        ));
    }
    let help = text(table, "help")?.unwrap_or("A counter of an application.");
    let family = MetricFamily::declared(name, help, kind, unit, Shape::Sum);
    let labels = labels(table.get("labels"))?;
    Ok((type_id, CustomMetric { family, labels }))
}

fn labels(declared: Option<&Value>) -> Result<Vec<(String, Part)>, String> {
    let Some(declared) = declared else {
        return Ok(Vec::new());
    };
    let declared = declared.as_table().ok_or("labels: pass a table")?;
    let mut labels = Vec::with_capacity(declared.len());
    for (name, part) in declared {
        let is_taken = ["driver", "client"].contains(&name.as_str()) || name.starts_with("__");
        if !is_name(name) || is_taken {
            return Err(format!(
                "label \"{name}\": use letters, digits and underscores; driver, client and names with __ are taken"
            ));
        }
        labels.push((name.clone(), part_of(name, part)?));
    }
    Ok(labels)
}

fn part_of(name: &str, declared: &Value) -> Result<Part, String> {
    let form = || {
        format!(
            "label \"{name}\": pass {{ label = \"WORD\" }} or {{ key = OFFSET, type = \"i32\" }}"
        )
    };
    let table = declared.as_table().ok_or_else(form)?;
    refuse_unknown(table, &["label", "key", "type"])?;
    if let (Some(word), None) = (text(table, "label")?, table.get("key")) {
        return Ok(Part::Word(word.to_owned()));
    }
    let offset = table.get("key").and_then(Value::as_integer);
    let offset = offset
        .and_then(|offset| usize::try_from(offset).ok())
        .ok_or_else(form)?;
    let lengths = [("i8", 1), ("i16", 2), ("i32", 4), ("i64", 8)];
    let length = choice(text(table, "type")?, "type", &lengths)?.ok_or_else(form)?;
    if offset > MAX_KEY_LENGTH - length {
        return Err(format!(
            "label \"{name}\": a key has {MAX_KEY_LENGTH} bytes, and {length} bytes at {offset} are beyond its end"
        ));
    }
    Ok(Part::Integer { offset, length })
}

fn refuse_unknown(table: &Table, known: &[&str]) -> Result<(), String> {
    match table.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(format!(
            "unknown key \"{key}\": known are {}",
            known.join(", ")
        )),
        None => Ok(()),
    }
}

fn text<'a>(table: &'a Table, key: &str) -> Result<Option<&'a str>, String> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(format!("{key} = {other:?}: pass a text")),
    }
}

fn choice<T: Copy>(
    given: Option<&str>,
    key: &str,
    choices: &[(&str, T)],
) -> Result<Option<T>, String> {
    let Some(given) = given else {
        return Ok(None);
    };
    let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
    let found = choices.iter().find(|(name, _)| *name == given);
    let found = found.ok_or_else(|| format!("{key} = \"{given}\": pass {}", names.join(", ")))?;
    Ok(Some(found.1))
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns the text after `WORD=` up to the next blank.
fn word_after<'a>(label: &'a str, word: &str) -> Option<&'a str> {
    label
        .split_whitespace()
        .find_map(|part| part.strip_prefix(word)?.strip_prefix('='))
}

/// Returns a signed integer of up to eight bytes, of which the first is the lowest.
fn integer(bytes: &[u8]) -> i64 {
    let sign = match bytes.last() {
        Some(0x80..) => -1,
        _ => 0,
    };
    let bytes = bytes.iter().rev();
    bytes.fold(sign, |value, byte| value << 8 | i64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORDERS: &str = r#"
        [[counter]]
        type_id = 1001
        name = "orders"
        kind = "counter"
        help = "Orders."
        labels = { venue = { label = "venue" }, shard = { key = 8, type = "i32" } }
    "#;

    #[test]
    fn labels_come_from_the_key_and_the_label_of_the_counter() {
        let metrics = CustomMetrics::parse(ORDERS).unwrap();
        let metric = metrics.of(1001).unwrap();
        assert_eq!(metric.family.name, "orders_total");
        let mut key = [0; MAX_KEY_LENGTH];
        key[8..12].copy_from_slice(&(-3_i32).to_le_bytes());
        let labels = metric.label(Labels::default(), &key, "orders venue=XETR side=buy");
        assert_eq!(labels.into_text(), r#"shard="-3",venue="XETR""#);
        let labels = metric.label(Labels::default(), &key, "orders");
        assert_eq!(labels.into_text(), r#"shard="-3""#);
    }

    #[test]
    fn a_wrong_declaration_is_refused_with_the_name_of_what_is_wrong() {
        for (from, to, expected) in [
            ("1001", "11", "belongs to Aeron"),
            ("1001", "2001", "belongs to Aeron"),
            ("1001", "99999999999", "32 bits"),
            ("\"orders\"", "\"aeron_orders\"", "aeron_orders"),
            ("\"orders\"", "\"1orders\"", "1orders"),
            ("\"counter\"", "\"total\"", "pass counter, gauge"),
            ("kind", "sort", "unknown key \"sort\""),
            ("venue =", "driver =", "taken"),
            ("venue =", "__name__ =", "taken"),
            ("\"counter\"", "\"timestamp\"", "needs a unit"),
            ("key = 8", "key = 109", "beyond its end"),
            ("key = 8", "key = -1", "pass {"),
            ("\"i32\"", "\"u32\"", "pass i8, i16"),
            ("[[counter]]", "[counter]", "[[counter]]"),
        ] {
            let text = ORDERS.replacen(from, to, 1);
            let error = CustomMetrics::parse(&text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let twice = format!("{ORDERS}{ORDERS}");
        let error = CustomMetrics::parse(&twice).unwrap_err().to_string();
        assert!(error.contains("same name"), "{error}");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,200}") {
            let _ = CustomMetrics::parse(&text);
        }
    }
}
