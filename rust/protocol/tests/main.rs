//! The tests of this crate, in one program. It is built and linked once.

mod archive_extensions;
mod archive_messages;
mod builder_vectors;
mod channels;
mod control_vectors;
#[path = "support/defaults.rs"]
mod defaults;
mod frame_properties;
mod frame_sessions;
mod frame_vectors;
mod frames;
mod messages;
mod network_channels;
mod uri_vectors;
