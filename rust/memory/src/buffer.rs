//! [`SharedBuffer`]: memory on the heap or in a mapped file that other threads and processes may change at any time.
//!
//! Guarantees that every access is within the memory, and that the memory outlives every buffer that refers to it.
//! Never returns a Rust reference to the bytes, because another process may write them at any time.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, Ordering, fence};

use memmap2::MmapRaw;

use crate::words::Words;

#[cfg(not(target_endian = "little"))]
compile_error!("big-endian machines are not supported: Aeron's layouts are little-endian");

/// A range of shared memory. Cheap to clone; the memory is freed or unmapped when the last clone or slice is dropped.
#[derive(Clone)]
pub struct SharedBuffer {
    /// First byte, aligned to 8 bytes. The `len` bytes from `start` on are inside `memory`.
    start: NonNull<u8>,
    len: usize,
    memory: Arc<Memory>,
}

/// Owner of the bytes.
enum Memory {
    Heap { start: NonNull<u8>, layout: Layout },
    Mapped { _mapping: MmapRaw },
}

/// Alignment of a heap block, enough for every word. Above an alignment of 16, the allocator would write zeros into
/// large blocks instead of using pages that are already zero.
const HEAP_ALIGNMENT: usize = 8;

/// Returns the layout of a heap buffer of `len` bytes; `None` if no address space is large enough.
fn heap_layout(len: usize) -> Option<Layout> {
    Layout::from_size_align(len.max(1), HEAP_ALIGNMENT).ok()
}

impl SharedBuffer {
    /// Allocates a zeroed block of `len` bytes on the heap, for tests, simulation and private copies of files.
    ///
    /// Aborts the process if there is no memory; see [`try_heap`](Self::try_heap).
    pub fn heap(len: usize) -> Self {
        let layout = heap_layout(len).expect("length of a heap buffer is below isize::MAX");
        Self::allocate(len, layout).unwrap_or_else(|| handle_alloc_error(layout))
    }

    /// Like [`heap`](Self::heap), for a length that the caller does not control. Returns `None` if there is not enough
    /// memory.
    pub fn try_heap(len: usize) -> Option<Self> {
        Self::allocate(len, heap_layout(len)?)
    }

    fn allocate(len: usize, layout: Layout) -> Option<Self> {
        // SAFETY: the layout has a size of at least one byte.
        let block = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(block)?;
        Some(Self {
            start,
            len,
            memory: Arc::new(Memory::Heap { start, layout }),
        })
    }

    /// Creates a heap block with a copy of `bytes`.
    pub fn copy_of(bytes: &[u8]) -> Self {
        let buffer = Self::heap(bytes.len());
        buffer.copy_in(0, bytes);
        buffer
    }

    /// Creates a buffer of a whole mapping, which starts on a page.
    pub(crate) fn mapped(mapping: MmapRaw) -> Self {
        let start = NonNull::new(mapping.as_mut_ptr()).expect("a mapping is not at address zero");
        Self {
            start,
            len: mapping.len(),
            memory: Arc::new(Memory::Mapped { _mapping: mapping }),
        }
    }

    /// Returns the address of the first byte, valid while this buffer or a clone of it exists.
    ///
    /// Other processes may write the bytes at any time: do not create a Rust reference to the bytes, unless the
    /// protocol excludes such writes.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Returns whether this is the only buffer that refers to the memory. If it is, all reads and writes of dropped
    /// buffers have ended.
    pub fn is_unshared(&mut self) -> bool {
        Arc::get_mut(&mut self.memory).is_some()
    }

    /// Copies `len` bytes from `offset` of `source` to `at` (any alignment), under the rules for both
    /// [`copy_out`](Words::copy_out) and [`copy_in`](Words::copy_in).
    #[inline]
    pub fn copy_from(&self, at: usize, source: &Self, offset: usize, len: usize) {
        let (source, target) = (source.bytes(offset, len), self.bytes(at, len));
        // SAFETY: in bounds; the pieces may overlap.
        unsafe { std::ptr::copy(source, target, len) }
    }

