//! Agents, runners, idle strategies, clocks, duration and size values, property files.
#![forbid(unsafe_code)]
