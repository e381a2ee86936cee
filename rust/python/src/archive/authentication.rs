//! A Python function that decides about the clients of an archive.

use aeron_archive::server::users::{AuthenticateFunction, CredentialsCheck};
use aeron_archive::server::{AuthenticationDecision, ClientSource};
use pyo3::prelude::*;

use crate::calls::{call, show_unraisable};
use crate::errors::raise;
use crate::snapshot::{Octets, snapshot};

const ACCEPT: &str = "ACCEPT";
const CHALLENGE: &str = "CHALLENGE";
const REJECT: &str = "REJECT";

snapshot! {
    /// A client that wants to connect to an `Archive`. Immutable. Comparison and pickling use the values.
    PyAuthenticatingSession("AuthenticatingSession") {
        /// Id of the control session.
        control_session_id: i64,
        /// IP address of the client's host without port; `client 42` for the client with this id that uses the
        /// driver of the archive over IPC.
        source: String,
        /// The challenge to which the credentials respond; `None` for the first credentials.
        challenge: Option<Octets>,
    }

    fn __repr__(&self) -> String {
        format!(
            "AuthenticatingSession(control_session_id={}, source={:?}, challenge={})",
            self.control_session_id,
            self.source,
            self.challenge.as_ref().map_or_else(|| "None".to_owned(), |it| format!("<{} bytes>", it.0.len())),
        )
    }
}

snapshot! {
    /// The decision of an authenticator: `accept`, `challenge` or `reject`. Immutable. Comparison and pickling use the
    /// values.
    PyAuthenticationDecision("AuthenticationDecision") {
        /// `ACCEPT`, `CHALLENGE` or `REJECT`.
        kind: String,
        /// Name of the user, or the challenge.
        data: Octets,
    }

    /// Accepts the client.
    ///
    /// Args:
    ///     name: Name of the user as str, or its bytes. If the archive has a `users_file`, the user of this name in the
    ///         file has the role; a name that is not in the file may send no request.
    ///
    /// Returns:
    ///     The decision.
    #[staticmethod]
    #[pyo3(signature = (name = None))]
    fn accept(name: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let bytes = name.map(bytes_of).transpose()?.unwrap_or_default();
        Ok(Self { kind: ACCEPT.to_owned(), data: Octets(bytes) })
    }

    /// Sends a challenge to the client. The function is called again with the client's response.
    ///
    /// Args:
    ///     data: The challenge. It should be random: a response to a known challenge can be repeated.
    ///
    /// Returns:
    ///     The decision.
    #[staticmethod]
    fn challenge(#[pyo3(from_py_with = crate::argument::data)] data: Octets) -> Self {
        Self { kind: CHALLENGE.to_owned(), data }
    }

    /// Rejects the client.
    ///
    /// Returns:
    ///     The decision.
    #[staticmethod]
    fn reject() -> Self {
        Self { kind: REJECT.to_owned(), data: Octets(Vec::new()) }
    }

    fn __repr__(&self) -> String {
        format!("AuthenticationDecision({:?}, <{} bytes>)", self.kind, self.data.0.len())
    }
}

fn bytes_of(name: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    match name.extract::<String>() {
        Ok(text) => Ok(text.into_bytes()),
        Err(_) => crate::argument::name::<Octets>(name).map(|it| it.0),
    }
}

/// Returns the archive's function for a Python function.
///
/// # Errors
/// `ArgumentTypeError`: the value cannot be called.
pub fn authenticate_function(function: &Bound<'_, PyAny>) -> PyResult<AuthenticateFunction> {
    if !function.is_callable() {
        let reason = format!(
            "authenticator={} is not a function: pass a function of a session and its credentials",
            function.repr()?
        );
        return Err(raise("ArgumentTypeError", reason));
    }
    let function = function.clone().unbind();
    Ok(AuthenticateFunction::new(move |check| {
        let decided = Python::try_attach(|py| {
            decide(function.bind(py), check).map_err(|error| {
                let text = error.to_string();
                show_unraisable(py, error, Some(function.bind(py)));
                text
            })
        });
        decided.unwrap_or_else(|| Err("the interpreter ends".to_owned()))
    }))
}

fn decide(
    function: &Bound<'_, PyAny>,
    check: CredentialsCheck,
) -> PyResult<AuthenticationDecision> {
    let py = function.py();
    let session = PyAuthenticatingSession {
        control_session_id: check.control_session_id,
        source: match check.source {
            ClientSource::Address(address) => address.into(),
            ClientSource::Local(id) => format!("client {id}"),
        },
        challenge: check.challenge.map(Octets),
    };
    let decision = call(function, (Py::new(py, session)?, Octets(check.credentials)))?;
    let Ok(decided) = decision.cast::<PyAuthenticationDecision>() else {
        let reason = format!(
            "the authenticator returned {}, and not an AuthenticationDecision",
            decision.get_type().name()?
        );
        return Err(raise("ArgumentTypeError", reason));
    };
    let decided = decided.get();
    let data = decided.data.0.clone();
    match decided.kind.as_str() {
        ACCEPT => Ok(AuthenticationDecision::Authenticate(data)),
        CHALLENGE => Ok(AuthenticationDecision::Challenge(data)),
        REJECT => Ok(AuthenticationDecision::Reject),
        kind => {
            let reason = format!("kind={kind:?} is none of {ACCEPT}, {CHALLENGE} and {REJECT}");
            Err(raise("ArgumentTypeError", reason))
        }
    }
}
