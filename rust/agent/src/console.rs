//! Writes lines for people to the standard outputs. Ignores errors, because a closed output must not end the process.
//! `println!` would panic.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to the standard output.
pub fn print_line(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Writes a line to the standard error output.
pub fn warn(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}
