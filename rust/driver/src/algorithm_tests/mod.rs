//! Tests of the algorithms of sender and receiver. Some algorithms are also compared with a simple model.

mod congestion;
mod flow_control;
mod loss;
mod nak_delay;
mod retransmit;
mod support;
