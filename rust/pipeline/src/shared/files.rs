//! Finds out whether a directory on this machine is the directory of an archive server.

use std::path::Path;

use aeron_archive::mark_file;
use aeron_objects::reading::CopiedDirectory;
use aeron_protocol::archive::NULL_VALUE;

/// Returns the directory at `path` if its mark file contains `archive_id`. Otherwise returns the reason for the
/// refusal.
///
/// An archive without a configured id has a new id after each start. Even if a wrong directory has the same id, its
/// data is not read: the initial term id of a stream is random, and the reader checks the term id of each frame.
pub(super) fn archive_directory(path: &Path, archive_id: i64) -> Result<CopiedDirectory, String> {
    let shown = path.display();
    let archive = CopiedDirectory::new(path);
    let link = mark_file::read_link(&archive).map_err(|error| format!("{shown}: {error}"))?;
    let marked = link.map_or_else(|| archive.clone(), CopiedDirectory::new);
    match mark_file::read(&marked) {
        Err(error) => Err(format!("{shown}: {error}")),
        Ok(None) => Err(format!(
            "{shown} is not the directory of an archive on this machine"
        )),
        Ok(Some(_)) if archive_id == NULL_VALUE => {
            Err(format!("{shown}: the archive does not report its id"))
        }
        Ok(Some(mark)) if mark.owner.archive_id != archive_id => Err(format!(
            "{shown} is the directory of archive {}, not of archive {archive_id}",
            mark.owner.archive_id
        )),
        Ok(Some(_)) => Ok(archive),
    }
}
