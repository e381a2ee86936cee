//! Tests of the `aeronmd` command.

use std::fs;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use aeron_memory::cnc::{CncFile, Reader};
use aeron_protocol::command as commands;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the path of the example program `aeronmd`, which cargo builds together with the tests.
fn executable() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent()
        .unwrap()
        .parent()
        .unwrap()
        .join("examples/aeronmd")
}

fn aeronmd(dir: &Path) -> Command {
    let mut command = Command::new(executable());
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("AERON_") {
            command.env_remove(name);
        }
    }
    command
        .env("AERON_DIR", dir)
        .env("AERON_TIMER_INTERVAL", "50ms")
        .env("AERON_LOG_LEVEL", "off")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn place() -> (TempDir, PathBuf) {
    let base = if Path::new("/dev/shm").exists() {
        PathBuf::from("/dev/shm")
    } else {
        std::env::temp_dir()
    };
    let place = tempfile::Builder::new()
        .prefix("aeron-driver-test-")
        .tempdir_in(base)
        .unwrap();
    let dir = place.path().join("aeron");
    (place, dir)
}

struct Running(Child);

impl Running {
    fn start(command: &mut Command, dir: &Path) -> Self {
        let mut child = command.spawn().unwrap();
        let pid = i64::from(child.id());
        let is_ready = || match CncFile::map(&dir.join("cnc.dat"), Reader::Client) {
            Ok(Ok(cnc)) => cnc.identity().pid == pid,
            _ => false,
        };
        let deadline = Instant::now() + PATIENCE;
        while !is_ready() {
            assert!(
                Instant::now() < deadline && child.try_wait().unwrap().is_none(),
                "the driver did not start"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        Running(child)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.0.id() as i32).unwrap(), signal).unwrap();
    }

