//! Nearly valid datagrams. They use few sessions, streams and ports, so that they match resources of the clients.

use std::net::SocketAddr;

use aeron_protocol::frame::{
    DATA_HEADER_LENGTH, DataHeader, ErrorFrame, MAX_CONTROL_FRAME_LENGTH, Nak, ResponseSetup, Rttm,
    Setup, StatusMessage,
};
use libfuzzer_sys::arbitrary::{self, Arbitrary};

#[derive(Arbitrary, Debug)]
pub struct Datagram<'a> {
    from: u8,
    to: u8,
    session: u8,
    stream: u8,
    frame: Frame<'a>,
}

#[derive(Arbitrary, Debug)]
enum Frame<'a> {
    Data {
        term: u8,
        block: u16,
        blocks: u8,
        flags: u8,
        is_padding: bool,
    },
    Setup {
        term: u8,
        block: u16,
        length_bits: u8,
        mtu_blocks: u8,
        flags: u8,
    },
    StatusMessage {
        term: u8,
        block: u16,
        window: i32,
        receiver: u8,
        flags: u8,
        feedback: &'a [u8],
    },
    Nak {
        term: u8,
        block: u16,
        length: i32,
    },
    Error {
        receiver: u8,
        code: i32,
        text: &'a [u8],
    },
    Rttm {
        receiver: u8,
        is_request: bool,
        time_ns: i64,
    },
    ResponseSetup {
        response_session: u8,
    },
    Any(&'a [u8]),
}

/// Ports of channels, and the first ports that the network gives to senders.
const PORTS: [u16; 8] = [4001, 4002, 4003, 4004, 40_000, 40_001, 40_002, 40_003];
/// Initial term id of all streams that no client of the driver publishes.
const INITIAL_TERM_ID: i32 = i32::MAX - 1;
const BLOCK: i32 = 32;

/// An address that a socket may use.
pub fn address(index: u8) -> SocketAddr {
    let port = PORTS[usize::from(index) % PORTS.len()];
    let ip = match index / 64 {
        0 | 1 => [127, 0, 0, 1],
        2 => [224, 0, 1, 1],
        _ => [224, 0, 1, 2],
    };
    (ip, port).into()
}

impl Datagram<'_> {
    pub fn from(&self) -> SocketAddr {
        address(self.from)
    }

    pub fn to(&self) -> SocketAddr {
        address(self.to)
    }

    /// Returns the bytes. `session_ids` are the session ids of the driver's own publications.
    pub fn bytes(&self, session_ids: &[i32]) -> Vec<u8> {
        let session = |index: u8| match session_ids.get(usize::from(index) % 8) {
            Some(session_id) => *session_id,
            None => i32::from(index % 4),
        };
        let (session_id, stream_id) = (session(self.session), i32::from(self.stream % 2));
        let mut out = vec![0; MAX_CONTROL_FRAME_LENGTH];
        let length = match &self.frame {
            Frame::Data {
                term,
                block,
                blocks,
                flags,
                is_padding,
            } => {
                let frame_length = i32::from(*blocks) * BLOCK;
                let header = DataHeader {
                    frame_length,
                    flags: *flags,
                    is_padding: *is_padding,
                    term_offset: i32::from(*block) * BLOCK,
                    session_id,
                    stream_id,
                    term_id: INITIAL_TERM_ID.wrapping_add(i32::from(*term % 8)),
                    reserved_value: 0,
                };
                out.resize(DATA_HEADER_LENGTH.max(frame_length as usize), 7);
                let length = header.encode(&mut out);
                if *is_padding { length } else { out.len() }
            }
            Frame::Setup {
                term,
                block,
                length_bits,
                mtu_blocks,
                flags,
            } => Setup {
                wants_response: flags & 1 != 0,
                has_group_semantics: flags & 2 != 0,
                term_offset: i32::from(*block) * BLOCK,
                session_id,
                stream_id,
                initial_term_id: INITIAL_TERM_ID,
                active_term_id: INITIAL_TERM_ID.wrapping_add(i32::from(*term % 8)),
                term_length: 1 << (16 + length_bits % 3),
                mtu_length: i32::from(*mtu_blocks) * BLOCK,
                ttl: i32::from(*flags),
            }
            .encode(&mut out),
            Frame::StatusMessage {
                term,
                block,
                window,
                receiver,
                flags,
                feedback,
            } => {
                let feedback = &feedback[..feedback.len().min(16)];
                StatusMessage {
                    wants_setup: flags & 1 != 0,
                    is_end_of_stream: flags & 2 != 0,
                    session_id,
                    stream_id,
                    consumption_term_id: i32::from(*term),
                    consumption_term_offset: i32::from(*block) * BLOCK,
                    receiver_window: *window,
                    receiver_id: i64::from(*receiver),
                    feedback,
                }
                .encode(&mut out)
            }
            Frame::Nak {
                term,
                block,
                length,
            } => Nak {
                session_id,
                stream_id,
                term_id: i32::from(*term),
                term_offset: i32::from(*block) * BLOCK,
                length: *length,
            }
            .encode(&mut out),
            Frame::Error {
                receiver,
                code,
                text,
            } => ErrorFrame {
                session_id,
                stream_id,
                receiver_id: i64::from(*receiver),
                group_tag: None,
                error_code: *code,
                error_text: &text[..text.len().min(64)],
            }
            .encode(&mut out),
            Frame::Rttm {
                receiver,
                is_request,
                time_ns,
            } => Rttm {
                is_request: *is_request,
                session_id,
                stream_id,
                echo_timestamp_ns: *time_ns,
                reception_delta_ns: 0,
                receiver_id: i64::from(*receiver % 4),
            }
            .encode(&mut out),
            Frame::ResponseSetup { response_session } => ResponseSetup {
                session_id,
                stream_id,
                response_session_id: session(*response_session),
            }
            .encode(&mut out),
            Frame::Any(bytes) => return bytes.to_vec(),
        };
        out.truncate(length);
        out
    }
}
