//! Tests of the recorder session, the reader and the recovery. They check the recorded bytes, the
//! returned frames, and the end of a recording after a kill or a loss of power.

mod checksums;
mod deaths;
mod extending;
mod power;
mod reading;
mod recording;
mod recovering;
pub mod stream;
