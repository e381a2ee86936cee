"""Compares the names of settings and of counter types with the constants of Aeron's classes."""

import subprocess

from aeron import _aeron
from interop import toolchain

LIST = toolchain.PROJECT / "rust" / "agent" / "src" / "known_names.txt"


def test_the_list_has_the_names_of_all_settings_in_aerons_classes(started):
    """05-57"""
    command = started(lambda: [*toolchain.java_peer_command("ConfigurationNames"), toolchain.jar()])
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    listed = set(LIST.read_text().splitlines())
    assert sorted(set(printed.splitlines()) - listed) == []
    section = LIST.read_text().split("# Only in Aeron's C driver")[0]
    names = {line for line in section.splitlines() if line and not line.startswith("#")}
    assert sorted(names - set(printed.splitlines())) == []
    assert len(names) > 200


def test_each_type_of_counters_in_aerons_classes_has_its_name(started):
    """01-7.1, 01-7.4, 01-7.5"""
    command = started(lambda: toolchain.java_peer_command("CounterTypes"))
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    theirs = {int(id): name for name, id in (line.split() for line in printed.splitlines())}
    ours = {id: name for id, counter_id, name, *_ in _aeron._counter_meanings() if counter_id is None}
    clustered = {id: name for id, name in theirs.items() if 200 <= id < 300}
    assert {id: name for id, name in ours.items() if 200 <= id < 300} == clustered
    assert len(clustered) > 30
    # The other names are ours, and say more than Aeron's: `receiver_position`, for example, and not `receiver_pos`.
    used = {id for id in theirs if 0 < id < 50 or 100 <= id < 200}
    assert used == {id for id in ours if id < 200}


def test_each_system_counter_in_aerons_classes_has_its_name(started):
    """01-6"""
    command = started(lambda: [*toolchain.java_peer_command("CounterTypes"), "system"])
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    theirs = {int(id): name for name, id in (line.split() for line in printed.splitlines())}
    ours = {id for _, id, *_ in _aeron._counter_meanings() if id is not None}
    assert theirs.keys() <= ours
    assert len(theirs) > 40
