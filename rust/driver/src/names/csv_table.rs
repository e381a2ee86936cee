//! [`CsvTableNames`]: a table of names for tests in which addresses change. Each name has two hosts and a counter that
//! selects one.

use std::net::IpAddr;

use aeron_memory::buffer::SharedBuffer;
use aeron_memory::counters::AtomicCounter;
use aeron_protocol::ErrorCode;

use super::NameResolver;
use crate::error::DriverError;
use crate::media::address::Family;

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRow {
    /// The name.
    pub name: String,
    /// The host unless the counter is 1 or -1. The counter is 0 at first.
    pub initial_host: String,
    /// The host while the counter is 1.
    pub re_resolution_host: String,
}

/// A table of names, and another resolver. If the table has a row for a name, the other resolver resolves the host in
/// the row. Otherwise the other resolver resolves the name itself.
pub struct CsvTableNames {
    rows: Vec<(NameRow, AtomicCounter<SharedBuffer>)>,
    names: Box<dyn NameResolver>,
}

/// The counter value that makes the name of the row unknown.
const FORCED_FAILURE: i64 = -1;
/// The counter value that selects the second host.
const RE_RESOLVED: i64 = 1;

/// Parses `name,initial host,re-resolution host|…`. Rows with a different number of fields are ignored.
pub fn parse_rows(table: &str) -> Vec<NameRow> {
    table
        .split('|')
        .filter_map(|row| match row.split(',').collect::<Vec<_>>()[..] {
            [name, initial_host, re_resolution_host] => Some(NameRow {
                name: name.to_owned(),
                initial_host: initial_host.to_owned(),
                re_resolution_host: re_resolution_host.to_owned(),
            }),
            _ => None,
        })
        .collect()
}

impl CsvTableNames {
    /// Creates a table. `names` resolves the hosts and all names without a row. The counter of a row selects the host.
    pub fn new(
        rows: Vec<(NameRow, AtomicCounter<SharedBuffer>)>,
        names: Box<dyn NameResolver>,
    ) -> Self {
        Self { rows, names }
    }
}

impl NameResolver for CsvTableNames {
    fn resolve(&mut self, host: &str, family: Family) -> Result<IpAddr, DriverError> {
        let Some((row, counter)) = self.rows.iter().find(|(row, _)| row.name == host) else {
            return self.names.resolve(host, family);
        };
        match counter.get() {
            FORCED_FAILURE => Err(DriverError::coded(
                ErrorCode::UnknownHost,
                format_args!("Unable to resolve host=({host}): (forced)"),
            )),
            RE_RESOLVED => self.names.resolve(&row.re_resolution_host, family),
            _ => self.names.resolve(&row.initial_host, family),
        }
    }

    fn do_work(&mut self) -> usize {
        self.names.do_work()
    }
}
