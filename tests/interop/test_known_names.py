"""Compares the list of names of settings with the constants of Aeron's classes."""

import subprocess

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
