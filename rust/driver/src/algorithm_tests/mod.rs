//! The algorithms of sender and receiver, each beside what it promises and, where it is small, beside the simplest model of it.

mod congestion;
mod flow_control;
mod loss;
mod nak_delay;
mod retransmit;
mod support;
