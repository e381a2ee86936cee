//! [`Source`]: a simulated remote driver, which sends the frames of one stream to a subscription.

use std::net::SocketAddr;

use aeron_protocol::frame::{
    ControlFrame, DataHeader, FrameHeader, FrameType, Setup, StatusMessage, flags,
};

use crate::conductor::harness::{STREAM, TERM, TestDriver};

/// The default session of a source.
pub const SESSION: i32 = 77;
const INITIAL_TERM: i32 = 5;

/// The sender of a stream that begins in term 5.
#[derive(Clone, Debug)]
pub struct Source {
    pub address: SocketAddr,
    pub to: SocketAddr,
    pub session_id: i32,
    pub setup: Setup,
}

/// Content of a status message. The consumed position is computed from its term id and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    pub position: i64,
    pub window: i32,
    pub is_end_of_stream: bool,
}

impl Source {
    /// Creates a source that sends to `localhost:<port>`.
    pub fn new(port: u16) -> Self {
        Self {
            address: "127.0.0.1:9999".parse().unwrap(),
            to: SocketAddr::from(([127, 0, 0, 1], port)),
            session_id: SESSION,
            setup: Setup {
                wants_response: false,
                has_group_semantics: false,
                term_offset: 0,
                session_id: SESSION,
                stream_id: STREAM,
                initial_term_id: INITIAL_TERM,
                active_term_id: INITIAL_TERM,
                term_length: TERM as i32,
                mtu_length: 1408,
                ttl: 0,
            },
        }
    }

    /// Changes the session.
    pub fn with_session(mut self, session_id: i32) -> Self {
        self.session_id = session_id;
        self.setup.session_id = session_id;
        self
    }

    /// Changes the MTU in the SETUP frames.
    pub fn with_mtu(mut self, mtu_length: i32) -> Self {
        self.setup.mtu_length = mtu_length;
        self
    }

    /// Sends a SETUP frame for a stream that is at `position`.
    pub fn setup(&self, driver: &TestDriver, position: i64) {
        let mut datagram = [0; Setup::LENGTH];
        let setup = Setup {
            active_term_id: INITIAL_TERM + (position / TERM) as i32,
            term_offset: (position % TERM) as i32,
            ..self.setup
        };
        setup.encode(&mut datagram);
        self.deliver(driver, &datagram);
    }

    /// Sends a message in which all bytes are `byte`. `length` includes the header.
    pub fn data(&self, driver: &TestDriver, position: i64, length: usize, byte: u8) {
        let mut datagram = vec![byte; length];
        let header = self.header(position, length as i32, flags::UNFRAGMENTED);
        header.encode(&mut datagram);
        self.deliver(driver, &datagram);
    }

    /// Sends a heartbeat at this position. With the flag END_OF_STREAM, the stream ends at this position.
    pub fn heartbeat(&self, driver: &TestDriver, position: i64, flags: u8) {
        let mut datagram = [0; DataHeader::LENGTH];
        self.header(position, 0, flags).encode(&mut datagram);
        self.deliver(driver, &datagram);
    }

    fn header(&self, position: i64, frame_length: i32, flags: u8) -> DataHeader {
        DataHeader {
            frame_length,
            flags,
            is_padding: false,
            term_offset: (position % TERM) as i32,
            session_id: self.session_id,
            stream_id: self.setup.stream_id,
            term_id: INITIAL_TERM + (position / TERM) as i32,
            reserved_value: 0,
        }
    }

    fn deliver(&self, driver: &TestDriver, datagram: &[u8]) {
        driver
            .network
            .memory
            .deliver(self.address, self.to, datagram);
    }

    /// Returns all frames that the driver sent to the source since the last call.
    pub fn heard(&self, driver: &TestDriver) -> Vec<Vec<u8>> {
        let mut sent = driver.network.memory.take_sent();
        sent.retain(|sent| sent.to == self.address);
        sent.into_iter().map(|sent| sent.bytes).collect()
    }

    /// Returns the status messages that the driver sent to the source since the last call, except requests for a SETUP.
    pub fn told(&self, driver: &TestDriver) -> Vec<Told> {
        let told = |message: StatusMessage<'_>| Told {
            position: i64::from(message.consumption_term_id - INITIAL_TERM) * TERM
                + i64::from(message.consumption_term_offset),
            window: message.receiver_window,
            is_end_of_stream: message.is_end_of_stream,
        };
        self.heard(driver)
            .iter()
            .filter_map(|bytes| match ControlFrame::decode(bytes) {
                Ok(Some(ControlFrame::StatusMessage(message))) if !message.wants_setup => {
                    Some(told(message))
                }
                _ => None,
            })
            .collect()
    }
}

/// Returns the types of the frames.
pub fn types(frames: &[Vec<u8>]) -> Vec<FrameType> {
    frames
        .iter()
        .map(|bytes| FrameHeader::decode(bytes).unwrap().frame_type)
        .collect()
}
