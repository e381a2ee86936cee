//! Channels and their addresses, on a machine that exists only here.

mod channels;
mod destinations;
mod gossip;
mod interfaces;
mod machine;
mod names;
mod ports;
mod vectors;
