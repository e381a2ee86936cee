//! Each rule of schemas, by schemas that break it and schemas that do not.

use crate::support::{LAYOUTS, error, message, sound, text};
use aeron_sbe::limits::{MAX_INCLUDES, MAX_SCHEMA_LENGTH, MAX_XML_DEPTH};
use aeron_sbe::number::SbeNumber;
use aeron_sbe::schema::{SbeConstant, SbePresence, SbeSchema, SbeType};

/// Asserts that each schema breaks a rule whose text has the given words.
fn refused(cases: &[(String, &str)]) {
    for (schema, words) in cases {
        let error = error(schema).to_string();
        assert!(error.contains(words), "{error}, not {words}");
    }
}

/// 13-1
#[test]
fn entities_and_large_documents_are_refused() {
    let deep = "<a>".repeat(100_000) + &"</a>".repeat(100_000);
    let nested = format!(
        "<messageSchema>{}{}</messageSchema>",
        "<types>".repeat(40),
        "</types>".repeat(40)
    );
    refused(&[
        (
            "<!DOCTYPE a [<!ENTITY b \"c\">]><messageSchema/>".to_owned(),
            "not XML",
        ),
        (" ".repeat(MAX_SCHEMA_LENGTH + 1), "more than the limit"),
        (
            format!("<messageSchema>{}</messageSchema>", "<a/>".repeat(300_000)),
            "not XML",
        ),
        (nested, &format!("deeper than the limit {MAX_XML_DEPTH}")),
        (deep, "the limit"),
        ("<schema/>".to_owned(), "not <messageSchema>"),
        (String::new(), "not XML"),
    ]);
}

/// 13-2
#[test]
fn included_files_replace_their_includes() {
    let schema = "<messageSchema xmlns:xi=\"http://www.w3.org/2001/XInclude\" id=\"1\">\
                  <xi:include href=\"types.xml\"/>\n<xi:include href=\"messages.xml\"/></messageSchema>";
    let mut loader = |name: &str| match name {
        "types.xml" => Ok(format!("<types>{LAYOUTS}</types>")),
        _ => Ok("<messages><message name=\"M\" id=\"1\"/></messages>".to_owned()),
    };
    let parsed = SbeSchema::parse_with(schema, &mut loader).expect("a sound schema");
    assert_eq!(parsed.messages.len(), 1);
    let mut broken = |name: &str| match name {
        "types.xml" => Ok(format!("<types>{LAYOUTS}\n<type/></types>")),
        _ => Err("no such file".to_owned()),
    };
    let error = SbeSchema::parse_with(schema, &mut broken).expect_err("a file is missing");
    assert_eq!(
        error.to_string(),
        "line 2: <include>: cannot load 'messages.xml': no such file"
    );
    let mut broken = |_: &str| Ok("<types>\n<type/></types>".to_owned());
    let error = SbeSchema::parse_with(schema, &mut broken).expect_err("a type has no name");
    assert_eq!(
        error.to_string(),
        "types.xml, line 2: <type>: the attribute 'name' is missing"
    );
}

/// 13-2
#[test]
fn includes_without_an_end_are_refused() {
    let include = |name: &str| format!("<messageSchema><include href=\"{name}\"/></messageSchema>");
    let error = |loader: &mut dyn FnMut(&str) -> Result<String, String>| {
        let error =
            SbeSchema::parse_with(&include("a"), loader).expect_err("includes without an end");
        error.to_string()
    };
    assert!(error(&mut |_| Ok(include("a"))).contains("'a' includes itself"));
    let mut next = 0;
    let deep = error(&mut |_| {
        next += 1;
        Ok(include(&next.to_string()))
    });
    assert!(deep.contains("deeper than the limit"), "{deep}");
    let twice = "<types><include href=\"b\"/><include href=\"c\"/></types>";
    let wide = format!(
        "<types>{}</types>",
        "<include href=\"d\"/>".repeat(MAX_INCLUDES)
    );
    let many = error(&mut |name| match name {
        "a" => Ok(twice.to_owned()),
        "b" | "c" => Ok(wide.clone()),
        _ => Ok("<types/>".to_owned()),
    });
    assert!(many.contains("files are included"), "{many}");
    assert!(SbeSchema::parse(&include("a")).is_err());
}

