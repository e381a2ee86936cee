//! SBE messages as payloads of a [`RowReader`](crate::read::RowReader).

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::Field;

use super::SbeColumns;
use crate::read::{BadValue, DecodedPayloads, Message, PayloadDecoder, PayloadFormat};

impl PayloadFormat for SbeColumns {
    fn fields(&self) -> Vec<Field> {
        SbeColumns::fields(self)
    }

    fn more_fields(&self) -> Vec<Field> {
        self.header_fields()
    }

    fn has_record_index(&self) -> bool {
        self.has_entries()
    }

    fn decoder(&self, columns: Vec<usize>) -> Arc<dyn PayloadDecoder> {
        Arc::new(SbePayloads {
            columns: self.clone(),
            selected: columns,
        })
    }
}

/// Decoder of some columns of a template.
#[derive(Debug)]
struct SbePayloads {
    columns: SbeColumns,
    selected: Vec<usize>,
}

impl PayloadDecoder for SbePayloads {
    fn rows_are_slices(&self) -> bool {
        false
    }

    /// The header decides about each message.
    fn one_row_lengths(&self) -> (usize, usize) {
        (1, 0)
    }

    fn rows(&self, payload: &[u8]) -> Result<Option<usize>, String> {
        let rows = self.columns.rows(payload);
        rows.map_err(|malformed| malformed.to_string())
    }

    fn columns(
        &self,
        values: &mut Vec<u8>,
        range: Range<usize>,
        messages: &[Message],
    ) -> Result<DecodedPayloads, BadValue> {
        let ends = messages.iter().map(|message| message.value_end);
        let decoded = self
            .columns
            .decode(values, range.start, ends, &self.selected);
        match decoded {
            Ok(decoded) => Ok(DecodedPayloads {
                columns: decoded.columns,
                unknown: decoded.unknown,
            }),
            Err(bad) => Err(BadValue {
                message: bad.message,
                reason: bad.reason,
            }),
        }
    }

    fn sound(&self, values: &[u8], range: Range<usize>, messages: &[Message]) -> Vec<bool> {
        let ends = messages.iter().map(|message| message.value_end);
        let ends: Vec<usize> = ends.collect();
        self.columns
            .sound(values, range.start, &ends, &self.selected)
    }
}
