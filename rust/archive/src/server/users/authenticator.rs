//! [`UsersAuthenticator`]: accepts the users in a users file.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use scrypt::Scrypt;
use scrypt::password_hash::PasswordVerifier as _;
use scrypt::phc::PasswordHash;
use sha2::Sha256;

use super::checks::CheckThread;
use super::{Proof, Users};
use crate::server::{AuthenticationDecision, Authenticator, ClientOrigin};

/// Length of a challenge in bytes.
const CHALLENGE_LENGTH: usize = 32;
const SEPARATOR: u8 = b':';

/// Accepts clients that prove the identity of a user in the file. The principal is the name of the
/// user.
pub(in crate::server) struct UsersAuthenticator {
    users: Arc<Users>,
    verifier: CheckThread<PasswordCheck, bool>,
    attempts: HashMap<i64, Attempt>,
}

/// State of a session's authentication.
enum Attempt {
    /// The credentials have arrived. The check begins when the client subscribes to its responses: a request with a
    /// forged response channel costs no check.
    Received {
        origin: ClientOrigin,
        credentials: Vec<u8>,
    },
    /// The password waits for its check, is being checked, or was dropped because too many passwords were waiting.
    Undecided {
        /// Name of the user; `None` if no user with a password has the name.
        name: Option<String>,
    },
    /// The client must sign the challenge.
    Challenged {
        /// The user; `None` if no user with a key has the name.
        signer: Option<Signer>,
        challenge: [u8; CHALLENGE_LENGTH],
    },
    Accepted {
        name: String,
    },
    Rejected,
}

/// A password to check.
struct PasswordCheck {
    password: Vec<u8>,
    hash: PasswordHash,
}

/// A user that signs challenges.
struct Signer {
    name: String,
    key: Vec<u8>,
}

impl UsersAuthenticator {
    /// Creates an authenticator, and starts its thread that checks passwords.
    ///
    /// # Errors
    /// The system cannot start the thread.
    pub fn start(users: Arc<Users>) -> io::Result<Self> {
        Ok(Self {
            users,
            verifier: CheckThread::start(|check: PasswordCheck| {
                Scrypt::new()
                    .verify_password(&check.password, &check.hash)
                    .is_ok()
            })?,
            attempts: HashMap::new(),
        })
    }

    fn attempt_of(
        &mut self,
        control_session_id: i64,
        origin: &ClientOrigin,
        credentials: &[u8],
    ) -> Attempt {
        let colon = credentials.iter().position(|byte| *byte == SEPARATOR);
        match colon {
            Some(at) => {
                let (name, password) = (&credentials[..at], &credentials[at + 1..]);
                self.begin_check(control_session_id, origin, name, password)
            }
            None if credentials.is_empty() => Attempt::Rejected,
            None => self.challenge(credentials),
        }
    }

    fn begin_check(
        &mut self,
        control_session_id: i64,
        origin: &ClientOrigin,
        name: &[u8],
        password: &[u8],
    ) -> Attempt {
        let found = std::str::from_utf8(name)
            .ok()
            .and_then(|name| Some((name, self.users.get(name)?)));
        let (name, hash) = match found {
            Some((name, user)) => match &user.proof {
                Proof::Password(hash) => (Some(name.to_owned()), Some(&**hash)),
                Proof::Key(_) => (None, self.users.any_password_hash()),
            },
            None => (None, self.users.any_password_hash()),
        };
        // If no user has a password, each password is wrong without a check.
        let Some(hash) = hash else {
            return Attempt::Rejected;
        };
        let check = PasswordCheck {
            password: password.to_vec(),
            hash: hash.clone(),
        };
        self.verifier.begin(control_session_id, origin, check);
        Attempt::Undecided { name }
    }

    /// Begins a challenge. Unknown names are challenged too, so that a challenge does not reveal which users exist.
    fn challenge(&self, name: &[u8]) -> Attempt {
        let signer =
            std::str::from_utf8(name)
                .ok()
                .and_then(|name| match &self.users.get(name)?.proof {
                    Proof::Key(key) => Some(Signer {
                        name: name.to_owned(),
                        key: key.clone(),
                    }),
                    Proof::Password(_) => None,
                });
        let mut challenge = [0; CHALLENGE_LENGTH];
        match getrandom::fill(&mut challenge) {
            Ok(()) => Attempt::Challenged { signer, challenge },
            // The client is not rejected, because its credentials were not checked.
            Err(_) => Attempt::Undecided { name: None },
        }
    }

    fn take_results(&mut self) {
        while let Some((control_session_id, is_right)) = self.verifier.poll() {
            // The session may have ended while the password was checked.
            if let Some(attempt) = self.attempts.get_mut(&control_session_id)
                && let Attempt::Undecided { name } = attempt
            {
                *attempt = match name.take().filter(|_| is_right) {
                    Some(name) => Attempt::Accepted { name },
                    None => Attempt::Rejected,
                };
            }
        }
    }
}

