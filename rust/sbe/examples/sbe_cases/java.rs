//! Java statements that encode and check values with generated codecs.

use std::fmt::Write as _;

use aeron_sbe::number::{SbeNumber, SbePrimitive};
use aeron_sbe::plan::{
    SbeBlockPlan, SbeDecimal, SbeExponent, SbeField, SbeKind, SbeScalar, SbeTemplate, SbeTime,
    SbeUnitSource,
};
use aeron_sbe::schema::{SbePresence, SbeSet};
use aeron_sbe::value::{SbeRecord, SbeValue};

/// A class with the messages of one schema.
pub struct Class {
    package: String,
    name: String,
    header: String,
    methods: String,
    encodes: Vec<String>,
    checks: Vec<String>,
    expected: Vec<String>,
}

impl Class {
    pub fn new(package: &str, name: &str, header: &str) -> Self {
        Self {
            package: package.to_owned(),
            name: name.to_owned(),
            header: class(header),
            methods: String::new(),
            encodes: Vec::new(),
            checks: Vec::new(),
            expected: Vec::new(),
        }
    }

    /// Adds a message that the reference implementation encodes and decodes.
    pub fn add(&mut self, template: &SbeTemplate, values: &SbeRecord<'_>, message: &[u8]) {
        let (index, name) = (self.encodes.len(), &template.name);
        let (header, header_length) = (&self.header, template.header.length);
        let mut writer = Writer::new(&self.package);
        let _ = write!(
            writer.text,
            "    static byte[] encode{index}() {{\n        var buffer = new UnsafeBuffer(new byte[{}]);\n        \
             var message = new {name}Encoder();\n        \
             message.wrapAndApplyHeader(buffer, 0, new {header}Encoder());\n",
            message.len()
        );
        writer.encode(&template.block, values, "message");
        let _ = write!(
            writer.text,
            "        return java.util.Arrays.copyOf(buffer.byteArray(), {header_length} + message.encodedLength());\n    }}\n\n"
        );
        self.methods += &writer.text;
        self.add_check(template, values, message);
        self.encodes[index] = format!("encode{index}()");
    }

    /// Adds a message that the reference implementation only decodes.
    pub fn add_check(&mut self, template: &SbeTemplate, values: &SbeRecord<'_>, message: &[u8]) {
        let (index, name, header) = (self.encodes.len(), &template.name, &self.header);
        let mut writer = Writer::new(&self.package);
        let _ = write!(
            writer.text,
            "    static void check{index}(byte[] bytes) {{\n        var buffer = new UnsafeBuffer(bytes);\n        \
             var message = new {name}Decoder();\n        \
             message.wrapAndApplyHeader(buffer, 0, new {header}Decoder());\n"
        );
        writer.check(&template.block, values, "message");
        writer.text.push_str("    }\n\n");
        self.methods += &writer.text;
        self.encodes.push(format!(
            "java.util.HexFormat.of().parseHex(expected()[{index}])"
        ));
        self.checks
            .push(format!("check{index}(messages[{index}]);"));
        let hex: String = message.iter().map(|byte| format!("{byte:02x}")).collect();
        self.expected.push(format!("\"{hex}\""));
    }

    /// Returns the source of the class.
    pub fn text(&self) -> String {
        format!(
            "package {};\n\nimport org.agrona.concurrent.UnsafeBuffer;\n\npublic final class {} {{\n    \
             public static byte[][] encode() {{\n        return new byte[][] {{{}}};\n    }}\n\n    \
             public static String[] expected() {{\n        return new String[] {{{}}};\n    }}\n\n    \
             public static void check(byte[][] messages) {{\n        {}\n    }}\n\n    \
             static void same(String name, Object found, Object expected) {{\n        \
             if (!expected.equals(found)) throw new AssertionError(name + \": \" + found + \", not \" + expected);\n    \
             }}\n\n{}}}\n",
            self.package,
            self.name,
            self.encodes.join(", "),
            self.expected.join(", "),
            self.checks.join(" "),
            self.methods,
        )
    }
}

struct Writer<'a> {
    package: &'a str,
    text: String,
    next: usize,
}

impl<'a> Writer<'a> {
    fn new(package: &'a str) -> Self {
        Self {
            package,
            text: String::new(),
            next: 0,
        }
    }

    fn line(&mut self, line: &str) {
        let _ = writeln!(self.text, "        {line}");
    }

    fn variable(&mut self) -> String {
        self.next += 1;
        format!("x{}", self.next)
    }

