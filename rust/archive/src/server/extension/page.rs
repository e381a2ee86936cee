//! [`DescriptorPage`]: a part of a list, as encoded messages.

use std::collections::VecDeque;

use aeron_protocol::archive::NULL_VALUE;
use aeron_protocol::archive::extension::{ExtensionResponse, MAX_LISTED};

use crate::server::ArchiveError;

/// Number of bytes after which no further entry is added to a page. It limits the memory that a
/// client can make the archive use.
const MAX_PAGE_LENGTH: usize = 256 * 1024;

/// Descriptors of one response, and the index of the next entry of the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::server) struct DescriptorPage {
    messages: VecDeque<Vec<u8>>,
    next_index: i64,
}

impl DescriptorPage {
    /// Encodes the entries of a list from an index on.
    ///
    /// # Errors
    /// The index is negative, or the count is out of range.
    pub fn of<T>(
        entries: impl Iterator<Item = T>,
        from_index: i32,
        count: i32,
        encode: impl Fn(T) -> Vec<u8>,
    ) -> Result<Self, ArchiveError> {
        let from = usize::try_from(from_index)
            .map_err(|_| ArchiveError::generic(format!("fromIndex={from_index} < 0")))?;
        if !(1..=MAX_LISTED).contains(&count) {
            return Err(ArchiveError::generic(format!(
                "count={count} is not from 1 to {MAX_LISTED}"
            )));
        }
        let mut page = Self::default();
        let mut length = 0;
        for (index, entry) in entries.enumerate().skip(from) {
            if page.messages.len() >= count as usize || length >= MAX_PAGE_LENGTH {
                page.next_index = index as i64;
                return Ok(page);
            }
            let message = encode(entry);
            length += message.len();
            page.messages.push_back(message);
        }
        page.next_index = NULL_VALUE;
        Ok(page)
    }

    /// Creates the page of a whole list.
    pub fn whole(messages: impl Iterator<Item = Vec<u8>>) -> Self {
        Self {
            messages: messages.collect(),
            next_index: NULL_VALUE,
        }
    }

    /// Returns the first message that was not sent yet.
    pub fn next(&self) -> Option<&[u8]> {
        self.messages.front().map(Vec::as_slice)
    }

    /// Removes the first message after it was sent.
    pub fn remove_next(&mut self) {
        self.messages.pop_front();
    }

    /// Returns the index of the first entry after this page; −1 if no entry follows.
    pub fn next_index(&self) -> i64 {
        self.next_index
    }
}

/// Encodes a descriptor.
pub(super) fn encoded(message: &ExtensionResponse<'_>) -> Vec<u8> {
    let mut bytes = vec![0; message.encoded_length()];
    message
        .encode(&mut bytes)
        .expect("the buffer has the length of the message");
    bytes
}
