//! Schemas that would take much time or memory, and schemas with parts that nobody can use.

use std::fmt::Write;
use std::time::{Duration, Instant};

use crate::support::{error, message, plan, sound, text};
use aeron_sbe::limits::{MAX_SCHEMA_FIELDS, MAX_XML_ATTRIBUTES, MAX_XML_NAMESPACES};
use aeron_sbe::plan::{SbePlan, SbePlanOptions};

/// Returns texts with the numbers from 0, one after the other.
fn repeated(count: usize, text: impl Fn(usize) -> String) -> String {
    (0..count).fold(String::new(), |mut all, number| {
        let _ = write!(all, "{}", text(number));
        all
    })
}

#[test]
fn the_members_of_composites_count_in_all_messages_together() {
    let members = repeated(1000, |number| {
        format!("<type name=\"t{number}\" primitiveType=\"uint8\"/>")
    });
    let fields = repeated(15, |id| {
        format!("<field name=\"f{id}\" id=\"{id}\" type=\"C\"/>")
    });
    let messages = |count| {
        repeated(count, |id| {
            format!("<message name=\"M{id}\" id=\"{id}\">{fields}</message>")
        })
    };
    let types = format!("<composite name=\"C\">{members}</composite>");
    sound(&text(&types, &messages(8)));
    let refused = error(&text(&types, &messages(100))).to_string();
    let limit = format!("more messages and fields than the limit {MAX_SCHEMA_FIELDS}");
    assert!(refused.contains(&limit), "{refused}");
}

#[test]
fn an_element_with_very_many_attributes_is_refused_at_once() {
    let attributes = repeated(300_000, |number| format!(" a{number}=\"1\""));
    let begin = Instant::now();
    let refused = error(&format!("<!-- ' < -->\n<messageSchema{attributes}/>")).to_string();
    assert!(
        begin.elapsed() < Duration::from_secs(2),
        "{:?}",
        begin.elapsed()
    );
    let limit = format!("more attributes than the limit {MAX_XML_ATTRIBUTES}");
    assert!(
        refused.contains(&limit) && refused.contains('2'),
        "{refused}"
    );
}

#[test]
fn many_namespaces_are_refused() {
    let namespaces = repeated(300, |number| {
        format!("<types xmlns:n{number}=\"u{number}\"/>")
    });
    let refused = error(&format!("<messageSchema>{namespaces}</messageSchema>")).to_string();
    let limit = format!("more namespaces are declared than the limit {MAX_XML_NAMESPACES}");
    assert!(refused.contains(&limit), "{refused}");
}

#[test]
fn texts_that_look_like_attributes_are_none() {
    let quotes = "a=\"1\" ".repeat(MAX_XML_ATTRIBUTES + 1);
    sound(&message(
        &format!("<!-- <x {quotes} -->"),
        &format!(
            "<?target <x {quotes} ?><field name=\"a\" id=\"1\" type=\"int8\" description='{}'/>",
            "> ".repeat(9)
        ),
    ));
}

#[test]
fn templates_are_found_by_name_in_large_schemas() {
    let messages = repeated(20_000, |id| {
        format!("<message name=\"M{id}\" id=\"{id}\"/>")
    });
    let plan = plan(&text("", &messages));
    let begin = Instant::now();
    for number in 0..20_000 {
        assert_eq!(plan.position(&format!("M{number}")), Some(number));
        assert!(plan.template(&format!("M{number}")).is_some());
    }
    assert!(
        begin.elapsed() < Duration::from_secs(1),
        "{:?}",
        begin.elapsed()
    );
}

#[test]
fn a_missing_id_or_version_is_taken_to_be_0_with_a_warning() {
    let whole = text("", "");
    assert!(sound(&whole).warnings.is_empty());
    let schema = sound(&whole.replace(" id=\"1\" version=\"3\"", ""));
    let warnings: Vec<_> = schema.warnings.iter().map(ToString::to_string).collect();
    assert_eq!((schema.id, schema.version, warnings.len()), (0, 0, 2));
    assert!(warnings[0].contains("'id' is missing"), "{warnings:?}");
    assert!(warnings[1].contains("'version' is missing"), "{warnings:?}");
}

#[test]
fn limits_in_the_wrong_order_are_refused() {
    let of_type = "<type name=\"T\" primitiveType=\"int8\" minValue=\"2\" maxValue=\"1\"/>";
    let of_both = "<type name=\"T\" primitiveType=\"int8\" maxValue=\"1\"/>";
    let field = "<field name=\"a\" id=\"1\" type=\"T\" minValue=\"2\"/>";
    for types in [of_type, of_both] {
        let refused = error(&message(types, field)).to_string();
        assert!(
            refused.contains("minValue 2 is more than maxValue 1"),
            "{refused}"
        );
    }
}

#[test]
fn an_unknown_unit_of_time_and_names_that_are_not_symbolic_give_warnings() {
    let schema = sound(&message(
        "",
        "<field name=\"a\" id=\"1\" type=\"uint64\" semanticType=\"UTCTimestamp\" timeUnit=\"fortnight\"/>\
         <field name=\"b c\" id=\"2\" type=\"int8\"/><field name=\"2d\" id=\"3\" type=\"int8\"/>\
         <field name=\"_e2\" id=\"4\" type=\"int8\" timeUnit=\"nanosecond\"/>",
    ));
    let warnings: Vec<_> = schema.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(
        warnings[0].contains("timeUnit 'fortnight' is unknown"),
        "{warnings:?}"
    );
    assert!(warnings[1].contains("\"b c\""), "{warnings:?}");
    assert!(warnings[2].contains("\"2d\""), "{warnings:?}");
}

#[test]
fn a_field_is_not_its_own_exponent() {
    let schema = sound(&message(
        "",
        "<field name=\"price\" id=\"1\" type=\"int64\"/>",
    ));
    let options = SbePlanOptions {
        decimals: [("price".to_owned(), "price".to_owned())].into(),
        ..SbePlanOptions::default()
    };
    let refused = SbePlan::new(&schema, &options)
        .expect_err("no exponent")
        .to_string();
    assert!(refused.contains("its own exponent"), "{refused}");
}

#[test]
fn contradicting_presences_are_named_as_in_the_schema() {
    let types = "<type name=\"T\" primitiveType=\"int8\" presence=\"optional\"/>";
    let field = "<field name=\"a\" id=\"1\" type=\"T\" presence=\"required\"/>";
    let refused = error(&message(types, field)).to_string();
    assert!(
        refused.contains("presence required contradicts the presence optional"),
        "{refused}"
    );
}
