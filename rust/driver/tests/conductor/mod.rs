//! Tests of the conductor with heap memory, virtual time, and encoded commands of clients.

mod clients;
mod commands;
mod counters;
mod destinations;
mod endings;
mod endpoints;
mod floods;
mod harness;
mod hostile;
mod images;
mod machine;
mod media;
mod network_publications;
mod publications;
mod re_resolution;
mod responses;
mod slow_logs;
mod slow_names;
mod source;
mod storage;
mod subscriptions;
mod udp;
mod untethered;
mod vectors;
