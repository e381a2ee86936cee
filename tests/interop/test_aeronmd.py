"""Tests of our driver's program: settings, refusals to start, and the directory. Most compare it with the C driver."""

import re
import signal
import struct
import subprocess
import time
import uuid
from pathlib import Path

import pytest

from interop import control
from interop.control import ControlClient
from interop.drivers import driver_command, driver_environment
from interop.waiting import eventually

_START_TIMEOUT_S = 60
_METADATA_LENGTH = 4096
_INNERMOST = re.compile(r"^\[\w+, \S+:\d+\] (.+)$", re.MULTILINE)

REFUSED = [
    {"AERON_TERM_BUFFER_LENGTH": "100k"},
    {"AERON_IPC_TERM_BUFFER_LENGTH": "100k"},
    {"AERON_IPC_TERM_BUFFER_LENGTH": "1k"},
    {"AERON_MTU_LENGTH": "33"},
    {"AERON_MTU_LENGTH": "32"},
    {"AERON_IPC_MTU_LENGTH": "1409"},
    {"AERON_FILE_PAGE_SIZE": "5000"},
    {"AERON_CONDUCTOR_BUFFER_LENGTH": "1535232"},
    {"AERON_CLIENT_LIVENESS_TIMEOUT": "3s", "AERON_PUBLICATION_UNBLOCK_TIMEOUT": "3s"},
    {"AERON_CLIENT_LIVENESS_TIMEOUT": "100ms"},
    {"AERON_UNTETHERED_WINDOW_LIMIT_TIMEOUT": "100ms"},
    {"AERON_UNTETHERED_LINGER_TIMEOUT": "100ms"},
    {"AERON_UNTETHERED_RESTING_TIMEOUT": "100ms"},
]
TAKEN_WITH_A_WARNING = [
    {"AERON_THREADING_MODE": "foo"},
    {"AERON_MTU_LENGTH": "abc"},
    {"AERON_TIMER_INTERVAL": "-1"},
]
MISREAD = [
    ({"AERON_TERM_BUFFER_SPARSE_FILE": "maybe"}, "is neither true nor false"),
    ({"AERON_DRIVER_TIMEOUT": "10000s"}, "has more than digits, using 10000 milliseconds"),
]
CLAMPED = [
    {"AERON_MTU_LENGTH": "999999", "AERON_SOCKET_SO_SNDBUF": "256k"},
    {"AERON_COUNTERS_FREE_TO_REUSE_TIMEOUT": "0"},
]
SPELLED_OTHERWISE = [
    {"AERON_DRIVER_TERMINATION_VALIDATOR": "aeron_driver_termination_validator_default_allow"},
    {"AERON_UDP_CHANNEL_TRANSPORT_BINDINGS_MEDIA": "aeron_udp_channel_transport_bindings_default"},
    {"AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS": "aeron_udp_channel_interceptor_loss_load"},
    {"AERON_UDP_CHANNEL_INCOMING_INTERCEPTORS": "fixed-loss,aeron_udp_channel_interceptor_multi_gap_loss_load"},
    {"AERON_CLIENT_LIVENESS_TIMEOUT": " 2500ms"},
    {"AERON_TERM_BUFFER_LENGTH": "\t64k"},
    {"AERON_RECEIVER_GROUP_TAG": " -7"},
]


def named(settings):
    return ",".join(f"{name.removeprefix('AERON_')}={value}" for name, value in settings.items())


def refusal(kind, settings, directory):
    """Starts a driver that must refuse to start. Returns its exit code and standard error."""
    finished = subprocess.run(
        driver_command(kind, directory, settings),
        check=False,
        capture_output=True,
        text=True,
        timeout=_START_TIMEOUT_S,
        env=driver_environment(settings),
    )
    return finished.returncode, finished.stderr


@pytest.mark.parametrize("settings", REFUSED, ids=named)
def test_invalid_settings_are_refused_with_the_text_of_the_c_driver(settings, run_directory):
    """04-7, 04-8, 04-10, 03-64, 05-51"""
    directory = run_directory / f"refused-{uuid.uuid4().hex[:8]}"
    _, theirs = refusal("c", settings, f"{directory}-c")
    code, ours = refusal("ours", settings, directory)
    innermost = _INNERMOST.search(theirs)[1]
    assert innermost in ours
    assert code == 1
    assert not (directory / "cnc.dat").exists()


