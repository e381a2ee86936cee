//! The tests of this crate, in one program. It is built and linked once.

mod generated;
mod market;
mod message_rules;
mod messages;
mod places;
mod properties;
mod schema_limits;
mod schema_rules;
mod standard;
mod support;
mod value_limits;
mod value_rules;
