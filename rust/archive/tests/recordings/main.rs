//! Recorder session, reader and recovery: what is recorded, what is read, and where a recording ends after any death.

mod checksums;
mod deaths;
mod extending;
mod power;
mod reading;
mod recording;
mod recovering;
mod stream;
