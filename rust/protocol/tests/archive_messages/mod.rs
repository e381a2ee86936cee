//! Tests of messages of the archive's control protocol: captured messages, all messages of the schema in every version,
//! and invalid bytes.

mod captures;
mod decoded;
mod malformed;
mod schema;
mod versions;