/// 13-3
#[test]
fn an_error_names_line_element_and_rule() {
    let schema = message("", "\n<field name=\"price\" id=\"1\"\n type=\"money\"/>");
    let error = error(&schema);
    let line = LAYOUTS.matches('\n').count() as u32 + 2;
    assert_eq!(
        (error.line, error.element.as_str()),
        (line, "<field name=\"price\">")
    );
    assert_eq!(error.rule, "the type 'money' does not exist");
}

/// 13-3
#[test]
fn foreign_attributes_and_elements_are_ignored() {
    let schema = sound(&message(
        "<note xmlns=\"urn:notes\">text</note>",
        "<field name=\"a\" id=\"1\" type=\"int8\" color=\"red\" xmlns:x=\"urn:x\" x:size=\"9\"/>\
         <x:note xmlns:x=\"urn:notes\"/>",
    ));
    assert_eq!(schema.messages[0].block.fields.len(), 1);
    // Exchanges give elements of SBE another namespace than the root, or none.
    let mixed = format!(
        "<s:messageSchema xmlns:s=\"urn:root\" id=\"1\"><types>{LAYOUTS}</types>\
         <t:message xmlns:t=\"urn:other\" name=\"M\" id=\"1\"><t:field name=\"a\" id=\"1\" type=\"int8\"/>\
         </t:message></s:messageSchema>"
    );
    assert_eq!(sound(&mixed).messages[0].block.fields.len(), 1);
    refused(&[
        (message("<note/>", ""), "<types> has no such element"),
        (message("", "<note/>"), "<message> has no such element"),
        (text("", "<note/>"), "<messageSchema> has no such element"),
        (
            message("<enum name=\"E\" encodingType=\"uint8\"><note/></enum>", ""),
            "only <validValue>",
        ),
        (
            message("<composite name=\"C\"><note name=\"n\"/></composite>", ""),
            "no such member",
        ),
    ]);
}

/// 13-4
#[test]
fn the_draft_of_sbe_2_is_accepted_without_alignment() {
    let body = format!(
        "package=\"p\" id=\"1\" version=\"0\"><metadata xmlns=\"urn:terms\"/><types>{LAYOUTS}</types>\
         <messages><message name=\"M\" id=\"1\" ALIGN><field name=\"a\" id=\"1\" type=\"int8\"/></message></messages>\
         </messageSchema>"
    );
    for namespace in [
        "http://fixprotocol.io/2017/sbe",
        "http://fixprotocol.io/2016/sbe",
        "urn:any",
        "",
    ] {
        let start = format!("<messageSchema xmlns=\"{namespace}\" ");
        let plain = sound(&(start.clone() + &body.replace("ALIGN", "")));
        assert_eq!(plain.messages.len(), 1);
        let aligned = SbeSchema::parse(&(start + &body.replace("ALIGN", "alignment=\"8\"")));
        assert_eq!(aligned.is_err(), namespace.contains("2017"), "{aligned:?}");
    }
}

