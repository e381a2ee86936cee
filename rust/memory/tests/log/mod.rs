//! Tests of log buffers. The layout is compared with bytes of a real driver, and appending and reading with simple
//! models.

mod append;
mod batch;
mod block;
mod common;
mod driver;
mod fill;
mod layout;
mod read;
