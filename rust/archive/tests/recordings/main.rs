//! Tests of recorder session, reader and recovery: the recorded bytes, the frames that are read, and the end after a
//! kill or a loss of power.

mod checksums;
mod deaths;
mod extending;
mod power;
mod reading;
mod recording;
mod recovering;
mod stream;
