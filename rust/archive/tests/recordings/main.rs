//! Recorder session, reader and recovery: what is recorded, what is read, and where a recording ends after any death.

mod deaths;
mod power;
mod reading;
mod recording;
mod recovering;
mod stream;
