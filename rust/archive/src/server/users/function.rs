//! [`FunctionAuthenticator`]: a function of the archive's owner decides about clients.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use super::checks::{CheckResult, CheckThread};
use crate::server::{AuthenticationDecision, Authenticator, ClientOrigin, ClientSource};

/// Longest time of a call.
const MAX_CALL: Duration = Duration::from_secs(5);

/// A function that decides about the credentials of a client: [`AuthenticationDecision::Authenticate`],
/// [`Challenge`](AuthenticationDecision::Challenge) or [`Reject`](AuthenticationDecision::Reject). An error rejects the
/// client; the error log of the archive gets the text.
///
/// A thread of the archive calls the function, for one client at a time. Two values are equal if they have the same
/// function.
#[derive(Clone)]
pub struct AuthenticateFunction(Arc<Function>);

type Function = dyn Fn(CredentialsCheck) -> Result<AuthenticationDecision, String> + Send + Sync;

/// The credentials of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialsCheck {
    /// Id of the client's session.
    pub control_session_id: i64,
    /// The host or the client that has sent the credentials.
    pub source: ClientSource,
    /// The challenge to which the credentials respond; `None` for the credentials of a connect request.
    pub challenge: Option<Vec<u8>>,
    /// The credentials. They are any bytes.
    pub credentials: Vec<u8>,
}

impl AuthenticateFunction {
    /// Creates the value from a function.
    pub fn new(
        function: impl Fn(CredentialsCheck) -> Result<AuthenticationDecision, String>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self(Arc::new(function))
    }
}

impl PartialEq for AuthenticateFunction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for AuthenticateFunction {}

impl fmt::Debug for AuthenticateFunction {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AuthenticateFunction")
    }
}

type FunctionVerdict = Result<AuthenticationDecision, String>;

impl CheckResult for FunctionVerdict {
    fn is_right(&self) -> bool {
        !matches!(self, Err(_) | Ok(AuthenticationDecision::Reject))
    }
}

/// Asks a function on a thread.
pub(in crate::server) struct FunctionAuthenticator {
    thread: CheckThread<CredentialsCheck, FunctionVerdict>,
    limit: Duration,
    attempts: HashMap<i64, FunctionAttempt>,
    /// Session of the call that was last abandoned.
    abandoned: Option<i64>,
    failure: Option<String>,
}

struct FunctionAttempt {
    origin: ClientOrigin,
    state: FunctionAttemptState,
}

enum FunctionAttemptState {
    /// The credentials have arrived. The call is queued when the client subscribes to its responses.
    Received {
        credentials: Vec<u8>,
    },
    /// The function has the credentials, or they wait for their call.
    Asked {
        challenge: Option<Vec<u8>>,
    },
    /// The challenge was sent, or is about to be sent.
    Challenged {
        challenge: Vec<u8>,
    },
    Decided(AuthenticationDecision),
}

impl FunctionAuthenticator {
    /// Starts the thread that calls the function. A call that takes longer than five seconds rejects the client. With a
    /// connect timeout of less, a call may take nine tenths of the timeout: later nobody would get the response.
    ///
    /// # Errors
    /// The system cannot start the thread.
    pub fn start(function: AuthenticateFunction, connect_timeout: Duration) -> io::Result<Self> {
        Ok(Self {
            thread: CheckThread::start(move |check| (function.0)(check))?,
            limit: MAX_CALL.min(connect_timeout * 9 / 10),
            attempts: HashMap::new(),
            abandoned: None,
            failure: None,
        })
    }

    fn ask(&mut self, control_session_id: i64, challenge: Option<Vec<u8>>, credentials: Vec<u8>) {
        let Some(attempt) = self.attempts.get_mut(&control_session_id) else {
            return;
        };
        attempt.state = FunctionAttemptState::Asked {
            challenge: challenge.clone(),
        };
        let check = CredentialsCheck {
            control_session_id,
            source: attempt.origin.source.clone(),
            challenge,
            credentials,
        };
        self.thread
            .begin(control_session_id, &attempt.origin, check);
    }

    fn take_results(&mut self) {
        while let Some((control_session_id, verdict)) = self.thread.poll() {
            self.decide(control_session_id, verdict);
        }
        let overdue = self.thread.overdue(self.limit);
        if let Some(id) = overdue.filter(|_| overdue != self.abandoned) {
            let limit_ms = self.limit.as_millis();
            self.decide(id, Err(format!("no decision after {limit_ms} ms")));
        }
        self.abandoned = overdue;
    }

