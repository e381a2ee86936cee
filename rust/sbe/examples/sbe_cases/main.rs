//! Writes random schemas, messages of them, and Java programs that check the messages with the codecs of the reference
//! implementation.
//!
//! Usage: `sbe_cases DIRECTORY SEED COUNT`. For each case, the program writes the schema `caseN.xml` and the class
//! `CaseN.java`. `encode` of the class returns the messages as the reference implementation encodes them, `expected`
//! returns our messages, and `check` decodes our messages and compares each value.

#[path = "../../tests/generated/mod.rs"]
mod generated;
mod java;

use std::path::Path;
use std::{env, fs};

use aeron_sbe::plan::{SbePlan, SbePlanOptions};
use aeron_sbe::schema::SbeSchema;
use generated::{Choices, Document, Features, record};

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [directory, seed, count] = &arguments[..] else {
        panic!("usage: sbe_cases DIRECTORY SEED COUNT");
    };
    let seed: u64 = seed.parse().expect("a seed is a number");
    let count: u64 = count.parse().expect("a count is a number");
    for index in 0..count {
        write_case(Path::new(directory), index, seed + index)?;
    }
    Ok(())
}

fn write_case(directory: &Path, index: u64, seed: u64) -> std::io::Result<()> {
    let bytes = random(seed, 4000);
    let mut choices = Choices::new(&bytes);
    let document = Document::new(&mut choices, Features::Reference);
    let package = format!("case{index}");
    let text = document.text(&package, document.version);
    let schema = SbeSchema::parse(&text).expect("a schema that follows the rules");
    let plan = SbePlan::new(&schema, &SbePlanOptions::default()).expect("no options");
    let mut class = java::Class::new(&package, &format!("Case{index}"));
    for template in &plan.templates {
        let values = record(&mut choices, &template.block);
        let mut message = Vec::new();
        template
            .encode(&values, &mut message)
            .expect("values of the plan");
        class.add(template, &values, &message);
    }
    fs::write(directory.join(format!("{package}.xml")), text)?;
    fs::write(directory.join(format!("Case{index}.java")), class.text())
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
