//! Operations that this project adds to Aeron's protocol. They first check that the archive supports them.

use std::time::Duration;

use aeron_protocol::archive::extension::Capabilities;

use super::super::aeron_archive::AeronArchive;
use super::super::call::{ArchiveCall, Ticket};
use super::super::error::{ArchiveClientError, Result};
use super::super::extension::{CAPABILITIES_TIMEOUT_NS, ExtensionPage};
use super::{Steps, abandon};

/// One request to an archive that must have a capability.
pub(in super::super) struct CheckedCall<T> {
    check: CapabilityCheck,
    call: ArchiveCall<T>,
    ticket: Option<Ticket<T>>,
}

/// Requests for all pages of a list, to an archive that must have a capability.
pub(in super::super) struct CheckedListing<D> {
    check: CapabilityCheck,
    page: Box<dyn Fn(i32) -> ArchiveCall<ExtensionPage<D>> + Send>,
    next_index: i32,
    ticket: Option<Ticket<ExtensionPage<D>>>,
    entries: Vec<D>,
}

/// Checks a capability. After the archive has responded once, the client does not ask again.
pub(super) struct CapabilityCheck {
    required: Capabilities,
    request: &'static str,
    asked: Option<(Ticket<i64>, i64)>,
}

impl<T> CheckedCall<T> {
    /// Creates the steps. Sends nothing.
    pub(in super::super) fn new(required: Capabilities, call: ArchiveCall<T>) -> Self {
        Self {
            check: CapabilityCheck::new(required, call.name()),
            call,
            ticket: None,
        }
    }
}

impl<D> CheckedListing<D> {
    /// Creates the steps. `page` creates the request for the page from an index on. Sends nothing.
    pub(in super::super) fn new(
        required: Capabilities,
        page: impl Fn(i32) -> ArchiveCall<ExtensionPage<D>> + Send + 'static,
    ) -> Self {
        Self {
            check: CapabilityCheck::new(required, page(0).name()),
            page: Box::new(page),
            next_index: 0,
            ticket: None,
            entries: Vec::new(),
        }
    }
}

impl<T> Steps<T> for CheckedCall<T> {
    fn correlation_id(&self) -> i64 {
        self.check
            .correlation_id(self.ticket.as_ref().map(Ticket::correlation_id))
    }

    fn poll(&mut self, archive: &AeronArchive) -> Result<Option<T>> {
        let ticket = match &self.ticket {
            Some(ticket) => ticket,
            None if !self.check.poll(archive)? => return Ok(None),
            None => self.ticket.insert(archive.submit(&self.call)?),
        };
        archive.poll_session(|session| session.take(ticket))
    }

    fn abandon(&mut self, archive: &AeronArchive) {
        self.check.abandon(archive);
        if let Some(ticket) = &self.ticket {
            abandon(archive, ticket);
        }
    }
}

impl<D: Send> Steps<Vec<D>> for CheckedListing<D> {
    fn correlation_id(&self) -> i64 {
        self.check
            .correlation_id(self.ticket.as_ref().map(Ticket::correlation_id))
    }

    fn poll(&mut self, archive: &AeronArchive) -> Result<Option<Vec<D>>> {
        if self.ticket.is_none() && !self.check.poll(archive)? {
            return Ok(None);
        }
        let ticket = match &self.ticket {
            Some(ticket) => ticket,
            None => {
                let call = (self.page)(self.next_index);
                self.ticket.insert(archive.submit(&call)?)
            }
        };
        let Some(page) = archive.poll_session(|session| session.take(ticket))? else {
            return Ok(None);
        };
        self.ticket = None;
        self.entries.extend(page.entries);
        match page.next_index.filter(|next| *next > self.next_index) {
            Some(next) => {
                self.next_index = next;
                Ok(None)
            }
            None => Ok(Some(std::mem::take(&mut self.entries))),
        }
    }

    fn abandon(&mut self, archive: &AeronArchive) {
        self.check.abandon(archive);
        if let Some(ticket) = &self.ticket {
            abandon(archive, ticket);
        }
    }
}

impl CapabilityCheck {
    pub const fn new(required: Capabilities, request: &'static str) -> Self {
        Self {
            required,
            request,
            asked: None,
        }
    }

    pub fn correlation_id(&self, of_request: Option<i64>) -> i64 {
        let of_check = || {
            self.asked
                .as_ref()
                .map(|(ticket, _)| ticket.correlation_id())
        };
        of_request
            .or_else(of_check)
            .unwrap_or(aeron_protocol::archive::NULL_VALUE)
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
