//! The tests of this crate, in one program. It is built and linked once.

mod aeronmd;
mod conductor;
mod configuration;
mod media;
mod media_driver;
mod name_resolvers;
mod transport;

// `MemoryNetwork` is in a source file of the driver (see `conductor/media`). That file uses the path
// `crate::socket_buffers`, which this import creates here.
use aeron_driver::socket_buffers;