/// 13-5
#[test]
fn types_that_do_not_exist_or_contain_themselves_are_refused() {
    let composite = |name: &str, kind: &str| {
        format!("<composite name=\"{name}\"><ref name=\"r\" type=\"{kind}\"/></composite>")
    };
    let deep: String = (0..20)
        .map(|level| composite(&format!("C{level:02}"), &format!("C{:02}", level + 1)))
        .collect();
    let wide: String = (0..7)
        .map(|level| {
            let refs: String = (0..4)
                .map(|index| format!("<ref name=\"r{index}\" type=\"W{}\"/>", level + 1))
                .collect();
            format!("<composite name=\"W{level}\">{refs}</composite>")
        })
        .collect();
    refused(&[
        (
            message(&composite("C", "D"), ""),
            "the type 'D' does not exist",
        ),
        (
            message(&composite("C", "C"), ""),
            "the type 'C' contains itself",
        ),
        (
            message(&(composite("C", "D") + &composite("D", "C")), ""),
            "contains itself",
        ),
        (
            message(&(deep + "<type name=\"C20\" primitiveType=\"int8\"/>"), ""),
            "deeper than the limit",
        ),
        (
            message(&(wide + "<type name=\"W7\" primitiveType=\"int8\"/>"), ""),
            "more members than the limit",
        ),
        (
            message("<type name=\"T\" primitiveType=\"int7\"/>", ""),
            "primitiveType 'int7' does not exist",
        ),
        (
            message(
                "<type name=\"T\" primitiveType=\"int64\" length=\"1000000\"/>",
                "",
            ),
            "longer than the limit",
        ),
        (message("<composite name=\"C\"/>", ""), "no members"),
        (
            message(
                "<type name=\"T\" primitiveType=\"int8\" length=\"0\"/>",
                "<field name=\"a\" id=\"1\" type=\"T\"/>",
            ),
            "length 0",
        ),
        (
            message("", "<group name=\"g\" id=\"1\" dimensionType=\"int8\"/>"),
            "not a composite",
        ),
        (
            message("", "<group name=\"g\" id=\"1\" dimensionType=\"x\"/>"),
            "the type 'x' does not exist",
        ),
        (
            message("", "<data name=\"d\" id=\"1\" type=\"int8\"/>"),
            "not a composite",
        ),
        (
            "<messageSchema headerType=\"h\"/>".to_owned(),
            "the type 'h' does not exist",
        ),
        (
            message(
                "",
                &("<group name=\"g\" id=\"1\">".repeat(9) + &"</group>".repeat(9)),
            ),
            "deeper than the limit",
        ),
    ]);
}

/// 13-6
#[test]
fn offsets_and_block_lengths_have_room_for_all_fields() {
    let schema = sound(&text(
        "",
        "<message name=\"M\" id=\"1\" blockLength=\"16\"><field name=\"a\" id=\"1\" type=\"int8\"/>\
         <field name=\"b\" id=\"2\" type=\"int32\" offset=\"4\"/><field name=\"c\" id=\"3\" type=\"int8\"/></message>",
    ));
    let block = &schema.messages[0].block;
    let offsets: Vec<_> = block.fields.iter().map(|field| field.offset).collect();
    assert_eq!((offsets, block.block_length), (vec![0, 4, 8], 16));
    let field = "<field name=\"a\" id=\"1\" type=\"int32\"/>";
    refused(&[
        (
            message(
                "",
                &format!("{field}<field name=\"b\" id=\"2\" type=\"int8\" offset=\"3\"/>"),
            ),
            "which ends at 4",
        ),
        (
            text(
                "",
                &format!("<message name=\"M\" id=\"1\" blockLength=\"3\">{field}</message>"),
            ),
            "blockLength 3 is less than the end 4",
        ),
        (
            text("", "<message name=\"M\" id=\"1\" blockLength=\"70000\"/>"),
            "does not fit the header's blockLength",
        ),
        (
            message("", "<group name=\"g\" id=\"1\" blockLength=\"70000\"/>"),
            "does not fit the blockLength",
        ),
        (
            message(
                "<composite name=\"C\"><type name=\"a\" primitiveType=\"int16\"/>\
                 <type name=\"b\" primitiveType=\"int16\" offset=\"1\"/></composite>",
                "",
            ),
            "which ends at 2",
        ),
        (
            message("", &format!("<group name=\"g\" id=\"9\"/>{field}")),
            "after a group or after data",
        ),
        (
            message(
                "",
                "<data name=\"d\" id=\"9\" type=\"varDataEncoding\"/><group name=\"g\" id=\"1\"/>",
            ),
            "a group is after data",
        ),
    ]);
}