    fn threads(&self) -> Vec<String> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.0.id())).unwrap();
        let name = |task: fs::DirEntry| {
            fs::read_to_string(task.path().join("comm"))
                .unwrap()
                .trim_end()
                .to_owned()
        };
        let names = tasks.map(|task| name(task.unwrap()));
        // The threads that print the log and reload belong to the program, not to the driver.
        let of_program = ["aeron-log", "aeron-reload"];
        let mut names: Vec<_> = names
            .filter(|name| !of_program.contains(&&**name))
            .collect();
        names.sort();
        names
    }

    fn end(mut self) -> (ExitStatus, String, String) {
        let deadline = Instant::now() + PATIENCE;
        while self.0.try_wait().unwrap().is_none() {
            assert!(Instant::now() < deadline, "the driver does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
        let (mut out, mut err) = (String::new(), String::new());
        self.0
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut out)
            .unwrap();
        self.0
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        (self.0.wait().unwrap(), out, err)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    (
        status.code(),
        String::from_utf8(stdout).unwrap(),
        String::from_utf8(stderr).unwrap(),
    )
}

fn terminate(dir: &Path) {
    let cnc = CncFile::map(&dir.join("cnc.dat"), Reader::Client)
        .unwrap()
        .unwrap();
    let command = commands::Command::TerminateDriver(commands::TerminateDriver {
        client_id: 1,
        correlation_id: -1,
        token: b"",
    });
    let mut body = vec![0; command.encoded_length()];
    command.encode(&mut body).unwrap();
    cnc.to_driver().write(command.type_id(), &body).unwrap();
}

/// 04-21, 05-53
#[test]
fn a_signal_ends_the_driver_and_its_number_is_the_exit_status() {
    for (signal, number) in [(Signal::INT, 2), (Signal::TERM, 15)] {
        let (_place, dir) = place();
        let driver = Running::start(&mut aeronmd(&dir), &dir);
        driver.signal(signal);
        let (status, out, err) = driver.end();
        assert_eq!((status.code(), status.signal()), (Some(number), None));
        assert_eq!(
            (out.as_str(), err.as_str()),
            ("Shutting down driver...\n", "")
        );
        let cnc = CncFile::map(&dir.join("cnc.dat"), Reader::Client)
            .unwrap()
            .unwrap();
        assert_eq!(cnc.to_driver().consumer_heartbeat_ms(), -1);
    }
}

/// A driver must close in an orderly way even if it cannot write its output.
#[test]
fn a_driver_with_a_closed_standard_output_ends_normally() {
    let (_place, dir) = place();
    let mut driver = Running::start(
        aeronmd(&dir).env("AERON_DIR_DELETE_ON_SHUTDOWN", "true"),
        &dir,
    );
    drop(driver.0.stdout.take());
    driver.signal(Signal::TERM);
    let status = driver.0.wait().unwrap();
    let mut err = String::new();
    let stderr = driver.0.stderr.as_mut().unwrap();
    stderr.read_to_string(&mut err).unwrap();
    assert_eq!((status.code(), err.as_str()), (Some(15), ""));
    assert!(!dir.exists());
}

/// 04-21, 04-22, 05-53
#[test]
fn a_client_ends_the_driver_only_if_the_validator_allows_it() {
    let (_place, dir) = place();
    let allowing = Running::start(
        aeronmd(&dir).env("AERON_DRIVER_TERMINATION_VALIDATOR", "allow"),
        &dir,
    );
    terminate(&dir);
    let (status, out, err) = allowing.end();
    assert_eq!((status.code(), err.as_str()), (Some(0), ""));
    assert_eq!(out, "Shutting down driver...\n");

    let mut denying = Running::start(&mut aeronmd(&dir), &dir);
    terminate(&dir);
    std::thread::sleep(Duration::from_millis(300));
    assert!(denying.0.try_wait().unwrap().is_none());
}

/// 04-199
#[test]
#[cfg(target_os = "linux")]
fn with_the_new_naming_each_thread_has_a_short_name() {
    let cases: [(&str, &[&str]); 4] = [
        (
            "DEDICATED",
            &[
                "aeron-md-cnd",
                "aeron-md-nra",
                "aeron-md-rcv",
                "aeron-md-snd",
            ],
        ),
        (
            "SHARED_NETWORK",
            &["aeron-md-cnd", "aeron-md-net", "aeron-md-nra"],
        ),
        ("SHARED", &["aeron-md-shd"]),
        ("INVOKER", &["aeron-md-shd"]),
    ];
    for (mode, expected) in cases {
        let (_place, dir) = place();
        let mut command = aeronmd(&dir);
        command
            .env("AERON_THREADING_MODE", mode)
            .env("AERON_THREAD_NAMING", "new");
        let driver = Running::start(&mut command, &dir);
        let deadline = Instant::now() + PATIENCE;
        while driver.threads() != expected {
            assert!(Instant::now() < deadline, "{mode}: {:?}", driver.threads());
            std::thread::sleep(Duration::from_millis(1));
        }
        driver.signal(Signal::TERM);
        driver.end();
    }
}

/// 04-1 to 04-3, 05-54
#[test]
#[cfg(target_os = "linux")]
fn the_threading_mode_determines_the_threads() {
    let cases: [(&str, &[&str]); 5] = [
        (
            "DEDICATED",
            &["aeron-md-nra", "aeronmd", "receiver", "sender"],
        ),
        (
            "SHARED_NETWORK",
            &["[sender, receiv", "aeron-md-nra", "aeronmd"],
        ),
        ("SHARED", &["aeronmd"]),
        ("INVOKER", &["aeronmd"]),
        ("shared", &["aeron-md-nra", "aeronmd", "receiver", "sender"]),
    ];
    for (mode, expected) in cases {
        let (_place, dir) = place();
        let driver = Running::start(aeronmd(&dir).env("AERON_THREADING_MODE", mode), &dir);
        std::thread::sleep(Duration::from_millis(100));
        assert_eq!(driver.threads(), expected, "{mode}");
        driver.signal(Signal::TERM);
        let warning = match mode {
            "shared" => "WARNING: AERON_THREADING_MODE=shared is invalid, using default\n",
            _ => "",
        };
        assert_eq!(driver.end().2, warning);
    }
}

/// 05-49, 05-48
#[test]
fn later_sources_of_settings_override_earlier_ones() {
    let (place, dir) = place();
    let file = place.path().join("file.properties");
    fs::write(&file, "aeron.mtu.length=8k\n").unwrap();
    let printed = |command: &mut Command| {
        let driver = Running::start(command.env("AERON_PRINT_CONFIGURATION", "true"), &dir);
        driver.signal(Signal::TERM);
        let (_, out, _) = driver.end();
        let value = |name: &str| {
            let line = out
                .lines()
                .find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix('='));
            line.unwrap_or_default().to_owned()
        };
        assert!(out.starts_with("aeron_driver_context_t {\n"), "{out}");
        (value("mtu_length"), value("ipc_mtu_length"))
    };
    let environment = || {
        let mut command = aeronmd(&dir);
        command
            .env("AERON_MTU_LENGTH", "2k")
            .env("AERON_IPC_MTU_LENGTH", "2k");
        command
    };
    assert_eq!(printed(&mut environment()), ("2048".into(), "2048".into()));
    assert_eq!(
        printed(environment().arg("-Daeron.mtu.length=4k")),
        ("4096".into(), "2048".into())
    );
    let both = printed(environment().arg(&file).args([
        "-D",
        "aeron.mtu.length=4k",
        "-Daeron.ipc.mtu.length=",
    ]));
    assert_eq!(both, ("8192".into(), "1408".into()));
}

