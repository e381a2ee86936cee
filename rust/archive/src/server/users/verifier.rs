//! [`PasswordVerifier`]: checks passwords on a thread of its own, because a check with scrypt takes
//! tens of milliseconds.

use std::io;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread;

use scrypt::Scrypt;
use scrypt::password_hash::PasswordVerifier as _;
use scrypt::phc::PasswordHash;

/// Maximum number of passwords that wait to be checked.
const MAX_WAITING: usize = 64;

/// Checks passwords on a thread. The thread ends when this value is dropped.
pub(super) struct PasswordVerifier {
    checks: SyncSender<Check>,
    results: Receiver<(i64, bool)>,
}

/// A password to check.
pub(super) struct Check {
    pub control_session_id: i64,
    pub password: Vec<u8>,
    pub hash: PasswordHash,
}

impl PasswordVerifier {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system cannot start the thread.
    pub fn start() -> io::Result<Self> {
        let (checks, to_check) = sync_channel::<Check>(MAX_WAITING);
        let (sender, results) = channel();
        thread::Builder::new()
            .name("archive-verifier".into())
            .spawn(move || {
                for check in to_check {
                    let is_right = Scrypt::new().verify_password(&check.password, &check.hash);
                    if sender
                        .send((check.control_session_id, is_right.is_ok()))
                        .is_err()
                    {
                        return;
                    }
                }
            })?;
        Ok(Self { checks, results })
    }

    /// Queues a password for its check. Returns `false` if too many passwords are waiting.
    pub fn begin(&self, check: Check) -> bool {
        self.checks.try_send(check).is_ok()
    }

    /// Returns the next session whose password was checked, and whether the password was correct.
    pub fn poll(&self) -> Option<(i64, bool)> {
        self.results.try_recv().ok()
    }
}
