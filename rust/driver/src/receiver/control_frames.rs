//! Sends the control frames of an image to its sources: status messages, NAKs, RTT measurements, response setups and
//! rejections.
//!
//! The conductor schedules status messages and reports gaps. In its next duty cycle, the receiver sends the newest
//! scheduled status message once, and handles the newest reported gap once. If the conductor replaces a status message
//! or a gap before this duty cycle, the receiver does not see the older one. If the receiver has sent no status message
//! for a while, it sends the last one again. A superseded image sends no status messages.

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::system::{SystemCounter, SystemCounters};
use aeron_memory::log::gap::{Gap, fill};
use aeron_protocol::ErrorCode;
use aeron_protocol::frame::{
    ErrorFrame, MAX_CONTROL_FRAME_LENGTH, Nak, ResponseSetup, Rttm, StatusMessage,
};

use super::connections::SourceConnection;
use super::destination::Outbound;
use super::endpoint::ReceiverIdentity;
use super::feedback::FeedbackTimeouts;
use super::image::ReceiverImage;
use crate::image::MissingRange;

impl ReceiverImage {
    /// Sends the frames that are due. Returns the number of sent frames, plus 1 if a gap was filled.
    pub(super) fn send_pending(
        &mut self,
        now_ns: i64,
        timeouts: &FeedbackTimeouts,
        outbound: &mut Outbound<'_>,
    ) -> usize {
        let is_due = !self.feedback.is_superseded
            && (self.config.status.take_status_message_request()
                || now_ns > self.feedback.deadline_ns);
        if self.feedback.is_rejected() {
            return match is_due {
                true => self.send_rejection(now_ns, timeouts, outbound),
                false => 0,
            };
        }
        let mut sent = 0;
        if is_due {
            sent += self.send_response_setup(now_ns, outbound);
        }
        let change_number = self.config.status.status_message_change_number();
        let is_scheduled = change_number != self.feedback.status_message_change_number;
        if is_due || (is_scheduled && !self.feedback.is_superseded) {
            sent += self.send_status_message(now_ns, timeouts, outbound);
        }
        let change_number = self.config.status.missing_change_number();
        if change_number != self.feedback.missing_change_number {
            sent += self.on_missing(now_ns, outbound);
        }
        sent + self.measure_round_trip(now_ns, outbound)
    }

    /// Writes the number of sources from which frames have arrived recently into the log's metadata.
    pub(super) fn update_active_transports(&self, now_ns: i64, timeouts: &FeedbackTimeouts) {
        let count = self
            .connections
            .active_count(timeouts.image_liveness_ns, now_ns) as i32;
        let metadata = self.config.log.metadata();
        if metadata.active_transport_count() != count {
            metadata.set_active_transport_count(count);
        }
    }

    fn send_status_message(
        &mut self,
        now_ns: i64,
        timeouts: &FeedbackTimeouts,
        outbound: &mut Outbound<'_>,
    ) -> usize {
        let Some(identity) = self.identity() else {
            return 0;
        };
        // `None` means that the conductor is writing the message at this moment. The next duty cycle reads the complete
        // message.
        let Some(scheduled) = self.config.status.scheduled_status_message() else {
            return 0;
        };
        let positions = self.config.log.positions();
        debug_assert!(
            (0..=positions.term_length() as i64 / 2).contains(&scheduled.window_length),
            "the window of {} bytes is longer than half a term: senders would refuse the status message",
            scheduled.window_length
        );
        debug_assert!(
            scheduled.change_number >= self.feedback.status_message_change_number,
            "status message {} of the conductor is older than message {}, which was sent",
            scheduled.change_number,
            self.feedback.status_message_change_number
        );
        let is_ending = self.config.status.is_ending();
        let message = identity.status_message(StatusMessage {
            wants_setup: false,
            is_end_of_stream: is_ending,
            session_id: self.config.session_id,
            stream_id: self.config.stream_id,
            consumption_term_id: positions.term_id(scheduled.position),
            consumption_term_offset: positions.term_offset(scheduled.position) as i32,
            receiver_window: scheduled.window_length as i32,
            receiver_id: 0,
            feedback: &[],
        });
        let sent = self.send_to_active(message.bytes(), now_ns, outbound);
        count(outbound.system, SystemCounter::StatusMessagesSent, sent);
        if is_ending {
            self.config.status.on_ending_reported();
        }
        self.feedback.last_position = scheduled.position;
        self.feedback.status_message_change_number = scheduled.change_number;
        self.feedback.deadline_ns = now_ns + timeouts.status_message_ns;
        self.update_active_transports(now_ns, timeouts);
        sent
    }

