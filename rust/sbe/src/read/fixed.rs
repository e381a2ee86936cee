//! Blocks of messages with the length and the fields of the plan, whatever version wrote them.

use crate::plan::SbeField;
use crate::read::SbeMessage;
use crate::schema::SbePresence;

impl SbeMessage<'_> {
    /// Appends the root block to `blocks`, with the length of the plan.
    ///
    /// A field that the message does not have gets its null value, as if it were optional; a text and a set get zero.
    /// Bytes after the block of the plan are left out.
    pub fn append_block(&self, blocks: &mut Vec<u8>) {
        let plan = &self.template.block;
        let block = self.block();
        let first = blocks.len();
        let common = block.bytes.len().min(plan.block_length);
        blocks.extend_from_slice(&block.bytes[..common]);
        blocks.resize(first + plan.block_length, 0);
        let is_missing = |field: &&SbeField| {
            field.presence != SbePresence::Constant && block.bytes_of(field).is_none()
        };
        for field in plan.fields.iter().filter(is_missing) {
            let bytes = &mut blocks[first..][field.offset..field.end()];
            bytes.fill(0);
            field.put_null(bytes);
        }
    }
}
