//! A media driver configured by its arguments and environment, until SIGINT, SIGTERM or a terminate command.

fn main() {
    std::process::exit(aeron_driver::command_line::run(std::env::args().skip(1)));
}
