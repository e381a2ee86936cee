//! [`LogSource`]: opens the logs that the driver names.
//!
//! In production the logs are files. A driver in the same process may keep its logs in memory.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::log::LogBuffers;

use crate::error::{Error, Result};

/// Opens logs by the name that the driver sent.
pub trait LogSource: Send + Sync {
    /// Maps the log.
    ///
    /// # Errors
    /// No log has this name, or the file is not a log.
    fn open(&self, name: &[u8]) -> Result<LogBuffers<SharedBuffer>>;
}

/// Logs in files.
pub(crate) struct MappedLogs {
    pub(crate) pre_touch: bool,
}

impl LogSource for MappedLogs {
    fn open(&self, name: &[u8]) -> Result<LogBuffers<SharedBuffer>> {
        // A driver with a relative directory sends log names relative to its working directory. This process then
        // assumes the same working directory.
        let path = Path::new(OsStr::from_bytes(name));
        LogBuffers::open(path, self.pre_touch).map_err(|source| Error::OpenLog {
            path: PathBuf::from(path),
            source: Arc::new(source),
        })
    }
}
