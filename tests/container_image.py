"""Builds the image of `containers/Dockerfile`, and runs a driver and services from it: `make image`.

buildah and crun need no daemon and no registry: the goal makes a Debian system by mmdebstrap, and the wheel in `dist`.
Without root, or without these programs, the tests are skipped. In CI, they fail.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.conftest import eventually
from tests.pods import Pod, pod

pytestmark = pytest.mark.timeout(900)

ROOT = Path(__file__).resolve().parents[1]
BASE = ROOT / ".cache/image-base.tar"
NAME, BASE_NAME = "localhost/aeron-test", "localhost/aeron-test-base"
USER = 10001
# The network of the machine may need its own certificates and settings of pip.
OF_THE_MACHINE = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf"]


class Image:
    """The built image. Its containers share the `/dev/shm` of a pod."""

    def __init__(self, made: Pod) -> None:
        self._inside = ["nsenter", "--target", str(made.holder), "--mount", f"--wd={ROOT}", "--"]
        self._containers: list[str] = []

    def buildah(self, *arguments: str | Path) -> str:
        command = [*self._inside, "buildah", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout.strip()

    def start(self, *command: str, memory: str = "128m", owner: bool = False) -> subprocess.Popen[str]:
        """Starts a command in a container of its own, without a network.

        As in the manifests, it has no capability, except that root may change owners in a container with `owner`.
        """
        may = ["--cap-drop=all", *(["--cap-add=CHOWN"] if owner else [])]
        container = self.buildah("from", "--pull-never", "--memory", memory, *may, NAME)
        self._containers.append(container)
        user = ["--user=0:0"] if owner else []
        run = ["buildah", "run", *user, "--network=none", "--volume=/dev/shm:/dev/shm", container, "--", *command]
        return subprocess.Popen(
            [*self._inside, *run], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True
        )

    def run(self, *command: str, owner: bool = False) -> tuple[int, str]:
        """Runs a command in a container of its own. Returns its exit status and its output."""
        started = self.start(*command, owner=owner)
        output, _ = started.communicate(timeout=60)
        return started.returncode, output

    def remove(self) -> None:
        """Removes the containers and the image."""
        if self._containers:
            self.buildah("rm", *self._containers)
        self.buildah("rmi", "--force", NAME, BASE_NAME)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Image]:
    wheels = sorted((ROOT / "dist").glob("*.whl"), key=lambda wheel: wheel.stat().st_mtime)
    missing = [name for name in ("buildah", "crun") if shutil.which(name) is None]
    missing += [str(path) for path, is_there in ((BASE, BASE.exists()), (ROOT / "dist/*.whl", wheels)) if not is_there]
    if missing or os.geteuid() != 0:
        reason = f"needs root, and {', '.join(missing)}: `make image` makes them" if missing else "needs root"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    context = tmp_path_factory.mktemp("context")
    shutil.copy(wheels[-1], context)
    with pod(shared_mib=256) as made:
        built = Image(made)
        # crun refuses a machine that has both versions of control groups. In this view, it has version 1 alone.
        hybrid = ["umount", "/sys/fs/cgroup/unified"]
        subprocess.run(["nsenter", "--target", str(made.holder), "--mount", *hybrid], capture_output=True, check=False)
        empty = built.buildah("from", "scratch")
        built.buildah("add", "--quiet", empty, BASE, "/")
        built.buildah("commit", "--quiet", "--rm", empty, BASE_NAME)
        mounts = [f"--volume={path}:{path}:ro" for path in OF_THE_MACHINE if os.path.exists(path)]
        arguments = ["--pull-never", "--network=host", f"--build-arg=BASE={BASE_NAME}", f"--tag={NAME}", *mounts]
        built.buildah("bud", *arguments, f"--file={ROOT / 'containers/Dockerfile'}", context)
        try:
            yield built
        finally:
            built.remove()


def test_the_image_has_no_root_no_pip_and_no_compiler(image: Image) -> None:
    tools = "for tool in pip pip3 gcc cc ld make; do command -v $tool && exit 1; done"
    assert image.run("sh", "-c", f"id -u; {tools}; touch /usr/x 2>/dev/null || echo refused") == (
        0,
        f"{USER}\nrefused\n",
    )
    status, version = image.run("aeron", "--version")
    assert (status, version.partition(",")[0]) == (0, "aeron")


def test_the_folder_of_a_node_gets_the_user_of_the_image(image: Image) -> None:
    """The folder is `/dev/shm` itself in the manifest, which the next test needs for all users."""
    assert image.run("sh", "-c", "mkdir /dev/shm/node && chown 10001:10001 /dev/shm/node", owner=True) == (0, "")
    assert image.run("sh", "-c", "touch /dev/shm/node/x && rm -r /dev/shm/node") == (0, "")


def test_services_in_other_containers_use_the_driver_of_a_container(image: Image) -> None:
    # With the limit of memory of the compose file.
    driver = image.start("aeronmd", "--drain", "20", memory="384m")
    try:
        eventually(lambda: image.run("aeron", "health", "--live") == (0, "live\n"), timeout=30)
        assert image.run("aeron", "health") == (0, "ready\n")
        channel = "aeron:ipc?term-length=1m"
        with image.start("aeron", "pub", "-c", channel, "-m", "3", "--interval", "0.1", "--linger", "5") as publisher:
            status, received = image.run("aeron", "sub", "-c", "aeron:ipc", "-m", "3")
            assert status == 0, received
            assert all(f"<<Hello World! {number} " in received for number in range(3))
            publisher.communicate(timeout=30)
        (process,) = [each for each in psutil.process_iter(["cmdline", "uids"]) if is_driver(each)]
        process.send_signal(signal.SIGTERM)
        output, _ = driver.communicate(timeout=30)
        assert "ended: signal 15" in output or "Shutting down driver" in output
        status, reason = image.run("aeron", "health", "--live")
        assert status != 0
        assert "has ended" in reason
    finally:
        for each in filter(is_driver, psutil.process_iter(["cmdline", "uids"])):
            each.kill()


def is_driver(process: psutil.Process) -> bool:
    """Returns whether a process is the driver of a container of the image."""
    found = process.info["cmdline"] or []
    return "/opt/aeron/bin/aeronmd" in found and process.info["uids"].real == USER
