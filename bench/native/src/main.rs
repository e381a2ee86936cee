//! Our client at native speed: `aeron-bench ROLE DIRECTORY name=value...`, one process per role.
//!
//! * `pub` sends numbered records for the given time, and `sub` checks the records and adds up their values.
//! * `ping` measures round trips, and `pong` sends the messages of `ping` back.
//! * `recorded` measures the time until an archive has recorded a message.
//! * `bare` measures the speed of the memory, `files` that of the file system, and `probe` the time that a cache line
//!   needs from one CPU to another and back. They need no other process.
//!
//! Each role prints one line of JSON at its end. Some roles first print `ready`: `sub` and `pong` when they can
//! receive, `pub` when it is connected, and the role `recorded` when an archive records its stream. `peers/c_client.c`
//! has the roles `pub`, `sub`, `ping` and `pong` with the C client. If you change a loop here, change the loop there
//! too.

#![forbid(unsafe_code)]

mod arguments;
mod bare;
mod delay;
mod files;
mod one_way;
mod probe;
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
    match arguments.role.as_str() {
        "bare" => {
            bare::copy(&arguments);
            return Ok(());
        }
        "files" => return files::measure(&arguments),
        "probe" => return probe::measure(&arguments),
        _ => {}
    }
    let mut turns = Turns::begin(&arguments)?;
    match arguments.role.as_str() {
        "pub" => one_way::publish(&mut turns, &arguments)?,
        "sub" => one_way::subscribe(&mut turns, &arguments)?,
        "ping" => round_trip::ping(&mut turns, &arguments)?,
        "pong" => round_trip::pong(&mut turns, &arguments)?,
        "recorded" => recorded::measure(&mut turns, &arguments)?,
        other => {
            let roles = "pub, sub, ping, pong, recorded, bare, files or probe";
            return Err(format!("unknown role {other}: {roles}").into());
        }
    }
    turns.aeron().close();
    Ok(())
}
