//! Fragment assemblers: join the fragments of messages.
//!
//! An assembler sits between a poll and the application's handler. The assembler passes on a message of one fragment
//! without a copy. It collects the fragments of a longer message, and passes on the message when the last fragment
//! arrives. It drops a message if a fragment is missing, or if the message becomes longer than any publisher can send.
//!
//! ```no_run
//! # fn receive(subscription: &aeron_client::Subscription) -> aeron_client::Result<()> {
//! let mut assembler = aeron_client::FragmentAssembler::default();
//! subscription.poll(|fragment| assembler.on_fragment(fragment, |message| println!("{} bytes", message.len())), 10)?;
//! # Ok(())
//! # }
//! ```

use std::alloc::{Layout, handle_alloc_error};
use std::collections::HashMap;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::frame::{MAX_MESSAGE_LENGTH, flags};
use aeron_memory::words::Words;

use crate::action::Action;
use crate::error::{Error, OutOfMemory};
use crate::fragment::{AssembledHeader, Fragment};

/// Assembles the messages of any number of sessions.
pub struct FragmentAssembler {
    builders: HashMap<i32, Builder>,
    /// Whether all fragments belong to one stream, even if its image changes.
    is_of_one_stream: bool,
    max_message_length: usize,
    out_of_memory: Option<OutOfMemory>,
}

impl Default for FragmentAssembler {
    fn default() -> Self {
        Self::with_max_message_length(MAX_MESSAGE_LENGTH)
    }
}

impl OutOfMemory {
    /// Aborts the process, as the global allocator does for a failed allocation.
    #[cold]
    fn abort(self) -> ! {
        let bytes = self.0.min(isize::MAX as usize);
        handle_alloc_error(Layout::array::<u8>(bytes).expect("a length below isize::MAX"))
    }
}

impl FragmentAssembler {
    /// Creates an assembler that drops fragmented messages of more than this number of bytes. So a session whose
    /// messages never end keeps at most twice this number of bytes in memory.
    pub fn with_max_message_length(max_message_length: usize) -> Self {
        Self {
            builders: HashMap::new(),
            is_of_one_stream: false,
            max_message_length,
            out_of_memory: None,
        }
    }

    /// Creates an assembler for one stream. A message may begin in one image and end in the image of a replay or of the
    /// live stream that continues it.
    pub fn of_one_stream() -> Self {
        Self {
            is_of_one_stream: true,
            ..Self::default()
        }
    }

    /// Takes a fragment. If it completes a message, calls `handler` with the message.
    ///
    /// Aborts the process if there is no memory for the message: a plain poll consumes the fragment, so the message
    /// would be lost. [`on_controlled_fragment`](Self::on_controlled_fragment) does not lose the message.
    #[inline]
    pub fn on_fragment(&mut self, fragment: Fragment<'_>, mut handler: impl FnMut(Fragment<'_>)) {
        self.on_controlled_fragment(fragment, |message| {
            handler(message);
            Action::Continue
        });
        if let Some(missing) = self.out_of_memory.take() {
            missing.abort();
        }
    }

    /// Returns the error of the last [`Action::Abort`] that the assembler itself returned because it had no memory for
    /// a message. `None` if there was no such error since the last call.
    pub fn take_out_of_memory(&mut self) -> Option<Error> {
        self.out_of_memory.take().map(Error::from)
    }

    /// Like [`on_fragment`](Self::on_fragment), for controlled polls. If the handler aborts, the message is delivered
    /// again with its last fragment.
    ///
    /// If there is no memory for the message, returns [`Action::Abort`]: the fragment is not consumed, and the next
    /// poll delivers it again. [`take_out_of_memory`](Self::take_out_of_memory) then returns the error.
    #[inline]
    pub fn on_controlled_fragment(
        &mut self,
        fragment: Fragment<'_>,
        mut handler: impl FnMut(Fragment<'_>) -> Action,
    ) -> Action {
        if is_whole(&fragment) {
            return handler(fragment);
        }
        // The image's session id, not the frame's: a peer controls the frame, and could fill the map with many ids.
        let session_id = match self.is_of_one_stream {
            true => 0,
            false => fragment.header().image().session_id(),
        };
        let max_length = self.max_message_length;
        let taken = if fragment.header().is_begin() {
            self.builder(session_id)
                .and_then(|builder| builder.begin(&fragment, max_length))
        } else {
            match self.builders.get_mut(&session_id) {
                Some(builder) => builder.append(&fragment, max_length, handler),
                None => Ok(Action::Continue),
            }
        };
        taken.unwrap_or_else(|missing| {
            self.out_of_memory = Some(missing);
            Action::Abort
        })
    }

    fn builder(&mut self, session_id: i32) -> Result<&mut Builder, OutOfMemory> {
        if !self.builders.contains_key(&session_id) {
            let reserved = self.builders.try_reserve(1);
            reserved.map_err(|_| OutOfMemory(size_of::<Builder>()))?;
        }
        Ok(self.builders.entry(session_id).or_default())
    }

    /// Frees the buffer of a session. Returns whether the session had a buffer.
    pub fn free_session_buffer(&mut self, session_id: i32) -> bool {
        self.builders.remove(&session_id).is_some()
    }

    /// Frees all buffers and drops unfinished messages.
    pub fn clear(&mut self) {
        self.builders.clear();
    }
}

