//! The CnC file (command and control, `cnc.dat`): the file through which clients and tools find and use a driver
//! (`docs/spec/01-memory-layouts.md`, section 2).
//!
//! A header of 128 bytes is followed by five sections without gaps: to-driver ring, to-clients broadcast, counters
//! metadata, counters values, error log. The driver [creates](CncFile::create) the file, fills the sections and
//! [publishes](Cnc::publish) the version last. Before the version is published, other processes may read nothing but
//! the version. Clients and tools [open](Cnc::open) the file, which detects incomplete, foreign and truncated files.
//! Then they check the [heartbeat](Cnc::driver_state).

mod lengths;
mod open;

use std::io;
use std::path::Path;

use aeron_layout::cnc::CncHeaderLayout;
use aeron_layout::{I32, I64, offset};

pub use lengths::{CncLengths, InvalidCncLengths};
pub use open::{CncError, DriverState, Reader, SemanticVersion};

use crate::broadcast;
use crate::buffer::SharedBuffer;
use crate::counters::CountersReader;
use crate::mapped::{Allocation, MappedFile};
use crate::ring::ManyToOneRing;
use crate::words::Words;

/// Length of the header before the first section, in bytes.
pub const HEADER_LENGTH: usize = CncHeaderLayout::LENGTH;
/// The version of the layout: 0.2.0.
pub const CNC_VERSION: SemanticVersion = SemanticVersion::new(0, 2, 0);
/// Heartbeat value after an orderly end of the driver.
pub const CLOSED_HEARTBEAT_MS: i64 = -1;

// Offsets in the header.
const VERSION_OFFSET: usize = offset!(CncHeaderLayout, version: I32);
const TO_DRIVER_LENGTH_OFFSET: usize = offset!(CncHeaderLayout, to_driver_length: I32);
const TO_CLIENTS_LENGTH_OFFSET: usize = offset!(CncHeaderLayout, to_clients_length: I32);
const COUNTERS_METADATA_LENGTH_OFFSET: usize =
    offset!(CncHeaderLayout, counters_metadata_length: I32);
const COUNTERS_VALUES_LENGTH_OFFSET: usize = offset!(CncHeaderLayout, counters_values_length: I32);
const ERROR_LOG_LENGTH_OFFSET: usize = offset!(CncHeaderLayout, error_log_length: I32);
const CLIENT_LIVENESS_TIMEOUT_OFFSET: usize =
    offset!(CncHeaderLayout, client_liveness_timeout_ns: I64);
const START_TIMESTAMP_OFFSET: usize = offset!(CncHeaderLayout, start_timestamp_ms: I64);
const PID_OFFSET: usize = offset!(CncHeaderLayout, pid: I64);
const FILE_PAGE_SIZE_OFFSET: usize = offset!(CncHeaderLayout, file_page_size: I32);

/// Properties of the driver in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverIdentity {
    /// Time in nanoseconds after which the driver closes a silent client; clients use it as their inter-service
    /// timeout.
    pub client_liveness_timeout_ns: i64,
    /// Epoch milliseconds of the driver's start.
    pub start_timestamp_ms: i64,
    /// Process id of the driver.
    pub pid: i64,
}

/// A CnC file with a validated header, and its sections. May be used by any number of threads and processes at once.
#[derive(Clone, Debug)]
pub struct Cnc<W> {
    header: W,
    ring: ManyToOneRing<W>,
    to_clients: W,
    counters: CountersReader<W>,
    counters_metadata: W,
    counters_values: W,
    error_log: W,
    file_length: usize,
}

/// The CnC file in a [`SharedBuffer`]: mapped in production, on the heap in tests and simulations.
pub type CncFile = Cnc<SharedBuffer>;

impl CncFile {
    /// Creates the file of a new driver with all blocks allocated. Its version is 0 until [`publish`](Cnc::publish).
    ///
    /// Fails with `AlreadyExists` if the file exists, `StorageFull` if there is no space, `InvalidInput` if the lengths
    /// are invalid.
    pub fn create(
        path: &Path,
        lengths: &CncLengths,
        identity: &DriverIdentity,
    ) -> io::Result<Self> {
        let invalid = |error| io::Error::new(io::ErrorKind::InvalidInput, error);
        let file_length = lengths.file_length().map_err(invalid)?;
        let file = MappedFile::create(path, file_length, Allocation::Allocated)?;
        Self::format(file.buffer().clone(), lengths, identity).map_err(invalid)
    }

    /// Maps and opens an existing file. The outer error comes from the mapping, for example `NotFound`. The inner error
    /// means that the file is not a usable CnC file.
    pub fn map(path: &Path, reader: Reader) -> io::Result<Result<Self, CncError>> {
        match MappedFile::open(path, false) {
            Ok(file) => Ok(Self::open(file.buffer().clone(), reader)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Ok(Err(CncError::NotPopulated { length: 0 }))
            }
            Err(error) => Err(error),
        }
    }
}

