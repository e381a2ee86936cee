//! Publications and subscriptions for the pattern messages of the interop tests.

use std::time::Instant;

use aeron_client::{
    Aeron, AppendError, ExclusivePublication, FragmentAssembler, OfferError, Publication,
    Subscription,
};
use serde_json::{Value, json};

use super::Result;
use super::request::Request;

/// A shared or an exclusive publication.
pub enum Sender {
    Shared(Publication),
    Exclusive(ExclusivePublication),
}

/// A publication and the number of its next message.
pub struct Publisher {
    pub sender: Sender,
    next: u64,
}

/// A subscription and the number of the next message that it expects.
pub struct Receiver {
    pub subscription: Subscription,
    assembler: FragmentAssembler,
    next: u64,
    /// Whether the subscription ever had an image.
    had_image: bool,
}

macro_rules! either {
    ($sender:expr, $publication:ident => $value:expr) => {
        match $sender {
            Sender::Shared($publication) => $value,
            Sender::Exclusive($publication) => $value,
        }
    };
}

impl Sender {
    pub fn registration_id(&self) -> i64 {
        either!(self, publication => publication.registration_id())
    }

    pub fn close(&self) {
        either!(self, publication => publication.close());
    }

    fn offer(&self, message: &[u8]) -> std::result::Result<i64, OfferError> {
        match self {
            Self::Shared(publication) => Ok(publication.offer(message)?),
            Self::Exclusive(publication) => publication.offer(message),
        }
    }
}

impl Publisher {
    pub fn new(sender: Sender) -> Self {
        Self { sender, next: 0 }
    }

    pub fn constants(&self) -> Value {
        either!(&self.sender, publication => json!({
            "registration": publication.registration_id(),
            "session": publication.session_id(),
            "stream": publication.stream_id(),
            "initial_term": publication.initial_term_id(),
            "term_length": publication.term_buffer_length(),
        }))
    }

    /// Sends the next `count` messages, and returns the position after the last message. If an offer fails after the
    /// time limit, returns the error of this offer.
    pub fn publish(&mut self, aeron: &Aeron, request: &Request) -> Result<Value> {
        let (lengths, timeout) = (request.lengths()?, request.timeout()?);
        let end = self.next + request.number::<u64>("count")?;
        let start = Instant::now();
        while self.next < end {
            let length = lengths[self.next as usize % lengths.len()];
            match self.sender.offer(&pattern(self.next, length)) {
                Ok(_) => self.next += 1,
                Err(OfferError::Append(
                    AppendError::NotConnected
                    | AppendError::BackPressured
                    | AppendError::AdminAction,
                )) if start.elapsed() < timeout => {
                    aeron.do_work();
                    std::thread::yield_now();
                }
                Err(error) => return Err(error.into()),
            }
        }
        let position = either!(&self.sender, publication => publication.position())?;
        Ok(json!({ "position": position }))
    }
}

impl Receiver {
    pub fn new(subscription: Subscription) -> Self {
        Self {
            subscription,
            assembler: FragmentAssembler::default(),
            next: 0,
            had_image: false,
        }
    }

    /// Receives and checks messages from number `first` on, until `count` messages have arrived or the time limit is
    /// reached. With `to_end`, the call also ends at the end of the stream.
    pub fn receive(&mut self, aeron: &Aeron, request: &Request) -> Result<Value> {
        let (lengths, timeout) = (request.lengths()?, request.timeout()?);
        self.next = request.number_or("first", self.next)?;
        let (count, to_end) = (
            request.number_or("count", u64::MAX)?,
            request.flag("to_end"),
        );
        let (mut received, mut faults, mut ended) = (0, Vec::new(), false);
        let (mut session, mut position) = (None, -1);
        let start = Instant::now();
        while received < count && !ended && start.elapsed() < timeout {
            aeron.do_work();
            let Self {
                subscription,
                assembler,
                next,
                ..
            } = self;
            let polled = subscription.poll(
                |fragment| {
                    assembler.on_fragment(fragment, |message| {
                        let bytes = message.to_vec();
                        let length = lengths[*next as usize % lengths.len()];
                        if bytes != pattern(*next, length) {
                            faults.push(format!("message {next} has {} bytes", bytes.len()));
                        }
                        session = Some(message.header().session_id());
                        position = message.header().position();
                        received += 1;
                        *next += 1;
                    });
                },
                10,
            )?;
            self.had_image |= polled > 0 || !self.subscription.has_no_images();
            ended = to_end && polled == 0 && self.had_image && self.has_ended();
            if polled == 0 {
                std::thread::yield_now();
            }
        }
        faults.truncate(5);
        Ok(json!({
            "received": received, "faults": faults, "ended": ended, "session": session, "position": position,
        }))
    }

    fn has_ended(&self) -> bool {
        let images = self.subscription.images();
        images
            .iter()
            .all(|image| image.is_closed() || image.is_end_of_stream())
    }
}

/// Returns message `number` of the interop tests: the number in its first eight bytes, then (number + index) mod 256.
fn pattern(number: u64, length: usize) -> Vec<u8> {
    let head = number.to_le_bytes();
    (0..length)
        .map(|index| match head.get(index) {
            Some(&byte) => byte,
            None => (number as usize + index) as u8,
        })
        .collect()
}
