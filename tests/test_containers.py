"""Tests of drivers and clients in containers: the guide docs/how-to/containers.md, and the files of `containers/`.

A pod of `tests/pods.py` is made of namespaces, without a container tool.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import kubernetes_validate
import pytest
import yaml
from tests.conftest import eventually
from tests.pods import MIB, Container, Pod, pod

from promtool import promtool

DIRECTORY = "/dev/shm/aeron"
# A driver needs 46 MiB for 8 MiB of counters, which is the default. This driver has 1 MiB.
DRIVER = ("-m", "aeron", "driver", "--dir", DIRECTORY, "-Daeron.counters.buffer.length=1m")
HEALTH = (*Pod.python, "-m", "aeron", "health", "--dir", DIRECTORY)

# Both services connect again whenever they lose the driver.
PUBLISHER = f"""
import aeron

number = 0
while True:
    try:
        with aeron.connect("{DIRECTORY}") as client:
            publication = client.add_publication("aeron:ipc?term-length=64k", 1001)
            while True:
                publication.publish(b"%d" % number, timeout=60)
                number += 1
    except aeron.AeronError:
        pass
"""
SUBSCRIBER = f"""
import aeron, os

print(os.getpid(), flush=True)
while True:
    try:
        with aeron.connect("{DIRECTORY}") as client:
            subscription = client.add_subscription("aeron:ipc", 1001)
            received = 0
            while True:
                received += subscription.poll(lambda payload, header: None, 100)
                if received >= 1000:
                    print("received", flush=True)
                    received = -1 << 60
    except aeron.AeronError as error:
        print("lost", flush=True)
"""


def probe(container: Container, *options: str) -> tuple[int, str]:
    """Returns the exit status and the output of `aeron health` in a container."""
    done = container.execute(*HEALTH, *options)
    assert done.stderr == ""
    return done.returncode, done.stdout


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_services_of_a_pod_continue_after_their_driver_was_killed() -> None:
    """Process ids say nothing here: each container has a process 1, and none sees the processes of another."""
    with pod(shared_mib=64) as made:
        driver = made.start(*DRIVER, memory_mib=192)
        eventually(lambda: probe(driver, "--live") == (0, "live\n"))
        publisher = made.start("-c", PUBLISHER, memory_mib=192)
        subscriber = made.start("-c", SUBSCRIBER, memory_mib=192)
        assert subscriber.line() == "1"
        assert subscriber.line() == "received"
        ready = ("--stream", "aeron:ipc,1001", "--min-free", "16000000")
        assert probe(subscriber, *ready) == (0, "ready\n")
        status, reasons = probe(subscriber, *ready, "--stream", "aeron:ipc,1002")
        assert (status, reasons) == (
            1,
            "stream 1002 on aeron:ipc: there is no publication, and no subscription has an image\n",
        )

        driver.end(signal.SIGKILL)
        eventually(lambda: probe(subscriber, "--live")[0] == 1, timeout=20)
        assert probe(subscriber, "--live")[1].endswith(" ms old, and it was process 1 of a container\n")
        assert subscriber.line() == "lost"
        again = made.start(*DRIVER, memory_mib=192)
        while (line := subscriber.line()) == "lost":
            pass
        assert line == "received"
        assert probe(again, *ready) == (0, "ready\n")

        assert again.end(signal.SIGTERM) == signal.SIGTERM
        status, reasons = probe(publisher, "--live")
        assert (status, reasons) == (1, f"the driver on {DIRECTORY} has ended\n")


def test_a_driver_with_default_settings_starts_in_64_mib_of_shared_memory() -> None:
    with pod(shared_mib=64) as made:
        driver = made.start("-m", "aeron", "driver", "--dir", DIRECTORY)
        eventually(lambda: probe(driver, "--live") == (0, "live\n"))
        status, reasons = probe(driver)
        assert status == 1
        assert reasons.endswith("bytes free, less than 167772160\n")


LARGE_PUBLISHER = f"""
import time

import aeron

with aeron.connect("{DIRECTORY}") as client:
    publication = client.add_publication("aeron:ipc?term-length=4m", 1001)
    publication.wait_connected(timeout=20)
    for number in range(1000):
        publication.publish(bytes(16000), timeout=20)
    print("published", flush=True)
    time.sleep(60)  # until the pod ends
