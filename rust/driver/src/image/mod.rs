//! Images: streams that are received from other drivers.
//!
//! An image has two halves. The conductor's tracks what its subscribers have read, finds what is missing, and decides what the
//! sender is told; the [receiver](crate::receiver)'s puts datagrams into the log and does the telling. They share the log, a few
//! counters, and an [`ImageStatus`].

mod publication_image;
mod status;

pub use publication_image::{
    ImageConfig, ImageCounters, ImageStrategies, ImageTick, PublicationImage,
};
pub use status::{ImageStatus, MissingRange};
