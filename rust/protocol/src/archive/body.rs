//! Decodes the body of an archive message: a block of fields with a declared layout, then variable data.

use aeron_layout::{I32, I64, Layout, U32};

use super::{ArchiveDecodeError, MessageHeader, RecordingSignal, SourceLocation};
use super::{ControlResponseCode, RetentionHolder, TimeEdge, header};
use crate::codec::{Encode, Writer};

/// A message of the archive's control protocol.
pub(super) trait ArchiveMessage<'a>: Encode + Sized {
    const TEMPLATE_ID: u16;

    fn read(body: Body<'a>) -> Result<Self, ArchiveDecodeError>;
}

/// A message after its header.
pub(super) struct Body<'a> {
    header: MessageHeader,
    bytes: &'a [u8],
}

/// A field that a later version of the schema added: the version, and the offset of the field in the block.
pub(super) type Addition = (u16, usize);

impl<'a> Body<'a> {
    pub(super) fn of(message: &'a [u8]) -> Result<Self, ArchiveDecodeError> {
        let (header, bytes) = MessageHeader::decode(message)?;
        Ok(Self { header, bytes })
    }

    pub(super) const fn template_id(&self) -> u16 {
        self.header.template_id
    }

    /// Separates the block from the variable data. The block length in the header determines where the variable data
    /// begin.
    ///
    /// The block must have the fields of its version. Missing later fields are filled with zeros; the block of a newer
    /// version may be longer.
    pub(super) fn split<L: Layout>(
        self,
        additions: &[Addition],
    ) -> Result<Parts<'a, L>, ArchiveDecodeError> {
        let MessageHeader {
            block_length,
            template_id,
            version,
        } = self.header;
        let (block, data) = self
            .bytes
            .split_at_checked(usize::from(block_length))
            .ok_or(ArchiveDecodeError::BlockBeyondEnd {
                template_id,
                block_length,
                available: self.bytes.len(),
            })?;
        let required = additions
            .iter()
            .find(|(since, _)| version < *since)
            .map_or(L::LENGTH, |&(_, offset)| offset);
        if block.len() < required {
            return Err(ArchiveDecodeError::BlockTooShort {
                template_id,
                version,
                block_length,
                required,
            });
        }
        let mut layout = L::new_zeroed();
        for (field_byte, &byte) in layout.as_mut_bytes().iter_mut().zip(block) {
            *field_byte = byte;
        }
        Ok(Parts {
            header: self.header,
            layout,
            data,
        })
    }
}

/// The block of a message, and the variable data that have not been read yet.
pub(super) struct Parts<'a, L> {
    header: MessageHeader,
    pub(super) layout: L,
    data: &'a [u8],
}

impl<'a, L: Layout> Parts<'a, L> {
    /// Returns the value of a field. If a later version of the schema added the field, `addition` has this version and
    /// the value for older messages.
    pub(super) fn value<V: BlockValue>(
        &self,
        field: &'static str,
        layout: V::Layout,
        addition: Option<(u16, V)>,
    ) -> Result<V, ArchiveDecodeError> {
        match addition {
            Some((since, absent)) if self.header.version < since => Ok(absent),
            _ => V::of(layout).map_err(|value| ArchiveDecodeError::UndefinedValue {
                template_id: self.header.template_id,
                field,
                value,
            }),
        }
    }

    /// Returns the next text or byte string; empty if the message is of an earlier version than `since`.
    pub(super) fn next_data(
        &mut self,
        field: &'static str,
        since: u16,
    ) -> Result<&'a [u8], ArchiveDecodeError> {
        if self.header.version < since {
            return Ok(&[]);
        }
        let template_id = self.header.template_id;
        let (length, rest) =
            self.data
                .split_first_chunk()
                .ok_or(ArchiveDecodeError::DataMissing {
                    template_id,
                    field,
                    available: self.data.len(),
                })?;
        let declared = U32::from_bytes(*length).get();
        let (data, rest) = usize::try_from(declared)
            .ok()
            .and_then(|length| rest.split_at_checked(length))
            .ok_or(ArchiveDecodeError::DataBeyondEnd {
                template_id,
                field,
                declared,
                available: rest.len(),
            })?;
        self.data = rest;
        Ok(data)
    }
}

/// Writes a header and its block.
pub(super) fn write_block<L: Layout>(writer: &mut Writer<'_>, template_id: u16, block: &L) {
    writer.layout(&header::layout_of::<L>(template_id));
    writer.layout(block);
}

/// Value of a field in a block. Converts to and from the type of the field in the layout. For an undefined number, `of`
/// returns this number as the error.
pub(super) trait BlockValue: Copy {
    type Layout;

    fn of(layout: Self::Layout) -> Result<Self, i32>;
    fn layout(self) -> Self::Layout;
}

macro_rules! integer_values {
    ($($integer:ty, $layout:ty;)*) => {$(
        impl BlockValue for $integer {
            type Layout = $layout;

            fn of(layout: $layout) -> Result<Self, i32> {
                Ok(layout.get())
            }

            fn layout(self) -> $layout {
                self.into()
            }
        }
    )*};
}

integer_values!(i32, I32; i64, I64;);

macro_rules! code_values {
    ($($code:ty),*) => {$(
        impl BlockValue for $code {
            type Layout = I32;

            fn of(layout: I32) -> Result<Self, i32> {
                Self::from_value(layout.get()).ok_or(layout.get())
            }

            fn layout(self) -> I32 {
                self.value().into()
            }
        }
    )*};
}

code_values!(
    ControlResponseCode,
    SourceLocation,
    RecordingSignal,
    TimeEdge,
    RetentionHolder
);

impl BlockValue for bool {
    type Layout = I32;

    fn of(layout: I32) -> Result<Self, i32> {
        match layout.get() {
            0 => Ok(false),
            1 => Ok(true),
            undefined => Err(undefined),
        }
    }

    fn layout(self) -> I32 {
        i32::from(self).into()
    }
}
