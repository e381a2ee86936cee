//! Our client at native speed: `aeron-bench ROLE DIRECTORY name=value...`, one process per role.
//!
//! `pub` sends numbered records for a time, `sub` checks and sums them; `ping` measures round trips that `pong` returns. Each
//! prints one line of JSON, and the receiving ones `ready` before. `peers/c_client.c` does the same with the C client: keep
//! the loops alike.

#![forbid(unsafe_code)]

mod arguments;
mod one_way;
mod record;
mod round_trip;

use std::error::Error;
use std::process::ExitCode;

use aeron_client::{Aeron, Context};

use crate::arguments::Arguments;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("aeron-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse(std::env::args().skip(1))?;
    let aeron = Aeron::connect(Context {
        aeron_dir: arguments.directory.clone(),
        ..Context::default()
    })?;
    match arguments.role.as_str() {
        "pub" => one_way::publish(&aeron, &arguments)?,
        "sub" => one_way::subscribe(&aeron, &arguments)?,
        "ping" => round_trip::ping(&aeron, &arguments)?,
        "pong" => round_trip::pong(&aeron, &arguments)?,
        other => return Err(format!("unknown role {other}: pub, sub, ping or pong").into()),
    }
    aeron.close();
    Ok(())
}
