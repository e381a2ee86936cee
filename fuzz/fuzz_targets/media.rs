//! The in-memory network from the driver's unit tests.

pub use aeron_driver::media::transport;

#[allow(dead_code, unused_imports)]
#[path = "../../rust/driver/src/media/testing.rs"]
pub mod testing;