    /// Notes a decision. It has no effect if the session has ended, or if its call was abandoned.
    fn decide(&mut self, control_session_id: i64, verdict: FunctionVerdict) {
        let Some(attempt) = self.attempts.get_mut(&control_session_id) else {
            return;
        };
        let FunctionAttemptState::Asked { challenge } = &attempt.state else {
            return;
        };
        let checked = verdict.and_then(|decision| match decision {
            AuthenticationDecision::Challenge(_) if challenge.is_some() => {
                Err("a response to a challenge must be accepted or rejected".to_owned())
            }
            AuthenticationDecision::Pending => Err("the function must decide".to_owned()),
            decision => Ok(decision),
        });
        attempt.state = match checked {
            Ok(AuthenticationDecision::Challenge(challenge)) => {
                FunctionAttemptState::Challenged { challenge }
            }
            Ok(decision) => FunctionAttemptState::Decided(decision),
            Err(reason) => {
                self.failure = Some(format!(
                    "authenticator failed, the client is rejected: {reason}"
                ));
                FunctionAttemptState::Decided(AuthenticationDecision::Reject)
            }
        };
    }
}

impl Authenticator for FunctionAuthenticator {
    fn on_connect_request(
        &mut self,
        control_session_id: i64,
        origin: &ClientOrigin,
        encoded_credentials: &[u8],
        _: i64,
    ) {
        let attempt = FunctionAttempt {
            origin: origin.clone(),
            state: FunctionAttemptState::Received {
                credentials: encoded_credentials.to_vec(),
            },
        };
        self.attempts.insert(control_session_id, attempt);
    }

    fn on_challenge_response(
        &mut self,
        control_session_id: i64,
        encoded_credentials: &[u8],
        _: i64,
    ) {
        let attempt = self.attempts.get_mut(&control_session_id);
        if let Some(FunctionAttemptState::Challenged { challenge }) =
            attempt.map(|it| &mut it.state)
        {
            let challenge = Some(std::mem::take(challenge));
            self.ask(control_session_id, challenge, encoded_credentials.to_vec());
        }
    }

    fn on_connected_session(&mut self, control_session_id: i64, _: i64) -> AuthenticationDecision {
        let attempt = self.attempts.get_mut(&control_session_id);
        if let Some(FunctionAttemptState::Received { credentials }) =
            attempt.map(|it| &mut it.state)
        {
            let credentials = std::mem::take(credentials);
            self.ask(control_session_id, None, credentials);
        }
        self.take_results();
        match self.attempts.get(&control_session_id).map(|it| &it.state) {
            Some(FunctionAttemptState::Received { .. } | FunctionAttemptState::Asked { .. }) => {
                AuthenticationDecision::Pending
            }
            Some(FunctionAttemptState::Challenged { challenge }) => {
                AuthenticationDecision::Challenge(challenge.clone())
            }
            Some(FunctionAttemptState::Decided(decision)) => decision.clone(),
            None => AuthenticationDecision::Reject,
        }
    }

    fn on_challenged_session(
        &mut self,
        control_session_id: i64,
        now_ms: i64,
    ) -> AuthenticationDecision {
        match self.attempts.get(&control_session_id).map(|it| &it.state) {
            Some(FunctionAttemptState::Challenged { .. }) => AuthenticationDecision::Pending,
            _ => self.on_connected_session(control_session_id, now_ms),
        }
    }

    fn on_session_ended(&mut self, control_session_id: i64) {
        self.attempts.remove(&control_session_id);
        self.thread.cancel(control_session_id);
    }

    fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use AuthenticationDecision as Decision;
    use std::sync::mpsc::channel;
    use std::time::Instant;

    const PATIENCE: Duration = Duration::from_secs(20);
    const SESSION: i64 = 7;

    fn connected(
        connect_timeout: Duration,
        function: impl Fn(CredentialsCheck) -> FunctionVerdict + Send + Sync + 'static,
    ) -> FunctionAuthenticator {
        let function = AuthenticateFunction::new(function);
        let mut authenticator = FunctionAuthenticator::start(function, connect_timeout).unwrap();
        request(&mut authenticator, SESSION, b"ada");
        authenticator
    }

