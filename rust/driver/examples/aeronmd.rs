//! Runs a media driver until SIGINT, SIGTERM or a terminate command. Arguments and environment configure it.

fn main() {
    std::process::exit(aeron_driver::command_line::run(std::env::args().skip(1)));
}