    /// Reads up to `len` bytes of `file` from `file_offset` on into the memory at `at`.
    ///
    /// Returns the number of bytes, 0 at the end of the file. No other thread or process may access these bytes at the
    /// same time.
    ///
    /// # Errors
    /// The operating system returns an error; some of the bytes may then have changed.
    ///
    /// # Panics
    /// If the bytes are not within the memory.
    pub fn read_file_at(
        &self,
        file: impl AsFd,
        at: usize,
        len: usize,
        file_offset: u64,
    ) -> io::Result<usize> {
        let target = self.bytes(at, len);
        let (file, offset) = (file.as_fd().as_raw_fd(), system_offset(file_offset)?);
        // SAFETY: the kernel writes at most `len` bytes from `target` on, which are inside the memory, and the
        // descriptor is open.
        transferred(unsafe { libc::pread(file, target.cast(), len, offset) })
    }

    /// Returns the address of an aligned word of `1 << SHIFT` bytes.
    ///
    /// Alignment and bounds are separate conditions, because the compiler removes the first one if the code has already
    /// accessed a neighbouring word.
    #[inline(always)]
    fn word<const SHIFT: u32>(&self, offset: usize) -> *mut u8 {
        let size = 1 << SHIFT;
        if offset & (size - 1) != 0 || offset >= self.len & !(size - 1) {
            bad_word(offset, size, self.len);
        }
        // SAFETY: an aligned word that begins below the length rounded down to whole words lies inside the memory.
        unsafe { self.start.as_ptr().add(offset) }
    }

    #[inline(always)]
    fn bytes(&self, offset: usize, len: usize) -> *mut u8 {
        if len > self.len || offset > self.len - len {
            bad_range(offset, len, self.len);
        }
        // SAFETY: the compare above keeps `len` bytes from `offset` inside the memory.
        unsafe { self.start.as_ptr().add(offset) }
    }

    #[inline(always)]
    fn u8(&self, offset: usize) -> &AtomicU8 {
        // SAFETY: in bounds, as `word` checks. The protocols exclude conflicting accesses that are not atomic.
        unsafe { AtomicU8::from_ptr(self.word::<0>(offset)) }
    }

    #[inline(always)]
    fn u16(&self, offset: usize) -> &AtomicU16 {
        // SAFETY: in bounds and aligned, as `word` checks; for other accesses, see `u8`.
        unsafe { AtomicU16::from_ptr(self.word::<1>(offset).cast()) }
    }

    #[inline(always)]
    fn u32(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: in bounds and aligned, as `word` checks; for other accesses, see `u8`.
        unsafe { AtomicU32::from_ptr(self.word::<2>(offset).cast()) }
    }

    #[inline(always)]
    fn i32(&self, offset: usize) -> &AtomicI32 {
        // SAFETY: in bounds and aligned, as `word` checks; for other accesses, see `u8`.
        unsafe { AtomicI32::from_ptr(self.word::<2>(offset).cast()) }
    }

    #[inline(always)]
    fn i64(&self, offset: usize) -> &AtomicI64 {
        // SAFETY: in bounds and aligned, as `word` checks; for other accesses, see `u8`.
        unsafe { AtomicI64::from_ptr(self.word::<3>(offset).cast()) }
    }
}

// SAFETY: nothing accesses a `Memory` except its drop, which the last owner runs.
unsafe impl Send for Memory {}
// SAFETY: as for Send.
unsafe impl Sync for Memory {}
// SAFETY: the memory may be used from any thread. Each access is atomic, or the protocols exclude a conflicting access
// of the same bytes at the same time.
unsafe impl Send for SharedBuffer {}
// SAFETY: as for Send.
unsafe impl Sync for SharedBuffer {}

impl std::fmt::Debug for SharedBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedBuffer")
            .field("start", &self.start)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Memory::Heap { start, layout } = self {
            // SAFETY: `allocate` has allocated the block with this layout, and no buffer refers to the block any more.
            unsafe { dealloc(start.as_ptr(), *layout) }
        }
    }
}