@pytest.mark.parametrize("settings", TAKEN_WITH_A_WARNING, ids=named)
def test_a_setting_that_cannot_be_parsed_causes_the_warning_of_the_c_driver(settings, start_driver):
    """04-3, 04-6, 05-50, 05-54"""
    theirs, ours = (start_driver(kind, settings) for kind in ("c", "ours"))
    assert ours.process.output().splitlines() == theirs.process.output().splitlines()


@pytest.mark.parametrize(("settings", "warning"), MISREAD, ids=str)
def test_a_setting_that_the_c_driver_misreads_silently_causes_a_warning(settings, warning, start_driver):
    """05-50"""
    theirs, ours = (start_driver(kind, settings) for kind in ("c", "ours"))
    assert theirs.process.output() == ""
    [line] = ours.process.output().splitlines()
    assert warning in line


@pytest.mark.parametrize("settings", SPELLED_OTHERWISE, ids=named)
def test_function_names_of_the_c_driver_and_white_space_before_numbers_are_accepted(settings, start_driver):
    """05-54"""
    assert start_driver("c", settings).process.output() == start_driver("ours", settings).process.output() == ""


@pytest.mark.parametrize("settings", CLAMPED, ids=named)
def test_numbers_out_of_range_are_accepted_without_a_warning(settings, start_driver):
    """04-6, 05-50"""
    assert start_driver("c", settings).process.output() == start_driver("ours", settings).process.output() == ""


@pytest.mark.parametrize(
    "settings",
    [{"AERON_CONDUCTOR_IDLE_STRATEGY": "foo"}, {"AERON_SHARED_IDLE_STRATEGY_INIT_ARGS": "1,2,x,y"}],
    ids=named,
)
def test_an_invalid_idle_strategy_is_refused(settings, run_directory):
    """04-5, 05-54"""
    code, errors = refusal("ours", settings, run_directory / "refused-idle")
    assert code == 1
    assert "idle strategy" in errors


@pytest.mark.parametrize(
    ("mode", "threads"),
    [
        ("DEDICATED", {"sender", "receiver", "aeron-md-nra"}),
        ("SHARED_NETWORK", {"[sender, receiv", "aeron-md-nra"}),
        ("SHARED", set()),
        ("INVOKER", set()),
    ],
)
def test_the_threading_mode_determines_the_threads_of_the_driver(mode, threads, start_driver):
    """04-1, 04-2: the main thread runs the first agent and is not listed; the kernel truncates the names of threads"""
    driver = start_driver("ours", {"AERON_THREADING_MODE": mode})
    # The program prints its log, and reads settings again after SIGHUP, on two more threads.
    eventually(lambda: _thread_names(driver.process.pid) == threads | {"aeron-log", "aeron-reload"})


def _thread_names(pid):
    tasks = (Path("/proc") / str(pid) / "task").iterdir()
    return {(task / "comm").read_text().strip() for task in tasks if task.name != str(pid)}


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 15), (signal.SIGINT, 2)])
def test_a_signal_ends_the_driver_cleanly(sent, code, start_driver):
    """03-8, 04-13, 04-21, 05-53: the exit code is the signal's number, and the heartbeat in the CnC file is -1"""
    driver = start_driver("ours")
    started = time.monotonic()
    driver.process.signal(sent)
    assert driver.process.wait(20) == code
    assert time.monotonic() - started < 1
    assert driver.process.output() == ""
    client = ControlClient(driver.directory)
    assert client.driver_heartbeat() == -1
    again = start_driver("ours", directory=driver.directory)
    assert again.process.exit_code is None


def test_the_directory_has_the_files_of_the_c_drivers_directory_and_a_lock_file(start_driver):
    """01-2, 03-1"""
    listings = []
    for kind in ("c", "ours"):
        directory = Path(start_driver(kind).directory)
        listings.append({path.name: path.stat().st_size for path in directory.iterdir() if path.is_file()})
        assert {path.name for path in directory.iterdir() if path.is_dir()} == {"publications", "images"}
    assert "aeron-driver.lock" in listings[1], "our running driver has no lock file"
    del listings[1]["aeron-driver.lock"]
    assert listings[1] == listings[0]
    assert set(listings[0]) == {"cnc.dat", "loss-report.dat"}


def test_the_cnc_file_has_the_values_of_the_c_drivers_file(start_driver):
    """03-1, 04-19: the whole header except the start time and the process id"""
    headers = []
    for kind in ("c", "ours"):
        driver = start_driver(kind)
        data = (Path(driver.directory) / "cnc.dat").read_bytes()[:128]
        start_ms, pid = struct.unpack_from("<qq", data, 32)
        assert abs(start_ms - time.time() * 1000) < 60_000
        assert pid == driver.process.pid
        headers.append(data[:32] + data[48:])
    assert headers[1] == headers[0]


