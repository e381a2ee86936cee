//! Tests of replays without a real driver. Recordings, publications and counters are in heap memory.

mod bounds;
mod frame_run;
mod kit;
mod pacing;
mod plan;
mod replays;
mod session;
