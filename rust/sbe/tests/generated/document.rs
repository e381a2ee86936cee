//! Random schemas.

use std::fmt::Write as _;

use super::Choices;

/// Parts of the language that a schema may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Features {
    /// All parts.
    All,
    /// The parts that the reference implementation also supports.
    Reference,
}

/// A random schema. Its text can be written as of any version.
#[derive(Debug)]
pub struct Document {
    head: String,
    types: String,
    pub version: u32,
    messages: Vec<Block>,
}

/// A message or group.
#[derive(Debug)]
struct Block {
    open: String,
    close: &'static str,
    since: u32,
    fields: Vec<Line>,
    groups: Vec<Block>,
    data: Vec<Line>,
}

/// A field or data, without its version.
#[derive(Debug)]
struct Line {
    open: String,
    since: u32,
}

/// A type that fields can have.
#[derive(Debug, Clone)]
struct Type {
    name: String,
    kind: Kind,
    /// Names of an enum's values.
    values: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A simple type without a stated presence.
    Plain,
    /// A simple type with a stated presence.
    Stated,
    Enum,
    Set,
    Composite,
}

const INTEGERS: [&str; 8] = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
];
const UNSIGNED: [&str; 4] = ["uint8", "uint16", "uint32", "uint64"];
const PRIMITIVES: [&str; 11] = [
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "char", "float",
    "double",
];
const TIMES: [&str; 4] = [
    "UTCTimestamp",
    "UTCTimeOnly",
    "LocalMktDate",
    "utctimestamp",
];

impl Document {
    /// Makes a schema.
    pub fn new(choices: &mut Choices<'_>, features: Features) -> Self {
        let mut maker = Maker {
            choices,
            features,
            has_counts: false,
            types: Vec::new(),
            text: String::new(),
            next: 0,
            version: 0,
        };
        maker.version = maker.choices.below(4) as u32;
        maker.has_counts = features == Features::All && maker.choices.once_in(2);
        let order = maker.choices.one_of(&["littleEndian", "bigEndian"]);
        maker.layouts();
        for _ in 0..1 + maker.choices.below(8) {
            maker.named_type();
        }
        let count = 1 + maker.choices.below(3);
        let messages = (0..count).map(|index| maker.message(index)).collect();
        Self {
            head: format!(
                "<sbe:messageSchema xmlns:sbe=\"http://fixprotocol.io/2016/sbe\" id=\"9\" \
                 byteOrder=\"{order}\""
            ),
            version: maker.version,
            types: maker.text,
            messages,
        }
    }

    /// Returns the text of the schema as it was in a version, in a package.
    pub fn text(&self, package: &str, version: u32) -> String {
        let mut text = format!(
            "{} package=\"{package}\" version=\"{version}\">\n<types>\n{}</types>\n",
            self.head, self.types
        );
        for message in &self.messages {
            message.write(version, &mut text);
        }
        text + "</sbe:messageSchema>\n"
    }
}

impl Block {
    fn write(&self, version: u32, text: &mut String) {
        if self.since > version {
            return;
        }
        let _ = writeln!(text, "{} sinceVersion=\"{}\">", self.open, self.since);
        let line = |line: &Line, text: &mut String| {
            if line.since <= version {
                let _ = writeln!(text, "{} sinceVersion=\"{}\"/>", line.open, line.since);
            }
        };
        self.fields.iter().for_each(|field| line(field, text));
        self.groups
            .iter()
            .for_each(|group| group.write(version, text));
        self.data.iter().for_each(|data| line(data, text));
        let _ = writeln!(text, "{}", self.close);
    }
}

struct Maker<'c, 'a> {
    choices: &'c mut Choices<'a>,
    features: Features,
    has_counts: bool,
    types: Vec<Type>,
    text: String,
    next: usize,
    version: u32,
}

impl Maker<'_, '_> {
    fn name(&mut self, prefix: &str) -> String {
        self.next += 1;
        format!("{prefix}{}", self.next)
    }

    /// Writes the composites of header, dimensions and data.
    fn layouts(&mut self) {
        let mut header = vec!["blockLength", "templateId", "schemaId", "version"];
        let mut dimension = vec!["blockLength", "numInGroup"];
        if self.has_counts {
            header.extend(["numGroups", "numVarDataFields"]);
            dimension.extend(["numGroups", "numVarDataFields"]);
        }
        if self.features == Features::All {
            let by = self.choices.below(header.len());
            header.rotate_left(by);
            let by = self.choices.below(dimension.len());
            dimension.rotate_left(by);
        }
        let widths: &[&str] = match self.features {
            Features::All => &["uint16", "uint32", "uint64"],
            Features::Reference => &["uint16"],
        };
        self.layout("messageHeader", &header, widths);
        self.layout("groupSizeEncoding", &dimension, widths);
        for (name, width) in [
            ("small", "uint8\""),
            ("varDataEncoding", "uint16\""),
            ("large", "uint32\" maxValue=\"1000000\""),
        ] {
            let encoding = self.choices.one_of(&["", " characterEncoding=\"UTF-8\""]);
            let _ = writeln!(
                self.text,
                "<composite name=\"{name}\"><type name=\"length\" primitiveType=\"{width}/>\
                 <type name=\"varData\" primitiveType=\"uint8\" length=\"0\"{encoding}/></composite>"
            );
        }
    }

