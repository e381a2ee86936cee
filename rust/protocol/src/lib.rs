//! Bytes that travel: client/driver commands and events, channel URIs.
#![forbid(unsafe_code)]
