"""Tests of the embedded driver (settings, start and end) and of the command `aeronmd`."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from tests.conftest import eventually

import aeron


def test_an_embedded_driver_has_threading_mode_shared_and_leaves_no_files() -> None:
    with aeron.MediaDriver() as driver:
        assert driver.threading_mode == "SHARED"
        assert driver.configuration["max_idle_park_ns"] == 10_000_000
        assert (Path(driver.dir) / "cnc.dat").exists()
        assert os.fspath(driver) == driver.dir
        assert not driver.is_closed
        assert not driver.is_terminated
    assert driver.is_closed
    driver.close()
    assert not Path(driver.dir).exists()


def test_every_setting_is_a_keyword_of_the_stub_and_of_the_driver() -> None:
    stub = ast.parse((Path(aeron.__file__).parent / "_stubs" / "driver.pyi").read_text())
    driver = next(node for node in stub.body if isinstance(node, ast.ClassDef) and node.name == "MediaDriver")
    new = next(node for node in driver.body if isinstance(node, ast.FunctionDef) and node.name == "__new__")
    keywords = {argument.arg for argument in new.args.kwonlyargs}
    assert keywords == set(aeron.MediaDriver.settings()) | {"incoming_loss"}


def test_the_names_of_time_settings_end_in_their_unit() -> None:
    for name, value in aeron.MediaDriver.settings().items():
        if isinstance(value, int) and ("timeout" in name or "interval" in name or "delay" in name):
            assert name.endswith(("_ns", "_ms", "_ratio")), name


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"no_such_setting": 1}, TypeError, "no_such_setting"),
        ({"mtu_length": "large"}, aeron.ConfigurationError, "mtu_length"),
        ({"mtu_length": -1}, aeron.ConfigurationError, "mtu_length"),
        ({"mtu_length": 33}, aeron.ConfigurationError, "33"),
        ({"threading_mode": "WRONG"}, aeron.ConfigurationError, "threading_mode"),
        ({"dir": b"\0"}, (TypeError, aeron.AeronError, ValueError), "."),
        ({"dir": []}, TypeError, "dir"),
        ({"client_liveness_timeout_ns": 1}, aeron.ConfigurationError, "client_liveness_timeout_ns"),
        ({"ipc_term_buffer_length": 1000}, aeron.ConfigurationError, "1000"),
    ],
)
def test_an_unknown_setting_and_an_invalid_value_are_refused(
    settings: dict[str, object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        aeron.MediaDriver(**settings)


def test_keywords_override_the_settings_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """05-47: for the embedded driver"""
    monkeypatch.setenv("AERON_IPC_MTU_LENGTH", "8k")
    monkeypatch.setenv("AERON_TIMER_INTERVAL", "200ms")
    with aeron.MediaDriver(ipc_mtu_length=4096, threading_mode="shared_network") as driver:
        assert driver.configuration["ipc_mtu_length"] == 4096
        assert driver.configuration["timer_interval_ns"] == 200_000_000
        assert driver.threading_mode == "SHARED_NETWORK"
    monkeypatch.setenv("AERON_TIMER_INTERVAL", "soon")
    with pytest.warns(UserWarning, match="AERON_TIMER_INTERVAL=soon is invalid"):
        aeron.MediaDriver().close()


def test_a_second_driver_on_a_live_directory_is_refused(driver: aeron.MediaDriver) -> None:
    """05-52"""
    with pytest.raises(aeron.DriverActiveError, match="Active media driver detected"):
        aeron.MediaDriver(dir=driver.dir)
    assert aeron.connect(driver).client_id


def test_the_error_for_a_directory_that_cannot_be_created_has_the_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(aeron.DriverError, match="file"):
        aeron.MediaDriver(dir=tmp_path / "file" / "below")


def test_the_program_can_run_a_driver_without_threads() -> None:
    with aeron.MediaDriver(threading_mode="INVOKER") as driver, aeron.connect(driver) as client:
        publication = client.add_publication("aeron:ipc", 1)
        subscription = client.add_subscription("aeron:ipc", 1)
        got: list[bytes] = []

        def turn() -> bool:
            driver.do_work()
            client.do_work()
            subscription.poll(lambda payload, _: got.append(payload))
            return bool(got) or not publication.offer(b"hello")

        eventually(lambda: turn() and got)
        assert set(got) == {b"hello"}


def test_a_client_keeps_its_driver_alive_without_another_reference_to_the_driver() -> None:
    client = aeron.connect(aeron.MediaDriver())
    publication = client.add_publication("aeron:ipc", 1)
    assert not publication.is_closed
    client.close()


def aeronmd(*arguments: str, directory: Path, **environment: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", "from aeron._aeron import aeronmd_main; raise SystemExit(aeronmd_main())"]
    environ = {**os.environ, "AERON_DIR": str(directory), **environment}
    return subprocess.Popen([*command, *arguments], env=environ, stdout=-1, stderr=-1, text=True)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_aeronmd_runs_until_a_signal_and_exits_with_the_number_of_the_signal(
    tmp_path: Path, number: signal.Signals
) -> None:
    """05-53"""
    process = aeronmd(directory=tmp_path / "md")
    eventually(lambda: aeron_is_up(tmp_path / "md"))
    process.send_signal(number)
    stdout, stderr = process.communicate(timeout=10)
    assert (process.returncode, stdout, stderr) == (number, "Shutting down driver...\n", "")


def aeron_is_up(directory: Path) -> bool:
    try:
        aeron.connect(directory, driver_timeout_ms=100).close()
    except aeron.AeronError:
        return False
    return True


def test_aeronmd_prints_its_version_and_refuses_unknown_options(tmp_path: Path) -> None:
    process = aeronmd("-v", directory=tmp_path)
    assert process.communicate()[0].startswith("aeronmd <aeron version=")
    assert process.returncode == 0
    process = aeronmd("--wrong", directory=tmp_path)
    assert "Usage: aeronmd" in process.communicate()[1]
    assert process.returncode == 1


def test_aeronmd_starts_without_slow_imports(tmp_path: Path) -> None:
    """The goal is 60 ms on a quiet machine. This test only finds slow imports.

    The test measures processor time, because elapsed time depends more on the load of the machine.
    """
    best = 10.0
    for i in range(3):
        directory = tmp_path / str(i)
        process = aeronmd(directory=directory)
        eventually((directory / "cnc.dat").exists)
        times = psutil.Process(process.pid).cpu_times()
        best = min(best, times.user + times.system)
        process.terminate()
        process.communicate()
    assert best < 0.5


LOSS = "udp_channel_transport_bindings"


def test_incoming_loss_sets_the_settings_of_the_interceptors() -> None:
    losses = [
        aeron.RandomLoss(rate=0.05, seed=7),
        aeron.FixedLoss(term_id=-3, term_offset=64, length=1408),
        aeron.MultiGapLoss(term_id=5, gap_radix=4096, gap_length=1408, total_gaps=9),
    ]
    with aeron.MediaDriver(incoming_loss=losses) as driver:
        settings = driver.configuration
    assert settings["udp_channel_incoming_interceptors"] == "loss,fixed-loss,multi-gap-loss"
    assert settings[f"{LOSS}_loss_args"] == "rate=0.05|seed=7|recv-msg-mask=0x3"
    assert settings[f"{LOSS}_fixed_loss_args"] == "term-id=-3|term-offset=64|length=1408"
    assert settings[f"{LOSS}_multi_gap_loss_args"] == "term-id=5|gap-radix=4096|gap-length=1408|total-gaps=9"


def test_random_loss_accepts_any_frame_types() -> None:
    frame_types = [aeron.FrameType.NAK, aeron.FrameType.STATUS_MESSAGE, aeron.FrameType.NAK]
    with aeron.MediaDriver(incoming_loss=aeron.RandomLoss(1, frame_types=frame_types)) as driver:
        assert driver.configuration[f"{LOSS}_loss_args"] == "rate=1|recv-msg-mask=0xc"
    with aeron.MediaDriver(incoming_loss=None) as driver:
        assert driver.configuration["udp_channel_incoming_interceptors"] == ""


def test_incoming_loss_refuses_invalid_values() -> None:
    once = aeron.RandomLoss(0.5)
    with pytest.raises(ValueError, match="each kind of loss once, not loss twice"):
        aeron.MediaDriver(incoming_loss=[once, once])
    with pytest.raises(TypeError, match=r"^incoming_loss=\['loss'\] is not a loss, such as aeron.RandomLoss"):
        aeron.MediaDriver(incoming_loss=["loss"])  # type: ignore[list-item]
    for rate in (-0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match=f"a loss rate of {rate} is not within 0 and 1"):
            aeron.RandomLoss(rate)
    with pytest.raises(TypeError):
        aeron.MediaDriver(incoming_loss=0.5)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("AERON_DIR_DELETE_ON_SHUTDOWN", "False", "is neither true nor false"),
        ("AERON_DRIVER_TIMEOUT", "60s", "has more than digits, using 60 milliseconds"),
    ],
)
def test_a_variable_that_would_be_misread_is_an_error(
    name: str, text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """05-50: with `False`, the directory was deleted."""
    monkeypatch.setenv(name, text)
    with pytest.raises(aeron.ConfigurationError, match=f"{name}={text} {reason}"):
        aeron.MediaDriver(dir=tmp_path / "driver")
    command = [sys.executable, "-m", "aeron", "driver", "--dir", tmp_path / "driver", "--strict"]
    strict = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (strict.returncode, strict.stdout) == (1, "")
    warning, error = strict.stderr.splitlines()
    assert reason in warning
    assert error == "ERROR: --strict, and there are warnings"


def test_a_variable_that_only_this_driver_has_is_an_error_if_it_is_not_a_boolean(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """05-50"""
    monkeypatch.setenv("AERON_UDP_GSO", "no")
    command = [sys.executable, "-m", "aeron", "driver", "--dir", tmp_path / "driver"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1
    assert ended.stderr.startswith("ERROR: AERON_UDP_GSO=no is neither true nor false")


def test_names_without_effect_and_unknown_names_are_told_at_the_start(tmp_path: Path) -> None:
    """05-57"""
    properties = tmp_path / "driver.properties"
    # The comment is in Latin-1.
    properties.write_bytes(b"# Gr\xf6\xdfe\naeron.mtu.lenght=8k\naeron.multicast.flow.control.strategy=x\n")
    command = [sys.executable, "-m", "aeron", "driver", "--dir", tmp_path / "driver", properties, "--strict"]
    given = {
        "AERON_EVENT_LOG": "all",
        "AERON_CLIENT_NAME": "me",
        "AERON_ARCHIVE_OBJECTS_URL": "x",
        "AERON_TERM_BUFER_LENGTH": "64k",
    }
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AERON_")}
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, env=clean | given)
    assert ended.returncode == 1
    unknown = "is not a setting of Aeron and has no effect: the nearest name is"
    assert ended.stderr.splitlines() == [
        "WARNING: known to Aeron's Java driver, has no effect here: AERON_EVENT_LOG, "
        "aeron.multicast.flow.control.strategy",
        f"WARNING: aeron.mtu.lenght {unknown} aeron.mtu.length",
        f"WARNING: AERON_TERM_BUFER_LENGTH {unknown} AERON_TERM_BUFFER_LENGTH",
        "ERROR: --strict, and there are warnings",
    ]
