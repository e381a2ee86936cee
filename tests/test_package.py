"""What `import aeron` promises: a version, and no heavy libraries."""

import subprocess
import sys

import aeron


def test_the_version_is_that_of_the_native_module() -> None:
    assert aeron.__version__.count(".") == 2


def test_import_aeron_imports_none_of_the_heavy_libraries() -> None:
    heavy = {"numpy", "pyarrow", "pyspark", "click", "rich", "asyncio"}
    code = f"import sys, aeron; print(sorted({heavy!r} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
