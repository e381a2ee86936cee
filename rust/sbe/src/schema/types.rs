//! Types of a schema after its rules are checked.

use std::sync::Arc;

use crate::number::{SbeByteOrder, SbeNumber, SbePrimitive};

/// Whether a field has a value in each message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SbePresence {
    /// Each message has a value.
    Required,
    /// The value may be null.
    Optional,
    /// The schema has the value, and messages have no bytes for it.
    Constant,
}

impl SbePresence {
    /// Returns the name as in schemas.
    pub fn name(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Optional => "optional",
            Self::Constant => "constant",
        }
    }
}

/// Character set of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SbeCharacterSet {
    /// US-ASCII.
    Ascii,
    /// ISO-8859-1.
    Latin1,
    /// UTF-8.
    Utf8,
    /// UTF-16 with this byte order.
    Utf16(SbeByteOrder),
}

impl SbeCharacterSet {
    /// Returns the character set of a name such as `UTF-8`, or `None` for a text that stays binary. Ignores case.
    ///
    /// UTF-16 without a byte order in its name has the byte order of the schema.
    pub fn from_name(name: &str, order: SbeByteOrder) -> Option<Self> {
        match name.trim().to_ascii_uppercase().as_str() {
            "US-ASCII" | "ASCII" => Some(Self::Ascii),
            "ISO-8859-1" | "ISO_8859_1" | "LATIN1" => Some(Self::Latin1),
            "UTF-8" | "UTF8" => Some(Self::Utf8),
            "UTF-16" | "UTF16" => Some(Self::Utf16(order)),
            "UTF-16LE" => Some(Self::Utf16(SbeByteOrder::Little)),
            "UTF-16BE" => Some(Self::Utf16(SbeByteOrder::Big)),
            _ => None,
        }
    }
}

/// Value of a constant.
#[derive(Debug, Clone, PartialEq)]
pub enum SbeConstant {
    /// A number, or the value of an enum.
    Number(SbeNumber),
    /// Text of a `char` type.
    Text(String),
}

/// A type of the schema.
#[derive(Debug, Clone)]
pub enum SbeType {
    /// A primitive type or an array of one.
    Simple(Arc<SbeSimpleType>),
    /// A sequence of types.
    Composite(Arc<SbeComposite>),
    /// Named values.
    Enum(Arc<SbeEnum>),
    /// Named bits.
    Set(Arc<SbeSet>),
}

impl SbeType {
    /// Returns the name of the type.
    pub fn name(&self) -> &str {
        match self {
            Self::Simple(simple) => &simple.name,
            Self::Composite(composite) => &composite.name,
            Self::Enum(names) => &names.name,
            Self::Set(set) => &set.name,
        }
    }

    /// Returns the length in bytes. It is 0 for constants, and for the `varData` of variable data.
    pub fn length(&self) -> usize {
        match self {
            Self::Simple(simple) => simple.encoded_length(),
            Self::Composite(composite) => composite.length,
            Self::Enum(names) => names.primitive.length(),
            Self::Set(set) => set.primitive.length(),
        }
    }

    /// Returns the semantic type, such as `UTCTimestamp`.
    pub fn semantic_type(&self) -> Option<&str> {
        match self {
            Self::Simple(simple) => simple.semantic_type.as_deref(),
            Self::Composite(composite) => composite.semantic_type.as_deref(),
            Self::Enum(names) => names.semantic_type.as_deref(),
            Self::Set(set) => set.semantic_type.as_deref(),
        }
    }

    /// Returns whether the type can be null.
    ///
    /// A set cannot, and a composite cannot if its first member on the wire cannot.
    pub fn has_null(&self) -> bool {
        match self {
            Self::Simple(_) | Self::Enum(_) => true,
            Self::Set(_) => false,
            Self::Composite(composite) => {
                let mut members = composite.members.iter();
                let first = members.find(|member| member.kind.length() > 0);
                first.is_some_and(|member| member.kind.has_null())
            }
        }
    }

    /// Returns the number of fields and members that the type consists of, at least 1.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Composite(composite) => composite.size,
            _ => 1,
        }
    }
}

/// A primitive type or an array of one.
#[derive(Debug, Clone)]
pub struct SbeSimpleType {
    /// Name of the type.
    pub name: String,
    /// Primitive type of one element.
    pub primitive: SbePrimitive,
    /// Number of elements: 1 for a single value, 0 for the `varData` of variable data.
    pub count: usize,
    /// The presence that the type states.
    pub presence: Option<SbePresence>,
    /// The null value that the type states.
    pub null: Option<SbeNumber>,
    /// Least value on encoding.
    pub min: Option<SbeNumber>,
    /// Greatest value on encoding.
    pub max: Option<SbeNumber>,
    /// Value of a constant type, if the type states it.
    pub constant: Option<SbeConstant>,
    /// Name of the character set, as written.
    pub character_encoding: Option<String>,
    /// Semantic type.
    pub semantic_type: Option<String>,
    /// Unit of a time, as drafts of the standard wrote it.
    pub time_unit: Option<String>,
    /// Epoch of a time, as drafts of the standard wrote it.
    pub epoch: Option<String>,
}

impl SbeSimpleType {
    /// Returns the length in bytes.
    pub fn encoded_length(&self) -> usize {
        match self.presence {
            Some(SbePresence::Constant) => 0,
            _ => self.count * self.primitive.length(),
        }
    }