def test_our_driver_has_the_system_counters_of_the_c_driver(start_driver):
    """04-18, 04-19, 04-23"""
    modes = {"AERON_THREADING_MODE": "DEDICATED", "AERON_DRIVER_CONDUCTOR_CYCLE_THRESHOLD": "50ms"}
    both = []
    for kind in ("c", "ours"):
        client = ControlClient(start_driver(kind, modes).directory)
        assert client.next_id() == 1
        both.append({counter.id: counter for counter in client.counters()})
    theirs, ours = both
    assert ours.keys() == theirs.keys()
    version = re.compile(r"version=\S+ commit=\S+")
    for id, counter in ours.items():
        other = theirs[id]
        assert (counter.type, counter.key, counter.registration, counter.owner, counter.reference) == (
            other.type,
            other.key,
            other.registration,
            other.owner,
            other.reference,
        ), counter.label
        assert version.sub("version", counter.label) == version.sub("version", other.label)
    assert (ours[34].value, ours[43].value) == (78850, 65536)
    assert ours[35].value == theirs[35].value
    assert "version=1.52.2 commit=" in ours[15].label


def test_a_second_driver_is_refused_and_the_first_continues(start_driver, run_directory):
    """01-5, 04-11, 05-52"""
    driver = start_driver("ours")
    before = (Path(driver.directory) / "cnc.dat").stat()
    code, errors = refusal("ours", {}, driver.directory)
    assert code == 1
    assert f"Active media driver detected: {driver.directory}" in errors
    assert (Path(driver.directory) / "cnc.dat").stat().st_ino == before.st_ino
    client = ControlClient(driver.directory)
    assert client.perform(control.ADD_PUBLICATION, control.add(1, client.next_id(), 1001, "aeron:ipc")) != []


@pytest.mark.parametrize("kind", ["ours", "c", "java"])
def test_no_setting_deletes_the_directory_of_a_live_driver(kind, start_driver):
    """Differs from 01-5 and 04-15: the C driver would delete the directory, but our driver refuses to start.

    Our driver recognizes a live driver of its own kind by the lock, and other drivers by the heartbeat.
    """
    first = start_driver(kind)
    before = (Path(first.directory) / "cnc.dat").stat()
    code, errors = refusal("ours", {"AERON_DIR_DELETE_ON_START": "true"}, first.directory)
    assert code == 1
    assert f"Active media driver detected: {first.directory}" in errors
    assert (Path(first.directory) / "cnc.dat").stat().st_ino == before.st_ino
    assert first.process.exit_code is None


@pytest.mark.parametrize("kind", ["c", "java"])
def test_a_real_driver_takes_over_from_our_killed_driver_and_ours_from_a_killed_real_driver(kind, start_driver):
    """The real driver also removes our lock file. If it stayed, our driver would regard the real driver as dead."""
    settings = {"AERON_DRIVER_TIMEOUT": "1000"}
    killed = start_driver("ours", settings)
    heartbeat = ControlClient(killed.directory).driver_heartbeat
    killed.kill()
    eventually(lambda: time.time() * 1000 - heartbeat() > 1200)
    real = start_driver(kind, settings, directory=killed.directory)
    assert not (Path(real.directory) / "aeron-driver.lock").exists()
    code, errors = refusal("ours", settings, real.directory)
    assert code == 1
    assert "Active media driver detected" in errors
    real.kill()
    ours = start_driver("ours", settings, directory=real.directory)
    assert (Path(ours.directory) / "aeron-driver.lock").exists()
    theirs = refusal("c", settings, ours.directory)
    assert "Active media driver detected" in theirs[1]
    assert ours.process.exit_code is None


def test_our_driver_takes_over_the_directory_of_a_c_driver_that_failed_to_start(start_driver, run_directory):
    """04-15: the CnC file is complete except for the version"""
    directory = run_directory / f"failed-{uuid.uuid4().hex[:8]}"
    settings = {"AERON_CLIENT_LIVENESS_TIMEOUT": "100ms"}
    refusal("c", settings, directory)
    cnc = (directory / "cnc.dat").read_bytes()
    assert cnc[:4] == bytes(4)
    assert any(cnc[4:128])
    start_driver("ours", {"AERON_DRIVER_TIMEOUT": "300"}, directory=directory)


def test_a_setting_makes_the_driver_delete_its_directory_at_the_end(start_driver):
    """04-15"""
    driver = start_driver("ours", {"AERON_DIR_DELETE_ON_SHUTDOWN": "true"})
    driver.stop()
    assert not Path(driver.directory).exists()


