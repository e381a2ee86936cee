//! The header of messages in Simple Binary Encoding, for the archive's control protocol and the mark file.

use crate::U16;
use crate::declare::layout;

layout! {
    /// The schema of the block that follows.
    pub struct MessageHeaderLayout: 8 {
        /// Length of the block in bytes.
        pub block_length: U16 = 0,
        /// Template id of the block.
        pub template_id: U16 = 2,
        /// Schema id of the template.
        pub schema_id: U16 = 4,
        /// Version of the schema.
        pub version: U16 = 6,
    }
}
