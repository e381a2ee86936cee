//! Tests of channels and their addresses, on a simulated machine.

mod channels;
mod destinations;
mod gossip;
mod interfaces;
mod machine;
mod names;
mod ports;
mod vectors;
