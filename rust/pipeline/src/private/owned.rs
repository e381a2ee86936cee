//! Opening the private archive that an offset names: found or made, locked, recovered; and old ones of its place removed.

use std::path::PathBuf;
use std::time::SystemTime;

use aeron_archive::storage::Directory;

use super::expired::remove_expired;
use super::open::{Known, OpenReport};
use super::ownership::{Claim, Ownership};
use super::place::{Place, make_archive};
use super::{PrivateArchive, PrivateError};

/// A private archive that this process owns, ready to record.
#[derive(Debug)]
pub struct OwnedArchive {
    /// Its lock and mark file.
    pub ownership: Ownership,
    /// Its recordings.
    pub archive: PrivateArchive<Directory>,
    /// What opening it found.
    pub report: OpenReport,
}

impl OwnedArchive {
    /// Opens the archive `claim.id` of `place`, wherever it is, or makes it if `known` names no recording.
    ///
    /// # Errors
    /// [`PrivateError::Missing`] when it is gone and `known` names recordings of it. Otherwise it is in use or damaged, the place
    /// is refused, or the file system refuses.
    pub fn open(
        place: &Place,
        known: &[Known],
        max_retained_bytes: u64,
        claim: &mut Claim<'_>,
    ) -> Result<Self, PrivateError> {
        let mut lines = Vec::new();
        let found = place.find(claim.id)?;
        let taken = match &found {
            Some(path) => Ownership::take(path, claim),
            None => Err(PrivateError::Missing {
                path: PathBuf::from(claim.id.to_string()),
            }),
        };
        let ownership = match taken {
            // Never made, or by somebody who was killed before anything was in it.
            Err(PrivateError::Missing { .. }) if known.is_empty() => {
                let path = match found {
                    Some(path) => path,
                    None => {
                        let chosen = place.choose(max_retained_bytes)?;
                        lines.push(chosen.line);
                        make_archive(&chosen.directory, claim.id)?
                    }
                };
                Ownership::create(&path, claim)?
            }
            taken => taken?,
        };
        let storage = Directory::new(ownership.path());
        let now_ms = claim.clock.time_ms();
        match PrivateArchive::open(storage, known, max_retained_bytes, now_ms) {
            Ok((archive, mut report)) => {
                lines.append(&mut report.lines);
                let expired = place
                    .existing()
                    .flat_map(|directory| remove_expired(directory, SystemTime::now()));
                lines.extend(expired.map(|path| {
                    format!(
                        "removed {}, the private archive of an old query",
                        path.display()
                    )
                }));
                report.lines = lines;
                Ok(Self {
                    ownership,
                    archive,
                    report,
                })
            }
            Err(error) => {
                // The first error tells more; without this the next owner waits for the lock file's sake only.
                let _ = ownership.end();
                Err(error)
            }
        }
    }
}
