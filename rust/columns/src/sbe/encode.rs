//! [`SbeEncoder`]: encodes the rows of record batches as messages of a template.

use std::sync::Arc;

use aeron_sbe::plan::{SbePlan, SbeTemplate};
use arrow_array::{Array, RecordBatch, StructArray};

use super::SbeColumnsError;
use super::block_rows::BlockRows;
use super::block_writer::{BadRow, BlockWriter, PART_LENGTH};
use super::decode::unknown_template;
use crate::write::{
    ENCODED_ROWS, EncodedRows, Payloads, RESERVED_VALUE, RowEncoding, RowSendError, STREAM_ID,
};

/// Encoder of rows as messages of one template. Immutable.
#[derive(Debug, Clone)]
pub struct SbeEncoder {
    plan: Arc<SbePlan>,
    template: usize,
}

impl SbeEncoder {
    /// Creates the encoder of the template with this name.
    ///
    /// # Errors
    /// The template does not exist.
    pub fn new(plan: &Arc<SbePlan>, name: &str) -> Result<Self, SbeColumnsError> {
        let mut templates = plan.templates.iter();
        let found = templates.position(|template| template.name == name);
        Ok(Self {
            template: found.ok_or_else(|| unknown_template(plan, name))?,
            plan: Arc::clone(plan),
        })
    }

    /// Returns the template.
    pub fn template(&self) -> &SbeTemplate {
        &self.plan.templates[self.template]
    }

    /// Encodes all rows by column; `encoded` is overwritten. Each column has the name of a field, a group or data; a
    /// null is a null in the message.
    ///
    /// # Errors
    /// A column is not in the template or has an unsuitable type, a value does not fit its field, or all messages are
    /// longer than 2 GiB.
    pub fn encode(
        &self,
        rows: &RecordBatch,
        encoded: &mut EncodedRows,
    ) -> Result<(), RowSendError> {
        encoded.bytes.clear();
        encoded.offsets.clear();
        encoded.offsets.push(0);
        let whole = |reason| RowSendError { row: None, reason };
        let columns = StructArray::from(rows.clone());
        let rows = BlockRows::new(&self.template().block, columns).map_err(whole)?;
        let mut writer = BlockWriter::new(&rows).map_err(whole)?;
        self.place(&mut writer, rows.columns.len(), &mut encoded.offsets)?;
        self.write(&writer, encoded).map_err(|bad| RowSendError {
            row: Some(bad.row),
            reason: bad.error.to_string(),
        })
    }

    /// Finds the places of all blocks, and the ends of the messages.
    fn place(
        &self,
        writer: &mut BlockWriter<'_>,
        rows: usize,
        offsets: &mut Vec<i32>,
    ) -> Result<(), RowSendError> {
        let header = self.template().header.length;
        let too_long = |row| RowSendError {
            row: Some(row),
            reason: "all messages are longer than 2 GiB".to_owned(),
        };
        let mut end = 0;
        offsets.reserve(rows);
        if self.template().is_fixed() {
            let length = header + self.template().block.block_length;
            let fitting = i32::MAX as usize / length;
            if rows > fitting {
                return Err(too_long(fitting));
            }
            writer.place_at((0..rows).map(|row| (row * length + header) as u32));
            offsets.extend((1..=rows).map(|count| (count * length) as i32));
            return Ok(());
        }
        for row in 0..rows {
            let placed = writer.place(end + header, i32::MAX as usize);
            end = placed.ok_or_else(|| too_long(row))?;
            // The limit is the greatest offset.
            offsets.push(end as i32);
        }
        Ok(())
    }

    /// Writes the messages, a part of them at a time, so that a part stays in the innermost cache.
    fn write(&self, writer: &BlockWriter<'_>, encoded: &mut EncodedRows) -> Result<(), BadRow> {
        let template = self.template();
        let mut header = vec![0; template.header.length];
        template
            .write_header(&mut header)
            .map_err(|error| BadRow { row: 0, error })?;
        let EncodedRows { bytes, offsets } = encoded;
        let rows = offsets.len() - 1;
        bytes.reserve_exact(offsets[rows] as usize);
        let mut first = 0;
        while first < rows {
            let begin = offsets[first] as usize;
            let ends = &offsets[first + 1..];
            let count = ends.partition_point(|end| *end as usize <= begin + PART_LENGTH);
            let part = first..first + count.max(1);
            bytes.resize(offsets[part.end] as usize, 0);
            for begin in &offsets[part.clone()] {
                write_header(&header, &mut bytes[*begin as usize..]);
            }
            writer.write(part.clone(), bytes, None)?;
            first = part.end;
        }
        Ok(())
    }
}

/// Writes the header of a message. Most headers have 8 bytes, for which a copy needs no call.
fn write_header(header: &[u8], message: &mut [u8]) {
    match (<&[u8; 8]>::try_from(header), message.first_chunk_mut()) {
        (Ok(header), Some(place)) => *place = *header,
        _ => message[..header.len()].copy_from_slice(header),
    }
}

impl RowEncoding for SbeEncoder {
    fn rows_at_once(&self) -> usize {
        ENCODED_ROWS
    }

    fn payloads<'a>(
        &self,
        rows: &'a RecordBatch,
        encoded: &'a mut EncodedRows,
    ) -> Result<Payloads<'a>, RowSendError> {
        let schema = rows.schema_ref();
        let is_sent = |index: &usize| {
            let name = schema.field(*index).name();
            name != STREAM_ID && name != RESERVED_VALUE
        };
        let sent: Vec<usize> = (0..rows.num_columns()).filter(is_sent).collect();
        let sent = rows.project(&sent).map_err(|error| RowSendError {
            row: None,
            reason: error.to_string(),
        })?;
        self.encode(&sent, encoded)?;
        Ok(encoded.payloads())
    }
}
