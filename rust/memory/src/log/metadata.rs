//! The metadata of a log: the last 4096 bytes of its file.
//!
//! [`LogMetadata`] gives typed access to the fields that driver and clients change while the log exists. The fields
//! that the driver writes once are in [`LogDescription`].

use aeron_layout::frame::DataHeaderLayout;
use aeron_layout::log::LogMetadataLayout;
use aeron_layout::{FromZeros, I32, I64, IntoBytes, offset};

use super::description::LogDescription;
use super::frame::HEADER_LENGTH;
use super::position::{PARTITION_COUNT, RawTail};
use crate::words::Words;

pub use aeron_layout::log::LOG_METADATA_LENGTH as METADATA_LENGTH;

/// The end-of-stream position of a stream that has not ended.
pub const NO_END_OF_STREAM: i64 = i64::MAX;

const ACTIVE_TERM_COUNT: usize = offset!(LogMetadataLayout, active_term_count: I32);
const END_OF_STREAM_POSITION: usize = offset!(LogMetadataLayout, end_of_stream_position: I64);
const IS_CONNECTED: usize = offset!(LogMetadataLayout, is_connected: I32);
const ACTIVE_TRANSPORT_COUNT: usize = offset!(LogMetadataLayout, active_transport_count: I32);
/// The flag is one byte. It is loaded and stored as the lowest byte of a 32-bit word.
const IS_PUBLICATION_REVOKED: usize = offset!(LogMetadataLayout, is_publication_revoked: u8);
const TAIL_COUNTERS: usize = offset!(LogMetadataLayout, tail_counters: [I64; PARTITION_COUNT]);
const DEFAULT_HEADER: usize = offset!(LogMetadataLayout, default_header: DataHeaderLayout);

/// Accessor of the metadata of one log, for any thread or process.
#[derive(Debug, Clone)]
pub struct LogMetadata<W> {
    memory: W,
}

impl<W: Words> LogMetadata<W> {
    /// Creates the accessor of the metadata in `memory`, which is [`METADATA_LENGTH`] bytes.
    pub(super) fn new(memory: W) -> Self {
        debug_assert_eq!(
            memory.len(),
            METADATA_LENGTH,
            "the memory is not the metadata of a log"
        );
        Self { memory }
    }

    /// Returns the tail of `partition` (acquire).
    #[inline]
    pub fn tail(&self, partition: usize) -> RawTail {
        RawTail(self.memory.load_i64_acquire(tail_offset(partition)))
    }

    /// Sets the tail of `partition` (release). Only for the publisher of an exclusive log.
    #[inline]
    pub(super) fn set_tail_release(&self, partition: usize, tail: RawTail) {
        self.memory
            .store_i64_release(tail_offset(partition), tail.0);
    }

    /// Sets the tail of `partition` without ordering. The next release store publishes it.
    #[inline]
    pub(super) fn set_tail_relaxed(&self, partition: usize, tail: RawTail) {
        self.memory
            .store_i64_relaxed(tail_offset(partition), tail.0);
    }

    /// Claims `length` bytes at the tail of `partition`. Returns the previous tail.
    #[inline]
    pub(super) fn advance_tail(&self, partition: usize, length: usize) -> RawTail {
        RawTail(
            self.memory
                .fetch_add_i64(tail_offset(partition), length as i64),
        )
    }

    /// Replaces the tail of `partition` if it is still `expected`.
    #[inline]
    pub(super) fn replace_tail(&self, partition: usize, expected: RawTail, tail: RawTail) -> bool {
        self.memory
            .compare_exchange_i64(tail_offset(partition), expected.0, tail.0)
            .is_ok()
    }

    /// Returns the number of finished terms (acquire).
    #[inline]
    pub fn active_term_count(&self) -> i32 {
        self.memory.load_i32_acquire(ACTIVE_TERM_COUNT)
    }

    /// Sets the number of finished terms (release). Only for the publisher of an exclusive log.
    #[inline]
    pub(super) fn set_active_term_count_release(&self, count: i32) {
        self.memory.store_i32_release(ACTIVE_TERM_COUNT, count);
    }

    /// Replaces the number of finished terms if it is still `expected`.
    #[inline]
    pub(super) fn replace_active_term_count(&self, expected: i32, count: i32) -> bool {
        self.memory
            .compare_exchange_i32(ACTIVE_TERM_COUNT, expected, count)
            .is_ok()
    }