impl Authenticator for UsersAuthenticator {
    fn on_connect_request(
        &mut self,
        control_session_id: i64,
        origin: &ClientOrigin,
        encoded_credentials: &[u8],
        _: i64,
    ) {
        let attempt = Attempt::Received {
            origin: origin.clone(),
            credentials: encoded_credentials.to_vec(),
        };
        self.attempts.insert(control_session_id, attempt);
    }

    fn on_challenge_response(
        &mut self,
        control_session_id: i64,
        encoded_credentials: &[u8],
        _: i64,
    ) {
        let Some(attempt) = self.attempts.get_mut(&control_session_id) else {
            return;
        };
        if let Attempt::Challenged { signer, challenge } = attempt {
            let signed = signer
                .take()
                .filter(|signer| is_signature(&signer.key, challenge, encoded_credentials));
            *attempt = match signed {
                Some(Signer { name, .. }) => Attempt::Accepted { name },
                None => Attempt::Rejected,
            };
        }
    }

    fn on_connected_session(&mut self, control_session_id: i64, _: i64) -> AuthenticationDecision {
        if let Some(Attempt::Received { .. }) = self.attempts.get(&control_session_id)
            && let Some(Attempt::Received {
                origin,
                credentials,
            }) = self.attempts.remove(&control_session_id)
        {
            let attempt = self.attempt_of(control_session_id, &origin, &credentials);
            self.attempts.insert(control_session_id, attempt);
        }
        self.take_results();
        match self.attempts.get(&control_session_id) {
            Some(Attempt::Received { .. } | Attempt::Undecided { .. }) => {
                AuthenticationDecision::Pending
            }
            Some(Attempt::Challenged { challenge, .. }) => {
                AuthenticationDecision::Challenge(challenge.to_vec())
            }
            Some(Attempt::Accepted { name }) => {
                AuthenticationDecision::Authenticate(name.clone().into_bytes())
            }
            Some(Attempt::Rejected) | None => AuthenticationDecision::Reject,
        }
    }

    fn on_challenged_session(
        &mut self,
        control_session_id: i64,
        now_ms: i64,
    ) -> AuthenticationDecision {
        match self.attempts.get(&control_session_id) {
            Some(Attempt::Challenged { .. }) => AuthenticationDecision::Pending,
            _ => self.on_connected_session(control_session_id, now_ms),
        }
    }

    /// Rejects the clients that are proving their identity with a secret that `users` does not have.
    fn set_users(&mut self, users: &Arc<Users>) {
        let before = std::mem::replace(&mut self.users, Arc::clone(users));
        for attempt in self.attempts.values_mut() {
            let name = match attempt {
                Attempt::Undecided { name } => name.as_deref(),
                Attempt::Challenged { signer, .. } => signer.as_ref().map(|signer| &*signer.name),
                Attempt::Accepted { name } => Some(&**name),
                Attempt::Received { .. } | Attempt::Rejected => None,
            };
            if name.is_some_and(|name| !before.has_same_proof(users, name)) {
                *attempt = Attempt::Rejected;
            }
        }
    }

    fn on_session_ended(&mut self, control_session_id: i64) {
        self.attempts.remove(&control_session_id);
        self.verifier.cancel(control_session_id);
    }
}

