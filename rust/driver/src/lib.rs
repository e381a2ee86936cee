//! The media driver: connects publishers and subscribers by shared memory, and drivers with each other by UDP.
//!
//! [`MediaDriver`] is the driver with its directory and threads; [`Context`] is its configuration. Inside, each agent
//! owns its data. The agents communicate through queues, counters and a few shared values. The agents are:
//!
//! - the conductor executes the clients' commands,
//! - the native resource agent makes the system calls that can block,
//! - the sender and the receiver move datagrams.
//!
//! The conductor and the publications are state machines: the caller passes the time, the memory and a
//! [`log_storage::LogStorage`]. The same code therefore runs in the simulator.
#![deny(unsafe_code)]

pub mod closing;
pub mod command_line;
pub mod config;
pub mod diagnostics;
pub mod driver_core;
pub mod duty_cycle;
pub mod log_storage;
pub mod media;
pub mod names;
#[cfg(feature = "test-hooks")]
pub mod rules;
#[cfg(not(feature = "test-hooks"))]
mod rules;
pub mod socket_buffers;

mod agents;
#[cfg(test)]
mod algorithm_tests;
mod assembly;
mod conductor;
mod congestion;
mod directory;
mod error;
mod flow_control;
mod image;
mod image_loss;
mod loss_detector;
mod media_driver;
mod nak_delay;
mod publication;
mod queue;
mod receiver;
mod resources;
mod retransmit;
mod sender;
mod session_ids;
mod start_error;
mod stream;
#[cfg(test)]
mod testing;

pub use config::{Context, ThreadNaming, ThreadingMode};
pub use directory::{LeftDirectory, left_directories, remove_abandoned};
pub use error::DriverError;
pub use media_driver::MediaDriver;
pub use receiver::{MAX_IMAGES, MAX_PENDING_SETUPS, MAX_REMEMBERED_SESSIONS};
pub use start_error::StartError;
