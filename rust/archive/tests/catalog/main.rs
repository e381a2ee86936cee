//! Tests of the catalog: its bytes, the errors for damaged files, and that it can be opened after every kill.

mod bytes;
mod changes;
mod channels;
mod common;
mod damage;
mod kills;
mod power;
mod purge;
