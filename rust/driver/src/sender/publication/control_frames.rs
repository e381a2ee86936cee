//! Handles the control frames of receivers for a publication: status messages, NAKs, RTT measurements, error frames and
//! response setups.

use std::net::SocketAddr;

use aeron_protocol::frame::{ErrorFrame, Nak, ResponseSetup, Rttm, StatusMessage};

use super::{Response, SenderPublication};
use crate::error::DriverError;
use crate::flow_control::{FlowControlProblem, ReceiverStatus};
use crate::retransmit::{NakOutcome, RetransmitBudgetExceeded};
use crate::sender::context::SenderContext;
use crate::sender::endpoint::{Audience, SendEndpoint};
use crate::sender::event::{PublicationErrorReport, SenderEvent};

/// The value that stands for a frame without a group tag.
const NO_GROUP_TAG: i64 = -1;

impl SenderPublication {
    pub(in crate::sender) fn term_length(&self) -> usize {
        self.stream.log.term_length()
    }

    /// Returns whether the position of a status message is at most half a term less and one and a half terms more than
    /// the sender position, or the message requests a SETUP and has no position.
    pub(in crate::sender) fn is_in_range(&self, message: &StatusMessage<'_>) -> bool {
        let distance = self.position_of(message) - self.stream.sender_position;
        let half_term = self.term_length() as i64 / 2;
        message.wants_setup || (-half_term..=3 * half_term).contains(&distance)
    }

    /// Handles a status message that is in range.
    pub(in crate::sender) fn on_status_message(
        &mut self,
        message: &StatusMessage<'_>,
        source: SocketAddr,
        endpoint: &mut SendEndpoint,
        context: &mut SenderContext,
    ) {
        debug_assert!(
            self.is_in_range(message),
            "a status message for {} is out of the range around {}",
            self.position_of(message),
            self.stream.sender_position
        );
        let status = ReceiverStatus {
            receiver_id: message.receiver_id,
            position: self.position_of(message),
            window_length: message.receiver_window,
            group_tag: message.group_tag(),
            feedback_length: message.feedback.len(),
            is_end_of_stream: message.is_end_of_stream,
        };
        if message.wants_setup {
            self.on_setup_elicited(&status, source);
        } else if self.update_receivers(&status, endpoint, context) {
            self.has_initial_connection = true;
            self.update_limit(&status, context);
            self.status.update_connection(self.stream.log.metadata());
            let publication = self.registration_id;
            let window = status.position..status.position + i64::from(status.window_length);
            endpoint.validate(Some(status.receiver_id), source, |it| {
                it.on_position(publication, window.clone())
            });
        }
    }

    /// Handles a NAK: retransmits the requested bytes if the retransmit handler allows it.
    pub(in crate::sender) fn on_nak(
        &mut self,
        nak: &Nak,
        source: SocketAddr,
        endpoint: &mut SendEndpoint,
        context: &mut SenderContext,
    ) {
        self.counters.naks_received.add_release(1);
        let stream = &self.stream;
        let positions = stream.log.positions();
        let position = positions.position(nak.term_id, nak.term_offset as usize);
        if position < stream.sender_position {
            let publication = self.registration_id;
            endpoint.validate(None, source, |it| it.on_nak(publication, position));
        }
        let audience = self.all();
        let outcome = self.retransmits.on_nak(
            position,
            nak.length as usize,
            stream.sender_position,
            context.now_ns,
            |position, length| stream.resend(position, length, audience, endpoint, context),
        );
        match outcome {
            NakOutcome::Accepted | NakOutcome::Ignored => {}
            NakOutcome::PoolOverflow => context.counters.retransmit_overflow.add_release(1),
            NakOutcome::OverBudget => on_over_budget(context),
        }
    }

    /// Sends the retransmits for which the delay has ended.
    pub(super) fn send_delayed_retransmits(
        &mut self,
        endpoint: &mut SendEndpoint,
        context: &mut SenderContext,
    ) {
        let stream = &self.stream;
        let audience = self.all();
        let is_within_budget = self.retransmits.on_tick(
            stream.sender_position,
            context.now_ns,
            |position, length| stream.resend(position, length, audience, endpoint, context),
        );
        if !is_within_budget {
            on_over_budget(context);
        }
    }

    /// Handles an RTT frame: replies to a measurement, or accepts the response to a challenge.
    pub(in crate::sender) fn on_rttm(
        &mut self,
        rttm: &Rttm,
        source: SocketAddr,
        endpoint: &mut SendEndpoint,
        context: &mut SenderContext,
    ) {
        if !rttm.is_request {
            self.on_answered_challenge(rttm, source, endpoint, context);
            return;
        }
        let answer = Rttm {
            is_request: false,
            session_id: self.stream.session_id,
            stream_id: self.stream.stream_id,
            echo_timestamp_ns: rttm.echo_timestamp_ns,
            reception_delta_ns: 0,
            receiver_id: rttm.receiver_id,
        };
        let mut datagram = [0; Rttm::LENGTH];
        answer.encode(&mut datagram);
        self.stream.send(&datagram, endpoint, context);
    }

    /// Validates a receiver that has responded to a challenge. Then sends the data that the receiver has missed since
    /// it joined, up to the end of its first window.
    ///
    /// Otherwise the receiver would have to request this data.
    fn on_answered_challenge(
        &mut self,
        rttm: &Rttm,
        source: SocketAddr,
        endpoint: &mut SendEndpoint,
        context: &SenderContext,
    ) {
        let mut missed = None;
        endpoint.validate(Some(rttm.receiver_id), source, |it| {
            let is_answer = it.on_answer(rttm.echo_timestamp_ns);
            if is_answer {
                missed = it.first_window(self.registration_id);
            }
            is_answer
        });
        let Some(missed) = missed else {
            return;
        };
        let stream = &self.stream;
        let length = stream.sender_position.min(missed.end) - missed.start;
        self.retransmits.resend_to_one(
            missed.start,
            usize::try_from(length).unwrap_or(0),
            stream.sender_position,
            context.now_ns,
            |position, length| {
                stream.resend(position, length, Audience::One(source), endpoint, context)
            },
        );
    }

