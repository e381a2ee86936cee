//! The methods of [`AeronArchive`](super::AeronArchive) for requests of several steps. A request of one step is an
//! [`ArchiveCall`](super::ArchiveCall).

mod extension;
mod recording;
mod replay;