/// 05-51, 05-54, 04-5 to 04-8
#[test]
fn a_refused_start_prints_the_reason_and_leaves_no_files() {
    for (name, text, reason) in [
        (
            "AERON_IPC_TERM_BUFFER_LENGTH",
            "100000",
            "term length not a power of 2: length=100000",
        ),
        (
            "AERON_MTU_LENGTH",
            "1400",
            "mtuLength must be a multiple of FRAME_ALIGNMENT: mtuLength=1400",
        ),
        (
            "AERON_CONDUCTOR_IDLE_STRATEGY",
            "nonsense",
            "could not find idle strategy nonsense",
        ),
        (
            "AERON_SHARED_IDLE_STRATEGY_INIT_ARGS",
            "1-2",
            "invalid idle strategy arguments: backoff=1-2",
        ),
        (
            "AERON_CLIENT_LIVENESS_TIMEOUT",
            "20s",
            "publication_unblock_timeout_ns=15000000000 <=",
        ),
        (
            "AERON_AGENT_ON_START_FUNCTION",
            "f",
            "could not find agent start function f",
        ),
    ] {
        let (_place, dir) = place();
        let (status, out, err) = run(aeronmd(&dir).env(name, text));
        assert_eq!((status, out.as_str()), (Some(1), ""), "{err}");
        assert!(
            err.starts_with("ERROR: driver init (22) Invalid argument: "),
            "{err}"
        );
        assert!(err.contains(reason) && err.lines().count() == 1, "{err}");
        assert!(!dir.exists());
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_socket_buffer_that_the_system_does_not_grant_causes_a_warning() {
    let (_place, dir) = place();
    let driver = Running::start(aeronmd(&dir).env("AERON_SOCKET_SO_RCVBUF", "1g"), &dir);
    driver.signal(Signal::TERM);
    let (_, _, err) = driver.end();
    let warning = "WARNING: Could not get desired SO_RCVBUF, adjust OS buffer to match AERON_SOCKET_SO_RCVBUF: attempted=1073741824, actual=";
    assert!(
        err.starts_with(warning) && err.lines().count() == 1,
        "{err}"
    );
}

/// 04-11, 04-16, 05-52
#[test]
fn a_second_driver_in_the_same_directory_exits_with_1() {
    let (_place, dir) = place();
    let first = Running::start(&mut aeronmd(&dir), &dir);
    let (status, _, err) = run(aeronmd(&dir).env("AERON_DIR_WARN_IF_EXISTS", "true"));
    assert_eq!(status, Some(1));
    assert!(
        err.starts_with(&format!(
            "WARNING: {} exists\nINFO: Aeron driver heartbeat is ",
            dir.display()
        )),
        "{err}"
    );
    assert!(err.contains("Active media driver detected"), "{err}");
    first.signal(Signal::TERM);
    assert_eq!(first.end().0.code(), Some(15));
}

/// This differs from 04-12, where the next start waits until the heartbeat is old. Our driver checks a lock, which the
/// kernel releases when the driver is killed.
#[test]
fn a_driver_can_start_in_the_directory_of_a_killed_driver_at_once() {
    let (_place, dir) = place();
    let mut first = Running::start(&mut aeronmd(&dir), &dir);
    first.0.kill().unwrap();
    first.0.wait().unwrap();
    let second = Running::start(&mut aeronmd(&dir), &dir);
    second.signal(Signal::TERM);
    assert_eq!(second.end().2, "");
}

#[test]
fn the_version_and_the_usage_are_printed() {
    let (_place, dir) = place();
    let (status, out, _) = run(aeronmd(&dir).arg("-v"));
    assert_eq!(status, Some(0));
    assert!(
        out.starts_with("aeronmd <aeron version=1.52.2 commit="),
        "{out}"
    );
    assert!(out.contains("> major 1 minor 52 patch 2 git "), "{out}");
    let (status, _, err) = run(aeronmd(&dir).arg("-x"));
    assert_eq!(status, Some(1));
    assert!(err.contains("Usage: aeronmd [-v][-Dname=value]"), "{err}");
    let (status, _, err) = run(aeronmd(&dir).arg("-Dnothing"));
    assert_eq!(
        (status, err.as_str()),
        (Some(1), "malformed define: nothing\n")
    );
    let (status, _, err) = run(aeronmd(&dir).arg("/no/such/file"));
    assert_eq!(status, Some(1));
    assert!(
        err.starts_with("ERROR: loading properties from /no/such/file could not open"),
        "{err}"
    );
}