    /// Returns the position at which the stream ended, or [`NO_END_OF_STREAM`] if it has not ended (acquire).
    #[inline]
    pub fn end_of_stream_position(&self) -> i64 {
        self.memory.load_i64_acquire(END_OF_STREAM_POSITION)
    }

    /// Marks the end of the stream (release).
    pub fn set_end_of_stream_position(&self, position: i64) {
        self.memory
            .store_i64_release(END_OF_STREAM_POSITION, position);
    }

    /// Whether `position` is at or past the end of the stream.
    #[inline]
    pub fn is_end_of_stream(&self, position: i64) -> bool {
        position >= self.end_of_stream_position()
    }

    /// Whether the stream has a subscriber (acquire).
    #[inline]
    pub fn is_connected(&self) -> bool {
        self.memory.load_i32_acquire(IS_CONNECTED) == 1
    }

    /// Sets whether the stream has a subscriber (release).
    pub fn set_is_connected(&self, connected: bool) {
        self.memory
            .store_i32_release(IS_CONNECTED, i32::from(connected));
    }

    /// Like [`set_is_connected`](Self::set_is_connected), for a stream of which several threads each know a part of the
    /// subscribers. Each thread first stores its own part, then calls this method. `find` loads all parts and returns
    /// whether there is a subscriber. After the last of several calls, the stored value is correct for all parts.
    /// Stores the value only if it has changed.
    pub fn show_connected(&self, find: impl Fn() -> bool) {
        // If two threads each store their own part and then load all parts, at least one of them sees both stores.
        let find = || {
            self.memory.fence_full();
            find()
        };
        let mut connected = find();
        if self.is_connected() == connected {
            return;
        }
        // After a store, checks again: another thread may have stored a newer value since the first check.
        loop {
            self.set_is_connected(connected);
            let again = find();
            if again == connected {
                return;
            }
            connected = again;
        }
    }

    /// Returns the number of transports from which an image is received (acquire).
    #[inline]
    pub fn active_transport_count(&self) -> i32 {
        self.memory.load_i32_acquire(ACTIVE_TRANSPORT_COUNT)
    }

    /// Sets the number of transports from which an image is received (release).
    pub fn set_active_transport_count(&self, count: i32) {
        self.memory.store_i32_release(ACTIVE_TRANSPORT_COUNT, count);
    }

    /// Whether the publication was revoked (acquire).
    #[inline]
    pub fn is_publication_revoked(&self) -> bool {
        self.memory.load_i32_acquire(IS_PUBLICATION_REVOKED) & 0xFF == 1
    }

    /// Marks the publication as revoked (release).
    pub fn set_publication_revoked(&self) {
        // The flag is the lowest byte of its word. The next byte is the log's type, which never changes, so it may be
        // stored again.
        let word = self.memory.load_i32_relaxed(IS_PUBLICATION_REVOKED);
        self.memory
            .store_i32_release(IS_PUBLICATION_REVOKED, (word & !0xFF) | 1);
    }

    /// Returns the default frame header in the metadata: 32 bytes with the ids of the stream.
    pub fn default_header(&self) -> W {
        self.memory.slice(DEFAULT_HEADER, HEADER_LENGTH)
    }

    /// Returns the values that the driver wrote when it created the log.
    ///
    /// Accepts any bytes: the values are not validated.
    pub fn description(&self) -> LogDescription {
        let mut layout = LogMetadataLayout::new_zeroed();
        self.memory.copy_out(0, layout.as_mut_bytes());
        LogDescription::decode(&layout)
    }

    /// Writes a new log's metadata into zeroed memory. All other fields are visible before the end-of-stream position.
    pub(super) fn initialise(
        &self,
        description: &LogDescription,
        tails: [RawTail; PARTITION_COUNT],
        count: i32,
    ) {
        self.memory.copy_in(0, description.encode().as_bytes());
        for (partition, tail) in tails.into_iter().enumerate() {
            self.set_tail_relaxed(partition, tail);
        }
        self.memory.store_i32_relaxed(ACTIVE_TERM_COUNT, count);
        self.set_end_of_stream_position(NO_END_OF_STREAM);
    }
}

#[inline]
fn tail_offset(partition: usize) -> usize {
    // The active term count follows the tails: the tail of a fourth partition would overwrite it.
    debug_assert!(
        partition < PARTITION_COUNT,
        "a log has no partition {partition}"
    );
    TAIL_COUNTERS + partition * size_of::<I64>()
}