    fn layout(&mut self, name: &str, members: &[&str], widths: &[&str]) {
        let _ = write!(self.text, "<composite name=\"{name}\">");
        for member in members {
            let width = self.choices.one_of(widths);
            let _ = write!(
                self.text,
                "<type name=\"{member}\" primitiveType=\"{width}\"/>"
            );
        }
        self.text.push_str("</composite>\n");
    }

    fn named_type(&mut self) {
        let made = match self.choices.below(6) {
            0 => self.simple("T"),
            1 => self.enumeration("E"),
            2 => self.set("S"),
            3 => self.decimal(),
            4 => self.time(),
            _ => self.composite("C", 0),
        };
        self.types.push(made.0);
        self.text.push_str(&made.1);
        self.text.push('\n');
    }

    /// Returns a `<type>` and its text.
    fn simple(&mut self, prefix: &str) -> (Type, String) {
        let name = self.name(prefix);
        let primitive = self.choices.one_of(&PRIMITIVES);
        let mut attributes = format!("name=\"{name}\" primitiveType=\"{primitive}\"");
        let (mut kind, mut content) = (Kind::Plain, "");
        match self.choices.below(6) {
            0 => {
                let length = 2 + self.choices.below(5);
                let _ = write!(attributes, " length=\"{length}\"");
                if primitive == "char" {
                    attributes += self
                        .choices
                        .one_of(&["", " characterEncoding=\"ISO-8859-1\""]);
                }
            }
            1 if !primitive.starts_with("uint8") => {
                attributes += " presence=\"constant\"";
                kind = Kind::Stated;
                content = match primitive {
                    "char" => self.choices.one_of(&["X", "XYZ"]),
                    "float" | "double" => "2.5",
                    _ => "7",
                };
            }
            2 => {
                attributes += " presence=\"optional\"";
                kind = Kind::Stated;
                if INTEGERS.contains(&primitive) && self.choices.once_in(2) {
                    attributes += " nullValue=\"100\"";
                }
            }
            3 if INTEGERS.contains(&primitive) => {
                let _ = write!(
                    attributes,
                    " semanticType=\"{}\"",
                    self.choices.one_of(&TIMES)
                );
            }
            4 if INTEGERS.contains(&primitive) => attributes += " minValue=\"1\" maxValue=\"99\"",
            _ => {}
        }
        let made = Type {
            name,
            kind,
            values: Vec::new(),
        };
        (made, format!("<type {attributes}>{content}</type>"))
    }

    fn enumeration(&mut self, prefix: &str) -> (Type, String) {
        let name = self.name(prefix);
        let encoding = self.choices.one_of(match self.features {
            Features::All => &["char", "uint8", "uint16", "uint32", "int8", "int64"],
            Features::Reference => &["char", "uint8", "uint16", "int8", "int16", "int32"],
        });
        let count = 1 + self.choices.below(5);
        let values: Vec<_> = (0..count).map(|index| format!("V{index}")).collect();
        let mut text = format!("<enum name=\"{name}\" encodingType=\"{encoding}\">");
        for (index, value) in values.iter().enumerate() {
            let _ = match encoding {
                "char" => write!(
                    text,
                    "<validValue name=\"{value}\">{}</validValue>",
                    char::from(b'a' + index as u8)
                ),
                _ => write!(
                    text,
                    "<validValue name=\"{value}\">{}</validValue>",
                    3 * index
                ),
            };
        }
        let made = Type {
            name,
            kind: Kind::Enum,
            values,
        };
        (made, text + "</enum>")
    }

    fn set(&mut self, prefix: &str) -> (Type, String) {
        let name = self.name(prefix);
        let encoding = self.choices.one_of(&UNSIGNED);
        let mut text = format!("<set name=\"{name}\" encodingType=\"{encoding}\">");
        for index in 0..1 + self.choices.below(8) {
            let _ = write!(text, "<choice name=\"B{index}\">{index}</choice>");
        }
        let made = Type {
            name,
            kind: Kind::Set,
            values: Vec::new(),
        };
        (made, text + "</set>")
    }

    fn decimal(&mut self) -> (Type, String) {
        let name = self.name("D");
        let mantissa = self.choices.one_of(&INTEGERS);
        let presence = self.choices.one_of(&["", " presence=\"optional\""]);
        let mantissa = format!("<type name=\"mantissa\" primitiveType=\"{mantissa}\"{presence}/>");
        let exponent = self.choices.one_of(&[
            "<type name=\"exponent\" primitiveType=\"int8\" presence=\"constant\">-4</type>",
            "<type name=\"exponent\" primitiveType=\"int8\" presence=\"constant\">2</type>",
            "<type name=\"exponent\" primitiveType=\"int8\"/>",
        ]);
        let made = Type {
            name: name.clone(),
            kind: Kind::Composite,
            values: Vec::new(),
        };
        (
            made,
            format!("<composite name=\"{name}\">{mantissa}{exponent}</composite>"),
        )
    }