/// 13-7
#[test]
fn names_and_ids_are_unique() {
    let field = |name: &str, id: u32| format!("<field name=\"{name}\" id=\"{id}\" type=\"int8\"/>");
    let one = "<message name=\"M\" id=\"1\"/>";
    refused(&[
        (
            message("", &(field("a", 1) + &field("a", 2))),
            "has this name",
        ),
        (
            message("", &(field("a", 1) + &field("b", 1))),
            "has the id 1",
        ),
        (
            message("", &(field("a", 1) + "<group name=\"a\" id=\"2\"/>")),
            "has this name",
        ),
        (
            text("", &format!("{one}<message name=\"M\" id=\"2\"/>")),
            "another message has this name",
        ),
        (
            text("", &format!("{one}<message name=\"N\" id=\"1\"/>")),
            "another message has the id 1",
        ),
        (
            message("<type name=\"messageHeader\" primitiveType=\"int8\"/>", ""),
            "another type has this name",
        ),
        (
            message("", "<field name=\"a\" type=\"int8\"/>"),
            "'id' is missing",
        ),
        (
            text("", "<message name=\"M\" id=\"70000\"/>"),
            "does not fit the header",
        ),
    ]);
    // The same id and name in a group and in the block around it are those of FIX.
    sound(&message(
        "",
        &format!(
            "{}<group name=\"g\" id=\"2\">{}</group>",
            field("a", 1),
            field("a", 1)
        ),
    ));
}

/// 13-8
#[test]
fn values_of_enums_and_bits_of_sets_fit_their_encodings() {
    let names = |encoding: &str, values: &str| {
        message(
            &format!("<enum name=\"E\" encodingType=\"{encoding}\">{values}</enum>"),
            "",
        )
    };
    let choices = |encoding: &str, choices: &str| {
        message(
            &format!("<set name=\"S\" encodingType=\"{encoding}\">{choices}</set>"),
            "",
        )
    };
    let value =
        |name: &str, value: &str| format!("<validValue name=\"{name}\">{value}</validValue>");
    let choice = |name: &str, bit: u32| format!("<choice name=\"{name}\">{bit}</choice>");
    sound(&names("uint8", &value("a", "255")));
    sound(&choices("uint64", &choice("a", 63)));
    refused(&[
        (
            names("uint8", &value("a", "256")),
            "value '256' is not a value of uint8",
        ),
        (
            names("char", &value("a", "AB")),
            "value 'AB' is not a value of char",
        ),
        (
            names("int8", &(value("a", "1") + &value("b", "1"))),
            "'a' and 'b' have the same value 1",
        ),
        (
            names("int8", &(value("a", "1") + &value("a", "2"))),
            "has this name",
        ),
        (
            names("float", &value("a", "1")),
            "neither char nor an integer",
        ),
        (
            names("groupSizeEncoding", &value("a", "1")),
            "not a single value",
        ),
        (names("int8", ""), "there is no <validValue>"),
        (
            choices("uint8", &choice("a", 8)),
            "bit '8' is not a number from 0 to 7",
        ),
        (
            choices("uint8", &(choice("a", 1) + &choice("b", 1))),
            "has the bit 1",
        ),
        (choices("int8", &choice("a", 1)), "not an unsigned integer"),
    ]);
}