    fn send_response_setup(&self, now_ns: i64, outbound: &mut Outbound<'_>) -> usize {
        let Some(response_session_id) = self.config.status.response_session_id() else {
            return 0;
        };
        let mut frame = [0; ResponseSetup::LENGTH];
        ResponseSetup {
            session_id: self.config.session_id,
            stream_id: self.config.stream_id,
            response_session_id,
        }
        .encode(&mut frame);
        self.send_to_active(&frame, now_ns, outbound)
    }

    fn send_rejection(
        &mut self,
        now_ns: i64,
        timeouts: &FeedbackTimeouts,
        outbound: &mut Outbound<'_>,
    ) -> usize {
        let (Some(identity), Some(reason)) = (self.identity(), &self.feedback.rejection) else {
            return 0;
        };
        let mut frame = [0; MAX_CONTROL_FRAME_LENGTH];
        let length = ErrorFrame {
            session_id: self.config.session_id,
            stream_id: self.config.stream_id,
            receiver_id: identity.receiver_id,
            group_tag: identity.group_tag,
            error_code: ErrorCode::ImageRejected.value(),
            error_text: reason,
        }
        .encode(&mut frame);
        let sent = self.send_to(|_| true, &frame[..length], outbound);
        count(outbound.system, SystemCounter::ErrorFramesSent, sent);
        self.feedback.deadline_ns = now_ns + timeouts.status_message_ns;
        sent
    }

    /// Requests the missing bytes, or fills the gap if the stream is not reliable. Returns the number of sent NAKs, or
    /// 1 if the gap was filled.
    fn on_missing(&mut self, now_ns: i64, outbound: &mut Outbound<'_>) -> usize {
        let Some(missing) = self.config.status.missing() else {
            return 0;
        };
        debug_assert!(
            missing.length > 0
                && missing.term_offset + missing.length <= self.config.log.term_length(),
            "the missing range {missing:?} is empty or ends after its term"
        );
        self.feedback.missing_change_number = missing.change_number;
        if self.config.status.is_revoked() {
            return 0;
        }
        if self.config.is_reliable {
            return self.send_nak(&missing, now_ns, outbound);
        }
        let gap = Gap {
            offset: missing.term_offset,
            length: missing.length,
        };
        let is_filled = fill(&self.config.log, missing.term_id, gap);
        count(
            outbound.system,
            SystemCounter::LossGapFills,
            is_filled.into(),
        );
        is_filled.into()
    }

    fn send_nak(&self, missing: &MissingRange, now_ns: i64, outbound: &mut Outbound<'_>) -> usize {
        let mut frame = [0; Nak::LENGTH];
        Nak {
            session_id: self.config.session_id,
            stream_id: self.config.stream_id,
            term_id: missing.term_id,
            term_offset: missing.term_offset as i32,
            length: missing.length as i32,
        }
        .encode(&mut frame);
        let sent = self.send_to_active(&frame, now_ns, outbound);
        count(outbound.system, SystemCounter::NaksSent, sent);
        self.config.naks_sent.add_release(sent as i64);
        sent
    }

    fn measure_round_trip(&mut self, now_ns: i64, outbound: &mut Outbound<'_>) -> usize {
        let Some(meter) = &mut self.config.rtt_meter else {
            return 0;
        };
        let Some((_, identity)) = self.endpoint else {
            return 0;
        };
        if !meter.should_measure(now_ns) {
            return 0;
        }
        let mut frame = [0; Rttm::LENGTH];
        Rttm {
            is_request: true,
            session_id: self.config.session_id,
            stream_id: self.config.stream_id,
            echo_timestamp_ns: now_ns,
            reception_delta_ns: 0,
            receiver_id: identity.receiver_id,
        }
        .encode(&mut frame);
        self.send_to_active(&frame, now_ns, outbound)
    }

    fn identity(&self) -> Option<ReceiverIdentity> {
        self.endpoint.map(|(_, identity)| identity)
    }

    fn send_to_active(&self, frame: &[u8], now_ns: i64, outbound: &mut Outbound<'_>) -> usize {
        self.send_to(|connection| connection.is_active(now_ns), frame, outbound)
    }

    /// Sends `frame` to the selected sources with a known address. Returns the number of frames that count as sent.
    fn send_to(
        &self,
        is_addressed: impl Fn(&SourceConnection) -> bool,
        frame: &[u8],
        outbound: &mut Outbound<'_>,
    ) -> usize {
        let mut sent = 0;
        for connection in self.connections.iter().filter(|c| is_addressed(c)) {
            let control = outbound.control_address(connection.destination);
            if let Some(address) = control.or(connection.source) {
                sent += usize::from(outbound.send(connection.destination, address, frame));
            }
        }
        sent
    }
}

fn count(system: &SystemCounters<SharedBuffer>, counter: SystemCounter, added: usize) {
    if added > 0 {
        system.get(counter).add_release(added as i64);
    }
}
