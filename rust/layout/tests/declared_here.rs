//! Checks that layouts are declared only in this crate.

use std::fs;
use std::path::{Path, PathBuf};

/// Source texts that show a layout: an offset as a number, a struct for bytes, or an integer that is assembled from
/// bytes.
const SIGNS: [&str; 5] = [
    "_OFFSET: usize = ",
    "_AT: usize = ",
    "#[repr(C",
    "offset_of!(",
    "::from_le_bytes",
];

/// Files that contain such a text for another reason.
const OTHER_REASONS: [(&str, &str); 10] = [
    (
        "driver/src/media/udp/linux.rs",
        "memory for control messages of the kernel",
    ),
    ("memory/src/buffer.rs", "words of any content"),
    ("memory/src/loom_words.rs", "words of any content"),
    (
        "columns/src/layout/decode.rs",
        "records that the user lays out",
    ),
    (
        "python/src/batch.rs",
        "columns of a batch in Python's pickle",
    ),
    (
        "simulator/src/death.rs",
        "the words of an encoded header, which a dying publisher stores one by one",
    ),
    ("simulator/src/payload.rs", "messages of the simulator"),
    (
        "sbe/src/number.rs",
        "numbers of messages that a schema lays out",
    ),
    (
        "sbe/src/read/block.rs",
        "columns of numbers that a schema lays out",
    ),
    ("sbe/src/read/text.rs", "units of texts in UTF-16"),
];

#[test]
fn no_other_crate_declares_a_layout() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the folder of crates");
    let mut found = Vec::new();
    let mut count = 0;
    for folder in fs::read_dir(crates).expect("crates") {
        let folder = folder.expect("an entry").path();
        if folder.ends_with("layout") || !folder.join("src").is_dir() {
            continue;
        }
        for path in sources(&folder.join("src")) {
            count += 1;
            let name = path.strip_prefix(crates).expect("a file of a crate");
            if OTHER_REASONS
                .iter()
                .all(|(other, _)| name != Path::new(other))
            {
                found.extend(signs_in(&path).map(|line| format!("{}: {line}", name.display())));
            }
        }
    }
    assert!(count > 100, "only {count} files were found");
    assert!(
        found.is_empty(),
        "declare these in aeron-layout: {found:#?}"
    );
}

#[test]
fn each_exception_still_has_its_reason() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("the folder of crates");
    for (name, reason) in OTHER_REASONS {
        assert!(
            signs_in(&crates.join(name)).next().is_some(),
            "{name} contains none of these texts any more: remove this exception ({reason})"
        );
    }
}

/// Returns the lines of a file, except its tests, that contain one of [`SIGNS`]. A constant that is computed from a
/// layout or from other constants is not a number, so its line is not returned.
fn signs_in(path: &Path) -> impl Iterator<Item = String> + use<> {
    let source = fs::read_to_string(path).expect("a source file");
    let code = source
        .split("#[cfg(test)]")
        .next()
        .unwrap_or_default()
        .to_owned();
    let lines: Vec<String> = code.lines().map(str::to_owned).collect();
    lines.into_iter().filter(|line| {
        SIGNS.iter().any(|sign| {
            let after = line.split_once(sign).map(|(_, after)| after);
            after.is_some_and(|after| {
                !sign.ends_with("= ") || after.trim_end_matches(';').parse::<usize>().is_ok()
            })
        })
    })
}

/// Returns the files below a directory, except tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.ends_with("tests") || path.ends_with("tests.rs") {
            continue;
        }
        if path.is_dir() {
            files.extend(sources(&path));
        } else {
            files.push(path);
        }
    }
    files
}
