# The commands of this project. Each works alone on a fresh machine that has Python 3.11+ and a Rust toolchain (the interop
# tests also need a JDK with Maven, those with Spark a JDK): it makes the virtual environment, builds and installs by itself.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
# A path of its own: the loom build has other flags, and would otherwise rebuild everything each time.
LOOM_TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)/loom

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find rust -name '*.rs' -o -name 'Cargo.toml')
say = @printf '\n== %s\n' '$(1)'

.PHONY: help demo quick check check-python test test-rust test-loom test-python test-shipped test-spark-4.2 test-spark-connect sim sim-archives sim-mutants \
	lint lint-rust lint-python docs dependencies miri bench soak soak-kills soak-shipped fuzz wheel clean
.DELETE_ON_ERROR:

help:
	@echo "make demo    market data through an embedded driver, to an archive that is killed and replayed, and to bars by Spark (with a JDK)"
	@echo "make check   lint, Rust tests, and the Python tests that need no Java and no minutes: after every edit"
	@echo "make quick   the native module without optimisation, installed into .venv for tests by hand"
	@echo "make test    Rust tests, loom models, the simulator, all Python tests, those with the real Aeron and with Spark included"
	@echo "make lint    rustfmt, clippy, the Rust documentation, ruff, mypy and stubtest"
	@echo "make bench   benchmarks beside their peers; prints the table of docs/performance.md"
	@echo "make soak    lossy streams, differential tests, kills of Spark and of an archive in full, then UDP at full rate with 1 % loss for DURATION (default 1800) seconds"
	@echo "make fuzz    every fuzz target for FUZZ_SECONDS (default 120) seconds"
	@echo "make sim     drivers and clients in a simulated network, SEEDS=0..2000 (or one seed, replayed and told in full)"
	@echo "make sim-archives  archives too: killed at any write, on disks that fail, ARCHIVE_SEEDS=0..300"
	@echo "make docs    the Rust documentation; a warning is an error"
	@echo "make dependencies  licences, sources and advisories of what we depend on, and what nothing uses"
	@echo "make miri    the tests that Miri can run, with a nightly Rust"
	@echo "make wheel   an abi3 wheel in dist/ for machines like this one; the release workflow builds those for glibc 2.17"

# ---- environment -------------------------------------------------------------------------------------------------------

