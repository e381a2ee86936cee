//! [`ConnectingSession`]: an attempt to open a session with an archive, as a state machine that its owner polls.

use aeron_client::{Aeron, ExclusivePublication, PendingOperation, Subscription};
use aeron_protocol::uri::ChannelUri;

use super::channels::{correlate_responses, is_response_mode, with_control_defaults};
use super::context::ArchiveClientContext;
use super::error::{ArchiveClientError, Result};
use super::handshake::Handshake;
use super::session::{ArchiveSession, Connected};

/// An attempt to open a session. The owner polls it until it returns the session; dropping it cancels the attempt.
pub struct ConnectingSession {
    aeron: Aeron,
    context: ArchiveClientContext,
    request_channel: ChannelUri,
    response_channel: ChannelUri,
    step: ConnectStep,
    start_ns: i64,
}

enum ConnectStep {
    SessionId(PendingOperation<i32>),
    Subscription(PendingOperation<Subscription>),
    Publication(Subscription, PendingOperation<ExclusivePublication>),
    Handshake(Box<Handshake>),
    Finished,
}

impl ConnectingSession {
    /// Begins to connect to the archive of `context`.
    ///
    /// # Errors
    /// [`ArchiveClientError::Configuration`], [`ArchiveClientError::InvalidChannel`], or the command could not be sent
    /// to the driver.
    pub fn new(aeron: &Aeron, context: ArchiveClientContext, now_ns: i64) -> Result<Self> {
        context.validate()?;
        let request_channel = with_control_defaults(&context.control_request_channel, &context)?;
        let response_channel = with_control_defaults(&context.control_response_channel, &context)?;
        let step = if is_response_mode(&response_channel) {
            ConnectStep::Subscription(subscribe(aeron, &response_channel, &context)?)
        } else {
            ConnectStep::SessionId(aeron.async_next_session_id(context.control_request_stream_id)?)
        };
        Ok(Self {
            aeron: aeron.clone(),
            context,
            request_channel,
            response_channel,
            step,
            start_ns: now_ns,
        })
    }

    /// Makes progress without waiting. Returns the session once it is connected.
    ///
    /// # Errors
    /// [`ArchiveClientError::Refused`] if the archive refuses the client.
    /// [`ArchiveClientError::ConnectTimeout`], with the step that is missing, after the message
    /// timeout. The error of the driver if it refuses a stream. After an error, the attempt has
    /// failed.
    pub fn poll(&mut self, now_ns: i64) -> Result<Option<ArchiveSession>> {
        let outcome = self.advance();
        if !matches!(outcome, Ok(None)) {
            self.step = ConnectStep::Finished;
            return outcome;
        }
        let timeout_ns = i64::try_from(self.context.message_timeout_ns).unwrap_or(i64::MAX);
        if now_ns.wrapping_sub(self.start_ns) > timeout_ns {
            let error = ArchiveClientError::ConnectTimeout {
                awaited: self.step.awaited(),
                channel: self.request_channel.to_string(),
                waited: self.context.message_timeout(),
            };
            self.step = ConnectStep::Finished;
            return Err(error);
        }
        Ok(None)
    }

    /// Runs the steps of the connection until a step has to wait.
    fn advance(&mut self) -> Result<Option<ArchiveSession>> {
        loop {
            let next = match &mut self.step {
                ConnectStep::SessionId(operation) => match operation.poll()? {
                    Some(session_id) => self.on_session_id(session_id)?,
                    None => return Ok(None),
                },
                ConnectStep::Subscription(operation) => match operation.poll()? {
                    Some(subscription) => self.on_subscription(subscription)?,
                    None => return Ok(None),
                },
                ConnectStep::Publication(subscription, operation) => match operation.poll()? {
                    Some(publication) => {
                        let handshake = Handshake::new(publication, subscription.clone());
                        ConnectStep::Handshake(Box::new(handshake))
                    }
                    None => return Ok(None),
                },
                ConnectStep::Handshake(handshake) => {
                    let connected = handshake.poll(&self.aeron, &self.context)?;
                    return Ok(connected.map(|parts| self.session(parts)));
                }
                ConnectStep::Finished => return Err(ArchiveClientError::OperationCancelled),
            };
            self.step = next;
        }
    }

    /// Puts the session id into both control channels, and adds the response subscription. So the archive's request
    /// image and the client's response image will have the same session id.
    fn on_session_id(&mut self, session_id: i32) -> Result<ConnectStep> {
        let with_session_id = |uri: &ChannelUri| uri.clone().with_session_id(session_id);
        self.request_channel = with_session_id(&self.request_channel);
        self.response_channel = with_session_id(&self.response_channel);
        let operation = subscribe(&self.aeron, &self.response_channel, &self.context)?;
        Ok(ConnectStep::Subscription(operation))
    }

    fn on_subscription(&mut self, subscription: Subscription) -> Result<ConnectStep> {
        if is_response_mode(&self.response_channel) {
            correlate_responses(&mut self.request_channel, subscription.registration_id())?;
        }
        let operation = self.aeron.async_add_exclusive_publication(
            &self.request_channel.to_string(),
            self.context.control_request_stream_id,
        )?;
        Ok(ConnectStep::Publication(subscription, operation))
    }

    fn session(&self, parts: Connected) -> ArchiveSession {
        ArchiveSession::new(&self.aeron, &self.context, parts)
    }
}

impl std::fmt::Debug for ConnectingSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectingSession")
            .field("request_channel", &self.request_channel.to_string())
            .field("awaiting", &self.step.awaited())
            .finish_non_exhaustive()
    }
}

impl ConnectStep {
    fn awaited(&self) -> &'static str {
        match self {
            Self::SessionId(_) => "a session id of the driver",
            Self::Subscription(_) => "the subscription to the response channel",
            Self::Publication(..) => "the publication to the request channel",
            Self::Handshake(handshake) => handshake.awaited(),
            Self::Finished => "nothing",
        }
    }
}

fn subscribe(
    aeron: &Aeron,
    channel: &ChannelUri,
    context: &ArchiveClientContext,
) -> Result<PendingOperation<Subscription>> {
    let stream_id = context.control_response_stream_id;
    Ok(aeron.async_add_subscription(&channel.to_string(), stream_id)?)
}
