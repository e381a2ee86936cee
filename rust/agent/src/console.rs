//! Lines for people on the standard outputs. Whoever closed the other end does not want to read them: that is no failure of the
//! process that writes, as it would be with `println!`.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to the standard output.
pub fn say(line: impl Display) {
    let _ = writeln!(io::stdout(), "{line}");
}

/// Writes a line to the standard error output.
pub fn warn(line: impl Display) {
    let _ = writeln!(io::stderr(), "{line}");
}
