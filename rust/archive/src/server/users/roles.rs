//! The service that compares the role of a user with the role that a request needs. The declarations of the requests
//! have these roles: [`ArchiveRequest`] and [`ExtensionRequest`].

use std::sync::Arc;

use aeron_protocol::archive::extension::ExtensionRequest;
use aeron_protocol::archive::{ArchiveRequest, Role};

use super::Users;
use crate::server::AuthorisationService;

/// Returns the lowest role that may send requests with this template id. Ids that no declaration has are left to
/// administrators.
fn required_role(template_id: u16) -> Role {
    ArchiveRequest::role_of(template_id)
        .or_else(|| ExtensionRequest::role_of(template_id))
        .unwrap_or(Role::Admin)
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
            .is_some_and(|user| user.role >= required_role(template_id))
    }

    fn set_users(&mut self, users: &Arc<Users>) {
        self.users = Arc::clone(users);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Template ids of the requests that users with the role `read` may send.
    const READ: [u16; 24] = [
        6, 7, 8, 9, 10, 12, 15, 16, 17, 18, 52, 61, 67, 68, 105, 20_000, 20_001, 20_002, 20_003,
        20_005, 20_009, 20_010, 20_011, 20_012,
    ];
    /// Template ids of the requests that users with the role `record` may send too.
    const RECORD: [u16; 10] = [4, 5, 11, 14, 19, 63, 64, 65, 20_007, 20_008];

    /// 07-29
    #[test]
    fn a_request_keeps_its_role_and_an_unknown_one_is_left_to_administrators() {
        for template_id in 0..=u16::MAX {
            let expected = match template_id {
                id if READ.contains(&id) => Role::Read,
                id if RECORD.contains(&id) => Role::Record,
                _ => Role::Admin,
            };
            assert_eq!(required_role(template_id), expected, "{template_id}");
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
