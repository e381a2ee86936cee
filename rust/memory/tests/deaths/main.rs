//! Deaths between two stores, and exact boundaries.
//!
//! Each test enumerates small cases completely: every head and tail, every length, and the death of the writer after
//! each of its stores. The others must then make progress, and must see only whole messages.

mod broadcast;
mod files;
mod log;
mod mortal;
mod ring;
