//! Messages of random schemas. The input is a length, as many bytes that choose a schema and values, and a message. The
//! message of the values is decoded to them. Any message is decoded or refused, and a decoded message is encoded and
//! decoded to the same values.
#![no_main]

#[path = "../../rust/sbe/tests/generated/mod.rs"]
mod generated;

use aeron_sbe::plan::{SbePlan, SbePlanOptions, SbeTemplate};
use aeron_sbe::schema::SbeSchema;
use generated::{Choices, Document, Features, record};
use libfuzzer_sys::fuzz_target;

fn check_values(template: &SbeTemplate, choices: &mut Choices<'_>) {
    let values = record(choices, &template.block);
    let mut message = Vec::new();
    template
        .encode(&values, &mut message)
        .expect("values of the plan");
    let opened = template.open(&message).expect("a sound message");
    assert_eq!(opened.check(), Ok(0));
    assert_eq!(opened.decode().as_ref(), Ok(&values));
}

fn check_message(template: &SbeTemplate, message: &[u8]) {
    let Ok(opened) = template.open(message) else {
        return;
    };
    let Ok(values) = opened.decode() else {
        return;
    };
    assert!(opened.check().is_ok(), "a decoded message is sound");
    // Fields that are newer than the message have no value, and a text may have bytes after its first NUL. So the
    // bytes may differ, and required fields may be missing.
    let mut again = Vec::new();
    if template.encode(&values, &mut again).is_ok() && opened.header.version32() >= template.version
    {
        let opened = template.open(&again).expect("an encoded message");
        let mut third = Vec::new();
        let decoded = opened.decode().expect("encoded values");
        template
            .encode(&decoded, &mut third)
            .expect("decoded values");
        assert_eq!(again, third);
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((length, rest)) = data.split_first_chunk::<2>() else {
        return;
    };
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (bytes, message) = rest.split_at(length);
    let mut choices = Choices::new(bytes);
    let features = choices.one_of(&[Features::All, Features::Reference]);
    let document = Document::new(&mut choices, features);
    let text = document.text("generated", document.version);
    let schema = SbeSchema::parse(&text).expect("a schema that follows the rules");
    let plan = SbePlan::new(&schema, &SbePlanOptions::default()).expect("no options");
    for template in &plan.templates {
        check_values(template, &mut choices);
        check_message(template, message);
    }
});
