//! Names of the settings that Aeron's programs have. With this list, a name that has no effect is told at the start
//! instead of being ignored silently.

use std::cell::OnceCell;

use crate::properties::environment_name;
use crate::sources::Sources;

/// The programs of Aeron whose settings a process can apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The media driver.
    Driver,
    /// The archive.
    Archive,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Driver => "driver",
            Self::Archive => "archive",
        }
    }
}

/// Lines of `owner name`, and comments.
const LIST: &str = include_str!("known_names.txt");

/// A setting of one of Aeron's programs, or of this project.
struct KnownName {
    /// Name of the property, such as `aeron.mtu.length`.
    property: &'static str,
    /// Name of the program; `other` for clients, clusters, samples and tools.
    owner: &'static str,
}

fn known_names() -> impl Iterator<Item = KnownName> {
    let lines = LIST.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| {
        let (owner, property) = line.split_once(' ')?;
        Some(KnownName { property, owner })
    })
}

/// Returns whether the list has the environment variable of a setting.
pub fn is_known(variable: &str) -> bool {
    known_names().any(|name| environment_name(name.property) == variable)
}

/// Returns one warning for the settings of `program` that have no effect in this process, if there are any.
/// `has_effect` says which environment variables this process reads.
///
/// Settings of the other programs of Aeron cause no warning: several programs may share their settings.
pub fn without_effect(
    sources: &Sources,
    program: Program,
    has_effect: impl Fn(&str) -> bool,
) -> Option<String> {
    let is_of_program = |variable: &str| {
        known_names()
            .any(|name| name.owner == program.name() && environment_name(name.property) == variable)
    };
    let names = sources
        .names()
        .filter(|(variable, _)| !has_effect(variable));
    let names = names.filter(|(variable, _)| is_of_program(variable));
    let names: Vec<&str> = names.map(|(_, written)| written).collect();
    (!names.is_empty()).then(|| {
        format!(
            "WARNING: known to Aeron's Java {}, has no effect here: {}",
            program.name(),
            names.join(", ")
        )
    })
}

/// Returns a warning for each setting that none of Aeron's programs has. It names the most similar setting.
/// `has_effect` says which environment variables this process reads.
pub fn unknown(sources: &Sources, has_effect: impl Fn(&str) -> bool) -> Vec<String> {
    let variables = OnceCell::new();
    let variables = || {
        variables.get_or_init(|| -> Vec<(String, &str)> {
            let name = |name: KnownName| (environment_name(name.property), name.property);
            known_names().map(name).collect()
        })
    };
    let unknown = sources.names().filter(|(variable, _)| {
        !has_effect(variable) && variables().iter().all(|(known, _)| known != variable)
    });
    unknown
        .map(|(variable, written)| {
            let nearest = variables()
                .iter()
                .min_by_key(|(known, _)| distance(known.as_bytes(), variable.as_bytes()));
            let nearest = nearest.map_or("", |(known, property)| match variable == written {
                true => known.as_str(),
                false => property,
            });
            format!(
                "WARNING: {written} is not a setting of Aeron and has no effect: the nearest name is {nearest}"
            )
        })
        .collect()
}

/// Returns the number of letters to insert, to remove or to replace that make `left` equal to `right`.
fn distance(left: &[u8], right: &[u8]) -> usize {
    // Distances of the beginning of `left` from each beginning of `right`.
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (at, letter) in left.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, other) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(definitions: &[&str]) -> Sources {
        let mut sources = Sources::default();
        for definition in definitions {
            sources.define(definition).unwrap();
        }
        sources
    }

    /// 05-57
    #[test]
    fn an_unknown_name_gets_one_line_with_the_nearest_known_name() {
        let given = sources(&[
            "aeron.mtu.lenght=8k",
            "AERON_TERM_BUFER_LENGTH=64k",
            "aeron.MTU.length=8k",
            "aeron.cluster.member.id=1",
            "agrona.disable.bounds.checks=true",
            "AERON_MINE=1",
        ]);
        assert_eq!(
            unknown(&given, |variable| variable == "AERON_MINE"),
            [
                "WARNING: aeron.mtu.lenght is not a setting of Aeron and has no effect: the nearest name is aeron.mtu.length",
                "WARNING: AERON_TERM_BUFER_LENGTH is not a setting of Aeron and has no effect: the nearest name is AERON_TERM_BUFFER_LENGTH",
            ]
        );
    }

    /// 05-57
    #[test]
    fn settings_without_effect_are_told_in_one_line_for_each_program() {
        let given = sources(&[
            "aeron.mtu.length=8k",
            "aeron.multicast.flow.control.strategy=x",
            "AERON_DEBUG_SEND_DATA_LOSS_RATE=0.1",
            "aeron.archive.max.catalog.entries=5",
            "aeron.client.name=me",
        ]);
        let has_effect = |variable: &str| variable == "AERON_MTU_LENGTH";
        assert_eq!(
            without_effect(&given, Program::Driver, has_effect).unwrap(),
            "WARNING: known to Aeron's Java driver, has no effect here: AERON_DEBUG_SEND_DATA_LOSS_RATE, aeron.multicast.flow.control.strategy"
        );
        assert_eq!(
            without_effect(&given, Program::Archive, has_effect).unwrap(),
            "WARNING: known to Aeron's Java archive, has no effect here: aeron.archive.max.catalog.entries"
        );
        assert!(unknown(&given, has_effect).is_empty());
        let removed = sources(&["aeron.nonsense=1", "aeron.nonsense="]);
        assert!(unknown(&removed, has_effect).is_empty());
    }

    #[test]
    fn each_name_is_known_once() {
        let mut names: Vec<String> = known_names()
            .map(|name| environment_name(name.property))
            .collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert!(names.len() == count && count > 300);
        assert!(known_names().all(|name| ["driver", "archive", "other"].contains(&name.owner)));
        assert!(is_known("AERON_MTU_LENGTH") && !is_known("AERON_MTU"));
    }

    #[test]
    fn the_distance_is_the_number_of_changed_letters() {
        for (left, right, expected) in [
            ("", "abc", 3),
            ("abc", "abc", 0),
            ("abc", "axc", 1),
            ("abcd", "bcd", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(left.as_bytes(), right.as_bytes()), expected);
            assert_eq!(distance(right.as_bytes(), left.as_bytes()), expected);
        }
    }
}
