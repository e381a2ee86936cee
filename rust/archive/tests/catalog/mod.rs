//! Tests of the catalog: its bytes, its changes, the errors for damaged files, and the catalog after kills and losses
//! of power.

mod bytes;
mod changes;
mod channels;
mod common;
mod damage;
mod kills;
mod power;
mod segments;
