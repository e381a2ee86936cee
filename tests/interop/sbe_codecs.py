"""The reference implementation of Simple Binary Encoding: codecs in Java, generated from our schemas."""

import subprocess
from pathlib import Path

from interop import toolchain

SBE_TOOL = "uk.co.real-logic:sbe-tool:1.38.1"
SCHEMAS = sorted((toolchain.PROJECT / "tests" / "sbe").glob("*.xml"))
_MAIN = Path(__file__).parent / "java_sbe" / "SbeCases.java"
_TIMEOUT_S = 1800
_OPTIONS = ("--add-opens", "java.base/jdk.internal.misc=ALL-UNNAMED", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def compare_schemas(directory, seed, count):
    """Encodes messages of `count` schemas with the reference implementation and with ours.

    The first schemas are those of the tests, and all others are random.
    The reference implementation also decodes our messages. For each second random schema, our messages have a later or
    earlier version than its codecs. All schemas are compiled at once and run in one JVM.
    Returns the lines of the Java program: one for each difference, and the number of messages last.
    """
    jars = toolchain.libraries("sbe", SBE_TOOL)
    _run(toolchain.rust_example("sbe_cases"), directory, seed, count, *SCHEMAS)
    generate_codecs(directory, sorted(directory.glob("*.xml")))
    classes = directory / "classes"
    sources = [_MAIN, *directory.glob("*.java"), *(directory / "codecs").rglob("*.java")]
    (directory / "sources").write_text("\n".join(map(str, sources)))
    classpath = ":".join(map(str, jars))
    _run("javac", "-nowarn", "-cp", classpath, "-d", classes, f"@{directory / 'sources'}")
    command = toolchain.java_program([classes, *jars], _OPTIONS, "SbeCases", count)
    return _run(*command).splitlines()


def generate_codecs(directory, schemas):
    """Generates the codecs of schemas into the folder `codecs` of a directory."""
    properties = (f"-Dsbe.output.dir={directory / 'codecs'}", "-Dsbe.validation.stop.on.error=true")
    jars = toolchain.libraries("sbe", SBE_TOOL)
    _run(*toolchain.java_program(jars, properties, "uk.co.real_logic.sbe.SbeTool", *schemas))


def _run(*command):
    result = subprocess.run(
        [str(part) for part in command], check=False, capture_output=True, text=True, timeout=_TIMEOUT_S
    )
    assert result.returncode == 0, f"{command[0]}: {(result.stderr or result.stdout)[-4000:]}"
    return result.stdout
