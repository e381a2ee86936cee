//! Finds the archive of a directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use aeron_archive::catalog::CATALOG_FILE;

use super::RecordingsError;
use crate::private::LOCK_FILE;

/// Maximum number of archives that an error lists. Of the other archives, the error gives only the number.
const MAX_LISTED: usize = 8;

/// Returns the archive of `directory`. If `directory` has a catalog, this is `directory` itself. Otherwise it is the
/// only private archive below it.
///
/// # Errors
/// The directory contains no archive, or several.
pub fn find_archive(directory: &Path) -> Result<PathBuf, RecordingsError> {
    if directory.join(CATALOG_FILE).is_file() {
        return Ok(directory.to_owned());
    }
    let mut archives = private_archives(directory).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            RecordingsError::NoArchive(directory.to_owned())
        }
        _ => RecordingsError::Io {
            path: directory.to_owned(),
            source,
        },
    })?;
    archives.sort_by_key(|(_, written)| std::cmp::Reverse(*written));
    match archives.as_slice() {
        [] => Err(RecordingsError::NoArchive(directory.to_owned())),
        [(only, _)] => Ok(only.clone()),
        several => Err(RecordingsError::SeveralArchives {
            directory: directory.to_owned(),
            count: several.len(),
            list: listed(several),
        }),
    }
}

fn private_archives(directory: &Path) -> io::Result<Vec<(PathBuf, SystemTime)>> {
    let mut archives = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        // An archive that is being removed does not count.
        let catalog = path.join(CATALOG_FILE).symlink_metadata();
        if let (Ok(catalog), true) = (catalog, path.join(LOCK_FILE).is_file()) {
            archives.push((path, catalog.modified()?));
        }
    }
    Ok(archives)
}

/// Lists the newest archives, each with its age.
fn listed(archives: &[(PathBuf, SystemTime)]) -> String {
    let now = SystemTime::now();
    let one = |(path, written): &(PathBuf, SystemTime)| {
        let age = now.duration_since(*written).unwrap_or_default().as_secs();
        format!("{} (written {age} s ago)", path.display())
    };
    let mut list: Vec<_> = archives.iter().take(MAX_LISTED).map(one).collect();
    if archives.len() > MAX_LISTED {
        list.push(format!("and {} older ones", archives.len() - MAX_LISTED));
    }
    list.join(", ")
}