    /// Returns the null value: the stated one, or the default of the primitive type.
    pub fn null_value(&self) -> SbeNumber {
        self.null.unwrap_or(self.primitive.default_null())
    }

    /// Returns the character set of a text, or `None` if the bytes are not a text.
    ///
    /// Without a stated set, `char` is US-ASCII. Other types of one byte are texts only with a known set.
    pub fn character_set(&self, order: SbeByteOrder) -> Option<SbeCharacterSet> {
        match &self.character_encoding {
            Some(name) if self.primitive.length() == 1 => SbeCharacterSet::from_name(name, order),
            None if self.primitive == SbePrimitive::Char => Some(SbeCharacterSet::Ascii),
            _ => None,
        }
    }

    pub(crate) fn of_primitive(primitive: SbePrimitive) -> Self {
        Self {
            name: primitive.name().to_owned(),
            primitive,
            count: 1,
            presence: None,
            null: None,
            min: None,
            max: None,
            constant: None,
            character_encoding: None,
            semantic_type: None,
            time_unit: None,
            epoch: None,
        }
    }
}

/// A sequence of types.
#[derive(Debug, Clone)]
pub struct SbeComposite {
    /// Name of the type.
    pub name: String,
    /// Members in their order.
    pub members: Vec<SbeMember>,
    /// Length in bytes.
    pub length: usize,
    /// Semantic type.
    pub semantic_type: Option<String>,
    /// Number of members, with those of member composites.
    pub(crate) size: usize,
}

impl SbeComposite {
    /// Returns the member of a name.
    pub fn member(&self, name: &str) -> Option<&SbeMember> {
        self.members.iter().find(|member| member.name == name)
    }
}

/// A member of a composite.
#[derive(Debug, Clone)]
pub struct SbeMember {
    /// Name of the member.
    pub name: String,
    /// Offset in the composite, in bytes.
    pub offset: usize,
    /// Type of the member.
    pub kind: SbeType,
    /// Description in the schema.
    pub description: Option<String>,
}

/// Named values of one primitive type.
#[derive(Debug, Clone)]
pub struct SbeEnum {
    /// Name of the type.
    pub name: String,
    /// Integer or `char` type of the values.
    pub primitive: SbePrimitive,
    /// The value that means null.
    pub null: SbeNumber,
    /// Whether fields without a stated presence are optional: a value is named `nullValue`, or the encoding type is
    /// optional.
    pub is_optional: bool,
    /// Whether a value is named `nullValue`: it is `null`.
    pub has_null_value: bool,
    /// Values in the order of the schema, without a value that is named `nullValue`.
    pub values: Vec<SbeEnumValue>,
    /// Semantic type.
    pub semantic_type: Option<String>,
    /// Value and index in `values`, sorted by value.
    pub(crate) sorted: Vec<(i128, usize)>,
}

impl SbeEnum {
    /// Returns the index in [`Self::values`] of a number, or `None` if the schema does not know it.
    pub fn index_of(&self, number: SbeNumber) -> Option<usize> {
        let number = number.as_i128()?;
        let found = self
            .sorted
            .binary_search_by_key(&number, |(value, _)| *value);
        found.ok().map(|at| self.sorted[at].1)
    }

    /// Returns the name of a number: also `nullValue`, if the schema has this value.
    pub fn name_of(&self, number: SbeNumber) -> Option<&str> {
        match self.index_of(number) {
            Some(index) => Some(&self.values[index].name),
            None => (self.has_null_value && number == self.null).then_some(NULL_VALUE),
        }
    }

    /// Returns the value of a name.
    pub fn value_of(&self, name: &str) -> Option<SbeNumber> {
        if self.has_null_value && name == NULL_VALUE {
            return Some(self.null);
        }
        let found = self.values.iter().find(|value| value.name == name);
        found.map(|value| value.number)
    }
}

/// Name of the value of an enum that means null.
pub(crate) const NULL_VALUE: &str = "nullValue";

/// A named value of an enum.
#[derive(Debug, Clone)]
pub struct SbeEnumValue {
    /// Name of the value.
    pub name: String,
    /// The encoded number.
    pub number: SbeNumber,
    /// Version of the schema that added the value.
    pub since_version: u32,
    /// Version of the schema that deprecated the value.
    pub deprecated: Option<u32>,
    /// Description in the schema.
    pub description: Option<String>,
}

/// Named bits of an unsigned integer.
#[derive(Debug, Clone)]
pub struct SbeSet {
    /// Name of the type.
    pub name: String,
    /// Unsigned type of the bits.
    pub primitive: SbePrimitive,
    /// Choices in the order of the schema.
    pub choices: Vec<SbeChoice>,
    /// Semantic type.
    pub semantic_type: Option<String>,
}

impl SbeSet {
    /// Returns the bits of a choice, with one bit set.
    pub fn bit_of(&self, name: &str) -> Option<u64> {
        let found = self.choices.iter().find(|choice| choice.name == name);
        found.map(|choice| 1 << choice.bit)
    }
}

/// A named bit of a set.
#[derive(Debug, Clone)]
pub struct SbeChoice {
    /// Name of the choice.
    pub name: String,
    /// Number of the bit, 0 for the least significant one. Below the width of the set.
    pub bit: u32,
    /// Version of the schema that added the choice.
    pub since_version: u32,
    /// Version of the schema that deprecated the choice.
    pub deprecated: Option<u32>,
    /// Description in the schema.
    pub description: Option<String>,
}