fn is_signature(key: &[u8], challenge: &[u8], signature: &[u8]) -> bool {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else {
        return false;
    };
    mac.update(challenge);
    mac.verify_slice(signature).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ClientSource;
    use AuthenticationDecision as Decision;

    const SESSION: i64 = 7;
    const KEY: [u8; 16] = [0xA5; 16];
    // The hash is the example in the documentation of passlib, so other software has computed it.
    const PASSWORD: &[u8] = b"password";
    const SECRET: &str =
        "$scrypt$ln=16,r=8,p=1$aM15713r3Xsvxbi31lqr1Q$nFNh2CVHVjNldFVKDHDlm4CbdRSCdEBsjjJxD+iCs5E";

    fn authenticator() -> UsersAuthenticator {
        let key = "a5".repeat(16);
        let text = format!(
            "[[user]]\nname = \"ann\"\nrole = \"read\"\nsecret = \"{SECRET}\"\n[[user]]\nname = \"bob\"\nrole = \"read\"\nkey = \"{key}\""
        );
        UsersAuthenticator::start(Arc::new(Users::parse(&text).unwrap())).unwrap()
    }

    fn origin(client: i64) -> ClientOrigin {
        ClientOrigin {
            source: ClientSource::Local(client),
            image_id: client,
        }
    }

    fn decision(authenticator: &mut UsersAuthenticator, credentials: &[u8]) -> Decision {
        authenticator.on_connect_request(SESSION, &origin(1), credentials, 0);
        loop {
            match authenticator.on_connected_session(SESSION, 0) {
                Decision::Pending => thread_yield(),
                decision => return decision,
            }
        }
    }

    fn thread_yield() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }

    /// 07-26
    #[test]
    fn only_the_correct_password_of_a_user_is_accepted() {
        let mut authenticator = authenticator();
        let mut decide = |credentials: &[u8]| decision(&mut authenticator, credentials);
        let right = [b"ann:", PASSWORD].concat();
        assert_eq!(decide(&right), Decision::Authenticate(b"ann".to_vec()));
        for wrong in [
            &b""[..],
            b":",
            b"ann:",
            b"ann:passwort",
            b"bob:password",
            b"nobody:password",
            b"\xFF:password",
        ] {
            assert_eq!(decide(wrong), Decision::Reject, "{wrong:?}");
        }
    }

    /// 07-27
    #[test]
    fn a_user_with_a_key_is_accepted_after_signing_the_challenge() {
        let mut authenticator = authenticator();
        let Decision::Challenge(challenge) = decision(&mut authenticator, b"bob") else {
            panic!("no challenge");
        };
        assert_eq!(
            authenticator.on_challenged_session(SESSION, 0),
            Decision::Pending
        );
        let mut mac = Hmac::<Sha256>::new_from_slice(&KEY).unwrap();
        mac.update(&challenge);
        authenticator.on_challenge_response(SESSION, &mac.finalize().into_bytes(), 0);
        assert_eq!(
            authenticator.on_challenged_session(SESSION, 0),
            Decision::Authenticate(b"bob".to_vec())
        );
    }

    #[test]
    fn challenges_differ_and_do_not_reveal_which_users_exist() {
        let mut authenticator = authenticator();
        let mut challenges = Vec::new();
        for name in [&b"bob"[..], b"bob", b"nobody", b"ann"] {
            let Decision::Challenge(challenge) = decision(&mut authenticator, name) else {
                panic!("no challenge");
            };
            assert_eq!(challenge.len(), CHALLENGE_LENGTH);
            assert!(!challenges.contains(&challenge));
            let mut mac = Hmac::<Sha256>::new_from_slice(&[]).unwrap();
            mac.update(&challenge);
            authenticator.on_challenge_response(SESSION, &mac.finalize().into_bytes(), 0);
            let decision = authenticator.on_challenged_session(SESSION, 0);
            assert_eq!(decision, Decision::Reject);
            challenges.push(challenge);
        }
    }

    /// 07-163
    #[test]
    fn a_password_without_a_check_is_neither_accepted_nor_rejected() {
        let mut authenticator = authenticator();
        for session in 0..20 {
            authenticator.on_connect_request(session, &origin(1), b"ann:wrong", 0);
        }
        // The first decision begins the check of a session.
        let mut decide = |session| authenticator.on_connected_session(session, 0);
        for session in 0..20 {
            assert_eq!(decide(session), Decision::Pending);
        }
        // One password is being checked, eight wait, and the others were dropped.
        for session in 0..9 {
            while decide(session) == Decision::Pending {
                thread_yield();
            }
            assert_eq!(decide(session), Decision::Reject);
        }
        for session in 9..20 {
            assert_eq!(decide(session), Decision::Pending);
        }
        authenticator.on_connect_request(30, &origin(2), b"ann:password", 0);
        while authenticator.on_connected_session(30, 0) == Decision::Pending {
            thread_yield();
        }
        let accepted = Decision::Authenticate(b"ann".to_vec());
        assert_eq!(authenticator.on_connected_session(30, 0), accepted);
    }

    #[test]
    fn a_client_with_a_secret_that_a_reload_has_changed_is_rejected() {
        let with_key = |digits: &str| {
            let key = digits.repeat(16);
            let text = format!("[[user]]\nname = \"bob\"\nrole = \"read\"\nkey = \"{key}\"");
            Arc::new(Users::parse(&text).unwrap())
        };
        for (digits, is_accepted) in [("a5", true), ("5a", false)] {
            let mut authenticator = authenticator();
            let Decision::Challenge(challenge) = decision(&mut authenticator, b"bob") else {
                panic!("no challenge");
            };
            authenticator.set_users(&with_key(digits));
            let mut mac = Hmac::<Sha256>::new_from_slice(&KEY).unwrap();
            mac.update(&challenge);
            authenticator.on_challenge_response(SESSION, &mac.finalize().into_bytes(), 0);
            let expected = match is_accepted {
                true => Decision::Authenticate(b"bob".to_vec()),
                false => Decision::Reject,
            };
            assert_eq!(authenticator.on_challenged_session(SESSION, 0), expected);
            // The other user is not in the new file.
            let right = [b"ann:", PASSWORD].concat();
            assert_eq!(decision(&mut authenticator, &right), Decision::Reject);
        }
    }

    #[test]
    fn the_data_of_an_ended_session_are_removed() {
        let mut authenticator = authenticator();
        assert!(matches!(
            decision(&mut authenticator, b"bob"),
            Decision::Challenge(_)
        ));
        authenticator.on_session_ended(SESSION);
        assert!(authenticator.attempts.is_empty());
        assert_eq!(
            authenticator.on_connected_session(SESSION, 0),
            Decision::Reject
        );
    }
}
