//! [`CallSteps`] and [`ListingSteps`]: one request, and the requests for all pages of a list. If the requests need a
//! capability, the steps first check that the archive has it.
//!
//! If the archive does not have the capability, the operation fails with [`ArchiveClientError::NotSupported`]. An
//! archive of another project does not respond to the request for its capabilities, so the operation fails after one
//! second.

use std::time::Duration;

use aeron_protocol::archive::NULL_VALUE;
use aeron_protocol::archive::extension::Capabilities;

use super::super::aeron_archive::AeronArchive;
use super::super::call::{ArchiveCall, Ticket};
use super::super::error::{ArchiveClientError, Result};
use super::super::extension::{CAPABILITIES_TIMEOUT_NS, ExtensionPage};
use super::{Steps, abandon};

/// One request to an archive.
pub(in super::super) struct CallSteps<T> {
    check: Option<CapabilityCheck>,
    call: ArchiveCall<T>,
    ticket: Option<Ticket<T>>,
}

/// Requests for all pages of a list.
pub(in super::super) struct ListingSteps<D> {
    page: Box<dyn Fn(i32) -> ArchiveCall<ExtensionPage<D>> + Send>,
    next_index: i32,
    current: CallSteps<ExtensionPage<D>>,
    entries: Vec<D>,
}

/// Checks a capability. After the archive has responded once, the client does not ask again.
pub(super) struct CapabilityCheck {
    required: Capabilities,
    request: &'static str,
    asked: Option<(Ticket<i64>, i64)>,
}

impl<T> CallSteps<T> {
    /// Sends the request, unless it needs a capability. In that case, sends nothing.
    pub(in super::super) fn begin(archive: &AeronArchive, call: ArchiveCall<T>) -> Result<Self> {
        let check = CapabilityCheck::of(&call);
        let ticket = match &check {
            Some(_) => None,
            None => Some(archive.submit(&call)?),
        };
        Ok(Self {
            check,
            call,
            ticket,
        })
    }
}

impl<D> ListingSteps<D> {
    /// Begins with the first page. `page` creates the request for the page from an index on.
    pub(in super::super) fn begin(
        archive: &AeronArchive,
        page: impl Fn(i32) -> ArchiveCall<ExtensionPage<D>> + Send + 'static,
    ) -> Result<Self> {
        Ok(Self {
            current: CallSteps::begin(archive, page(0))?,
            page: Box::new(page),
            next_index: 0,
            entries: Vec::new(),
        })
    }
}

impl<T> Steps<T> for CallSteps<T> {
    fn correlation_id(&self) -> i64 {
        match (&self.ticket, &self.check) {
            (Some(ticket), _) => ticket.correlation_id(),
            (None, Some(check)) => check.correlation_id(),
            (None, None) => NULL_VALUE,
        }
    }

    fn poll(&mut self, archive: &AeronArchive) -> Result<Option<T>> {
        let ticket = match &self.ticket {
            Some(ticket) => ticket,
            None => {
                if let Some(check) = &mut self.check
                    && !check.poll(archive)?
                {
                    return Ok(None);
                }
                self.ticket.insert(archive.submit(&self.call)?)
            }
        };
        archive.poll_session(|session| session.take(ticket))
    }

    fn abandon(&mut self, archive: &AeronArchive) {
        if let Some(check) = &mut self.check {
            check.abandon(archive);
        }
        if let Some(ticket) = &self.ticket {
            abandon(archive, ticket);
        }
    }
}

impl<D: Send> Steps<Vec<D>> for ListingSteps<D> {
    fn correlation_id(&self) -> i64 {
        self.current.correlation_id()
    }

    fn poll(&mut self, archive: &AeronArchive) -> Result<Option<Vec<D>>> {
        let Some(page) = self.current.poll(archive)? else {
            return Ok(None);
        };
        self.entries.extend(page.entries);
        match page.next_index.filter(|next| *next > self.next_index) {
            Some(next) => {
                self.next_index = next;
                self.current = CallSteps::begin(archive, (self.page)(next))?;
                Ok(None)
            }
            None => Ok(Some(std::mem::take(&mut self.entries))),
        }
    }

    fn abandon(&mut self, archive: &AeronArchive) {
        self.current.abandon(archive);
    }
}

impl CapabilityCheck {
    /// Returns the check that a request needs; `None` if each archive supports the request.
    pub fn of<T>(call: &ArchiveCall<T>) -> Option<Self> {
        Some(Self {
            required: call.required()?,
            request: call.name(),
            asked: None,
        })
    }

    pub fn correlation_id(&self) -> i64 {
        let asked = self.asked.as_ref();
        asked.map_or(NULL_VALUE, |(ticket, _)| ticket.correlation_id())
    }

    /// Makes progress without waiting. Returns whether the archive is known to have the capability.
    pub fn poll(&mut self, archive: &AeronArchive) -> Result<bool> {
        if let Some(capabilities) = archive.known_capabilities() {
            self.abandon(archive);
            return self.decide(capabilities);
        }
        let now_ns = archive.context().now_ns();
        let (ticket, deadline_ns) = match &self.asked {
            Some(asked) => asked,
            None => {
                let ticket = archive.submit(&ArchiveCall::capabilities())?;
                self.asked
                    .insert((ticket, now_ns.saturating_add(CAPABILITIES_TIMEOUT_NS)))
            }
        };
        let is_late = now_ns >= *deadline_ns;
        match archive.poll_session(|session| session.take(ticket)) {
            Ok(Some(bits)) => {
                let capabilities = Capabilities::from_bits(bits);
                archive.set_known_capabilities(capabilities);
                self.asked = None;
                self.decide(capabilities)
            }
            Ok(None) if is_late => {
                self.abandon(archive);
                Err(self.not_supported(Some(Duration::from_nanos(
                    CAPABILITIES_TIMEOUT_NS.unsigned_abs(),
                ))))
            }
            Ok(None) => Ok(false),
            // Happens if the client's message timeout is shorter than `CAPABILITIES_TIMEOUT_NS`.
            Err(ArchiveClientError::Timeout { waited, .. }) => {
                Err(self.not_supported(Some(waited)))
            }
            Err(error) => Err(error),
        }
    }

    fn decide(&self, capabilities: Capabilities) -> Result<bool> {
        match capabilities.contains(self.required) {
            true => Ok(true),
            false => Err(self.not_supported(None)),
        }
    }

    const fn not_supported(&self, silence: Option<Duration>) -> ArchiveClientError {
        ArchiveClientError::NotSupported {
            request: self.request,
            silence,
        }
    }

    pub fn abandon(&mut self, archive: &AeronArchive) {
        if let Some((ticket, _)) = self.asked.take() {
            abandon(archive, &ticket);
        }
    }
}
