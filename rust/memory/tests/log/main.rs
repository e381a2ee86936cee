//! Log buffers: the layout against bytes of the real driver, appending and reading against simple models.

mod append;
mod batch;
mod block;
mod common;
mod driver;
mod layout;
mod read;
