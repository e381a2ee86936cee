//! Tests of recorder session, reader and recovery: the recorded bytes, the frames that are read, and the end after any
//! death.

mod checksums;
mod deaths;
mod extending;
mod power;
mod reading;
mod recording;
mod recovering;
mod stream;
