//! Messages of the archive's control protocol: captured ones, all of the schema in every version, and bytes that are none.

mod captures;
mod decoded;
mod malformed;
mod schema;
mod versions;
