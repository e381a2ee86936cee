//! Valid lengths of the sections of a CnC file.

use super::HEADER_LENGTH;
use crate::{broadcast, ring};

const MIB: usize = 1 << 20;
const MAX_LENGTH: usize = i32::MAX as usize;

/// Lengths of the sections in bytes, with their trailers, and the page size to which the driver aligns its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CncLengths {
    /// To-driver ring: 768 bytes plus a power of two of at least 1 MiB.
    pub to_driver: usize,
    /// To-clients broadcast: 128 bytes plus a power of two of at least 1 MiB.
    pub to_clients: usize,
    /// Counters values: 1 to 500 MiB; the metadata takes four times as much.
    pub counters_values: usize,
    /// Error log: at least 4 MiB.
    pub error_log: usize,
    /// Page size: a power of two from 4096 to 1 GiB.
    pub file_page_size: usize,
}

/// A length that drivers refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCncLengths {
    /// A section is too small or too large.
    #[error("{section} length of {length} bytes is not between {min} and {max}")]
    OutOfRange {
        /// Name of the section.
        section: &'static str,
        /// Length of the section in bytes.
        length: usize,
        /// Minimum length in bytes.
        min: usize,
        /// Maximum length in bytes.
        max: usize,
    },
    /// The capacity of a buffer is not a power of two.
    #[error("Invalid capacity: {capacity}: the {section} capacity must be a power of two")]
    Capacity {
        /// Name of the section.
        section: &'static str,
        /// Length of the section without the trailer, in bytes.
        capacity: usize,
    },
    /// The page size is not allowed.
    #[error("page size of {0} bytes must be a power of two between 4096 and 1073741824")]
    PageSize(usize),
    /// The sections after the counters would not be aligned.
    #[error("counters values length of {0} bytes is not a multiple of 128")]
    Unaligned(usize),
    /// The file would be too large.
    #[error("CnC file of {0} bytes would exceed 2147483647")]
    FileLength(usize),
}

impl Default for CncLengths {
    fn default() -> Self {
        Self {
            to_driver: Self::MIN_TO_DRIVER,
            to_clients: Self::MIN_TO_CLIENTS,
            counters_values: 8 * MIB,
            error_log: Self::MIN_ERROR_LOG,
            file_page_size: Self::MIN_PAGE_SIZE,
        }
    }
}

impl CncLengths {
    /// The smallest to-driver section, and the default.
    pub const MIN_TO_DRIVER: usize = MIB + ring::TRAILER_LENGTH;
    /// The smallest to-clients section, and the default.
    pub const MIN_TO_CLIENTS: usize = MIB + broadcast::TRAILER_LENGTH;
    /// The smallest values section.
    pub const MIN_COUNTERS_VALUES: usize = MIB;
    /// The largest values section.
    pub const MAX_COUNTERS_VALUES: usize = 500 * MIB;
    /// The smallest error log, and the default.
    pub const MIN_ERROR_LOG: usize = 4 * MIB;
    /// The smallest page size, and the default.
    pub const MIN_PAGE_SIZE: usize = 4096;
    /// The largest page size.
    pub const MAX_PAGE_SIZE: usize = 1 << 30;

    /// Returns the lengths with each section clamped to its range, as a driver does with lengths from its environment.
    /// Does not change capacities that are not powers of two; `file_length` refuses such capacities.
    pub fn clamped(self) -> Self {
        Self {
            to_driver: self.to_driver.clamp(Self::MIN_TO_DRIVER, MAX_LENGTH),
            to_clients: self.to_clients.clamp(Self::MIN_TO_CLIENTS, MAX_LENGTH),
            counters_values: self
                .counters_values
                .clamp(Self::MIN_COUNTERS_VALUES, Self::MAX_COUNTERS_VALUES),
            error_log: self.error_log.clamp(Self::MIN_ERROR_LOG, MAX_LENGTH),
            file_page_size: self.file_page_size,
        }
    }

    /// Returns the length of the metadata section in bytes.
    pub fn counters_metadata(&self) -> usize {
        4 * self.counters_values
    }

    /// Returns the length of the whole file in bytes, if the lengths are valid.
    pub fn file_length(&self) -> Result<usize, InvalidCncLengths> {
        check_range("to-driver", self.to_driver, Self::MIN_TO_DRIVER, MAX_LENGTH)?;
        check_capacity("to-driver", self.to_driver - ring::TRAILER_LENGTH)?;
        check_range(
            "to-clients",
            self.to_clients,
            Self::MIN_TO_CLIENTS,
            MAX_LENGTH,
        )?;
        check_capacity("to-clients", self.to_clients - broadcast::TRAILER_LENGTH)?;
        check_range(
            "counters values",
            self.counters_values,
            Self::MIN_COUNTERS_VALUES,
            Self::MAX_COUNTERS_VALUES,
        )?;
        if !self.counters_values.is_multiple_of(128) {
            return Err(InvalidCncLengths::Unaligned(self.counters_values));
        }
        check_range("error log", self.error_log, Self::MIN_ERROR_LOG, MAX_LENGTH)?;
        let page_sizes = Self::MIN_PAGE_SIZE..=Self::MAX_PAGE_SIZE;
        if !page_sizes.contains(&self.file_page_size) || !self.file_page_size.is_power_of_two() {
            return Err(InvalidCncLengths::PageSize(self.file_page_size));
        }
        let content = HEADER_LENGTH
            + self.to_driver
            + self.to_clients
            + self.counters_metadata()
            + self.counters_values
            + self.error_log;
        let file_length = content.next_multiple_of(self.file_page_size);
        match file_length <= MAX_LENGTH {
            true => Ok(file_length),
            false => Err(InvalidCncLengths::FileLength(file_length)),
        }
    }
}

fn check_range(
    section: &'static str,
    length: usize,
    min: usize,
    max: usize,
) -> Result<(), InvalidCncLengths> {
    match (min..=max).contains(&length) {
        true => Ok(()),
        false => Err(InvalidCncLengths::OutOfRange {
            section,
            length,
            min,
            max,
        }),
    }
}

fn check_capacity(section: &'static str, capacity: usize) -> Result<(), InvalidCncLengths> {
    match capacity.is_power_of_two() {
        true => Ok(()),
        false => Err(InvalidCncLengths::Capacity { section, capacity }),
    }
}
