//! [`ReplayTokens`]: tokens that permit a client to request a replay on another publication than
//! that of its control session.

use aeron_protocol::archive::NULL_VALUE;

/// Tokens that have not expired.
pub(super) struct ReplayTokens {
    tokens: Vec<ReplayToken>,
    random: Box<dyn FnMut() -> i64 + Send>,
    timeout_ns: i64,
}

#[derive(Debug, Clone, Copy)]
struct ReplayToken {
    token: i64,
    control_session_id: i64,
    recording_id: i64,
    expires_ns: i64,
}

impl ReplayTokens {
    /// Creates an empty set. New tokens are valid for `timeout_ns`. `random` returns numbers that
    /// cannot be guessed.
    pub fn new(timeout_ns: i64, random: Box<dyn FnMut() -> i64 + Send>) -> Self {
        Self {
            tokens: Vec::new(),
            random,
            timeout_ns,
        }
    }

    /// Creates a token with which a control session may request replays of one recording.
    pub fn give(&mut self, control_session_id: i64, recording_id: i64, now_ns: i64) -> i64 {
        let token = loop {
            let token = (self.random)();
            if token != NULL_VALUE && self.tokens.iter().all(|other| other.token != token) {
                break token;
            }
        };
        self.tokens.push(ReplayToken {
            token,
            control_session_id,
            recording_id,
            expires_ns: now_ns.saturating_add(self.timeout_ns),
        });
        token
    }

    /// Returns the control session of a token for this recording. A token can be used any number of
    /// times until it expires.
    pub fn session(&self, token: i64, recording_id: i64, now_ns: i64) -> Option<i64> {
        let is_valid = |known: &&ReplayToken| {
            known.token == token && known.recording_id == recording_id && now_ns < known.expires_ns
        };
        let known = self.tokens.iter().find(is_valid)?;
        Some(known.control_session_id)
    }

    /// Removes expired tokens.
    pub fn expire(&mut self, now_ns: i64) {
        self.tokens.retain(|token| now_ns < token.expires_ns);
    }

    /// Removes the tokens of a control session that has ended.
    pub fn forget_session(&mut self, control_session_id: i64) {
        self.tokens
            .retain(|token| token.control_session_id != control_session_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMEOUT_NS: i64 = 5_000;

    fn tokens(numbers: &'static [i64]) -> ReplayTokens {
        let mut numbers = numbers.iter().copied();
        ReplayTokens::new(TIMEOUT_NS, Box::new(move || numbers.next().unwrap()))
    }

    /// 07-101
    #[test]
    fn a_token_is_valid_only_for_its_recording_and_until_it_expires() {
        let mut tokens = tokens(&[NULL_VALUE, 70, 70, 71]);
        assert_eq!(tokens.give(1, 10, 0), 70);
        assert_eq!(tokens.give(2, 10, 1), 71);
        assert_eq!(tokens.session(70, 10, 0), Some(1));
        assert_eq!(tokens.session(70, 10, TIMEOUT_NS - 1), Some(1));
        assert_eq!(tokens.session(71, 10, TIMEOUT_NS - 1), Some(2));
        assert_eq!(tokens.session(70, 11, 0), None);
        assert_eq!(tokens.session(72, 10, 0), None);
        assert_eq!(tokens.session(NULL_VALUE, 10, 0), None);
        assert_eq!(tokens.session(70, 10, TIMEOUT_NS), None);
        tokens.expire(TIMEOUT_NS);
        assert_eq!(tokens.session(70, 10, 0), None);
        assert_eq!(tokens.session(71, 10, TIMEOUT_NS), Some(2));
    }

    #[test]
    fn the_tokens_of_an_ended_session_are_removed() {
        let mut tokens = tokens(&[70, 71]);
        tokens.give(1, 10, 0);
        tokens.give(2, 10, 0);
        tokens.forget_session(1);
        assert_eq!(tokens.session(70, 10, 0), None);
        assert_eq!(tokens.session(71, 10, 0), Some(2));
    }
}