/// Converts the offset to the type of the operating system.
fn system_offset(offset: u64) -> io::Result<libc::off_t> {
    libc::off_t::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// Returns the count from a system call, or the error of the call.
fn transferred(count: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Copies bytes that do not overlap. Copies 8 to 64 bytes without a function call, because most messages have such a
/// length.
///
/// # Safety
/// `len` bytes may be read from `source` and written to `target`.
#[inline(always)]
unsafe fn copy(source: *const u8, target: *mut u8, len: usize) {
    // SAFETY: both pieces lie within `len` bytes, as each match arm makes sure.
    unsafe {
        match len {
            33..=64 => copy_ends::<32>(source, target, len),
            17..=32 => copy_ends::<16>(source, target, len),
            8..=16 => copy_ends::<8>(source, target, len),
            _ => std::ptr::copy_nonoverlapping(source, target, len),
        }
    }
}

/// Copies `N` to `2 * N` bytes as two pieces of `N` bytes that may overlap.
///
/// # Safety
/// The same as for [`copy`]. In addition, `len` must be at least `N`.
#[inline(always)]
unsafe fn copy_ends<const N: usize>(source: *const u8, target: *mut u8, len: usize) {
    // SAFETY: `len` is at least `N`, so the last `N` bytes begin inside the range.
    unsafe {
        std::ptr::copy_nonoverlapping(source, target, N);
        std::ptr::copy_nonoverlapping(source.add(len - N), target.add(len - N), N);
    }
}

#[cold]
#[inline(never)]
fn bad_word(offset: usize, size: usize, len: usize) -> ! {
    panic!("{size}-byte word at offset {offset} is misaligned or outside a buffer of {len} bytes")
}

#[cold]
#[inline(never)]
fn bad_range(offset: usize, count: usize, len: usize) -> ! {
    panic!("{count} bytes at offset {offset} are outside a buffer of {len} bytes")
}

impl Words for SharedBuffer {
    #[inline(always)]
    fn len(&self) -> usize {
        self.len
    }

    fn slice(&self, offset: usize, len: usize) -> Self {
        assert!(
            offset.is_multiple_of(8),
            "slice at {offset} does not start on an 8-byte boundary"
        );
        let start = NonNull::new(self.bytes(offset, len)).expect("inside an allocation");
        Self {
            start,
            len,
            memory: Arc::clone(&self.memory),
        }
    }

    #[inline(always)]
    fn load_u8_relaxed(&self, offset: usize) -> u8 {
        self.u8(offset).load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn load_u8_acquire(&self, offset: usize) -> u8 {
        self.u8(offset).load(Ordering::Acquire)
    }

    #[inline(always)]
    fn store_u8_relaxed(&self, offset: usize, value: u8) {
        self.u8(offset).store(value, Ordering::Relaxed);
    }

    #[inline(always)]
    fn store_u8_release(&self, offset: usize, value: u8) {
        self.u8(offset).store(value, Ordering::Release);
    }

    #[inline(always)]
    fn load_u16_relaxed(&self, offset: usize) -> u16 {
        self.u16(offset).load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn store_u16_relaxed(&self, offset: usize, value: u16) {
        self.u16(offset).store(value, Ordering::Relaxed);
    }

    #[inline(always)]
    fn load_i32_relaxed(&self, offset: usize) -> i32 {
        self.i32(offset).load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn load_i32_acquire(&self, offset: usize) -> i32 {
        self.i32(offset).load(Ordering::Acquire)
    }

    #[inline(always)]
    fn store_i32_relaxed(&self, offset: usize, value: i32) {
        self.i32(offset).store(value, Ordering::Relaxed);
    }

    #[inline(always)]
    fn store_i32_release(&self, offset: usize, value: i32) {
        self.i32(offset).store(value, Ordering::Release);
    }

    #[inline(always)]
    fn fetch_add_i32(&self, offset: usize, delta: i32) -> i32 {
        self.i32(offset).fetch_add(delta, Ordering::SeqCst)
    }

    #[inline(always)]
    fn compare_exchange_i32(&self, offset: usize, current: i32, new: i32) -> Result<i32, i32> {
        self.i32(offset)
            .compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
    }

    #[inline(always)]
    fn load_i64_relaxed(&self, offset: usize) -> i64 {
        self.i64(offset).load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn load_i64_acquire(&self, offset: usize) -> i64 {
        self.i64(offset).load(Ordering::Acquire)
    }

    #[inline(always)]
    fn store_i64_relaxed(&self, offset: usize, value: i64) {
        self.i64(offset).store(value, Ordering::Relaxed);
    }

    #[inline(always)]
    fn store_i64_release(&self, offset: usize, value: i64) {
        self.i64(offset).store(value, Ordering::Release);
    }

    #[inline(always)]
    fn store_i64s_relaxed<const N: usize>(&self, offset: usize, values: [i64; N]) {
        let rest = self.len.saturating_sub(8 * (N - 1));
        if offset & 7 != 0 || offset >= rest & !7 {
            bad_word(offset, 8 * N, self.len);
        }
        for (i, value) in values.into_iter().enumerate() {
            // SAFETY: the checks above make sure that all words are aligned and in bounds (see `word`).
            let word =
                unsafe { AtomicI64::from_ptr(self.start.as_ptr().add(offset + 8 * i).cast()) };
            word.store(value, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn fetch_add_i64(&self, offset: usize, delta: i64) -> i64 {
        self.i64(offset).fetch_add(delta, Ordering::SeqCst)
    }

    #[inline(always)]
    fn compare_exchange_i64(&self, offset: usize, current: i64, new: i64) -> Result<i64, i64> {
        self.i64(offset)
            .compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst)
    }

    #[inline(always)]
    fn fence_release(&self) {
        fence(Ordering::Release);
    }

    #[inline(always)]
    fn fence_acquire(&self) {
        fence(Ordering::Acquire);
    }

    #[inline(always)]
    fn fence_full(&self) {
        fence(Ordering::SeqCst);
    }

    #[inline(always)]
    fn copy_in(&self, offset: usize, bytes: &[u8]) {
        let target = self.bytes(offset, bytes.len());
        // SAFETY: in bounds; `bytes` is a Rust slice, which never overlaps shared memory.
        unsafe { copy(bytes.as_ptr(), target, bytes.len()) }
    }

    #[inline(always)]
    fn copy_out(&self, offset: usize, bytes: &mut [u8]) {
        let source = self.bytes(offset, bytes.len());
        // SAFETY: in bounds; `bytes` is a Rust slice, which never overlaps shared memory.
        unsafe { copy(source, bytes.as_mut_ptr(), bytes.len()) }
    }

    fn copy_in_relaxed(&self, offset: usize, bytes: &[u8]) {
        self.bytes(offset, bytes.len());
        let (words, rest) = bytes.as_chunks::<4>();
        for (i, word) in words.iter().enumerate() {
            let target = self.u32(offset + 4 * i);
            target.store(u32::from_le_bytes(*word), Ordering::Relaxed);
        }
        for (i, byte) in rest.iter().enumerate() {
            let target = self.u8(offset + 4 * words.len() + i);
            target.store(*byte, Ordering::Relaxed);
        }
    }

    fn copy_out_relaxed(&self, offset: usize, bytes: &mut [u8]) {
        self.bytes(offset, bytes.len());
        let (words, rest) = bytes.as_chunks_mut::<4>();
        for (i, word) in words.iter_mut().enumerate() {
            let source = self.u32(offset + 4 * i);
            *word = source.load(Ordering::Relaxed).to_le_bytes();
        }
        for (i, byte) in rest.iter_mut().enumerate() {
            *byte = self
                .u8(offset + 4 * words.len() + i)
                .load(Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn fill_zero(&self, offset: usize, len: usize) {
        let target = self.bytes(offset, len);
        // SAFETY: in bounds, and no other thread or process accesses the bytes now.
        unsafe { std::ptr::write_bytes(target, 0, len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_little_endian_and_share_memory_with_slices() {
        let buffer = SharedBuffer::heap(64);
        buffer.store_i64_release(8, 0x1122_3344_5566_7788);
        let slice = buffer.slice(8, 16);
        assert_eq!(slice.load_i32_acquire(0), 0x5566_7788);
        assert_eq!(slice.load_u16_relaxed(6), 0x1122);
        assert_eq!(slice.load_u8_relaxed(7), 0x11);
        drop(buffer);
        assert_eq!(slice.fetch_add_i64(0, 1), 0x1122_3344_5566_7788);
        assert_eq!(slice.load_i32_relaxed(0), 0x5566_7789);
    }

    #[test]
    fn files_are_read_into_the_memory() {
        let file = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"3456789abc", 5).unwrap();
        let target = SharedBuffer::heap(16);
        assert_eq!(target.read_file_at(&file, 1, 8, 7).unwrap(), 8);
        let mut seen = [0; 16];
        target.copy_out(0, &mut seen);
        assert_eq!(&seen, b"\x0056789abc\0\0\0\0\0\0\0");
        assert_eq!(target.read_file_at(&file, 0, 16, 15).unwrap(), 0);
        let error = target.read_file_at(&file, 0, 16, u64::MAX).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    #[should_panic(expected = "outside a buffer")]
    fn reading_a_file_into_bytes_outside_the_memory_panics() {
        let file = tempfile::tempfile().unwrap();
        let _ = SharedBuffer::heap(16).read_file_at(&file, 9, 8, 0);
    }

    #[test]
    fn copies_work_at_any_alignment_and_relaxed_copies_for_any_length() {
        let buffer = SharedBuffer::heap(64);
        let bytes: Vec<u8> = (1..=13).collect();
        buffer.copy_in(3, &bytes);
        let mut seen = [0u8; 13];
        buffer.copy_out(3, &mut seen);
        assert_eq!(&seen[..], &bytes);
        buffer.copy_in_relaxed(20, &bytes);
        seen = [0; 13];
        buffer.copy_out_relaxed(20, &mut seen);
        assert_eq!(&seen[..], &bytes);
        assert_eq!(buffer.load_u8_relaxed(33), 0);
        buffer.fill_zero(20, 13);
        buffer.copy_out(20, &mut seen);
        assert_eq!(seen, [0; 13]);
        let other = SharedBuffer::heap(20);
        other.copy_from(5, &buffer, 3, 13);
        other.copy_out(5, &mut seen);
        assert_eq!(&seen[..], &bytes);
    }

    #[test]
    fn a_buffer_is_shared_only_while_a_clone_or_slice_exists() {
        let mut buffer = SharedBuffer::heap(64);
        assert!(buffer.is_unshared());
        let slice = buffer.slice(8, 16);
        assert!(!buffer.is_unshared());
        drop(slice);
        assert!(buffer.is_unshared());
    }

    fn panics(access: impl FnOnce(&SharedBuffer) + std::panic::UnwindSafe) -> bool {
        std::panic::catch_unwind(|| access(&SharedBuffer::heap(20))).is_err()
    }

    #[test]
    fn misaligned_and_out_of_bounds_accesses_panic() {
        assert!(!panics(|b| b.store_i32_relaxed(16, 1)));
        assert!(panics(|b| b.store_i32_relaxed(20, 1)));
        assert!(panics(|b| b.store_i32_relaxed(17, 1)));
        assert!(panics(|b| b.store_i64_relaxed(16, 1)));
        assert!(panics(|b| b.store_i64_relaxed(4, 1)));
        assert!(panics(|b| b.store_i32_relaxed(usize::MAX - 3, 1)));
        assert!(panics(|b| b.copy_in(10, &[0; 11])));
        assert!(panics(|b| b.copy_in(usize::MAX, &[0; 2])));
        assert!(panics(|b| b.copy_from(10, &SharedBuffer::heap(64), 0, 11)));
        assert!(panics(|b| b.copy_from(0, &SharedBuffer::heap(8), 1, 8)));
        assert!(panics(|b| drop(b.slice(4, 8))));
        assert!(panics(|b| drop(b.slice(16, 5))));
        assert!(!panics(|b| drop(b.slice(16, 4))));
    }
}