    /// Handles the rejection of the stream by a receiver.
    ///
    /// Publishers get an event if the receiver was alive. The receiver repeats the frame, but publishers get only one
    /// event.
    pub(in crate::sender) fn on_error_frame(
        &mut self,
        frame: &ErrorFrame<'_>,
        source: SocketAddr,
        destination_registration_id: i64,
        context: &mut SenderContext,
    ) {
        self.flow_control.on_error(frame.receiver_id);
        if !context.events.has_room() || !self.receivers.remove(frame.receiver_id) {
            return;
        }
        context.events.send(SenderEvent::PublicationError(Box::new(
            PublicationErrorReport {
                registration_id: self.registration_id,
                destination_registration_id,
                session_id: self.stream.session_id,
                stream_id: self.stream.stream_id,
                receiver_id: frame.receiver_id,
                group_tag: frame.group_tag.unwrap_or(NO_GROUP_TAG),
                source,
                error_code: frame.error_code,
                message: frame.error_text.into(),
            },
        )));
    }

    /// Handles a response setup: the frame in which a receiver names the session of the response stream.
    pub(in crate::sender) fn on_response_setup(
        &self,
        frame: &ResponseSetup,
        context: &mut SenderContext,
    ) {
        if let Response::Requested {
            response_correlation_id,
        } = self.response
        {
            context.report_again(SenderEvent::ResponseSetup {
                response_correlation_id,
                response_session_id: frame.response_session_id,
            });
        }
    }

    fn position_of(&self, message: &StatusMessage<'_>) -> i64 {
        // Offsets are checked before this call. A negative offset would only lead to a position that is out of range.
        let term_begin = self
            .stream
            .log
            .positions()
            .position(message.consumption_term_id, 0);
        term_begin + i64::from(message.consumption_term_offset)
    }

    fn on_setup_elicited(&mut self, status: &ReceiverStatus, source: SocketAddr) {
        if self.status.is_end_of_stream() {
            return;
        }
        self.has_last_receiver_left = false;
        self.show_unicast_eos();
        self.is_setup_elicited = true;
        self.flow_control.on_setup_elicited(status);
        if self.stream.is_response && self.stream.response_address != Some(source) {
            self.stream.response_address = Some(source);
            self.backoff = self.backoff.map(|_| 0);
        }
    }

    /// Reports the slowest receiver's position to the conductor, if it may have changed.
    pub(super) fn show_slowest_receiver(&mut self) {
        if let Some(position) = self.receivers.take_slowest_position() {
            self.status.set_slowest_receiver_position(position);
        }
    }

    /// Updates or removes a receiver. Returns whether flow control handles the status message.
    fn update_receivers(
        &mut self,
        status: &ReceiverStatus,
        endpoint: &SendEndpoint,
        context: &mut SenderContext,
    ) -> bool {
        if status.is_end_of_stream {
            self.receivers.remove(status.receiver_id);
        } else if !self.on_live_receiver(status, context) {
            return false;
        }
        self.has_last_receiver_left = status.is_end_of_stream && endpoint.is_unicast();
        self.show_unicast_eos();
        debug_assert!(
            status.is_end_of_stream || !self.receivers.is_empty(),
            "the receiver of the status message is not remembered"
        );
        // The position is stored before the flag: a conductor that sees a receiver also sees its position.
        if !self.receivers.is_empty() && !self.status.has_receivers() {
            self.show_slowest_receiver();
        }
        self.status.set_has_receivers(!self.receivers.is_empty());
        true
    }

    fn on_live_receiver(&mut self, status: &ReceiverStatus, context: &mut SenderContext) -> bool {
        let is_first = !self.status.has_receivers();
        let connected = match self.response {
            Response::Given {
                response_correlation_id,
            } if is_first => Some(SenderEvent::ResponseConnected {
                response_correlation_id,
            }),
            _ => None,
        };
        if connected.is_some() && !context.events.has_room() {
            return false;
        }
        if let Err(refusal) =
            self.receivers
                .on_message(status.receiver_id, status.position, context.now_ns)
        {
            context
                .errors
                .record(&DriverError::invalid_argument(refusal));
            return false;
        }
        if let Some(event) = connected {
            context.events.send(event);
        }
        true
    }

    fn update_limit(&mut self, status: &ReceiverStatus, context: &SenderContext) {
        let update = self
            .flow_control
            .on_status_message(status, self.sender_limit, context.now_ns);
        // Only silence lowers the limit. A status message may be older than the last one, because datagrams overtake.
        debug_assert!(
            update.sender_limit >= self.sender_limit,
            "a status message lowered the sender limit from {} to {}",
            self.sender_limit,
            update.sender_limit
        );
        self.set_sender_limit(update.sender_limit);
        self.status
            .set_has_required_receivers(self.flow_control.has_required_receivers());
        match update.problem {
            None => {}
            Some(problem @ FlowControlProblem::GroupTagLength) => context
                .errors
                .note_uncounted(DriverError::invalid_argument(problem).text()),
            Some(problem @ FlowControlProblem::TooManyReceivers) => context
                .errors
                .record(&DriverError::invalid_argument(problem)),
        }
    }
}

fn on_over_budget(context: &SenderContext) {
    context
        .errors
        .record(&DriverError::invalid_argument(RetransmitBudgetExceeded));
}
