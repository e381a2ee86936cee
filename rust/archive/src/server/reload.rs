//! [`ArchiveReloads`]: replaces the users and the retention policies of a running archive by those of its files.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, sync_channel};
use std::time::Duration;

use aeron_agent::Panicked;

use super::conductor::ArchiveConductor;
use super::context::ArchiveContext;
use super::control::{ControlSessions, log_policy_of_file};
use super::retention::load_policies;
use super::users::Users;
use crate::extensions::RetentionPolicy;
use crate::storage::Storage;

/// Maximum time for which a reload waits for the conductor.
const CONDUCTOR_TIMEOUT: Duration = Duration::from_secs(10);

/// A note from another thread of the process to the conductor.
pub(super) enum ConductorNote {
    /// The files were read again.
    Reloaded {
        files: ReloadedFiles,
        outcome: SyncSender<Result<String, String>>,
    },
    /// An error that the conductor reports.
    Failed(String),
    /// Another agent of the archive has panicked.
    Panicked { error: String, evidence: String },
}

impl ConductorNote {
    /// Executes the note in the conductor's thread.
    pub fn execute<S: Storage + Clone>(
        self,
        conductor: &mut ArchiveConductor<S>,
        sessions: &mut ControlSessions,
    ) {
        match self {
            Self::Reloaded { files, outcome } => {
                // The receiver has waited for too long, if it is gone.
                let _ = outcome.send(files.apply(conductor, sessions));
            }
            Self::Failed(error) => conductor.outlets().report(&error),
            Self::Panicked { error, evidence } => {
                conductor.outlets().report_evidence(&error, &evidence);
            }
        }
    }

    pub fn panicked(panicked: &Panicked) -> Self {
        Self::Panicked {
            error: panicked.to_string(),
            evidence: panicked.evidence(),
        }
    }
}

/// The contents of the users file and of the file of retention policies. `None` without the file.
pub(super) struct ReloadedFiles {
    users: Option<Arc<Users>>,
    policies: Option<Vec<RetentionPolicy>>,
}

impl ReloadedFiles {
    fn apply<S: Storage + Clone>(
        self,
        conductor: &mut ArchiveConductor<S>,
        sessions: &mut ControlSessions,
    ) -> Result<String, String> {
        let mut parts = Vec::new();
        // The policies first: only they can fail.
        if let Some(policies) = self.policies {
            let count = policies.len();
            let changed = conductor.set_policies_of_file(policies);
            let changed = changed.map_err(|error| error.message)?;
            changed.iter().for_each(log_policy_of_file);
            parts.push(format!(
                "{count} retention policies, {} changed",
                changed.len()
            ));
        }
        if let Some(users) = self.users {
            parts.push(format!("{} users", users.len()));
            sessions.set_users(&users);
        }
        Ok(parts.join(", "))
    }
}

/// Reloads the files of an archive. Clones may be used from any thread except the conductor's.
#[derive(Clone)]
pub struct ArchiveReloads {
    users_file: Option<PathBuf>,
    retention_file: Option<PathBuf>,
    notes: Sender<ConductorNote>,
}

impl ArchiveReloads {
    pub(super) fn new(context: &ArchiveContext, notes: Sender<ConductorNote>) -> Self {
        Self {
            users_file: context.users_file.clone(),
            retention_file: context.retention_file.clone(),
            notes,
        }
    }

    /// Reads the files on the calling thread, and waits until the conductor has applied them. Returns a line for the
    /// operator.
    ///
    /// # Errors
    /// A file is wrong or cannot be read, or the conductor does not apply it. Then nothing has changed. The error log
    /// has the reason.
    pub fn reload(&self) -> Result<String, String> {
        let files = self.read().inspect_err(|reason| self.fail(reason))?;
        let (outcome, applied) = sync_channel(1);
        let ended = |_| "the archive has ended".to_owned();
        let note = ConductorNote::Reloaded { files, outcome };
        self.notes.send(note).map_err(ended)?;
        match applied.recv_timeout(CONDUCTOR_TIMEOUT) {
            Ok(applied) => applied.inspect_err(|reason| self.fail(reason)),
            Err(RecvTimeoutError::Disconnected) => Err("the archive has ended".to_owned()),
            Err(RecvTimeoutError::Timeout) => Err(format!(
                "the conductor has not applied the files within {} s, and may still do so",
                CONDUCTOR_TIMEOUT.as_secs()
            )),
        }
    }

    /// Reports a reload that has changed nothing.
    pub fn fail(&self, reason: &str) {
        let text = format!("not reloaded, nothing has changed: {reason}");
        let _ = self.notes.send(ConductorNote::Failed(text));
    }

    fn read(&self) -> Result<ReloadedFiles, String> {
        let users = self.users_file.as_ref().map(|path| Users::load(path));
        let users = users.transpose().map_err(|error| error.to_string())?;
        let policies = self.retention_file.as_ref().map(|path| load_policies(path));
        Ok(ReloadedFiles {
            users: users.map(Arc::new),
            policies: policies.transpose().map_err(|error| error.to_string())?,
        })
    }
}

/// The end of the notes at the conductor; `None` in an archive without other threads.
pub(super) type ConductorNotes = Option<Receiver<ConductorNote>>;
