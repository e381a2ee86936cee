//! Properties of places: each element is read on its own, from bytes that may have changed.

use std::borrow::Cow;

use crate::generated::{Choices, Document, Features, record};
use aeron_sbe::plan::{SbeBlockPlan, SbePlan, SbePlanOptions};
use aeron_sbe::read::{SbeMalformed, SbePlace};
use aeron_sbe::schema::SbeSchema;
use aeron_sbe::value::SbeRecord;
use proptest::collection::vec;
use proptest::prelude::*;

fn plan(document: &Document) -> SbePlan {
    let schema = SbeSchema::parse(&document.text("generated", document.version));
    let schema = schema.unwrap_or_else(|error| panic!("{error}"));
    SbePlan::new(&schema, &SbePlanOptions::default()).expect("no options")
}

/// Reads all elements of the last of nested blocks.
fn read<'a>(
    blocks: &mut Vec<(&'a SbeBlockPlan, SbePlace)>,
    message: &'a [u8],
) -> Result<SbeRecord<'a>, SbeMalformed> {
    let (plan, place) = blocks.last().cloned().expect("the root block");
    let block = place.block(message)?;
    let field_of = |levels_up: usize, index: usize| {
        let (plan, place) = blocks.iter().rev().nth(levels_up)?;
        plan.number(index, place.block(message).ok()?)
    };
    let fields = plan.fields.iter();
    let fields = fields.map(|field| field.value_with(block, field_of));
    let mut read_record = SbeRecord {
        fields: fields.collect::<Result<_, _>>()?,
        ..SbeRecord::default()
    };
    for (index, group) in plan.groups.iter().enumerate() {
        let places = place.entries(plan, index, message)?;
        let mut entries = Vec::new();
        for entry in 0..places.len() {
            let place = places.get(group, entry, message)?.expect("an entry");
            blocks.push((&group.block, place));
            entries.push(read(blocks, message)?);
            blocks.pop();
        }
        assert!(places.get(group, places.len(), message)?.is_none());
        read_record.groups.push(entries);
    }
    for index in 0..plan.data.len() {
        let bytes = place.data(plan, index, message)?;
        read_record.data.push(bytes.map(Cow::Borrowed));
    }
    Ok(read_record)
}

proptest! {
    /// 13-32
    #[test]
    fn elements_that_are_read_by_their_places_are_those_of_the_whole_message(
        bytes in vec(any::<u8>(), 0..600),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        features in prop_oneof![Just(Features::All), Just(Features::Reference)],
    ) {
        let mut choices = Choices::new(&bytes);
        let document = Document::new(&mut choices, features);
        let plan = plan(&document);
        for template in &plan.templates {
            let mut message = Vec::new();
            template.encode(&record(&mut choices, &template.block), &mut message).expect("values of the plan");
            for (index, byte) in &damage {
                let index = index.index(message.len());
                message[index] = *byte;
            }
            let checked = template.open(&message).and_then(|message| message.check());
            let place = SbePlace::of_message(template, &message);
            prop_assert_eq!(place.as_ref().err(), checked.as_ref().err());
            let Ok(place) = place else { continue };
            let values = template.open(&message).and_then(|message| message.decode());
            let found = read(&mut vec![(&template.block, place)], &message);
            prop_assert_eq!(found, values);
        }
    }

    /// 13-32
    #[test]
    fn elements_of_bytes_that_have_changed_are_read_or_refused(
        bytes in vec(any::<u8>(), 0..600),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        kept in any::<prop::sample::Index>(),
    ) {
        let mut choices = Choices::new(&bytes);
        let document = Document::new(&mut choices, Features::All);
        let plan = plan(&document);
        for template in &plan.templates {
            let mut message = Vec::new();
            template.encode(&record(&mut choices, &template.block), &mut message).expect("values of the plan");
            let place = SbePlace::of_message(template, &message).expect("a sound message");
            let outer = &template.block;
            let shorter = &message[..kept.index(message.len())];
            let found = read(&mut vec![(outer, place.clone())], shorter);
            prop_assert!(found.is_err(), "{} of {} bytes: {:?}", shorter.len(), message.len(), found);
            let mut changed = message.clone();
            for (index, byte) in &damage {
                let index = index.index(changed.len());
                changed[index] = *byte;
            }
            let _ = read(&mut vec![(outer, place)], &changed);
        }
    }
}
