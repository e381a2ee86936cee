//! Tests of UDP sockets of the operating system, and of the interceptors between them and the driver.

mod interceptors;
mod multicast;
#[cfg(target_os = "linux")]
mod namespaces;
mod offload;
mod poller;
mod start;
mod support;
mod unicast;