    /// Returns a composite of a time and of its unit on the wire.
    fn time(&mut self) -> (Type, String) {
        let name = self.name("U");
        let time = self.choices.one_of(&["int64", "uint64"]);
        let presence = self.choices.one_of(&["", " presence=\"optional\""]);
        let text = format!(
            "<composite name=\"{name}\" semanticType=\"UTCTimestamp\">\
             <type name=\"time\" primitiveType=\"{time}\"{presence}/>\
             <type name=\"unit\" primitiveType=\"uint8\"/></composite>"
        );
        let made = Type {
            name,
            kind: Kind::Composite,
            values: Vec::new(),
        };
        (made, text)
    }

    fn composite(&mut self, prefix: &str, depth: usize) -> (Type, String) {
        let name = self.name(prefix);
        let mut text = format!("<composite name=\"{name}\">");
        for _ in 0..1 + self.choices.below(4) {
            let member = match self.choices.below(6) {
                0 if depth < 2 => self.composite("c", depth + 1).1,
                1 => self.enumeration("e").1,
                2 => self.set("s").1,
                3 if !self.types.is_empty() => {
                    let index = self.choices.below(self.types.len());
                    let member = self.name("r");
                    format!(
                        "<ref name=\"{member}\" type=\"{}\"/>",
                        self.types[index].name
                    )
                }
                _ => self.simple("t").1,
            };
            text += &member;
        }
        let made = Type {
            name,
            kind: Kind::Composite,
            values: Vec::new(),
        };
        (made, text + "</composite>")
    }

    fn message(&mut self, index: usize) -> Block {
        let open = format!("<sbe:message name=\"M{index}\" id=\"{}\"", index + 1);
        self.block(open, "</sbe:message>", 0, 0)
    }

    fn block(&mut self, open: String, close: &'static str, since: u32, depth: usize) -> Block {
        let mut block = Block {
            open,
            close,
            since,
            fields: Vec::new(),
            groups: Vec::new(),
            data: Vec::new(),
        };
        let mut version = since;
        // A message without fields is one that the reference implementation does not support everywhere.
        for _ in 0..1 + self.choices.below(6) {
            version = self.later(version);
            let open = self.field();
            block.fields.push(Line {
                open,
                since: version,
            });
        }
        let is_root = depth == 0;
        let mut version = since;
        let groups = if depth < 2 { self.choices.below(3) } else { 0 };
        let data = if depth < 2 { self.choices.below(3) } else { 0 };
        for _ in 0..groups {
            // Without counts, an older reader cannot skip a group before data, or in an entry.
            if self.has_counts || is_root && data == 0 {
                version = self.later(version);
            }
            let name = self.name("G");
            let open = format!("<group name=\"{name}\" id=\"{}\"", self.next);
            block
                .groups
                .push(self.block(open, "</group>", version, depth + 1));
        }
        let mut version = since;
        for _ in 0..data {
            if self.has_counts || is_root {
                version = self.later(version);
            }
            let name = self.name("v");
            let kind = self.choices.one_of(match self.features {
                // Unknown data are skipped with the layout of known data.
                Features::All if self.has_counts => &["varDataEncoding"],
                _ => &["small", "varDataEncoding", "large"],
            });
            let open = format!("<data name=\"{name}\" id=\"{}\" type=\"{kind}\"", self.next);
            block.data.push(Line {
                open,
                since: version,
            });
        }
        block
    }

    fn later(&mut self, version: u32) -> u32 {
        match self.choices.once_in(4) {
            true => self.version.min(version + 1),
            false => version,
        }
    }

    fn field(&mut self) -> String {
        let name = self.name("f");
        let id = self.next;
        let head = |kind: &str| format!("<field name=\"{name}\" id=\"{id}\" type=\"{kind}\"");
        let known = self.types.len();
        if known == 0 || self.choices.once_in(3) {
            let primitive = self.choices.one_of(&PRIMITIVES);
            let presence = self.choices.one_of(&["", " presence=\"optional\""]);
            return head(primitive) + presence;
        }
        let kind = self.types[self.choices.below(known)].clone();
        let optional = self.choices.one_of(&["", " presence=\"optional\""]);
        let presence = match kind.kind {
            Kind::Plain | Kind::Composite => optional.to_owned(),
            Kind::Enum if self.choices.once_in(4) => {
                let value = &kind.values[self.choices.below(kind.values.len())];
                format!(" presence=\"constant\" valueRef=\"{}.{value}\"", kind.name)
            }
            Kind::Enum => optional.to_owned(),
            Kind::Stated | Kind::Set => String::new(),
        };
        head(&kind.name) + &presence
    }
}
