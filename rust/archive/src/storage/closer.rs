//! [`FileCloser`]: closes removed files on a thread of its own. The file system frees the space of a removed file when
//! the file is closed. For a segment this takes many milliseconds, and a recording must not wait for that.

use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

/// Maximum number of files that wait to be closed.
const MAX_WAITING: usize = 64;

/// Closes files on a thread, which starts with the first file. Dropping the value waits until all files are closed.
#[derive(Debug)]
pub(super) struct FileCloser {
    /// A forked child has this value, but not the thread.
    process_id: u32,
    waiting_bytes: Arc<AtomicU64>,
    /// The inner value is `None` if the system cannot start a thread.
    thread: OnceLock<Option<CloserThread>>,
}

#[derive(Debug)]
struct CloserThread {
    files: SyncSender<RemovedFile>,
    handle: JoinHandle<()>,
}

/// A file without a name.
struct RemovedFile {
    /// Dropping it closes the file.
    file: Box<dyn Send>,
    /// Space that is free after the close, in bytes.
    bytes: u64,
}

impl FileCloser {
    /// Creates a closer. Its thread is not started yet.
    pub fn new() -> Self {
        Self {
            process_id: process::id(),
            waiting_bytes: Arc::default(),
            thread: OnceLock::new(),
        }
    }

    /// Closes a file without a name. After that, `bytes` more bytes are free.
    ///
    /// The thread closes the file later. If too many files are waiting, if there is no thread, or in a forked child,
    /// this call closes the file.
    pub fn close(&self, file: impl Send + 'static, bytes: u64) {
        // At a fork, another thread may hold a lock of the queue or of the start. So a child uses neither of them.
        if self.is_in_forked_child() {
            return;
        }
        let Some(thread) = self.thread.get_or_init(|| self.start()) else {
            return;
        };
        let file = Box::new(file);
        // Added before the thread can subtract it.
        self.waiting_bytes.fetch_add(bytes, Ordering::AcqRel);
        if thread.files.try_send(RemovedFile { file, bytes }).is_err() {
            self.waiting_bytes.fetch_sub(bytes, Ordering::AcqRel);
        }
    }

    /// Returns the space of the files that are not closed yet, in bytes.
    pub fn waiting_bytes(&self) -> u64 {
        self.waiting_bytes.load(Ordering::Acquire)
    }

    fn start(&self) -> Option<CloserThread> {
        let (files, to_close) = sync_channel::<RemovedFile>(MAX_WAITING);
        let waiting_bytes = Arc::clone(&self.waiting_bytes);
        let close_all = move || {
            for RemovedFile { file, bytes } in to_close {
                drop(file);
                let waiting = waiting_bytes.fetch_sub(bytes, Ordering::AcqRel);
                debug_assert!(
                    waiting >= bytes,
                    "a file of {bytes} bytes is closed, but only {waiting} bytes wait for it"
                );
            }
        };
        let started = thread::Builder::new()
            .name("archive-closer".into())
            .spawn(close_all);
        let handle = started.ok()?;
        Some(CloserThread { files, handle })
    }

    fn is_in_forked_child(&self) -> bool {
        process::id() != self.process_id
    }
}

impl Drop for FileCloser {
    fn drop(&mut self) {
        let Some(Some(CloserThread { files, handle })) = self.thread.take() else {
            return;
        };
        if self.is_in_forked_child() {
            // The child does not have the thread, so it would wait for ever.
            std::mem::forget((files, handle));
            return;
        }
        drop(files);
        // The thread does not panic: it only closes files.
        let _ = handle.join();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A file. Its close waits until the test drops the other end of the channel.
    struct SlowFile {
        may_close: Receiver<()>,
        closed: Sender<thread::ThreadId>,
    }

    impl Drop for SlowFile {
        fn drop(&mut self) {
            let _ = self.may_close.recv();
            let _ = self.closed.send(thread::current().id());
        }
    }

    /// Returns a slow file, the sender that delays its close until the test drops the sender, and the receiver of the
    /// closing thread's id.
    fn slow_file() -> (SlowFile, Sender<()>, Receiver<thread::ThreadId>) {
        let (hold, may_close) = channel();
        let (closed, closer) = channel();
        (SlowFile { may_close, closed }, hold, closer)
    }

    fn quick_file() -> (SlowFile, Receiver<thread::ThreadId>) {
        let (file, _, closed) = slow_file();
        (file, closed)
    }

    #[test]
    fn a_file_is_closed_on_the_thread_and_its_bytes_wait_until_then() {
        let closer = FileCloser::new();
        let (file, hold, closed) = slow_file();
        closer.close(file, 7);
        assert_eq!(closer.waiting_bytes(), 7);
        drop(hold);
        assert_ne!(closed.recv(), Ok(thread::current().id()));
        let bytes = Arc::clone(&closer.waiting_bytes);
        drop(closer);
        assert_eq!(bytes.load(Ordering::Acquire), 0);
    }

    #[test]
    fn dropping_the_closer_closes_all_files() {
        let closer = FileCloser::new();
        let files: Vec<_> = (0..MAX_WAITING).map(|_| quick_file()).collect();
        let closed: Vec<_> = files
            .into_iter()
            .map(|(file, closed)| {
                closer.close(file, 1);
                closed
            })
            .collect();
        drop(closer);
        assert!(closed.iter().all(|it| it.try_recv().is_ok()));
    }

    #[test]
    fn if_too_many_files_wait_the_call_closes_the_file() {
        let closer = FileCloser::new();
        let (first, hold, _closed) = slow_file();
        closer.close(first, 1);
        // The thread holds at most one file, and the queue the others.
        for _ in 0..=MAX_WAITING {
            closer.close(quick_file().0, 1);
        }
        let (refused, closed) = quick_file();
        closer.close(refused, 100);
        assert_eq!(closed.try_recv(), Ok(thread::current().id()));
        assert!(closer.waiting_bytes() < 100);
        drop(hold);
    }

    #[test]
    fn a_forked_child_closes_files_itself_and_does_not_wait_for_the_thread() {
        let mut closer = FileCloser::new();
        let (held, hold, _closed) = slow_file();
        closer.close(held, 1);
        closer.process_id = closer.process_id.wrapping_add(1);
        let (file, closed) = quick_file();
        closer.close(file, 1);
        assert_eq!(closed.try_recv(), Ok(thread::current().id()));
        // Waiting would hang, because `hold` is still there.
        drop(closer);
        drop(hold);
    }
}
