//! The catalog: its bytes, what of them is refused, and that every kill leaves a catalog that opens.

mod bytes;
mod changes;
mod channels;
mod common;
mod damage;
mod kills;
mod power;
mod purge;