/// 13-9
#[test]
fn constants_have_their_values_and_no_bytes() {
    let side =
        "<enum name=\"Side\" encodingType=\"char\"><validValue name=\"Buy\">B</validValue></enum>";
    let types = format!(
        "{side}<type name=\"three\" primitiveType=\"int8\" presence=\"constant\">3</type>\
         <type name=\"abc\" primitiveType=\"char\" presence=\"constant\">abc</type>\
         <type name=\"buy\" primitiveType=\"char\" presence=\"constant\" valueRef=\"Side.Buy\"/>"
    );
    let schema = sound(&message(
        &types,
        "<field name=\"a\" id=\"1\" type=\"three\" offset=\"9\"/><field name=\"b\" id=\"2\" type=\"abc\"/>\
         <field name=\"c\" id=\"3\" type=\"buy\"/>\
         <field name=\"d\" id=\"4\" type=\"Side\" presence=\"constant\" valueRef=\"Side.Buy\"/>\
         <field name=\"e\" id=\"5\" type=\"char\" presence=\"constant\" valueRef=\"Side.Buy\"/>",
    ));
    let block = &schema.messages[0].block;
    let constants: Vec<_> = block
        .fields
        .iter()
        .map(|field| field.constant.clone().unwrap())
        .collect();
    let buy = SbeConstant::Number(SbeNumber::Unsigned(66));
    assert_eq!(block.block_length, 0);
    assert_eq!(constants[0], SbeConstant::Number(SbeNumber::Signed(3)));
    assert_eq!(constants[1], SbeConstant::Text("abc".to_owned()));
    assert_eq!(constants[2..], [buy.clone(), buy.clone(), buy]);
    let field = |attributes: &str| {
        message(
            side,
            &format!("<field name=\"a\" id=\"1\" presence=\"constant\" {attributes}/>"),
        )
    };
    refused(&[
        (field("type=\"int8\""), "neither a value nor a valueRef"),
        (field("type=\"Side\""), "neither a value nor a valueRef"),
        (
            field("type=\"Side\" valueRef=\"Side.Sell\""),
            "there is no value 'Sell'",
        ),
        (field("type=\"Side\" valueRef=\"Buy\""), "not 'enum.value'"),
        (field("type=\"Side\" valueRef=\"int8.Buy\""), "not an enum"),
        (
            field("type=\"groupSizeEncoding\""),
            "only a simple type or an enum",
        ),
        (
            message(
                "<type name=\"T\" primitiveType=\"int8\" presence=\"constant\"/>",
                "",
            ),
            "neither a value",
        ),
        (
            message(
                "<type name=\"T\" primitiveType=\"int8\" presence=\"constant\">300</type>",
                "",
            ),
            "not a value of int8",
        ),
        (
            message(
                "<type name=\"T\" primitiveType=\"char\" length=\"2\" presence=\"constant\">abc</type>",
                "",
            ),
            "longer than its length 2",
        ),
    ]);
}

/// 13-10
#[test]
fn header_and_dimensions_are_found_by_the_names_of_their_members() {
    let member =
        |name: &str, kind: &str| format!("<type name=\"{name}\" primitiveType=\"{kind}\"/>");
    let header = |members: &str| {
        format!(
            "<messageSchema id=\"1\"><types><composite name=\"messageHeader\">{members}</composite></types></messageSchema>"
        )
    };
    let rest = member("templateId", "uint8")
        + &member("schemaId", "uint32")
        + &member("x", "int8")
        + &member("version", "uint16");
    let schema = sound(&header(
        &(rest.clone() + &member("blockLength", "uint64") + &member("numGroups", "uint8")),
    ));
    let layout = &schema.header;
    assert_eq!(
        (
            layout.length,
            layout.block_length.offset,
            layout.version.offset
        ),
        (17, 8, 6)
    );
    assert_eq!(layout.num_groups.map(|counter| counter.offset), Some(16));
    let counting = rest.clone()
        + &member("blockLength", "uint16")
        + "<type name=\"numGroups\" primitiveType=\"uint8\" maxValue=\"1\"/>";
    let groups = "<message name=\"M\" id=\"1\"><group name=\"g\" id=\"1\"/><group name=\"h\" id=\"2\"/></message>";
    let dimension = member("blockLength", "uint8") + &member("numInGroup", "uint8");
    let dimension =
        format!("<composite name=\"groupSizeEncoding\">{dimension}</composite></types>{groups}");
    let counting = header(&counting).replace("</types>", &dimension);
    let data = |members: &str| {
        message(
            &format!("<composite name=\"D\">{members}</composite>"),
            "<data name=\"d\" id=\"1\" type=\"D\"/>",
        )
    };
    let bytes = "<type name=\"varData\" primitiveType=\"uint8\" length=\"0\"/>";
    refused(&[
        (counting, "2 elements do not fit numGroups"),
        (header(&rest), "no member 'blockLength'"),
        (
            header(&(rest.clone() + &member("blockLength", "int16"))),
            "'blockLength' of composite 'messageHeader' is not an unsigned",
        ),
        (data(bytes), "no member 'length'"),
        (data(&member("length", "uint8")), "no member 'varData'"),
        (
            data(&(bytes.to_owned() + &member("length", "uint8"))),
            "not the last one",
        ),
        (
            data(&(member("length", "uint8") + &member("varData", "uint16"))),
            "not of length 0 and of bytes",
        ),
    ]);
}