    fn encode(&mut self, plan: &SbeBlockPlan, record: &SbeRecord<'_>, codec: &str) {
        for (field, value) in plan.fields.iter().zip(&record.fields) {
            self.encode_field(field, value, codec);
        }
        for (group, entries) in plan.groups.iter().zip(&record.groups) {
            let variable = self.variable();
            self.line(&format!(
                "var {variable} = {codec}.{}Count({});",
                property(&group.name),
                entries.len()
            ));
            for entry in entries {
                self.line(&format!("{variable}.next();"));
                self.encode(&group.block, entry, &variable);
            }
        }
        for (data, bytes) in plan.data.iter().zip(&record.data) {
            let bytes = bytes.as_deref().unwrap_or_default();
            self.line(&format!(
                "{codec}.put{}({}, 0, {});",
                class(&data.name),
                byte_array(bytes),
                bytes.len()
            ));
        }
    }

    fn encode_field(&mut self, field: &SbeField, value: &SbeValue<'_>, codec: &str) {
        let name = property(&field.name);
        if field.presence == SbePresence::Constant {
            return;
        }
        match (&field.kind, value) {
            (SbeKind::Number(_) | SbeKind::Character(_), SbeValue::Null) => {
                self.line(&format!("{codec}.{name}({codec}.{name}NullValue());"));
            }
            (SbeKind::Time(time), SbeValue::Null) if has_wire_unit(time) => {
                let variable = self.variable();
                self.line(&format!("var {variable} = {codec}.{name}();"));
                for member in ["time", "unit"] {
                    self.line(&format!(
                        "{variable}.{member}({variable}.{member}NullValue());"
                    ));
                }
            }
            (SbeKind::Time(_), SbeValue::Null) => {
                self.line(&format!("{codec}.{name}({codec}.{name}NullValue());"));
            }
            (SbeKind::Numbers { count, .. } | SbeKind::Bytes { count, .. }, SbeValue::Null) => {
                for index in 0..*count {
                    self.line(&format!(
                        "{codec}.{name}({index}, {codec}.{name}NullValue());"
                    ));
                }
            }
            (SbeKind::Enum { names, .. }, SbeValue::Null) => {
                let class = class(&names.name);
                self.line(&format!(
                    "{codec}.{name}({}.{class}.NULL_VAL);",
                    self.package
                ));
            }
            // The buffer has zeros.
            (SbeKind::Text { .. } | SbeKind::Set { .. }, SbeValue::Null) => {}
            (SbeKind::Decimal(decimal), SbeValue::Null) => {
                let variable = self.variable();
                self.line(&format!("var {variable} = {codec}.{name}();"));
                let null =
                    |member: &str| format!("{variable}.{member}({variable}.{member}NullValue());");
                self.line(&null("mantissa"));
                if let SbeExponent::Wire { .. } = decimal.exponent {
                    self.line(&null("exponent"));
                }
            }
            (SbeKind::Struct(composite), SbeValue::Null) => {
                let variable = self.variable();
                self.line(&format!("var {variable} = {codec}.{name}();"));
                for member in &composite.members {
                    self.encode_field(member, &SbeValue::Null, &variable);
                }
            }
            (kind, value) => self.encode_value(kind, value, codec, &name),
        }
    }

    fn encode_value(&mut self, kind: &SbeKind, value: &SbeValue<'_>, codec: &str, name: &str) {
        match (kind, value) {
            (SbeKind::Number(scalar), SbeValue::Number(number)) => {
                self.line(&format!("{codec}.{name}({});", literal(scalar, *number)));
            }
            (SbeKind::Time(time), SbeValue::Number(number)) if has_wire_unit(time) => {
                let value = literal(&time.scalar, *number);
                self.line(&format!("{codec}.{name}().time({value}).unit((short)9);"));
            }
            (SbeKind::Time(time), SbeValue::Number(number)) => {
                self.line(&format!(
                    "{codec}.{name}({});",
                    literal(&time.scalar, *number)
                ));
            }
            (SbeKind::Character(_), SbeValue::Text(text)) => {
                self.line(&format!("{codec}.{name}({});", character(text)));
            }
            (SbeKind::Numbers { item, .. }, SbeValue::List(items)) => {
                for (index, value) in items.iter().enumerate() {
                    let SbeValue::Number(number) = value else {
                        unreachable!("arrays have numbers");
                    };
                    self.line(&format!(
                        "{codec}.{name}({index}, {});",
                        literal(item, *number)
                    ));
                }
            }
            (SbeKind::Bytes { .. }, SbeValue::Bytes(bytes)) => {
                for (index, byte) in bytes.iter().enumerate() {
                    self.line(&format!("{codec}.{name}({index}, (short){byte});"));
                }
            }
            (SbeKind::Text { .. }, SbeValue::Text(text)) => {
                self.line(&format!("{codec}.{name}({});", string(text)));
            }
            (SbeKind::Enum { names, .. }, SbeValue::Symbol { name: value, .. }) => {
                let value = value.expect("random values have names");
                let class = class(&names.name);
                self.line(&format!(
                    "{codec}.{name}({}.{class}.{value});",
                    self.package
                ));
            }
            (SbeKind::Set { choices, .. }, SbeValue::Number(bits)) => {
                for (choice, is_set) in choices_of(choices, *bits) {
                    self.line(&format!("{codec}.{name}().{choice}({is_set});"));
                }
            }
            (SbeKind::Decimal(decimal), SbeValue::Decimal { mantissa, exponent }) => {
                let variable = self.variable();
                self.line(&format!("var {variable} = {codec}.{name}();"));
                let mantissa = literal(&decimal.mantissa, mantissa_number(*mantissa));
                self.line(&format!("{variable}.mantissa({mantissa});"));
                if let SbeExponent::Wire { .. } = decimal.exponent {
                    self.line(&format!("{variable}.exponent((byte){exponent});"));
                }
            }
            (SbeKind::Struct(composite), SbeValue::Struct(values)) => {
                let variable = self.variable();
                self.line(&format!("var {variable} = {codec}.{name}();"));
                for (member, value) in composite.members.iter().zip(values) {
                    self.encode_field(member, value, &variable);
                }
            }
            (kind, value) => unreachable!("{value:?} of {kind:?}"),
        }
    }

