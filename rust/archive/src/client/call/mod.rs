//! [`ArchiveCall`]: a request that can be sent, and the function that converts its answer to a result.

mod extension;
mod maintenance;
mod query;
mod recording;
mod replay;
mod replication;

use aeron_protocol::archive::extension::Capabilities;
use aeron_protocol::archive::{ArchiveRequest, RequestIds};

use super::answer::{Answer, Expected};
use super::error::Result;
use super::exchange::NewRequest;

/// A request to an archive, with the type of its result. [`AeronArchive`](super::AeronArchive)
/// sends the request and returns an [`ArchiveOperation`](super::ArchiveOperation).
/// [`ArchiveSession`](super::ArchiveSession) sends the request and returns a [`Ticket`].
///
/// ```
/// use aeron_archive::client::ArchiveCall;
///
/// let call = ArchiveCall::stop_position(7);
/// assert_eq!(call.name(), "stop position");
/// ```
#[must_use = "a call does nothing until it is sent"]
pub struct ArchiveCall<T> {
    name: &'static str,
    /// The capability that an archive must have for the request; `None` if each archive supports the request.
    required: Option<Capabilities>,
    encode: Box<dyn Fn(RequestIds) -> Vec<u8> + Send + Sync>,
    expected: Expected,
    is_listing: bool,
    interpret: Interpret<T>,
}

/// A request that was submitted to an [`ArchiveSession`](super::ArchiveSession).
///
/// The session keeps the result until [`ArchiveSession::take`](super::ArchiveSession::take) or
/// [`ArchiveSession::abandon`](super::ArchiveSession::abandon) is called with the ticket.
#[must_use = "the session keeps the result until the ticket is taken or abandoned"]
#[derive(Debug)]
pub struct Ticket<T> {
    correlation_id: i64,
    interpret: Interpret<T>,
}

/// Converts the outcome of a request to the result of its call.
type Interpret<T> = fn(Result<Answer>) -> Result<T>;

impl<T> ArchiveCall<T> {
    /// Returns the name of the request for error texts.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    pub(super) const fn required(&self) -> Option<Capabilities> {
        self.required
    }

    /// Declares that the archive must have a capability, which [`AeronArchive`](super::AeronArchive) checks first.
    fn requires(self, capability: Capabilities) -> Self {
        Self {
            required: Some(capability),
            ..self
        }
    }

    /// Creates a call whose answer is one response.
    fn with_response(
        name: &'static str,
        encode: impl Fn(RequestIds) -> Vec<u8> + Send + Sync + 'static,
        interpret: Interpret<T>,
    ) -> Self {
        Self {
            name,
            required: None,
            encode: Box::new(encode),
            expected: Expected::Value,
            is_listing: false,
            interpret,
        }
    }

    /// Creates a call whose answer is a list of descriptors.
    fn listing(
        name: &'static str,
        expected: Expected,
        encode: impl Fn(RequestIds) -> Vec<u8> + Send + Sync + 'static,
        interpret: Interpret<T>,
    ) -> Self {
        Self {
            expected,
            is_listing: true,
            ..Self::with_response(name, encode, interpret)
        }
    }

    pub(super) fn request(&self, ids: RequestIds) -> NewRequest {
        NewRequest {
            name: self.name,
            correlation_id: ids.correlation_id,
            message: (self.encode)(ids),
            expected: self.expected,
            is_listing: self.is_listing,
        }
    }

    pub(super) const fn ticket(&self, correlation_id: i64) -> Ticket<T> {
        Ticket {
            correlation_id,
            interpret: self.interpret,
        }
    }
}

impl<T> std::fmt::Debug for ArchiveCall<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArchiveCall")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl<T> Ticket<T> {
    /// Returns the correlation id of the request.
    #[must_use]
    pub const fn correlation_id(&self) -> i64 {
        self.correlation_id
    }

    pub(super) fn result(&self, outcome: Result<Answer>) -> Result<T> {
        (self.interpret)(outcome)
    }
}

/// Returns the bytes of a request.
pub(super) fn encode(request: &ArchiveRequest<'_>) -> Vec<u8> {
    let mut message = vec![0; request.encoded_length()];
    request
        .encode(&mut message)
        .expect("a buffer of the encoded length holds the message");
    message
}

/// Creates a function that encodes a request. The arguments of the function are the control session
/// id and the correlation id.
macro_rules! request {
    ($variant:ident($message:ident { $($field:ident $(: $value:expr)?),* $(,)? })) => {
        move |ids: aeron_protocol::archive::RequestIds| {
            $crate::client::call::encode(&aeron_protocol::archive::ArchiveRequest::$variant(
                aeron_protocol::archive::$message {
                    control_session_id: ids.control_session_id,
                    correlation_id: ids.correlation_id,
                    $($field $(: $value)?),*
                },
            ))
        }
    };
}
use request;

/// Like [`request`], for requests that this project adds to Aeron's protocol.
macro_rules! extension_request {
    ($variant:ident($message:ident { $($field:ident $(: $value:expr)?),* $(,)? })) => {
        move |ids: aeron_protocol::archive::RequestIds| {
            let request = aeron_protocol::archive::extension::ExtensionRequest::$variant(
                aeron_protocol::archive::extension::$message {
                    control_session_id: ids.control_session_id,
                    correlation_id: ids.correlation_id,
                    $($field $(: $value)?),*
                },
            );
            let mut message = vec![0; request.encoded_length()];
            request
                .encode(&mut message)
                .expect("a buffer of the encoded length holds the message");
            message
        }
    };
}
use extension_request;

/// Declares calls: arguments, type of the result, constructor with its first arguments, request, conversion of the
/// answer, and the capability that the archive must have. A call `owns` the texts that are in its request.
macro_rules! calls {
    ($(
        $(#[$attribute:meta])*
        $name:ident($($argument:ident: $type:ty),*) $(owns $text:ident)? -> $result:ty =
            $constructor:ident($($given:expr),+),
            $kind:ident $variant:ident($message:ident $fields:tt), $interpret:expr $(, requires $capability:ident)?;
    )*) => {$(
        impl $crate::client::call::ArchiveCall<$result> {
            $(#[$attribute])*
            pub fn $name($($argument: $type),*) -> Self {
                $(let $text = $text.to_owned();)?
                Self::$constructor($($given,)+ $kind!($variant($message $fields)), $interpret)
                    $(.requires(aeron_protocol::archive::extension::Capabilities::$capability))?
            }
        }
    )*};
}
use calls;

/// Returns the value of the response.
fn value(outcome: Result<Answer>) -> Result<i64> {
    outcome.map(|answer| answer.value())
}

/// Returns the value of the response; `None` for -1.
fn value_if_set(outcome: Result<Answer>) -> Result<Option<i64>> {
    let value = value(outcome)?;
    Ok((value != aeron_protocol::archive::NULL_VALUE).then_some(value))
}

/// Converts a successful outcome to `()`.
fn nothing(outcome: Result<Answer>) -> Result<()> {
    outcome.map(drop)
}

/// Returns the maximum number of descriptors of a listing. A negative number is treated as 0.
fn count(requested: i32) -> usize {
    usize::try_from(requested).unwrap_or(0)
}
