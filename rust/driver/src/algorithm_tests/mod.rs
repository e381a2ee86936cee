//! Tests of the algorithms of the sender and the receiver. Some tests compare an algorithm with a simple model.

mod congestion;
mod flow_control;
mod loss;
mod nak_delay;
mod retransmit;
mod support;