    fn check(&mut self, plan: &SbeBlockPlan, record: &SbeRecord<'_>, codec: &str) {
        for (field, value) in plan.fields.iter().zip(&record.fields) {
            self.check_field(field, value, codec);
        }
        for (group, entries) in plan.groups.iter().zip(&record.groups) {
            let variable = self.variable();
            let name = property(&group.name);
            self.line(&format!("var {variable} = {codec}.{name}();"));
            self.same(
                &name,
                &format!("{variable}.count()"),
                &entries.len().to_string(),
            );
            for entry in entries {
                self.line(&format!("{variable}.next();"));
                self.check(&group.block, entry, &variable);
            }
        }
        for (data, bytes) in plan.data.iter().zip(&record.data) {
            let bytes = bytes.as_deref().unwrap_or_default();
            let (variable, name) = (self.variable(), class(&data.name));
            self.line(&format!("var {variable} = new byte[{}];", bytes.len()));
            let found = format!("{codec}.get{name}({variable}, 0, {})", bytes.len());
            let length = format!("{codec}.{}Length()", property(&data.name));
            self.same(&name, &length, &bytes.len().to_string());
            self.same(&name, &found, &bytes.len().to_string());
            let (found, expected) = (
                format!("java.util.Arrays.toString({variable})"),
                format!("java.util.Arrays.toString({})", byte_array(bytes)),
            );
            self.same(&name, &found, &expected);
        }
    }

    fn same(&mut self, name: &str, found: &str, expected: &str) {
        self.line(&format!("same(\"{name}\", {found}, {expected});"));
    }

    fn check_field(&mut self, field: &SbeField, value: &SbeValue<'_>, codec: &str) {
        let name = property(&field.name);
        let found = format!("{codec}.{name}()");
        match (&field.kind, value) {
            (SbeKind::Time(time), value) if has_wire_unit(time) => {
                let variable = self.variable();
                self.line(&format!("var {variable} = {found};"));
                let (time, unit) = match value {
                    SbeValue::Number(number) => {
                        (literal(&time.scalar, *number), "(short)9".to_owned())
                    }
                    _ => (
                        format!("{variable}.timeNullValue()"),
                        format!("{variable}.unitNullValue()"),
                    ),
                };
                self.same(&name, &format!("{variable}.time()"), &time);
                self.same(&name, &format!("{variable}.unit()"), &unit);
            }
            (SbeKind::Number(_) | SbeKind::Character(_) | SbeKind::Time(_), SbeValue::Null) => {
                self.same(&name, &found, &format!("{codec}.{name}NullValue()"));
            }
            (SbeKind::Number(scalar), SbeValue::Number(number)) => {
                self.same(&name, &found, &literal(scalar, *number));
            }
            (SbeKind::Time(time), SbeValue::Number(number)) => {
                self.same(&name, &found, &literal(&time.scalar, *number));
            }
            (SbeKind::Character(_), SbeValue::Text(text)) => {
                self.same(&name, &found, &character(text));
            }
            (SbeKind::Numbers { item, .. }, SbeValue::List(items)) => {
                for (index, value) in items.iter().enumerate() {
                    let SbeValue::Number(number) = value else {
                        unreachable!("arrays have numbers");
                    };
                    let found = format!("{codec}.{name}({index})");
                    self.same(&name, &found, &literal(item, *number));
                }
            }
            (SbeKind::Bytes { .. }, SbeValue::Bytes(bytes)) => {
                for (index, byte) in bytes.iter().enumerate() {
                    let found = format!("{codec}.{name}({index})");
                    self.same(&name, &found, &format!("(short){byte}"));
                }
            }
            (SbeKind::Text { .. }, SbeValue::Text(text)) => {
                self.same(&name, &found, &string(text));
            }
            (SbeKind::Text { .. }, SbeValue::Null) => self.same(&name, &found, "\"\""),
            (SbeKind::Enum { names, .. }, value) => {
                let expected = match value {
                    SbeValue::Symbol {
                        name: Some(name), ..
                    } => name,
                    _ => "NULL_VAL",
                };
                let expected = format!("{}.{}.{expected}", self.package, class(&names.name));
                self.same(&name, &found, &expected);
            }
            (SbeKind::Set { choices, .. }, SbeValue::Number(bits)) => {
                for (choice, is_set) in choices_of(choices, *bits) {
                    self.same(&name, &format!("{found}.{choice}()"), &is_set.to_string());
                }
            }
            (SbeKind::Decimal(decimal), value) => self.check_decimal(decimal, value, &found),
            (SbeKind::Struct(composite), SbeValue::Struct(values)) => {
                let variable = self.variable();
                self.line(&format!("var {variable} = {found};"));
                for (member, value) in composite.members.iter().zip(values) {
                    self.check_field(member, value, &variable);
                }
            }
            // The reference implementation has no null of sets, arrays and composites.
            _ => {}
        }
    }