/// 13-12
#[test]
fn presence_and_null_value_are_inherited_and_must_not_be_contradicted() {
    let types = "<type name=\"opt\" primitiveType=\"int8\" presence=\"optional\" nullValue=\"7\"/>\
                 <type name=\"req\" primitiveType=\"int8\" presence=\"required\"/>\
                 <type name=\"plain\" primitiveType=\"int8\" nullValue=\"5\"/>";
    let field =
        |attributes: &str| message(types, &format!("<field name=\"a\" id=\"1\" {attributes}/>"));
    let presence =
        |attributes: &str| sound(&field(attributes)).messages[0].block.fields[0].presence;
    assert_eq!(presence("type=\"opt\""), SbePresence::Optional);
    assert_eq!(
        presence("type=\"opt\" presence=\"optional\" nullValue=\" 7 \""),
        SbePresence::Optional
    );
    assert_eq!(presence("type=\"plain\""), SbePresence::Required);
    assert_eq!(
        presence("type=\"plain\" presence=\"optional\""),
        SbePresence::Optional
    );
    refused(&[
        (
            field("type=\"opt\" presence=\"required\""),
            "contradicts the presence",
        ),
        (
            field("type=\"req\" presence=\"optional\""),
            "contradicts the presence",
        ),
        (
            field("type=\"opt\" nullValue=\"8\""),
            "nullValue 8 contradicts the nullValue 7",
        ),
        (
            field("type=\"int8\" presence=\"maybe\""),
            "presence 'maybe'",
        ),
        (
            field("type=\"int8\" nullValue=\"300\""),
            "nullValue '300' is not a value of int8",
        ),
        (
            field("type=\"groupSizeEncoding\" nullValue=\"1\""),
            "has no null value of its own",
        ),
    ]);
}

/// 13-14
#[test]
fn a_type_without_null_is_required_with_a_warning() {
    let types = "<set name=\"S\" encodingType=\"uint8\"><choice name=\"a\">0</choice></set>\
                 <composite name=\"C\"><ref name=\"s\" type=\"S\"/><type name=\"n\" primitiveType=\"int8\"/></composite>";
    let schema = sound(&message(
        types,
        "<field name=\"a\" id=\"1\" type=\"S\" presence=\"optional\"/>\
         <field name=\"b\" id=\"2\" type=\"C\" presence=\"optional\"/>",
    ));
    let fields = &schema.messages[0].block.fields;
    assert!(
        fields
            .iter()
            .all(|field| field.presence == SbePresence::Required)
    );
    let warnings: Vec<_> = schema
        .warnings
        .iter()
        .map(|warning| warning.element.as_str())
        .collect();
    assert_eq!(warnings, ["<field name=\"a\">", "<field name=\"b\">"]);
}

/// 13-17
#[test]
fn versions_of_elements_are_not_after_the_schema_and_members_have_none() {
    refused(&[
        (
            message(
                "",
                "<field name=\"a\" id=\"1\" type=\"int8\" sinceVersion=\"4\"/>",
            ),
            "later than the version 3",
        ),
        (
            message("", "<group name=\"a\" id=\"1\" sinceVersion=\"4\"/>"),
            "later than the version 3",
        ),
        (
            message(
                "",
                "<field name=\"a\" id=\"1\" type=\"int8\" sinceVersion=\"-1\"/>",
            ),
            "is not a number",
        ),
        (
            format!("<messageSchema version=\"65535\"><types>{LAYOUTS}</types></messageSchema>"),
            "version 65535 does not fit the header",
        ),
    ]);
    let schema = sound(&message(
        "<composite name=\"C\"><type name=\"n\" primitiveType=\"int8\" sinceVersion=\"2\"/></composite>",
        "",
    ));
    assert_eq!(schema.warnings.len(), 1);
    assert!(
        schema.warnings[0]
            .to_string()
            .contains("a composite cannot grow")
    );
    assert!(
        schema
            .types
            .iter()
            .any(|kind| matches!(kind, SbeType::Composite(composite) if composite.name == "C"))
    );
}
