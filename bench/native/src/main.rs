//! Our client at native speed: `aeron-bench ROLE DIRECTORY name=value...`, one process per role.
//!
//! * `pub` sends numbered records for a time, and `sub` checks and sums them.
//! * `ping` measures round trips, and `pong` returns its messages.
//! * `recorded` measures the time until an archive has recorded a message.
//! * `bare` measures the memory, and `files` the file system, without another process.
//!
//! Each prints one line of JSON. Before it, a receiving role prints `ready` when it can receive, and `pub` when it is
//! connected. `peers/c_client.c` does the same with the C client: keep the loops alike.

#![forbid(unsafe_code)]

mod arguments;
mod bare;
mod files;
mod one_way;
mod record;
mod recorded;
mod round_trip;
mod turns;

use std::error::Error;
use std::process::ExitCode;

use crate::arguments::Arguments;
use crate::turns::Turns;

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
    if arguments.role == "bare" {
        bare::copy(&arguments);
        return Ok(());
    }
    if arguments.role == "files" {
        return files::measure(&arguments);
    }
    let mut turns = Turns::begin(&arguments)?;
    match arguments.role.as_str() {
        "pub" => one_way::publish(&mut turns, &arguments)?,
        "sub" => one_way::subscribe(&mut turns, &arguments)?,
        "ping" => round_trip::ping(&mut turns, &arguments)?,
        "pong" => round_trip::pong(&mut turns, &arguments)?,
        "recorded" => recorded::measure(&mut turns, &arguments)?,
        other => {
            let roles = "pub, sub, ping, pong, recorded, bare or files";
            return Err(format!("unknown role {other}: {roles}").into());
        }
    }
    turns.aeron().close();
    Ok(())
}
