//! Writes random schemas, messages of them, and Java programs that check the messages with the codecs of the reference
//! implementation.
//!
//! Usage: `sbe_cases DIRECTORY SEED COUNT [SCHEMA ...]`. The first cases have the schemas of the given files, and the
//! others have random schemas. In each second random case, the messages have another version than the codecs. For each
//! case, the program writes the schema `caseN.xml` and the class `CaseN.java`. `encode` of the class returns the
//! messages as the reference implementation encodes them. `expected` returns our messages. `check` decodes our messages
//! and compares each value.

#[path = "../../tests/generated/mod.rs"]
mod generated;

mod common;
mod java;

use std::path::Path;
use std::sync::Arc;
use std::{env, fs};

use aeron_sbe::plan::{SbePlan, SbePlanOptions};
use aeron_sbe::schema::SbeSchema;
use generated::{Choices, Document, Features, record};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [directory, seed, count, schemas @ ..] = &arguments[..] else {
        panic!("usage: sbe_cases DIRECTORY SEED COUNT [SCHEMA ...]");
    };
    let seed: u64 = seed.parse().expect("a seed is a number");
    let count: u64 = count.parse().expect("a count is a number");
    let mut schemas = schemas.iter();
    for index in 0..count {
        let bytes = random(seed + index, 8000);
        let mut choices = Choices::new(&bytes);
        let package = format!("case{index}");
        let text = match schemas.next() {
            Some(path) => in_package(&fs::read_to_string(path)?, &package),
            None => {
                let document = Document::new(&mut choices, Features::Reference);
                if index % 2 == 1 && document.version > 0 {
                    write_versions(Path::new(directory), index, &document, &mut choices)?;
                    continue;
                }
                document.text(&package, document.version)
            }
        };
        write_case(Path::new(directory), index, &text, &mut choices)?;
    }
    Ok(())
}

/// Returns the text of a schema with another package.
fn in_package(text: &str, package: &str) -> String {
    let (before, rest) = text
        .split_once("package=\"")
        .expect("the schema has a package");
    let (_, after) = rest.split_once('"').expect("the package has an end");
    format!("{before}package=\"{package}\"{after}")
}

/// Returns the name of the composite of the header.
fn header_type(text: &str) -> String {
    let named = text.split_once("headerType=\"");
    let name = named.and_then(|(_, rest)| rest.split_once('"'));
    name.map_or("messageHeader", |(name, _)| name).to_owned()
}

fn write_case(
    directory: &Path,
    index: u64,
    text: &str,
    choices: &mut Choices<'_>,
) -> std::io::Result<()> {
    let package = format!("case{index}");
    let plan = plan_of(text);
    let mut class = java::Class::new(&package, &format!("Case{index}"), &header_type(text));
    for template in &plan.templates {
        let values = record(choices, &template.block);
        let mut message = Vec::new();
        template
            .encode(&values, &mut message)
            .expect("values of the plan");
        class.add(template, &values, &message);
    }
    fs::write(directory.join(format!("{package}.xml")), text)?;
    fs::write(directory.join(format!("Case{index}.java")), class.text())
}

/// Writes a case whose messages are later or earlier than its codecs.
fn write_versions(
    directory: &Path,
    index: u64,
    document: &Document,
    choices: &mut Choices<'_>,
) -> std::io::Result<()> {
    let package = format!("case{index}");
    let older = choices.below(document.version as usize) as u32;
    let mut versions = [older, document.version];
    if choices.once_in(2) {
        versions.reverse();
    }
    let [reader_text, writer_text] = versions.map(|version| document.text(&package, version));
    let (reader, writer) = (plan_of(&reader_text), plan_of(&writer_text));
    let mut class = java::Class::new(&package, &format!("Case{index}"), "messageHeader");
    for (reader, writer) in reader.templates.iter().zip(&writer.templates) {
        let mut values = record(choices, &writer.block);
        let mut message = Vec::new();
        writer
            .encode(&values, &mut message)
            .expect("values of the plan");
        let mut both = reader.clone();
        common::keep_common(Arc::make_mut(&mut both.block), &writer.block, &mut values);
        class.add_check(&both, &values, &message);
    }
    fs::write(directory.join(format!("{package}.xml")), reader_text)?;
    fs::write(directory.join(format!("Case{index}.java")), class.text())
}

fn plan_of(text: &str) -> SbePlan {
    let schema = SbeSchema::parse(text).expect("a schema that follows the rules");
    SbePlan::new(&schema, &SbePlanOptions::default()).expect("no options")
}

/// Returns bytes of splitmix64.
fn random(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed;
    let words = (0..length.div_ceil(8)).flat_map(|_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)).to_le_bytes()
    });
    words.collect()
}
