//! Log buffers: compares the layout with bytes of the real driver, and appending and reading with simple models.

mod append;
mod batch;
mod block;
mod common;
mod driver;
mod fill;
mod layout;
mod read;
