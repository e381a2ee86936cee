//! Properties of random schemas and random values.

use crate::generated::{Choices, Document, Features, record};
use aeron_sbe::plan::{SbeBlockPlan, SbePlan, SbePlanOptions};
use aeron_sbe::schema::SbeSchema;
use aeron_sbe::value::{SbeRecord, SbeValue};
use proptest::collection::vec;
use proptest::prelude::*;

fn plan(document: &Document, version: u32) -> SbePlan {
    let text = document.text("generated", version);
    let schema = SbeSchema::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    SbePlan::new(&schema, &SbePlanOptions::default()).expect("no options")
}

fn features() -> impl Strategy<Value = Features> {
    prop_oneof![Just(Features::All), Just(Features::Reference)]
}

proptest! {
    /// 13-29
    #[test]
    fn decoding_returns_the_encoded_values(bytes in vec(any::<u8>(), 0..600), features in features()) {
        let mut choices = Choices::new(&bytes);
        let document = Document::new(&mut choices, features);
        let plan = plan(&document, document.version);
        for template in &plan.templates {
            let values = record(&mut choices, &template.block);
            let mut message = Vec::new();
            template.encode(&values, &mut message).expect("values of the plan");
            let opened = template.open(&message).expect("a sound message");
            prop_assert_eq!(opened.check(), Ok(0));
            let decoded = opened.decode().expect("sound values");
            prop_assert_eq!(&decoded, &values);
            let mut again = Vec::new();
            template.encode(&decoded, &mut again).expect("decoded values");
            prop_assert_eq!(again, message);
        }
    }

    /// 13-18
    #[test]
    fn no_prefix_of_a_message_is_decoded(bytes in vec(any::<u8>(), 0..600)) {
        let mut choices = Choices::new(&bytes);
        let document = Document::new(&mut choices, Features::All);
        let plan = plan(&document, document.version);
        for template in &plan.templates {
            let mut message = Vec::new();
            template.encode(&record(&mut choices, &template.block), &mut message).expect("values of the plan");
            for end in 0..message.len() {
                let decoded = template.open(&message[..end]).and_then(|message| message.decode());
                prop_assert!(decoded.is_err(), "{} of {} bytes: {:?}", end, message.len(), decoded);
            }
        }
    }

    #[test]
    fn damaged_messages_are_decoded_or_refused(
        bytes in vec(any::<u8>(), 0..600),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut choices = Choices::new(&bytes);
        let document = Document::new(&mut choices, Features::All);
        let plan = plan(&document, document.version);
        for template in &plan.templates {
            let mut message = Vec::new();
            template.encode(&record(&mut choices, &template.block), &mut message).expect("values of the plan");
            for (index, byte) in &damage {
                let index = index.index(message.len());
                message[index] = *byte;
            }
            if let Ok(opened) = template.open(&message) {
                // Reading a value may fail in a message that is otherwise sound, but not the reverse.
                let (checked, decoded) = (opened.check(), opened.decode());
                prop_assert!(checked.is_ok() || decoded.is_err());
            }
        }
    }

    /// 13-15
    #[test]
    fn readers_of_other_versions_find_the_elements_of_both(
        bytes in vec(any::<u8>(), 0..600),
        older in 0u32..4,
        features in features(),
    ) {
        let mut choices = Choices::new(&bytes);
        let document = Document::new(&mut choices, features);
        let (newer, older) = (document.version, older.min(document.version));
        let (new_plan, old_plan) = (plan(&document, newer), plan(&document, older));
        for (new, old) in new_plan.templates.iter().zip(&old_plan.templates) {
            for (writer, reader) in [(new, old), (old, new)] {
                let values = record(&mut choices, &writer.block);
                let mut message = Vec::new();
                writer.encode(&values, &mut message).expect("values of the plan");
                let decoded = reader.open(&message).and_then(|message| message.decode());
                let decoded = decoded.unwrap_or_else(|error| panic!("{error}"));
                compare(&writer.block, &values, &reader.block, &decoded);
            }
        }
    }
}

/// 13-29
#[test]
fn messages_of_the_schemas_of_the_tests_are_decoded_to_their_values() {
    for text in [
        include_str!("../../../tests/sbe/features.xml"),
        include_str!("../../../tests/sbe/market.xml"),
        include_str!("../../../tests/sbe/orders.xml"),
        include_str!("../../../tests/sbe/standard.xml"),
    ] {
        let schema = SbeSchema::parse(text).unwrap_or_else(|error| panic!("{error}"));
        let plan = SbePlan::new(&schema, &SbePlanOptions::default()).expect("no options");
        for (template, step) in plan
            .templates
            .iter()
            .flat_map(|it| (1..60).map(move |step| (it, step)))
        {
            let bytes: Vec<u8> = (0..2000u32)
                .map(|index| ((index * index * step) >> 3) as u8)
                .collect();
            let values = record(&mut Choices::new(&bytes), &template.block);
            let mut message = Vec::new();
            template
                .encode(&values, &mut message)
                .expect("values of the plan");
            let decoded = template.open(&message).and_then(|message| message.decode());
            assert_eq!(decoded.as_ref(), Ok(&values));
        }
    }
}

/// Compares the elements that both versions have. All others of the reader are null, empty or absent.
fn compare(
    writer: &SbeBlockPlan,
    written: &SbeRecord<'_>,
    reader: &SbeBlockPlan,
    read: &SbeRecord<'_>,
) {
    for (field, value) in reader.fields.iter().zip(&read.fields) {
        match writer
            .fields
            .iter()
            .position(|other| other.name == field.name)
        {
            Some(index) => assert_eq!(value, &written.fields[index], "{}", field.name),
            None => {
                let absent = field.constant_value().unwrap_or(SbeValue::Null);
                assert_eq!(value, &absent, "{}", field.name);
            }
        }
    }
    for (group, entries) in reader.groups.iter().zip(&read.groups) {
        match writer
            .groups
            .iter()
            .position(|other| other.name == group.name)
        {
            Some(index) => {
                assert_eq!(entries.len(), written.groups[index].len(), "{}", group.name);
                for (entry, other) in entries.iter().zip(&written.groups[index]) {
                    compare(&writer.groups[index].block, other, &group.block, entry);
                }
            }
            None => assert!(entries.is_empty(), "{}", group.name),
        }
    }
    for (data, bytes) in reader.data.iter().zip(&read.data) {
        match writer.data.iter().position(|other| other.name == data.name) {
            Some(index) => assert_eq!(bytes, &written.data[index], "{}", data.name),
            None => assert_eq!(bytes, &None, "{}", data.name),
        }
    }
}
