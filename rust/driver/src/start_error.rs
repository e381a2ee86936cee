//! [`StartError`]: the reason why a driver did not start.

use std::io;
use std::path::{Path, PathBuf};

use aeron_memory::cnc::CncError;

use crate::config::ConfigurationError;
use crate::error::DriverError;

/// The reason why a driver did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is invalid.
    #[error(transparent)]
    Configuration(#[from] ConfigurationError),
    /// Another driver is active in the directory.
    #[error("(16) Device or resource busy\nActive media driver detected: {}", .0.display())]
    ActiveDriver(PathBuf),
    /// The CnC file belongs to a driver but is damaged, so it is unknown whether that driver is still active.
    #[error("(22) Invalid argument\n{reason}: {} (remove the directory, or set AERON_DIR_DELETE_ON_START=true)", .path.display())]
    DamagedCnc {
        /// The CnC file.
        path: PathBuf,
        /// The damage that was found.
        reason: CncError,
    },
    /// A file with the name of a CnC file exists, but this driver does not know the format of the file.
    #[error("(22) Invalid argument\n{reason}: {} (name another directory, or remove the file if no driver uses it)", .path.display())]
    ForeignCnc {
        /// The file.
        path: PathBuf,
        /// The reason why the file is not a CnC file.
        reason: CncError,
    },
    /// The directory contains a file that media drivers do not create.
    #[error("(22) Invalid argument\n{} is not a file of a media driver, and a driver deletes the files in its directory: name another directory, or an empty one", .0.display())]
    ForeignEntry(PathBuf),
    /// The directory is a symbolic link.
    #[error("(22) Invalid argument\n{} is a symbolic link, which a driver does not follow: name the directory itself", .0.display())]
    LinkedDirectory(PathBuf),
    /// The name resolver cannot be created.
    #[error(transparent)]
    NameResolver(#[from] DriverError),
    /// A file, a directory, a socket or a thread cannot be created.
    #[error("({code}) {message}")]
    Io {
        /// Error number of the operating system.
        code: i32,
        /// The failed action and the reason.
        message: String,
    },
}

impl StartError {
    pub(crate) fn io(error: &io::Error, action: &str, path: &Path) -> Self {
        let code = error.raw_os_error().unwrap_or_default();
        StartError::Io {
            code,
            message: format!("{error}\n{action} {}", path.display()),
        }
    }

    pub(crate) fn socket(error: &io::Error) -> Self {
        let code = error.raw_os_error().unwrap_or_default();
        StartError::Io {
            code,
            message: format!("{error}\nfailed to open a UDP socket"),
        }
    }

    pub(crate) fn thread(error: &io::Error, role_name: &str) -> Self {
        let code = error.raw_os_error().unwrap_or_default();
        StartError::Io {
            code,
            message: format!("{error}\nfailed to start thread {role_name}"),
        }
    }
}
