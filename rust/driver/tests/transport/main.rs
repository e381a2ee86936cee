//! The sockets of the operating system, and what stands in front of them.

mod interceptors;
mod multicast;
#[cfg(target_os = "linux")]
mod namespaces;
mod offload;
mod poller;
mod start;
mod support;
mod unicast;
