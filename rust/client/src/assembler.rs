//! Fragment assemblers: messages in several fragments, put together again.
//!
//! An assembler stands between a poll and the application's handler. Messages in one fragment pass through as they are,
//! without a copy; the fragments of others are collected, and the message is handed on with its last fragment. When a
//! fragment is missing, or the message grows beyond what any publisher sends, it is dropped.
//!
//! ```no_run
//! # fn receive(subscription: &aeron_client::Subscription) -> aeron_client::Result<()> {
//! let mut assembler = aeron_client::FragmentAssembler::default();
//! subscription.poll(|fragment| assembler.on_fragment(fragment, |message| println!("{} bytes", message.len())), 10)?;
//! # Ok(())
//! # }
//! ```

use std::collections::HashMap;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::frame::{MAX_MESSAGE_LENGTH, flags};
use aeron_memory::words::Words;

use crate::fragment::{Action, AssembledHeader, Fragment};

/// Puts together the messages of any number of sessions.
#[derive(Default)]
pub struct FragmentAssembler {
    builders: HashMap<i32, Builder>,
}

/// Puts together the messages of one image.
#[derive(Default)]
pub struct ImageFragmentAssembler {
    builder: Builder,
}

impl FragmentAssembler {
    /// Takes a fragment; hands a message that it completes to `handler`.
    #[inline]
    pub fn on_fragment(&mut self, fragment: Fragment<'_>, mut handler: impl FnMut(Fragment<'_>)) {
        self.on_controlled_fragment(fragment, |message| {
            handler(message);
            Action::Continue
        });
    }

    /// As [`on_fragment`](Self::on_fragment) for controlled polls. When the handler aborts, the message is delivered again
    /// with its last fragment.
    #[inline]
    pub fn on_controlled_fragment(
        &mut self,
        fragment: Fragment<'_>,
        mut handler: impl FnMut(Fragment<'_>) -> Action,
    ) -> Action {
        if is_whole(&fragment) {
            return handler(fragment);
        }
        // The image's own: the one in the frame is whatever a peer wrote, and would let it fill the map.
        let session_id = fragment.header().image().session_id();
        if fragment.header().is_begin() {
            self.builders
                .entry(session_id)
                .or_default()
                .begin(&fragment);
            return Action::Continue;
        }
        match self.builders.get_mut(&session_id) {
            Some(builder) => builder.append(&fragment, handler),
            None => Action::Continue,
        }
    }

    /// Frees the buffer of a session; answers whether there was one.
    pub fn free_session_buffer(&mut self, session_id: i32) -> bool {
        self.builders.remove(&session_id).is_some()
    }

    /// Frees all buffers; messages begun are dropped.
    pub fn clear(&mut self) {
        self.builders.clear();
    }
}

impl ImageFragmentAssembler {
    /// Takes a fragment; hands a message that it completes to `handler`.
    #[inline]
    pub fn on_fragment(&mut self, fragment: Fragment<'_>, mut handler: impl FnMut(Fragment<'_>)) {
        self.on_controlled_fragment(fragment, |message| {
            handler(message);
            Action::Continue
        });
    }

    /// As [`on_fragment`](Self::on_fragment) for controlled polls. When the handler aborts, the message is delivered again
    /// with its last fragment.
    #[inline]
    pub fn on_controlled_fragment(
        &mut self,
        fragment: Fragment<'_>,
        mut handler: impl FnMut(Fragment<'_>) -> Action,
    ) -> Action {
        if is_whole(&fragment) {
            return handler(fragment);
        }
        if fragment.header().is_begin() {
            self.builder.begin(&fragment);
            return Action::Continue;
        }
        self.builder.append(&fragment, handler)
    }
}

/// Smallest buffer of a message, in bytes.
const MIN_CAPACITY: usize = 4096;

/// A message under way.
struct Builder {
    memory: SharedBuffer,
    /// Bytes of the payload, at the start of the memory.
    length: usize,
    header: AssembledHeader,
    /// Position where the next fragment must begin; `None` when no message is under way.
    next_position: Option<i64>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            memory: SharedBuffer::heap(MIN_CAPACITY),
            length: 0,
            header: AssembledHeader::default(),
            next_position: None,
        }
    }
}

impl Builder {
    fn begin(&mut self, fragment: &Fragment<'_>) {
        self.length = 0;
        self.header = AssembledHeader::first(fragment);
        self.extend(fragment);
        self.next_position = Some(fragment.header().position());
    }

    fn append(
        &mut self,
        fragment: &Fragment<'_>,
        mut handler: impl FnMut(Fragment<'_>) -> Action,
    ) -> Action {
        let header = fragment.header();
        let length_before = self.length;
        let is_next = self.next_position == Some(header.begin_position());
        if !is_next || length_before + fragment.len() > MAX_MESSAGE_LENGTH {
            self.next_position = None;
            return Action::Continue;
        }
        self.extend(fragment);
        if !header.is_end() {
            self.next_position = Some(header.position());
            return Action::Continue;
        }
        let mut completed = self.header;
        completed.complete(header, self.length);
        let action = handler(Fragment::assembled(
            &self.memory,
            self.length,
            &completed,
            header.image(),
        ));
        if action == Action::Abort {
            self.length = length_before;
        } else {
            self.length = 0;
            self.next_position = None;
        }
        if !self.memory.is_unshared() {
            // Whoever still looks at the message keeps its memory.
            self.move_to(self.memory.len());
        }
        action
    }

    /// Appends a payload, growing by half where that is enough.
    fn extend(&mut self, fragment: &Fragment<'_>) {
        let (source, offset) = fragment.memory();
        let needed = self.length + fragment.len();
        if needed > self.memory.len() {
            self.move_to(needed.max(self.memory.len() / 2 * 3));
        }
        self.memory
            .copy_from(self.length, source, offset, fragment.len());
        self.length = needed;
    }

    /// Moves what there is of the message to new memory.
    #[cold]
    fn move_to(&mut self, capacity: usize) {
        let memory = SharedBuffer::heap(capacity);
        memory.copy_from(0, &self.memory, 0, self.length);
        self.memory = memory;
    }
}

#[inline(always)]
fn is_whole(fragment: &Fragment<'_>) -> bool {
    fragment.header().flags() & flags::UNFRAGMENTED == flags::UNFRAGMENTED
}