$(STAMPS)/venv:
	$(call say,making the virtual environment in $(VENV))
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else f"Python 3.11 or later is needed, $(PYTHON) is {v.major}.{v.minor}; say which one by: make PYTHON=python3.12")'
	@command -v cargo >/dev/null || { echo "a Rust toolchain is needed (https://rustup.rs)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
	@mkdir -p $(STAMPS) && touch $@

# The extras a goal needs are installed by the goal: `make demo` does not install the test suite's tools.
$(STAMPS)/installed-%: $(STAMPS)/venv pyproject.toml $(RUST_SOURCES)
	$(call say,building the native module (release) and installing aeron-py with: $(subst +,$(comma) ,$*))
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release --quiet --extras $(subst +,$(comma),$*)
	@rm -f $(STAMPS)/quick && touch $@

# The same by the profile of the Rust tests: it shares their builds, and finds overflows and failed assertions. Only this profile has
# the test hooks, at which tests stop a process to kill it.
QUICK := $(STAMPS)/quick
$(QUICK): $(STAMPS)/venv pyproject.toml $(RUST_SOURCES)
	$(call say,building the native module (unoptimised) and installing aeron-py with all extras)
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --quiet --features test-hooks --extras arrow,spark,test,lint
	@rm -f $(STAMPS)/installed-* && touch $@

comma := ,
DEMO := $(STAMPS)/installed-spark+demo
SHIPPED := $(STAMPS)/installed-arrow+spark+test+lint
BENCH := $(STAMPS)/installed-arrow+spark+bench+test

# ---- goals -------------------------------------------------------------------------------------------------------------

demo: $(DEMO)
	$(call say,running the demo)
	$(BIN)/aeron demo --archive --spark --input examples/data/btcusdt-trades.parquet --input examples/data/usdjpy-ticks.csv --generate

quick: $(QUICK)

check: lint test-rust check-python

check-python: $(QUICK)
	$(call say,Python tests without the real Aeron$(comma) without Spark and without slow ones)
	$(PYTEST) -m "not interop and not spark and not slow"

test: test-rust test-loom sim sim-archives test-python test-spark-4.2 test-spark-connect test-shipped

test-rust:
	$(call say,Rust tests)
	cargo test --workspace --quiet

test-loom:
	$(call say,loom models of the lock-free algorithms)
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$(LOOM_TARGET_DIR) CARGO_PROFILE_RELEASE_LTO=off cargo test --quiet --release -p aeron-memory --test 'loom_*'

# Tests run side by side, those of a file in one process: they share its drivers and its Spark session. The order is that of the
# folders: pytest-xdist would begin with the files of many tests, and end with the few that take minutes.
PYTEST := $(BIN)/python -m pytest --numprocesses=2 --dist=loadfile --no-loadscope-reorder
test-python: $(QUICK)
	$(call say,Python and interop tests)
	$(PYTEST) $(PYTEST_ARGS)

# The module as it is shipped, optimised across crates: a part of the tests shows that it does the same.
SHIPPED_TESTS := tests/shipped_module.py tests/test_package.py tests/test_batches.py tests/test_udp.py tests/interop/test_streams.py \
	tests/interop/test_udp_streams.py tests/spark/test_smoke.py
test-shipped: $(SHIPPED)
	$(call say,the module as it is shipped)
	$(PYTEST) $(SHIPPED_TESTS)

# The oldest PySpark that serves: only its package, made once, put before the one of the environment.
PYSPARK_4_2 := .cache/pyspark-4.2
$(PYSPARK_4_2)/made: | $(STAMPS)/venv
	$(call say,fetching PySpark 4.2)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(PYSPARK_4_2) 'pyspark==4.2.*'
	@touch $@

test-spark-4.2: $(QUICK) $(PYSPARK_4_2)/made
	$(call say,format aeron with PySpark 4.2)
	PYTHONPATH=$(abspath $(PYSPARK_4_2)) $(BIN)/python -m pytest tests/spark/test_smoke.py

# What Spark Connect needs and no other test may have: ours works without pandas.
SPARK_CONNECT := .cache/spark-connect
$(SPARK_CONNECT)/made: | $(STAMPS)/venv
	$(call say,fetching what Spark Connect needs)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --target $(SPARK_CONNECT) 'pandas>=2.2' 'grpcio>=1.76' 'grpcio-status>=1.76' 'googleapis-common-protos>=1.71' 'zstandard>=0.25'
	@touch $@

test-spark-connect: $(QUICK) $(SPARK_CONNECT)/made
	$(call say,format aeron with Spark Connect)
	PYTHONPATH=$(abspath $(SPARK_CONNECT)) $(BIN)/python -m pytest tests/spark/over_connect.py

lint: lint-rust docs lint-python

lint-rust:
	$(call say,rustfmt and clippy)
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	@# The fuzz targets are a workspace of their own, which no other goal compiles.
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --manifest-path fuzz/Cargo.toml --bins --quiet -- -D warnings

lint-python: $(QUICK)
	$(call say,ruff$(comma) mypy and stubtest)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=python $(BIN)/python -m mypy.stubtest aeron._aeron

# With what is private: contributors read it too, so links to it are right.
docs:
	$(call say,Rust documentation)
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --workspace --no-deps --document-private-items --locked --quiet

# Both tools are built once by cargo, from crates.io.
dependencies:
	$(call say,licences$(comma) sources and advisories$(comma) and dependencies that nothing uses)
	@cargo deny --version >/dev/null 2>&1 || cargo install --quiet --locked cargo-deny
	@cargo machete --version >/dev/null 2>&1 || cargo install --quiet --locked cargo-machete
	cargo deny check
	cargo machete

# Left out are tests that map files or start processes (cnc, processes, log::layout), which Miri cannot; the models of loom; the
# crates that open sockets; and the native module. Properties get few cases: Miri is a hundred times slower.
MIRI := MIRIFLAGS=-Zmiri-disable-isolation PROPTEST_CASES=4 cargo +nightly miri test --quiet
miri:
	$(call say,tests under Miri)
	$(MIRI) -p aeron-protocol
	$(MIRI) -p aeron-memory --lib --test broadcast --test captures --test counters --test error_log --test loss_report --test ring
	$(MIRI) -p aeron-memory --test log -- --skip layout

bench: $(BENCH) $(PYSPARK_4_2)/made
	$(call say,benchmarks: this takes a while$(comma) keep the machine quiet)
	$(BIN)/python -m pytest bench/test_calls.py -q --no-header --benchmark-columns=min,median,max
	$(BIN)/python -m bench
	$(call say,beside Kafka$(comma) whose source for Spark exists for PySpark 4.2)
	PYTHONPATH=$(abspath $(PYSPARK_4_2)) $(BIN)/python -m bench kafka

DURATION ?= 1800
# Each part with the module that it needs: kills at chosen points need the test hooks, rates the module as it is shipped.
soak:
	$(MAKE) soak-kills
	$(MAKE) soak-shipped

soak-kills: $(QUICK)
	$(call say,twenty kills of a query on a live stream)
	$(BIN)/python -m pytest tests/spark/soak_kills.py -s
	$(call say,two hundred kills of an archive$(comma) and forty of its drivers and publishers)
	SOAK=1 $(BIN)/python -m pytest tests/interop/test_archive_kills.py -k "killed_archive or kills_of"

soak-shipped: $(BENCH)
	$(call say,100$(comma)000 messages at every rate of loss with the real drivers)
	SOAK=1 $(BIN)/python -m pytest tests/interop/test_udp_loss.py -k arrives_whole
	$(call say,the same datagrams to the real C driver and to ours$(comma) longer and more series)
	SOAK=1 $(BIN)/python -m pytest tests/differential
	$(call say,a query on a live stream$(comma) ten minutes at a steady rate)
	$(BIN)/python -m pytest tests/spark/soak_sustained.py -s
	$(call say,UDP at full rate with 1 % loss for $(DURATION) s)
	PYTHONPATH=tests $(BIN)/python -m bench.soak --seconds $(DURATION)

FUZZ_SECONDS ?= 120
fuzz:
	$(call say,fuzzing each target for $(FUZZ_SECONDS) s)
	.ci/fuzz $(FUZZ_SECONDS)

SEEDS ?= --all-rows 0..2000
sim:
	$(call say,schedules of the seeds $(SEEDS))
	cargo run --quiet -p aeron-simulator -- $(SEEDS)

ARCHIVE_SEEDS ?= 0..300
sim-archives:
	$(call say,schedules with archives of the seeds $(ARCHIVE_SEEDS))
	cargo run --quiet -p aeron-simulator -- --archive $(ARCHIVE_SEEDS)

sim-mutants:
	$(call say,bugs that the simulator must find)
	$(PYTHON) rust/simulator/mutants.py

wheel: $(STAMPS)/venv
	$(call say,building a wheel that needs a C library at least as new as this machine has; its tag names the oldest)
	$(BIN)/maturin build --release --out dist

clean:
	rm -rf $(VENV) dist
	cargo clean