    fn check_decimal(&mut self, decimal: &SbeDecimal, value: &SbeValue<'_>, found: &str) {
        let variable = self.variable();
        self.line(&format!("var {variable} = {found};"));
        let SbeValue::Decimal { mantissa, exponent } = value else {
            let null = format!("{variable}.mantissaNullValue()");
            return self.same("mantissa", &format!("{variable}.mantissa()"), &null);
        };
        let mantissa = literal(&decimal.mantissa, mantissa_number(*mantissa));
        self.same("mantissa", &format!("{variable}.mantissa()"), &mantissa);
        let found = format!("{variable}.exponent()");
        self.same("exponent", &found, &format!("(byte){exponent}"));
    }
}

/// Returns whether a time is a composite of a time and a unit.
fn has_wire_unit(time: &SbeTime) -> bool {
    matches!(time.unit, SbeUnitSource::Wire { .. })
}

fn choices_of(set: &SbeSet, bits: SbeNumber) -> Vec<(String, bool)> {
    let bits = bits.as_u64().expect("bits are not negative");
    let choices = set.choices.iter();
    choices
        .map(|choice| (property(&choice.name), bits >> choice.bit & 1 == 1))
        .collect()
}

fn mantissa_number(mantissa: i128) -> SbeNumber {
    match i64::try_from(mantissa) {
        Ok(value) => SbeNumber::Signed(value),
        Err(_) => SbeNumber::Unsigned(mantissa as u64),
    }
}

/// Returns a number with the type that the codecs have for a primitive type.
fn literal(scalar: &SbeScalar, number: SbeNumber) -> String {
    let integer = number.as_i128().unwrap_or_default();
    match scalar.primitive {
        SbePrimitive::Char | SbePrimitive::Int8 => format!("(byte){integer}"),
        SbePrimitive::Uint8 | SbePrimitive::Int16 => format!("(short){integer}"),
        SbePrimitive::Uint16 | SbePrimitive::Int32 => format!("{integer}"),
        SbePrimitive::Uint32 | SbePrimitive::Int64 | SbePrimitive::Uint64 => {
            format!("{}L", integer as i64)
        }
        SbePrimitive::Float => {
            format!(
                "Float.intBitsToFloat({})",
                (number.as_f64() as f32).to_bits() as i32
            )
        }
        SbePrimitive::Double => {
            format!(
                "Double.longBitsToDouble({}L)",
                number.as_f64().to_bits() as i64
            )
        }
    }
}

fn character(text: &str) -> String {
    format!("(byte){}", text.chars().next().map_or(0, u32::from))
}

fn string(text: &str) -> String {
    let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
    format!("\"{}\"", units.collect::<String>())
}

fn byte_array(bytes: &[u8]) -> String {
    let bytes: Vec<_> = bytes.iter().map(|byte| (*byte as i8).to_string()).collect();
    format!("new byte[] {{{}}}", bytes.join(", "))
}

/// Returns the name of a property of the codecs: the first letter is small.
fn property(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().into_iter().flat_map(char::to_lowercase);
    first.chain(letters).collect()
}

/// Returns the name of a class of the codecs: the first letter is large.
fn class(name: &str) -> String {
    let mut letters = name.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}