"""


def test_the_files_of_a_driver_count_against_its_limit_of_memory_alone() -> None:
    with pod(shared_mib=64) as made:
        driver = made.start(*DRIVER, memory_mib=192)
        eventually(lambda: probe(driver, "--live") == (0, "live\n"))
        subscriber = made.start("-c", SUBSCRIBER, memory_mib=64)
        publisher = made.start("-c", LARGE_PUBLISHER, memory_mib=64)
        assert publisher.line() == "published"
        if driver.group is None or subscriber.group is None or publisher.group is None:
            pytest.skip("control groups of this machine cannot be changed")
        files = int(driver.execute("du", "-s", "--block-size=1", DIRECTORY).stdout.split()[0])
        assert files > 24 * MIB  # three terms and the files of the driver itself
        # A file is counted in batches of pages.
        assert driver.group.shared() > files - MIB
        assert subscriber.group.shared() < MIB
        assert publisher.group.shared() < MIB


def test_a_driver_whose_limit_of_memory_is_less_than_its_files_is_killed() -> None:
    """So the size of the shared memory must be less than the limit: then the driver reports that there is no room."""
    with pod(shared_mib=64) as made:
        driver = made.start("-m", "aeron", "driver", "--dir", DIRECTORY, memory_mib=40)
        if driver.group is None:
            pytest.skip("control groups of this machine cannot be changed")
        driver.wait()
        assert driver.group.kills() == 1
    with pod(shared_mib=32) as made:
        driver = made.start("-m", "aeron", "driver", "--dir", DIRECTORY, memory_mib=192)
        assert driver.wait() == 1
        assert driver.group is not None
        assert driver.group.kills() == 0


def test_doctor_finds_the_limits_of_a_container() -> None:
    with pod(shared_mib=64) as made:
        found = made.start("-m", "aeron", "doctor", "--dir", DIRECTORY, memory_mib=100)
        lines = []
        while line := found.line():
            lines.append(line)
        assert found.wait() == 0
        assert any(line.startswith("warn  space for the driver") and "64 of 64 MiB" in line for line in lines)
        if found.group is not None:
            text = "100 MiB, with a file system of 64 MiB"
            assert any(line.startswith("warn  memory limit") and text in line for line in lines)


# ---- the files of `containers/` --------------------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "containers"
DOCKERFILE = (FOLDER / "Dockerfile").read_text()
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yml").read_text())
MANIFESTS: dict[str, list[dict[str, Any]]] = {
    path.stem: list(yaml.safe_load_all(path.read_text())) for path in sorted((FOLDER / "kubernetes").glob("*.yml"))
}
OBJECTS = [(name, each) for name, objects in MANIFESTS.items() for each in objects]
# The oldest version in which an init container may be a sidecar.
OLDEST_KUBERNETES = "1.29"
PROCESS_MIB = 128
"""Memory of a process beside the files, as `aeron doctor` expects it."""
MARGIN_S = 5
"""Time that a driver needs to end after its drain."""


class Service(NamedTuple):
    """A container of the files: its command, and the commands of its probes."""

    command: list[str]
    probes: list[list[str]]
    memory_mib: int


def compose_services() -> dict[str, Service]:
    return {
        name: Service(
            each["command"],
            [each["healthcheck"]["test"][1:]] if "healthcheck" in each else [],
            mebibytes(each["mem_limit"]),
        )
        for name, each in COMPOSE["services"].items()
        if each["image"] == "aeron"
    }


def kubernetes_services(file: str) -> dict[str, Service]:
    return {
        each["name"]: Service(
            each["command"],
            [probe["exec"]["command"] for name, probe in each.items() if name.endswith("Probe") and "exec" in probe],
            mebibytes(each["resources"]["limits"]["memory"]),
        )
        for spec in pod_specs(file)
        for each in containers(spec)
        if each["command"][0] != "chown"
    }


def pod_specs(file: str) -> list[dict[str, Any]]:
    return [each["spec"]["template"]["spec"] for each in MANIFESTS[file] if "template" in each.get("spec", {})]


def containers(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [*spec.get("initContainers", []), *spec["containers"]]


def mebibytes(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)(Mi|Gi|m)", text).groups()  # type: ignore[union-attr] # fails for other units
    return int(number) * (1024 if unit == "Gi" else 1)


def run_tool(name: str, *arguments: str | Path) -> None:
    done = subprocess.run([Path(sys.executable).parent / name, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_dockerfile_passes_its_linter() -> None:
    run_tool("hadolint", FOLDER / "Dockerfile")


def test_the_last_stage_of_the_image_has_no_build_tools_and_no_root() -> None:
    build, last = DOCKERFILE.split("FROM ${BASE}\n")
    assert "python3-venv" in build
    assert re.findall(r"apt-get install -y --no-install-recommends (.*?) &&", last) == ["python3"]
    assert "pip" not in last
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)


def test_the_compose_file_has_the_form_of_compose() -> None:
    run_tool("check-jsonschema", "--builtin-schema", "vendor.compose-spec", FOLDER / "compose.yml")
    assert {*COMPOSE["services"]} >= {"driver", "archive", "publisher", "prometheus"}


@pytest.mark.parametrize("version", [OLDEST_KUBERNETES, kubernetes_validate.latest_version()])
@pytest.mark.parametrize(
    ("file", "found"), OBJECTS, ids=lambda value: value["kind"] if isinstance(value, dict) else value
)
def test_a_manifest_has_the_form_of_its_kind(file: str, found: dict[str, Any], version: str) -> None:
    kubernetes_validate.validate(found, version, strict=True)


def test_prometheus_reads_its_configuration(tmp_path: Path) -> None:
    for path in (FOLDER / "prometheus.yml", ROOT / "dashboards/alerts.yml"):
        shutil.copy(path, tmp_path)
    promtool("check", "config", tmp_path / "prometheus.yml")
    mounted = {volume.partition(":")[0] for volume in COMPOSE["services"]["prometheus"]["volumes"]}
    assert all((FOLDER / path).is_file() for path in mounted)


def test_a_driver_has_more_time_to_end_than_it_drains() -> None:
    compose = COMPOSE["services"]["driver"]
    times = [(compose["command"], int(compose["stop_grace_period"].removesuffix("s")))]
    for file in MANIFESTS:
        times += [
            (each["command"], spec["terminationGracePeriodSeconds"])
            for spec in pod_specs(file)
            for each in containers(spec)
            if each["command"][0] == "aeronmd"
        ]
    assert len(times) == 1 + len(MANIFESTS)
    for command, grace_s in times:
        drain_s = int(command[command.index("--drain") + 1])
        assert 0 < drain_s <= grace_s - MARGIN_S


def test_a_driver_has_memory_for_its_files_and_its_process() -> None:
    options = COMPOSE["volumes"]["shared-memory"]["driver_opts"]
    assert options["type"] == "tmpfs"
    size_mib = mebibytes(re.findall(r"size=(\w+)", options["o"])[0])
    assert compose_services()["driver"].memory_mib >= size_mib + PROCESS_MIB
    (sidecar,) = pod_specs("sidecar")
    (volume,) = sidecar["volumes"]
    assert volume["emptyDir"]["medium"] == "Memory"
    size_mib = mebibytes(volume["emptyDir"]["sizeLimit"])
    assert kubernetes_services("sidecar")["driver"].memory_mib >= size_mib + PROCESS_MIB


def test_all_containers_of_a_driver_have_the_user_of_the_image() -> None:
    user = int(re.findall(r"^USER (\d+)", DOCKERFILE, re.MULTILINE)[0])
    specs = [spec for file in MANIFESTS for spec in pod_specs(file)]
    assert len(specs) == 3
    for spec in specs:
        assert spec["securityContext"]["runAsUser"] == user
        assert spec["securityContext"]["runAsNonRoot"]
        for each in containers(spec):
            own = each["securityContext"]
            assert own["readOnlyRootFilesystem"]
            assert own["capabilities"]["drop"] == ["ALL"]
            if own.get("runAsUser") == 0:
                assert each["command"] == ["chown", f"{user}:{user}", "/dev/shm"]


METRICS = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:9464/metrics').read().decode())"
# The other services start after these are healthy.
FIRST = ["driver", "archive"]
PROGRAMS = {"aeron": (), "aeronmd": ("driver",), "aeronarchive": ("archive", "run")}


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("source", ["compose", *MANIFESTS])
def test_the_services_of_a_file_work_together(source: str, tmp_path: Path) -> None:
    """Runs the commands and probes of the file in namespaces, with the limits of memory of the file."""
    services = compose_services() if source == "compose" else kubernetes_services(source)
    recordings = tmp_path / "recordings"
    environment = {"AERON_DIR": DIRECTORY, "AERON_ARCHIVE_DIR": str(recordings)}
    assert "AERON_DIR=/dev/shm/aeron" in DOCKERFILE

    def words(command: list[str]) -> list[str]:
        program, *rest = [word.replace("/recordings", str(recordings)) for word in command]
        return ["-m", "aeron", *PROGRAMS[program], *rest]

    def passes_probes(name: str) -> bool:
        return all(
            running[name].execute(*Pod.python, *words(probe), **environment).returncode == 0
            for probe in services[name].probes
        )

    with pod(shared_mib=256) as made:
        running: dict[str, Container] = {}
        for name in sorted(services, key=lambda name: FIRST.index(name) if name in FIRST else len(FIRST)):
            service = services[name]
            running[name] = made.start(*words(service.command), memory_mib=service.memory_mib, **environment)
            if name in FIRST:
                eventually(partial(passes_probes, name))
        for name in services:
            eventually(partial(passes_probes, name), timeout=20)
        metrics = ""

        def has_metrics() -> bool:
            nonlocal metrics
            metrics = running["exporter"].execute(*Pod.python, "-c", METRICS).stdout
            is_recorded = source != "compose" or "aeron_archive_recording_position_bytes_total" in metrics
            return "aeron_publisher_position_bytes_total" in metrics and is_recorded

        eventually(has_metrics, timeout=20)
        label = {"compose": "compose", "sidecar": "quotes", "daemon-set": "node"}[source]
        assert f'aeron_driver_up{{driver="{label}"}} 1\n' in metrics
        assert running["driver"].end(signal.SIGTERM) == signal.SIGTERM
