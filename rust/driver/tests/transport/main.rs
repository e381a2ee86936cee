//! Tests of the operating system's sockets, and of the interceptors before them.

mod interceptors;
mod multicast;
#[cfg(target_os = "linux")]
mod namespaces;
mod offload;
mod poller;
mod start;
mod support;
mod unicast;
