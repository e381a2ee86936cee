//! Functions for texts with a maximum length.

/// Returns the longest prefix of the text that has at most `length` bytes and ends at the end of a
/// character.
pub fn truncated(text: &str, length: usize) -> &str {
    let mut end = length.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
