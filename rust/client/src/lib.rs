//! The Aeron client: publications, subscriptions, images and counters of a media driver.
//!
//! [`Aeron::connect`] connects to a driver through the files in its directory: a driver of this project or any other
//! Aeron driver of version 1.52. Messages go through shared logs without system calls. The client sends commands to the
//! driver only to add and remove resources. The client's conductor processes the driver's responses and keeps the
//! client alive; it runs on a separate thread, or the application runs it.
//!
//! The data path never blocks. The client never panics or misbehaves because of bytes that another process writes.
//!
//! ```no_run
//! use aeron_client::{Aeron, Context};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let aeron = Aeron::connect(Context::from_env()?)?;
//! let subscription = aeron.add_subscription("aeron:ipc", 1001)?;
//! let publication = aeron.add_publication("aeron:ipc", 1001)?;
//! while publication.offer(b"hello").is_err() {
//!     std::thread::yield_now();
//! }
//! while subscription.poll(|fragment| println!("{} bytes", fragment.len()), 10)? == 0 {}
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod action;
mod aeron;
mod assembler;
mod batch;
mod channel_status;
mod client;
mod command;
mod conductor;
mod connect;
mod context;
mod counter;
mod dispatcher;
mod error;
mod fragment;
mod handlers;
mod idle_work;
mod image;
mod lifetime;
mod link;
mod lock;
mod log_source;
mod operation;
mod process;
mod proxy;
mod publication;
mod reconnect;
mod replaceable;
mod settings;
mod state;
mod subscription;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use aeron_memory::SharedBuffer;
pub use aeron_memory::cnc::CncFile;
pub use aeron_memory::counters::{AtomicCounter, CounterRecord, CountersReader};
pub use aeron_memory::log::append::{
    Appended, BlockSpace, ClaimedFrame, FillBlockError, FilledBlock, FixedLengthMessages,
    MessageBatch,
};
pub use aeron_memory::log::reader::Block;
pub use aeron_memory::log::{AppendError, Claim, LogBuffers};
pub use aeron_protocol::ErrorCode;

pub use crate::action::{Action, HandlerOutcome};
pub use crate::aeron::Aeron;
pub use crate::assembler::FragmentAssembler;
pub use crate::batch::{Batch, BatchLimits, Columns, MAX_BATCH_BYTES};
pub use crate::connect::{is_driver_active, next_correlation_id, request_driver_termination};
pub use crate::context::Context;
pub use crate::counter::Counter;
pub use crate::dispatcher::HandlerMode;
pub use crate::error::{CloseCause, DriverTimeout, Error, Result, TryPollError};
pub use crate::fragment::{Fragment, Header};
pub use crate::handlers::{
    ClientErrorHandler, CloseHandler, CounterHandler, PublicationErrorFrame,
    PublicationErrorHandler,
};
pub use crate::idle_work::DriverTurn;
pub use crate::image::{Image, ImageHandler};
pub use crate::log_source::LogSource;
pub use crate::operation::{Operation, OperationError, OperationSteps, PendingOperation, Waiter};
pub use crate::process::mark_forked_child;
pub use crate::publication::{
    BufferClaim, ClaimAborted, ExclusivePublication, ExclusiveWriter, OfferError, Publication,
    RefusedAttempts, error_string,
};
pub use crate::reconnect::{
    DisconnectHandler, DriverFinder, DriverScout, FoundDriver, LostDriver, LostStreamKind,
    Reconnect, ReconnectHandler, ReconnectReport, StreamReport,
};
pub use crate::settings::{DriverInvoker, InterruptCheck};
pub use crate::subscription::{
    EndedImage, LastPosition, Subscription, SubscriptionHandlers, SubscriptionPoller,
};
