//! The rows of the driver's state and rule tables (docs/spec/04, sections 7, 8.2, 12.4 and 13.8), and the rows that a
//! thread has executed.
//!
//! The simulator uses the executed rows to measure the coverage of its schedules. Only a build with the feature
//! `test-hooks` records rows, as bits of a thread-local variable. A data frame of the same image as the previous one
//! records nothing. In all other builds, [`reach`] is empty.

#[cfg(feature = "test-hooks")]
pub use hooks::Reached;

macro_rules! rules {
    ($($section:literal: $($name:ident $text:literal;)*)*) => {
        /// A row of a table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Rule {
            $($(#[doc = $text] $name,)*)*
        }

        /// All rows: the section, and the text of the row.
        #[cfg(feature = "test-hooks")]
        const ROWS: &[(&str, &str)] = &[$($(($section, $text),)*)*];
    };
}

rules! {
    "7":
    TetherTethered "tethered: always up to date";
    TetherKeepsUp "ACTIVE, ahead of the limit: up to date";
    TetherDropped "ACTIVE, too slow for too long: unavailable, LINGER";
    TetherRests "LINGER is over, rejoin: RESTING";
    TetherCloses "LINGER is over, no rejoin: CLOSED, counter freed";
    TetherRejoins "RESTING is over: available again, ACTIVE";
    TetherClosed "CLOSED: stays so";
    "8.2":
    PublicationRevoked "ACTIVE, revoked: LINGER";
    PublicationActive "ACTIVE, tick: untethered check, connection, blocked check";
    PublicationReleased "ACTIVE, last reference gone: DRAINING";
    PublicationUnblocked "DRAINING, not all sent, blocked: unblocked";
    PublicationSending "DRAINING, not all sent, has receivers: stays";
    PublicationAllSent "DRAINING, all sent: end of stream";
    PublicationDrained "DRAINING, nobody to wait for: LINGER";
    PublicationLingeredForEos "LINGER, receiver has all (unicast): DONE";
    PublicationLingered "LINGER is over: DONE";
    PublicationDeleted "DONE, released by the sender: deleted";
    "12.4":
    DataUnknownStream "DATA, unknown stream: ignored";
    DataImage "DATA, image: inserted";
    DataIgnored "DATA, end of stream or any state: ignored";
    DataInterest "DATA, interest: PENDING_SETUP, setup asked for";
    DataNoInterest "DATA, no interest: NO_INTEREST";
    SetupUnknownStream "SETUP, unknown stream: ignored";
    SetupSessionLimit "SETUP, session limit: refused";
    SetupImage "SETUP, image: connection tracked";
    SetupPending "SETUP, PENDING_SETUP: image created";
    SetupInterest "SETUP, no state, interest: image created";
    SetupNoInterest "SETUP, no state, no interest: NO_INTEREST";
    SetupIgnored "SETUP, any other state: ignored";
    RttmRequest "RTTM, image, request: answered";
    RttmAnswer "RTTM, image, answer: measured";
    AddAll "add subscription to all sessions";
    AddBySession "add subscription by session";
    RemoveAll "remove subscription to all sessions";
    RemoveBySession "remove subscription by session";
    AddImage "add image: mapped";
    RemoveImageCoolDown "remove image that has not ended: COOL_DOWN";
    RemoveImageEnded "remove image that has ended: unmapped";
    RemoveState "remove state: erased";
    "13.8":
    ImageRevoked "ACTIVE, revoked: DRAINING";
    ImageUnread "ACTIVE, no subscribers: DRAINING";
    ImageSilent "ACTIVE, silent for too long: DRAINING";
    ImageEnded "ACTIVE, end of stream and all received: DRAINING";
    ImageDrained "DRAINING, read and told: LINGER";
    ImageDrainedRevoked "DRAINING, revoked: LINGER";
    ImageForgotten "LINGER, no subscribers: DONE";
    ImageLingered "LINGER is over: DONE";
    ImageDeleted "DONE, released by the receiver: deleted";
}

/// Records that this thread executes the row.
#[inline(always)]
pub(crate) fn reach(rule: Rule) {
    #[cfg(feature = "test-hooks")]
    hooks::note(rule);
    #[cfg(not(feature = "test-hooks"))]
    let _ = rule;
}

#[cfg(feature = "test-hooks")]
mod hooks {
    use std::cell::Cell;

    use super::{ROWS, Rule};

    thread_local! {
        static REACHED: Cell<u64> = const { Cell::new(0) };
    }

    /// A set of rows.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Reached(u64);

    pub(super) fn note(rule: Rule) {
        REACHED.set(REACHED.get() | 1 << rule as u32);
    }

    impl Reached {
        /// Returns the rows that this thread has executed since the last call.
        pub fn take() -> Self {
            Self(REACHED.take())
        }

        /// Returns the union of both sets.
        #[must_use]
        pub fn and(self, other: Self) -> Self {
            Self(self.0 | other.0)
        }

        /// Returns each row of the tables: its section, its text, and whether this set contains it.
        pub fn rows(self) -> impl Iterator<Item = (&'static str, &'static str, bool)> {
            let is_reached = move |index: usize| self.0 & 1 << index != 0;
            let rows = ROWS.iter().enumerate();
            rows.map(move |(index, (section, text))| (*section, *text, is_reached(index)))
        }
    }
}
