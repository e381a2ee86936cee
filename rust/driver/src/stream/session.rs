//! [`StreamSession`]: identifies a publisher's stream within a channel.

/// A session of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamSession {
    pub stream_id: i32,
    pub session_id: i32,
}

impl StreamSession {
    /// In a request for a SETUP: any session of any stream.
    pub const ANY: Self = Self {
        stream_id: 0,
        session_id: 0,
    };
}
