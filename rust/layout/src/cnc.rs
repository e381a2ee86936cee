//! The CnC file (`cnc.dat`): its header, after which five sections follow without gaps.

use crate::declare::layout;
use crate::{I32, I64};

layout! {
    /// Header of the file.
    pub struct CncHeaderLayout: 128 {
        /// Version of the layout; 0 until the driver is ready.
        pub version: I32 = 0,
        /// Length of the to-driver ring with its trailer in bytes.
        pub to_driver_length: I32 = 4,
        /// Length of the to-clients broadcast with its trailer in bytes.
        pub to_clients_length: I32 = 8,
        /// Length of the counters' metadata in bytes.
        pub counters_metadata_length: I32 = 12,
        /// Length of the counters' values in bytes.
        pub counters_values_length: I32 = 16,
        /// Length of the error log in bytes.
        pub error_log_length: I32 = 20,
        /// Nanoseconds after which the driver drops a silent client.
        pub client_liveness_timeout_ns: I64 = 24,
        /// Epoch milliseconds of the driver's start.
        pub start_timestamp_ms: I64 = 32,
        /// Process id of the driver.
        pub pid: I64 = 40,
        /// Page size to which the driver aligns its files, in bytes; 0 stands for 4096.
        pub file_page_size: I32 = 48,
        reserved: [u8; 76] = 52,
    }
}
