//! Channels and their addresses, on a machine that exists only here.

mod channels;
mod destinations;
mod interfaces;
mod machine;
mod ports;
mod vectors;
