//! [`Role`]: the requests that a user may send.

use std::sync::Arc;

use super::Users;
use crate::server::AuthorisationService;

/// The requests that a user may send. Each role includes the requests of the roles before it.
///
/// | role | requests |
/// |---|---|
/// | `read` | list recordings and recording subscriptions, find a recording, ask for positions, start and stop replays, archive id, keep-alive; list named readers, retention policies, names, metadata and copies; commit and remove a named reader. Replays and readers of other users can be stopped, committed and removed only by users who may record |
/// | `record` | start, extend and stop recordings; stop all replays of a recording; set name and metadata of a recording |
/// | `admin` | truncate, purge, detach, delete, attach and migrate segments, update a channel, replicate; set and apply retention; all other requests |
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Reads recordings.
    Read,
    /// Reads, starts and stops recordings.
    Record,
    /// Sends all requests, including the requests that change or delete recorded data.
    Admin,
}

/// Template ids of the requests that [`Role::Read`] may send.
const READ: [u16; 24] = [
    6,      // Replay
    7,      // StopReplay
    8,      // ListRecordings
    9,      // ListRecordingsForUri
    10,     // ListRecording
    12,     // RecordingPosition
    15,     // StopPosition
    16,     // FindLastMatchingRecording
    17,     // ListRecordingSubscriptions
    18,     // BoundedReplay
    52,     // StartPosition
    61,     // KeepAlive
    67,     // MaxRecordedPosition
    68,     // ArchiveId
    105,    // ReplayToken
    20_000, // Capabilities
    20_001, // CommitReader
    20_002, // RemoveReader
    20_003, // ListReaders
    20_005, // ListRetention
    20_009, // ListRecordingInfo
    20_010, // FindPosition
    20_011, // ReplayAtRate
    20_012, // ListCopiedRanges
];
/// Template ids of the requests that [`Role::Record`] may send in addition to `READ`.
const RECORD: [u16; 10] = [
    4,      // StartRecording
    5,      // StopRecording
    11,     // ExtendRecording
    14,     // StopRecordingSubscription
    19,     // StopAllReplays
    63,     // StartRecording2
    64,     // ExtendRecording2
    65,     // StopRecordingByIdentity
    20_007, // SetRecordingName
    20_008, // SetRecordingMetadata
];

impl Role {
    /// Returns the role of a name in a users file.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "read" => Some(Self::Read),
            "record" => Some(Self::Record),
            "admin" => Some(Self::Admin),
            _ => None,
        }
    }

    /// Returns the lowest role that may send requests with this template id.
    pub fn required_for(template_id: u16) -> Self {
        if READ.contains(&template_id) {
            Self::Read
        } else if RECORD.contains(&template_id) {
            Self::Record
        } else {
            Self::Admin
        }
    }
}

/// Checks whether the role of a user allows a request. The principal is the name of the user.
pub(in crate::server) struct RoleService {
    users: Arc<Users>,
}

impl RoleService {
    pub fn new(users: Arc<Users>) -> Self {
        Self { users }
    }
}

impl AuthorisationService for RoleService {
    fn is_authorised(&self, template_id: u16, encoded_principal: &[u8]) -> bool {
        std::str::from_utf8(encoded_principal)
            .ok()
            .and_then(|name| self.users.get(name))
            .is_some_and(|user| user.role >= Role::required_for(template_id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aeron_protocol::archive::ArchiveRequest;
    use aeron_protocol::archive::extension::ExtensionRequest;

    /// 07-29
    #[test]
    fn each_request_has_a_role_and_requests_that_delete_data_need_the_role_admin() {
        let of = |role| {
            let ids = ArchiveRequest::TEMPLATE_IDS.iter().copied();
            let ids = ids.chain(ExtensionRequest::TEMPLATE_IDS.iter().copied());
            ids.filter(|id| Role::required_for(*id) == role)
                .collect::<Vec<_>>()
        };
        for known in READ.iter().chain(&RECORD) {
            let sets = [ArchiveRequest::TEMPLATE_IDS, ExtensionRequest::TEMPLATE_IDS];
            assert!(sets.iter().any(|ids| ids.contains(known)), "{known}");
        }
        let admin = of(Role::Admin);
        for destructive in [
            13, 53, 54, 55, 56, 57, 104, 107, 50, 62, 66, 51, 20_004, 20_006,
        ] {
            assert!(admin.contains(&destructive), "{destructive}");
        }
        assert!(Role::Read < Role::Record && Role::Record < Role::Admin);
    }

    #[test]
    fn a_user_who_is_not_in_the_file_may_send_no_request() {
        let key = "00".repeat(16);
        let text = format!("[[user]]\nname = \"ann\"\nrole = \"record\"\nkey = \"{key}\"");
        let service = RoleService::new(Arc::new(Users::parse(&text).unwrap()));
        assert!(service.is_authorised(8, b"ann") && service.is_authorised(4, b"ann"));
        assert!(!service.is_authorised(104, b"ann"));
        assert!(!service.is_authorised(8, b"bob") && !service.is_authorised(8, b"\xFF"));
    }
}