impl<W: Words> Cnc<W> {
    /// Writes the header of a new driver into zeroed memory of [`CncLengths::file_length`] bytes, without the version.
    pub fn format(
        words: W,
        lengths: &CncLengths,
        identity: &DriverIdentity,
    ) -> Result<Self, InvalidCncLengths> {
        lengths.file_length()?;
        let lengths_in_order = [
            (TO_DRIVER_LENGTH_OFFSET, lengths.to_driver),
            (TO_CLIENTS_LENGTH_OFFSET, lengths.to_clients),
            (COUNTERS_METADATA_LENGTH_OFFSET, lengths.counters_metadata()),
            (COUNTERS_VALUES_LENGTH_OFFSET, lengths.counters_values),
            (ERROR_LOG_LENGTH_OFFSET, lengths.error_log),
            (FILE_PAGE_SIZE_OFFSET, lengths.file_page_size),
        ];
        for (offset, length) in lengths_in_order {
            words.store_i32_relaxed(offset, length as i32);
        }
        words.store_i64_relaxed(
            CLIENT_LIVENESS_TIMEOUT_OFFSET,
            identity.client_liveness_timeout_ns,
        );
        words.store_i64_relaxed(START_TIMESTAMP_OFFSET, identity.start_timestamp_ms);
        words.store_i64_relaxed(PID_OFFSET, identity.pid);
        Ok(Self::sections(words).expect("valid lengths make valid sections"))
    }

    /// Marks the file as ready: stores the version after everything else.
    pub fn publish(&self) {
        self.header.store_i32_release(VERSION_OFFSET, CNC_VERSION.0);
    }

    /// Returns the version in the header; 0 before the driver is ready.
    pub fn version(&self) -> SemanticVersion {
        SemanticVersion(self.header.load_i32_acquire(VERSION_OFFSET))
    }

    /// Returns the properties of the driver.
    pub fn identity(&self) -> DriverIdentity {
        DriverIdentity {
            client_liveness_timeout_ns: self
                .header
                .load_i64_relaxed(CLIENT_LIVENESS_TIMEOUT_OFFSET),
            start_timestamp_ms: self.header.load_i64_relaxed(START_TIMESTAMP_OFFSET),
            pid: self.header.load_i64_relaxed(PID_OFFSET),
        }
    }

    /// Returns the page size in bytes to which the driver aligns its files.
    pub fn file_page_size(&self) -> i32 {
        match self.header.load_i32_relaxed(FILE_PAGE_SIZE_OFFSET) {
            0 => 4096,
            file_page_size => file_page_size,
        }
    }

    /// Returns the length of the whole file in bytes.
    pub fn file_length(&self) -> usize {
        self.file_length
    }

    /// Returns the ring of the commands to the driver.
    pub fn to_driver(&self) -> &ManyToOneRing<W> {
        &self.ring
    }

    /// Returns the section of the events to the clients. The length of the section is valid for a broadcast buffer.
    pub fn to_clients(&self) -> &W {
        &self.to_clients
    }

    /// Returns a reader of all counters.
    pub fn counters(&self) -> &CountersReader<W> {
        &self.counters
    }

    /// Returns the section of the counters' metadata.
    pub fn counters_metadata(&self) -> &W {
        &self.counters_metadata
    }

    /// Returns the section of the counters' values.
    pub fn counters_values(&self) -> &W {
        &self.counters_values
    }

    /// Returns the section of the [error log](crate::error_log).
    pub fn error_log(&self) -> &W {
        &self.error_log
    }

    /// Splits the file into the sections that its header describes.
    fn sections(words: W) -> Result<Self, CncError> {
        let length = words.len();
        let mut end = HEADER_LENGTH;
        let mut section = |length_offset: usize| {
            let offset = end;
            let length = words.load_i32_relaxed(length_offset);
            let length =
                usize::try_from(length).map_err(|_| CncError::NegativeLength { length })?;
            end += length;
            Ok::<_, CncError>((offset, length))
        };
        let offsets_and_lengths = [
            section(TO_DRIVER_LENGTH_OFFSET)?,
            section(TO_CLIENTS_LENGTH_OFFSET)?,
            section(COUNTERS_METADATA_LENGTH_OFFSET)?,
            section(COUNTERS_VALUES_LENGTH_OFFSET)?,
            section(ERROR_LOG_LENGTH_OFFSET)?,
        ];
        if end > length {
            return Err(CncError::Truncated {
                length,
                required: end,
            });
        }
        let misaligned = |(offset, _): &&(usize, usize)| !offset.is_multiple_of(8);
        if let Some(&(offset, _)) = offsets_and_lengths.iter().find(misaligned) {
            return Err(CncError::Misaligned { offset });
        }
        let [
            ring,
            to_clients,
            counters_metadata,
            counters_values,
            error_log,
        ] = offsets_and_lengths.map(|(offset, length)| words.slice(offset, length));
        broadcast::BroadcastReceiver::new(to_clients.clone())?;
        Ok(Self {
            ring: ManyToOneRing::new(ring)?,
            counters: CountersReader::new(counters_metadata.clone(), counters_values.clone())?,
            to_clients,
            counters_metadata,
            counters_values,
            error_log,
            header: words.slice(0, HEADER_LENGTH),
            file_length: length,
        })
    }
}
