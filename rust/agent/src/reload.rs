//! [`ReloadRequests`]: reloads on request of SIGHUP, or of a file that `aeron reload` writes.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use signal_hook::consts::SIGHUP;

use crate::crash::panic_if_requested;
use crate::service::ServiceNotifier;

/// Interval of the looks for the file with a request.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum length of a request: longer files are no requests.
const MAX_REQUEST_LENGTH: u64 = 64;

/// Receives SIGHUP. While a value exists, SIGHUP does not kill the process.
#[derive(Debug)]
pub struct ReloadRequests {
    hangups: UnixStream,
    signal: signal_hook::SigId,
}

/// The thread that reloads on request. Dropping it ends the thread after its reload.
#[derive(Debug)]
pub struct ReloadThread {
    is_ended: Arc<AtomicBool>,
    signal: signal_hook::SigId,
}

/// A request in the file. The file then gets the outcome, with the same id.
struct FileRequest {
    id: String,
}

impl ReloadRequests {
    /// Begins to receive SIGHUP. A signal before [`serve`](Self::serve) is not lost.
    ///
    /// # Errors
    /// The system does not create a socket pair, or refuses the handler of the signal.
    pub fn new() -> io::Result<Self> {
        let (hangups, writer) = UnixStream::pair()?;
        hangups.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        // The handler only writes a byte, which is safe in a signal handler.
        let signal = signal_hook::low_level::pipe::register(SIGHUP, writer)?;
        Ok(Self { hangups, signal })
    }

    /// Starts the thread. It calls `reload` at each request, and tells the outcome: to the service manager, with
    /// `status` in front, and in `file`, to the process that wrote the request.
    ///
    /// `reload` returns a line for the operator. An error is a text too: then `reload` has changed nothing.
    ///
    /// # Errors
    /// The system does not create a thread.
    pub fn serve(
        self,
        file: PathBuf,
        status: String,
        mut reload: impl FnMut() -> Result<String, String> + Send + 'static,
    ) -> io::Result<ReloadThread> {
        let is_ended = Arc::new(AtomicBool::new(false));
        let (ending, mut hangups) = (Arc::clone(&is_ended), self.hangups);
        // A request for an earlier program.
        let _ = fs::remove_file(&file);
        let thread = std::thread::Builder::new().name("aeron-reload".to_owned());
        thread.spawn(move || {
            let service = ServiceNotifier::from_environment();
            while !ending.load(Ordering::Acquire) {
                let is_signalled = take_hangups(&mut hangups);
                let request = FileRequest::read(&file);
                if !is_signalled && request.is_none() {
                    continue;
                }
                service.reloading("reloading");
                panic_if_requested("aeron-reload");
                let outcome = reload();
                if ending.load(Ordering::Acquire) {
                    // The program has told the manager that it stops.
                    return;
                }
                service.ready(&match &outcome {
                    Ok(line) => format!("{status}; reloaded: {line}"),
                    Err(reason) => format!("{status}; not reloaded: {reason}"),
                });
                if let Some(request) = request {
                    request.finish(&file, &outcome);
                }
            }
        })?;
        Ok(ReloadThread {
            is_ended,
            signal: self.signal,
        })
    }
}

impl Drop for ReloadThread {
    fn drop(&mut self) {
        self.is_ended.store(true, Ordering::Release);
        signal_hook::low_level::unregister(self.signal);
    }
}

/// Returns the end of the line of a reload: the names of changed settings that only a restart applies.
pub fn unapplied(changed: &[&str]) -> String {
    match changed.is_empty() {
        true => String::new(),
        false => format!(
            "; only a restart applies the changes of {}",
            changed.join(", ")
        ),
    }
}

/// Waits for SIGHUP, for at most [`LOOK_INTERVAL`]. Several signals are one request.
fn take_hangups(hangups: &mut UnixStream) -> bool {
    let timeout = LOOK_INTERVAL.try_into().ok();
    let _ = poll(&mut [PollFd::new(hangups, PollFlags::IN)], timeout.as_ref());
    hangups.read(&mut [0; 64]).is_ok_and(|count| count > 0)
}

impl FileRequest {
    /// Reads a request; `None` if there is none, or if it is not complete yet.
    fn read(file: &Path) -> Option<Self> {
        let found = fs::metadata(file).ok()?;
        // Any process may have made the file: to read a FIFO would wait for ever.
        if !found.is_file() || found.len() > MAX_REQUEST_LENGTH {
            return None;
        }
        let text = fs::read_to_string(file).ok()?;
        let id = text.strip_prefix("request ")?.strip_suffix('\n')?;
        Some(Self { id: id.to_owned() })
    }

    /// Writes the outcome into the file. If that fails, the process that waits for it reports a time-out.
    fn finish(&self, file: &Path, outcome: &Result<String, String>) {
        let (word, text) = match outcome {
            Ok(line) => ("done", line),
            Err(reason) => ("failed", reason),
        };
        // Not created: a process that no longer waits has removed the file.
        let opened = OpenOptions::new().write(true).truncate(true).open(file);
        let _ = opened.and_then(|mut file| {
            file.write_all(format!("{word} {}\n{text}\n", self.id).as_bytes())
        });
    }
}
