//! Schemas of Simple Binary Encoding. A text is a sound schema, or the error names a line of it. The plan of a sound
//! schema has each field inside of its block, and no two fields share bytes.
#![no_main]

use aeron_sbe::plan::{SbeBlockPlan, SbeField, SbeKind, SbePlan, SbePlanOptions};
use aeron_sbe::schema::SbeSchema;
use libfuzzer_sys::fuzz_target;

fn check_fields(fields: &[SbeField], length: usize) {
    let mut end = 0;
    for field in fields {
        assert!(field.offset >= end || field.length == 0, "{field:?}");
        assert!(field.end() <= length, "{field:?}");
        end = end.max(field.end());
        if let SbeKind::Struct(composite) = &field.kind {
            check_fields(&composite.members, composite.length);
        }
    }
}

fn check_block(block: &SbeBlockPlan) {
    check_fields(&block.fields, block.block_length);
    assert!(block.least_length(u32::MAX) <= block.block_length);
    for group in &block.groups {
        check_block(&group.block);
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    // An include loads the schema again: the includes are refused as a cycle or are too deep.
    let schema = match SbeSchema::parse_with(text, &mut |_| Ok(text.to_owned())) {
        Ok(schema) => schema,
        Err(error) => {
            assert!(
                error.line as usize <= 1 + text.matches('\n').count(),
                "{error}"
            );
            return;
        }
    };
    let plan = SbePlan::new(&schema, &SbePlanOptions::default()).expect("no options");
    for (index, template) in plan.templates.iter().enumerate() {
        assert_eq!(plan.index_of(template.id.into()), Some(index));
        check_block(&template.block);
    }
});
