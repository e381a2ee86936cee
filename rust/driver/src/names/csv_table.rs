//! Names from a table, each with two addresses and a counter that chooses between them: for tests of changing addresses.

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
    /// What it means while its counter is 0.
    pub initial_host: String,
    /// What it means while its counter is 1.
    pub re_resolution_host: String,
}

/// Looks hosts up in a table first. The meaning of a row goes on to another resolver, as does a host that is in no row.
pub struct CsvTableNames {
    rows: Vec<(NameRow, AtomicCounter<SharedBuffer>)>,
    names: Box<dyn NameResolver>,
}

/// A counter with this value makes its name unknown.
const FORCED_FAILURE: i64 = -1;
/// A counter with this value chooses the second address.
const RE_RESOLVED: i64 = 1;

/// Reads `name,initial host,re-resolution host|…`; rows with another number of fields are left out.
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
    /// A table, each row with the counter that chooses its address, in front of `names`.
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