/// Minimum size of a message buffer in bytes.
const MIN_CAPACITY: usize = 4096;

/// Memory for the messages of one session. Contains the unfinished message, if there is one.
struct Builder {
    memory: SharedBuffer,
    /// Length in bytes of the collected payload, which is at the start of the memory.
    length: usize,
    header: AssembledHeader,
    /// Position at which the next fragment must begin; `None` if there is no unfinished message.
    next_position: Option<i64>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            memory: SharedBuffer::heap(0),
            length: 0,
            header: AssembledHeader::default(),
            next_position: None,
        }
    }
}

impl Builder {
    fn begin(&mut self, fragment: &Fragment<'_>, max_length: usize) -> Result<Action, OutOfMemory> {
        self.length = 0;
        self.next_position = None;
        if fragment.len() > max_length {
            return Ok(Action::Continue);
        }
        self.extend(fragment)?;
        self.header = AssembledHeader::first(fragment);
        self.next_position = Some(fragment.header().position());
        Ok(Action::Continue)
    }

    fn append(
        &mut self,
        fragment: &Fragment<'_>,
        max_length: usize,
        mut handler: impl FnMut(Fragment<'_>) -> Action,
    ) -> Result<Action, OutOfMemory> {
        let header = fragment.header();
        let length_before = self.length;
        let is_next = self.next_position == Some(header.begin_position());
        debug_assert!(
            self.length <= self.memory.len(),
            "a message of {} bytes must be within the {} bytes of its memory",
            self.length,
            self.memory.len()
        );
        if !is_next || length_before + fragment.len() > max_length {
            self.next_position = None;
            return Ok(Action::Continue);
        }
        self.extend(fragment)?;
        if !header.is_end() {
            self.next_position = Some(header.position());
            return Ok(Action::Continue);
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
        Ok(action)
    }

    /// Appends a payload. If the memory is too short, grows it by half, or by more if the payload needs more. Changes
    /// nothing if the allocation fails.
    fn extend(&mut self, fragment: &Fragment<'_>) -> Result<(), OutOfMemory> {
        let (source, offset) = fragment.memory();
        let needed = self.length + fragment.len();
        // If a view of the last message still shares the memory, the memory must not be reused.
        if needed > self.memory.len() || !self.memory.is_unshared() {
            self.move_to(needed)?;
        }
        self.memory
            .copy_from(self.length, source, offset, fragment.len());
        self.length = needed;
        Ok(())
    }

    /// Moves the message to new memory that has room for `needed` bytes.
    #[cold]
    fn move_to(&mut self, needed: usize) -> Result<(), OutOfMemory> {
        let current = self.memory.len();
        let ample = if needed > current {
            needed.max(current / 2 * 3).max(MIN_CAPACITY)
        } else {
            current
        };
        let memory = SharedBuffer::try_heap(ample).or_else(|| SharedBuffer::try_heap(needed));
        let memory = memory.ok_or(OutOfMemory(needed))?;
        memory.copy_from(0, &self.memory, 0, self.length);
        self.memory = memory;
        Ok(())
    }
}

#[inline(always)]
fn is_whole(fragment: &Fragment<'_>) -> bool {
    fragment.header().flags() & flags::UNFRAGMENTED == flags::UNFRAGMENTED
}
