//! Errors for polls of an object that ended with its client.
//!
//! If such a poll finds nothing, the poll raises, unless the program closed the object or its client.

use aeron_client::{CloseCause, Error, Image, Subscription};
use pyo3::prelude::*;

use crate::errors::{because, is_refusal, raise};

/// An object that is polled and ends with its client.
pub trait Polled {
    fn is_closed(&self) -> bool;
    /// Returns the reason why the object ended; empty if its owner closed it.
    fn end_cause(&self) -> CloseCause;
    /// Returns a text with the object and the last position of each of its streams.
    fn describe_end(&self) -> String;
}

impl Polled for Subscription {
    fn is_closed(&self) -> bool {
        self.is_closed()
    }

    fn end_cause(&self) -> CloseCause {
        self.close_cause()
    }

    fn describe_end(&self) -> String {
        let last = self.last_positions();
        let last = last.iter();
        let positions: Vec<_> = last
            .map(|last| format!("session {} at {}", last.session_id, last.position))
            .collect();
        let positions = match positions.is_empty() {
            true => "it had no image".to_owned(),
            false => format!("last positions: {}", positions.join(", ")),
        };
        let cause = self.close_cause();
        let reason = match cause.0.as_deref().filter(|error| is_refusal(error)) {
            Some(error) => format!("the next driver has refused the subscription: {error}"),
            None => "the subscription ended with its client".to_owned(),
        };
        format!(
            "{}, stream {}: {reason}; {positions}",
            self.channel(),
            self.stream_id()
        )
    }
}

impl Polled for Image {
    fn is_closed(&self) -> bool {
        self.is_closed()
    }

    fn end_cause(&self) -> CloseCause {
        let cause = self.close_cause();
        match cause.0.as_deref() {
            // A corrupt log ended only this image. The poll that found the corruption has already raised an error.
            Some(Error::CorruptLog { .. }) => CloseCause::default(),
            _ => cause,
        }
    }

    fn describe_end(&self) -> String {
        format!(
            "stream {}, session {}: the image ended with its client at position {}",
            self.stream_id(),
            self.session_id(),
            self.position()
        )
    }
}

/// Returns the count of a poll. If the count is 0 and the object was closed, but not by its owner, returns an error.
///
/// # Errors
/// `SubscriptionClosedError`, with the reason of the close as its cause.
#[inline]
pub fn unless_ended(polled: &impl Polled, found: usize) -> PyResult<usize> {
    if found == 0 && polled.is_closed() {
        check_owner_closed(polled)?;
    }
    Ok(found)
}

#[cold]
fn check_owner_closed(polled: &impl Polled) -> PyResult<()> {
    let cause = polled.end_cause();
    match cause.0 {
        None => Ok(()),
        Some(_) => {
            let ended = raise("SubscriptionClosedError", polled.describe_end());
            Err(because(ended, &cause))
        }
    }
}
