//! The media driver: connects publishers and subscribers, through shared memory on one machine.
//!
//! [`MediaDriver`] is the driver with its directory and threads, [`Context`] its configuration. Inside, agents own their data and
//! talk through queues: the [`conductor`] takes the clients' commands, the native resource agent ([`resources`]) does what can
//! block, sender and receiver move datagrams. Conductor and publications are state machines that are handed time, memory and a
//! [`log_storage::LogStorage`]; the same code runs under a simulator.
#![deny(unsafe_code)]

pub mod closing;
pub mod command_line;
pub mod conductor;
pub mod config;
pub mod congestion;
pub mod diagnostics;
pub mod driver_core;
pub mod duty_cycle;
pub mod flow_control;
pub mod image_loss;
pub mod log_storage;
pub mod loss_detector;
pub mod media;
pub mod nak_delay;
pub mod names;
pub mod queue;

pub mod resources;
pub mod retransmit;
pub mod rules;
pub mod sender;
pub mod socket_buffers;

mod agents;
mod assembly;
mod directory;
mod error;
mod image;
mod media_driver;
mod publication;
mod receiver;
mod session_ids;
mod stream;
#[cfg(test)]
mod testing;

pub use config::{Context, ThreadingMode};
pub use directory::{LeftDirectory, left_directories, remove_abandoned};
pub use error::DriverError;
pub use media_driver::{MediaDriver, StartError};
pub use receiver::{MAX_IMAGES, MAX_PENDING_SETUPS, MAX_REMEMBERED_SESSIONS};
