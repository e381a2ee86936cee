//! [`Feedback`]: the last control frames that an image sent to its sources, and the times of the next ones.

/// The state of an image's control frames.
#[derive(Debug)]
pub(super) struct Feedback {
    /// Position of the last status message; at first the join position.
    pub last_position: i64,
    half_term_length: i64,
    /// Time of the next status message if the conductor schedules none before. The first status message is due at once.
    pub deadline_ns: i64,
    pub status_message_change_number: i64,
    pub missing_change_number: i64,
    /// Whether a newer image of the session sends the status messages, response setups and rejections.
    pub is_superseded: bool,
    pub rejection: Option<Box<[u8]>>,
}

/// Timeouts in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct FeedbackTimeouts {
    /// Maximum time between two status messages, or between two rejections.
    pub status_message_ns: i64,
    /// Time without a frame after which a source no longer counts as an active transport of the image.
    pub image_liveness_ns: i64,
}

impl Feedback {
    pub fn new(join_position: i64, term_length: usize) -> Self {
        Self {
            last_position: join_position,
            half_term_length: term_length as i64 / 2,
            deadline_ns: i64::MIN,
            status_message_change_number: 0,
            missing_change_number: 0,
            is_superseded: false,
            rejection: None,
        }
    }

    /// Returns the highest position that is accepted: half a term after the position of the last status message.
    pub fn over_run_threshold(&self) -> i64 {
        self.last_position + self.half_term_length
    }

    /// Stops the status messages, response setups and rejections of this image, because a newer image of the session
    /// sends them.
    pub fn supersede(&mut self) {
        self.is_superseded = true;
    }

    /// Stops all control frames except the rejection with this reason.
    pub fn reject(&mut self, reason: Box<[u8]>) {
        self.rejection = Some(reason);
    }

    pub fn is_rejected(&self) -> bool {
        self.rejection.is_some()
    }
}
