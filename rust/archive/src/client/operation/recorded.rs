//! Operations that add a publication and record it from its first byte on.

use aeron_client::{ExclusivePublication, PendingOperation, Publication};
use aeron_protocol::archive::{NULL_VALUE, SourceLocation};

use super::super::aeron_archive::AeronArchive;
use super::super::call::{ArchiveCall, Ticket};
use super::super::channels::with_session_id;
use super::super::error::{ArchiveClientError, Result};
use super::{Steps, abandon};

macro_rules! recorded_publication {
    ($(#[$attribute:meta])* $name:ident of $publication:ident, added by $add:ident) => {
        $(#[$attribute])*
        pub(in super::super) enum $name {
            Adding(PendingOperation<$publication>),
            Starting($publication, Ticket<i64>),
        }

        impl $name {
            /// Asks the driver to add the publication.
            pub(in super::super) fn add(
                archive: &AeronArchive,
                channel: &str,
                stream_id: i32,
            ) -> Result<Self> {
                Ok(Self::Adding(archive.aeron().$add(channel, stream_id)?))
            }
        }

        impl Steps<$publication> for $name {
            fn correlation_id(&self) -> i64 {
                match self {
                    Self::Adding(_) => NULL_VALUE,
                    Self::Starting(_, ticket) => ticket.correlation_id(),
                }
            }

            fn poll(&mut self, archive: &AeronArchive) -> Result<Option<$publication>> {
                if let Self::Adding(adding) = self {
                    let Some(publication) = adding.poll()? else {
                        return Ok(None);
                    };
                    check_is_original(
                        publication.is_original(),
                        publication.channel(),
                        publication.stream_id(),
                    )?;
                    let ticket = start(
                        archive,
                        publication.channel(),
                        publication.stream_id(),
                        publication.session_id(),
                    )?;
                    *self = Self::Starting(publication, ticket);
                }
                let Self::Starting(publication, ticket) = self else {
                    return Ok(None);
                };
                let started = archive.poll_session(|session| session.take(ticket));
                if matches!(started, Err(ArchiveClientError::Timeout { .. })) {
                    take_back(
                        archive,
                        publication.channel(),
                        publication.stream_id(),
                        publication.session_id(),
                    );
                }
                Ok(started?.map(|_| publication.clone()))
            }

            fn abandon(&mut self, archive: &AeronArchive) {
                if let Self::Starting(publication, ticket) = self {
                    abandon(archive, ticket);
                    take_back(
                        archive,
                        publication.channel(),
                        publication.stream_id(),
                        publication.session_id(),
                    );
                }
            }
        }
    };
}

recorded_publication! {
    /// Adds a publication and starts to record it.
    RecordedPublication of Publication, added by async_add_publication
}
recorded_publication! {
    /// Adds an exclusive publication and starts to record it.
    RecordedExclusivePublication of ExclusivePublication, added by async_add_exclusive_publication
}

/// Checks that the publication is new. The recording of an existing publication would lack its
/// earlier bytes.
fn check_is_original(is_original: bool, channel: &str, stream_id: i32) -> Result<()> {
    if is_original {
        return Ok(());
    }
    Err(ArchiveClientError::InvalidArgument(format!(
        "publication already added for channel={channel} streamId={stream_id}"
    )))
}

fn start(
    archive: &AeronArchive,
    channel: &str,
    stream_id: i32,
    session_id: i32,
) -> Result<Ticket<i64>> {
    let channel = with_session_id(channel, session_id)?;
    let call = ArchiveCall::start_recording(&channel, stream_id, SourceLocation::Local, false);
    archive.submit(&call)
}

/// Takes back a request to record whose publication closes now. The archive may still carry out the request. It handles
/// the requests of a session in their order, so this one ends the subscription, which would wait forever for an image.
fn take_back(archive: &AeronArchive, channel: &str, stream_id: i32, session_id: i32) {
    let stop = with_session_id(channel, session_id)
        .and_then(|channel| archive.submit(&ArchiveCall::try_stop_recording(&channel, stream_id)));
    // Without a session, the archive stops nothing, and has no request to carry out either.
    if let Ok(ticket) = stop {
        abandon(archive, &ticket);
    }
}
