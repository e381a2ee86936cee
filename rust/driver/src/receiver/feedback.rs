//! [`Feedback`]: what an image has told its sources, and when it tells them more.

/// What an image has told its sources.
#[derive(Debug)]
pub(super) struct Feedback {
    /// Position of the last status message, at first the one where the stream was joined.
    pub last_position: i64,
    half_term_length: i64,
    /// The next status message goes out after this, scheduled or not; at first at once.
    pub deadline_ns: i64,
    pub status_message_change_number: i64,
    pub missing_change_number: i64,
    /// A newer image of the session tells its sources.
    pub is_superseded: bool,
    pub rejection: Option<Box<[u8]>>,
}

/// How long things may take, in ns.
#[derive(Clone, Copy, Debug)]
pub(super) struct FeedbackTimeouts {
    /// Between two status messages.
    pub status_message_ns: i64,
    /// A source that is silent for longer does not count as a transport of the image.
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

    /// Nothing beyond this is accepted.
    pub fn over_run_threshold(&self) -> i64 {
        self.last_position + self.half_term_length
    }

    /// Leaves the telling to a newer image of the session.
    pub fn supersede(&mut self) {
        self.is_superseded = true;
    }

    /// From now on the sources are told nothing but why they are rejected.
    pub fn reject(&mut self, reason: Box<[u8]>) {
        self.rejection = Some(reason);
    }

    pub fn is_rejected(&self) -> bool {
        self.rejection.is_some()
    }
}
