//! Requests that open a control session, prevent its timeout and close it.

use aeron_layout::archive_message::request::{ConnectLayout, SessionLayout, SessionRequestLayout};

use super::super::declare::{archive_message, session_request};

archive_message! {
    /// Opens a control session, with credentials. This is the first message of a client.
    pub struct AuthConnectRequest<'a>(ConnectLayout) = 58 {
        /// Correlation id that the client chooses and the response repeats.
        pub correlation_id: i64,
        /// Stream id of the responses on `response_channel`.
        pub response_stream_id: i32,
        /// Protocol version of the client, in the form of
        /// [`ARCHIVE_PROTOCOL_VERSION`](super::super::ARCHIVE_PROTOCOL_VERSION).
        pub version: i32,
        data {
            /// Channel of the responses; the archive publishes on it.
            response_channel,
            /// Credentials for the archive's authenticator; may be empty.
            encoded_credentials,
            /// Name and version of the client, for display.
            client_info since 12,
        }
    }
}

archive_message! {
    /// Opens a control session, without credentials. Sent by old clients; removed from version 14 of the schema.
    pub struct ConnectRequest<'a>(ConnectLayout) = 2 {
        /// Correlation id that the client chooses and the response repeats.
        pub correlation_id: i64,
        /// Stream id of the responses on `response_channel`.
        pub response_stream_id: i32,
        /// Protocol version of the client as a semantic version; 0 if the client has no version.
        pub version: i32 = 0 since 2,
        data {
            /// Channel of the responses; the archive publishes on it.
            response_channel,
        }
    }
}

archive_message! {
    /// Closes a control session. There is no response: the archive revokes the response publication.
    pub struct CloseSessionRequest(SessionLayout) = 3 {
        /// Control session id from the response to the connect request.
        pub control_session_id: i64,
    }
}

session_request! {
    /// Responds to a challenge, with a new correlation id.
    pub struct ChallengeResponse<'a>(SessionRequestLayout) = 60 {
        data {
            /// Credentials for the archive's authenticator.
            encoded_credentials,
        }
    }
}

session_request! {
    /// Keeps the session alive. There is no response.
    pub struct KeepAliveRequest(SessionRequestLayout) = 61 {}
}

session_request! {
    /// Requests the id of the archive. Since version 1.11.0 of the protocol.
    pub struct ArchiveIdRequest(SessionRequestLayout) = 68 {}
}
