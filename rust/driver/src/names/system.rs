//! [`SystemNames`]: resolves names with the operating system, which uses the hosts file and then DNS.

use std::net::IpAddr;

use aeron_protocol::ErrorCode;
use dns_lookup::{AddrFamily, AddrInfoHints, LookupError, SockType, getaddrinfo};

use super::NameResolver;
use crate::error::DriverError;
use crate::media::address::Family;

/// Resolves names with the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemNames;

impl NameResolver for SystemNames {
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, DriverError> {
        let hints = AddrInfoHints {
            address: match family {
                Family::V4 => AddrFamily::Inet.into(),
                Family::V6 => AddrFamily::Inet6.into(),
            },
            socktype: SockType::DGram.into(),
            ..AddrInfoHints::default()
        };
        getaddrinfo(Some(host), None, Some(hints))
            .map_err(|error| describe(&error))
            .and_then(|mut found| match found.next() {
                Some(Ok(first)) => Ok(first.sockaddr.ip()),
                Some(Err(error)) => Err(error.to_string()),
                None => Err("no address".to_owned()),
            })
            .map_err(|reason| {
                DriverError::coded(
                    ErrorCode::UnknownHost,
                    format_args!("Unable to resolve host=({host}): {reason}"),
                )
            })
    }
}

/// Returns the error number and text of the system, without the prefix that the crate adds.
fn describe(error: &LookupError) -> String {
    let number = error.error_num();
    let text = error.to_string();
    let reason = text.rsplit(": ").next().unwrap_or_default();
    format!("({number}) {reason}")
}
