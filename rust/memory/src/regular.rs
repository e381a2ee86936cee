//! Opens only regular files: another program may have put a pipe or a device in the place of a file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Whether a path may end in a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The target of the link is opened.
    Followed,
    /// A link is an error.
    Refused,
}

/// Opens an existing regular file for reading, and for writing if `is_writable`. Never waits for another program, as
/// the opening of a pipe does.
///
/// # Errors
/// `InvalidInput` if the path names something else than a regular file. Otherwise the error of the file system.
pub fn open_regular(path: &Path, is_writable: bool, links: Links) -> io::Result<File> {
    let no_follow = match links {
        Links::Followed => OFlags::empty(),
        Links::Refused => OFlags::NOFOLLOW,
    };
    let file = OpenOptions::new()
        .read(true)
        .write(is_writable)
        .custom_flags((OFlags::NONBLOCK | no_follow).bits() as i32)
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!("{} is not a regular file", path.display()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_a_device_and_a_directory_are_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let name = std::ffi::CString::new(pipe.as_os_str().as_encoded_bytes()).unwrap();
        // SAFETY: the name is a valid string.
        assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
        for path in [&pipe, Path::new("/dev/zero"), directory.path()] {
            let error = open_regular(path, false, Links::Followed).unwrap_err();
            assert!(
                error.to_string().ends_with("is not a regular file"),
                "{error}"
            );
        }
        open_regular(&pipe, true, Links::Followed).unwrap_err();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        File::create(&file).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        open_regular(&link, true, Links::Followed).unwrap();
        open_regular(&link, true, Links::Refused).unwrap_err();
    }
}
