//! How a client behaves, against a driver in virtual time.

mod runtime;