def test_a_setting_makes_the_driver_warn_about_an_existing_directory(start_driver):
    """04-16"""
    first = start_driver("ours")
    first.stop()
    second = start_driver("ours", {"AERON_DIR_WARN_IF_EXISTS": "true"}, directory=first.directory)
    assert f"WARNING: {first.directory} exists" in second.process.output()


def test_the_next_driver_saves_the_error_log_of_a_dead_driver(start_driver):
    """01-6, 04-14, 05-52"""
    dead = start_driver("ours")
    client = ControlClient(dead.directory)
    client.perform(control.ADD_PUBLICATION, control.add(1, client.next_id(), 1001, "aeron:ipc?mtu=100"))
    dead.kill()
    start_driver("ours", directory=dead.directory)
    [saved] = Path(dead.directory).parent.glob(f"{Path(dead.directory).name}-*-error.log")
    text = saved.read_text()
    saved.unlink()
    assert "1 observations from" in text
    assert "1 distinct errors observed" in text


def test_an_uncommitted_command_of_a_dead_client_does_not_block_other_clients(start_driver, start_peer, stream):
    """03-5, 04-31"""
    driver = start_driver("ours")
    dead = ControlClient(driver.directory)
    dead.claim_and_die(100)
    peer = start_peer("java", driver)
    peer.start("add_publication", channel="aeron:ipc", stream=stream, exclusive=False)
    eventually(lambda: next(c.value for c in dead.counters() if c.id == 20) == 1)
    assert peer.answer()["stream"] == stream


def log_metadata(path):
    """Returns the metadata at the end of a log file."""
    with open(path, "rb") as log:
        log.seek(-_METADATA_LENGTH, 2)
        return log.read(_METADATA_LENGTH)


_READY = {
    control.ADD_PUBLICATION: "ON_PUBLICATION_READY",
    control.ADD_EXCLUSIVE_PUBLICATION: "ON_EXCLUSIVE_PUBLICATION_READY",
}


@pytest.mark.parametrize(
    "parameters",
    [
        "",
        "|term-length=64k|mtu=4096|pub-wnd=16k",
        "|tags=5,6|linger=7s|eos=false|sparse=false|ssc=true|max-resend=3",
        "|untethered-window-limit-timeout=2s|untethered-linger-timeout=3s|untethered-resting-timeout=4s",
        "|response-correlation-id=-1|control-mode=response|alias=x",
    ],
)
@pytest.mark.parametrize("kind", [control.ADD_PUBLICATION, control.ADD_EXCLUSIVE_PUBLICATION])
def test_a_new_log_has_the_same_metadata_as_a_log_of_the_c_driver(kind, parameters, start_driver):
    """05-22"""
    channel = f"aeron:ipc?session-id=5|init-term-id=7|term-id=9|term-offset=64{parameters}"
    logs = []
    for driver in (start_driver("c"), start_driver("ours")):
        client = ControlClient(driver.directory)
        client.send(kind, control.add(1, 2, 1001, channel))
        *_, ready = client.await_event(_READY[kind])
        logs.append((Path(ready.log).stat().st_size, fields(log_metadata(ready.log))))
    assert logs[1] == logs[0]


def fields(metadata):
    """Returns the non-zero 32-bit values by offset, so that a failure shows the offset of a difference."""
    return {at: word for at in range(0, len(metadata), 4) if (word := metadata[at : at + 4].hex()) != "00000000"}


def test_properties_files_override_arguments_and_arguments_override_the_environment(start_driver, tmp_path):
    """05-49"""
    properties = tmp_path / "driver.properties"
    properties.write_text("aeron.ipc.term.buffer.length=128k\n")
    assert _default_term_length(start_driver("ours", {"AERON_IPC_TERM_BUFFER_LENGTH": "64k"})) == 64 * 1024
    arguments = ["-Daeron.ipc.term.buffer.length=256k"]
    changed = start_driver("ours", {"AERON_IPC_TERM_BUFFER_LENGTH": "64k"}, arguments=arguments)
    assert _default_term_length(changed) == 256 * 1024
    changed = start_driver("ours", {}, arguments=[*arguments, properties])
    assert _default_term_length(changed) == 128 * 1024


def _default_term_length(driver):
    client = ControlClient(driver.directory)
    *_, ready = client.perform(control.ADD_PUBLICATION, control.add(1, client.next_id(), 1001, "aeron:ipc"))
    return struct.unpack_from("<i", log_metadata(ready.log), 276)[0]
