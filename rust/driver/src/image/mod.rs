//! Images: streams that are received from other drivers.
//!
//! An image has two halves. The conductor's half tracks the positions of its subscribers, finds gaps, and decides the
//! content of status messages. The [receiver](crate::receiver)'s half inserts datagrams into the log and sends the
//! control frames. The halves share the log, a few counters, and an [`ImageStatus`].

mod publication_image;
mod status;

pub use publication_image::{
    ImageConfig, ImageCounters, ImageStrategies, ImageTick, PublicationImage,
};
pub use status::{ImageStatus, MissingRange};