    fn request(authenticator: &mut FunctionAuthenticator, session: i64, credentials: &[u8]) {
        let origin = ClientOrigin {
            source: ClientSource::Address(format!("10.0.0.{session}").into()),
            image_id: session,
        };
        authenticator.on_connect_request(session, &origin, credentials, 0);
    }

    fn decision(mut ask: impl FnMut() -> Decision) -> Decision {
        let begin = Instant::now();
        loop {
            match ask() {
                Decision::Pending if begin.elapsed() < PATIENCE => std::thread::yield_now(),
                decided => return decided,
            }
        }
    }

    /// 07-200
    #[test]
    fn a_function_challenges_a_client_and_accepts_its_response() {
        let (seen, calls) = channel();
        let mut authenticator = connected(MAX_CALL, move |check| {
            let decision = match &check.challenge {
                None => Decision::Challenge(b"sign this".to_vec()),
                Some(_) => Decision::Authenticate(b"ada".to_vec()),
            };
            seen.send(check).unwrap();
            Ok(decision)
        });
        let challenge = Decision::Challenge(b"sign this".to_vec());
        let decided = decision(|| authenticator.on_connected_session(SESSION, 0));
        assert_eq!(decided, challenge);
        assert_eq!(
            authenticator.on_challenged_session(SESSION, 0),
            Decision::Pending
        );
        authenticator.on_challenge_response(SESSION, b"signed", 0);
        let decided = decision(|| authenticator.on_challenged_session(SESSION, 0));
        assert_eq!(decided, Decision::Authenticate(b"ada".to_vec()));
        let calls: Vec<_> = calls.try_iter().collect();
        let source = ClientSource::Address("10.0.0.7".into());
        assert!(
            calls
                .iter()
                .all(|it| it.control_session_id == SESSION && it.source == source)
        );
        assert_eq!(
            (&calls[0].credentials[..], &calls[0].challenge),
            (&b"ada"[..], &None)
        );
        let answered = Some(b"sign this".to_vec());
        assert_eq!(
            (&calls[1].credentials[..], &calls[1].challenge),
            (&b"signed"[..], &answered)
        );
    }

    /// 07-201
    #[test]
    fn an_error_a_second_challenge_and_no_decision_reject_the_client_with_a_reason() {
        type Case = (fn(CredentialsCheck) -> FunctionVerdict, &'static str);
        let cases: [Case; 3] = [
            (|_| Err("KeyError: 'ada'".to_owned()), "KeyError: 'ada'"),
            (
                |_| Ok(Decision::Challenge(Vec::new())),
                "must be accepted or rejected",
            ),
            (|_| Ok(Decision::Pending), "must decide"),
        ];
        for (function, reason) in cases {
            let mut authenticator = connected(MAX_CALL, function);
            let mut decided = decision(|| authenticator.on_connected_session(SESSION, 0));
            if matches!(decided, Decision::Challenge(_)) {
                authenticator.on_challenge_response(SESSION, b"", 0);
                decided = decision(|| authenticator.on_challenged_session(SESSION, 0));
            }
            assert_eq!(decided, Decision::Reject);
            let failure = authenticator.take_failure().unwrap();
            assert!(failure.contains(reason), "{failure}");
            assert_eq!(authenticator.take_failure(), None);
        }
    }

    /// 07-201
    #[test]
    fn a_call_that_does_not_return_rejects_its_client_and_a_late_decision_has_no_effect() {
        let (go_on, wait) = channel::<()>();
        let wait = std::sync::Mutex::new(wait);
        let mut authenticator = connected(Duration::from_millis(20), move |check| {
            if check.control_session_id == SESSION {
                let _ = wait.lock().unwrap().recv();
            }
            Ok(Decision::Authenticate(check.credentials))
        });
        let decided = decision(|| authenticator.on_connected_session(SESSION, 0));
        assert_eq!(decided, Decision::Reject);
        assert!(
            authenticator
                .take_failure()
                .unwrap()
                .contains("no decision after 18 ms")
        );
        request(&mut authenticator, 8, b"bob");
        assert_eq!(authenticator.on_connected_session(8, 0), Decision::Pending);
        assert_eq!(
            authenticator.take_failure(),
            None,
            "the same call is reported once"
        );
        go_on.send(()).unwrap();
        let decided = decision(|| authenticator.on_connected_session(8, 0));
        assert_eq!(decided, Decision::Authenticate(b"bob".to_vec()));
        assert_eq!(
            authenticator.on_connected_session(SESSION, 0),
            Decision::Reject
        );
    }
}
