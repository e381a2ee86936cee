//! [`RequestIds`]: the two ids at the start of a session's requests.

use aeron_layout::Layout;
use aeron_layout::archive_message::request::SessionRequestLayout;

use super::super::MessageHeader;
use super::super::body::ArchiveMessage;
use super::super::extension::ExtensionRequest;
use super::{ArchiveRequest, AuthConnectRequest, CloseSessionRequest, ConnectRequest};

/// Ids of a request in a control session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestIds {
    /// Id of the control session that sends the request.
    pub control_session_id: i64,
    /// Correlation id that the client chooses and the response repeats.
    pub correlation_id: i64,
}

impl RequestIds {
    /// Reads the ids of a request. Also works for a request that [`ArchiveRequest::decode`] or
    /// [`ExtensionRequest::decode`] refuses, so that the archive can respond with an error.
    ///
    /// Returns `None` for a message that is not a request, for connect and close requests, and for a block that ends
    /// before the ids.
    #[must_use]
    pub fn of(message: &[u8]) -> Option<Self> {
        let (header, body) = MessageHeader::decode(message).ok()?;
        let has_ids = ArchiveRequest::TEMPLATE_IDS
            .iter()
            .chain(ExtensionRequest::TEMPLATE_IDS)
            .any(|id| *id == header.template_id)
            && !WITHOUT_BOTH_IDS.contains(&header.template_id);
        if !has_ids || usize::from(header.block_length) < SessionRequestLayout::LENGTH {
            return None;
        }
        let ids = SessionRequestLayout::first_in(body)?;
        Some(Self {
            control_session_id: ids.control_session_id.get(),
            correlation_id: ids.correlation_id.get(),
        })
    }
}

const WITHOUT_BOTH_IDS: [u16; 3] = [
    AuthConnectRequest::TEMPLATE_ID,
    ConnectRequest::TEMPLATE_ID,
    CloseSessionRequest::TEMPLATE_ID,
];
