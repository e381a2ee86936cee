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

.PHONY: help demo quick test test-rust test-loom test-python test-spark-4.2 test-spark-connect sim sim-mutants lint lint-rust lint-python bench soak fuzz wheel clean
.DELETE_ON_ERROR:

help:
	@echo "make demo    market data through an embedded driver, then bars of it by Spark (with a JDK), on the trades in examples/data"
	@echo "make quick   the native module without optimisation, installed into .venv for tests by hand"
	@echo "make test    Rust tests, loom models, Python and interop tests"
	@echo "make lint    rustfmt, clippy, ruff, mypy and stubtest"
	@echo "make bench   benchmarks beside their peers; prints the table of docs/performance.md"
	@echo "make soak    lossy streams, differential tests and kills of Spark in full, then UDP at full rate with 1 % loss for DURATION (default 1800) seconds"
	@echo "make fuzz    every fuzz target for FUZZ_SECONDS (default 120) seconds"
	@echo "make sim     drivers and clients in a simulated network, SEEDS=0..2000 (or one seed, replayed and told in full)"
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

# The same without optimising across crates: a build of a minute, for the tests that run after every edit.
$(STAMPS)/quick: $(STAMPS)/venv pyproject.toml $(RUST_SOURCES)
	$(call say,building the native module (unoptimised) and installing aeron-py with all extras)
	VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --quiet --extras arrow,spark,test,lint
	@rm -f $(STAMPS)/installed-* && touch $@

comma := ,
DEMO := $(STAMPS)/installed-spark
DEVELOP := $(STAMPS)/installed-arrow+spark+test+lint
BENCH := $(STAMPS)/installed-arrow+spark+bench+test

# ---- goals -------------------------------------------------------------------------------------------------------------

demo: $(DEMO)
	$(call say,running the demo)
	$(BIN)/aeron demo --spark --input examples/data/btcusdt-trades.parquet --input examples/data/usdjpy-ticks.csv --generate

quick: $(STAMPS)/quick

test: test-rust test-loom sim test-python test-spark-4.2 test-spark-connect

test-rust:
	$(call say,Rust tests)
	cargo test --workspace --quiet

test-loom:
	$(call say,loom models of the lock-free algorithms)
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$(LOOM_TARGET_DIR) CARGO_PROFILE_RELEASE_LTO=off cargo test --quiet --release -p aeron-memory --test 'loom_*'

test-python: $(DEVELOP)
	$(call say,Python and interop tests)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

# The oldest PySpark that serves: only its package, made once, put before the one of the environment.
PYSPARK_4_2 := .cache/pyspark-4.2
$(PYSPARK_4_2)/made: | $(STAMPS)/venv
	$(call say,fetching PySpark 4.2)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(PYSPARK_4_2) 'pyspark==4.2.*'
	@touch $@

test-spark-4.2: $(DEVELOP) $(PYSPARK_4_2)/made
	$(call say,format aeron with PySpark 4.2)
	PYTHONPATH=$(abspath $(PYSPARK_4_2)) $(BIN)/python -m pytest tests/spark/test_smoke.py

# What Spark Connect needs and no other test may have: ours works without pandas.
SPARK_CONNECT := .cache/spark-connect
$(SPARK_CONNECT)/made: | $(STAMPS)/venv
	$(call say,fetching what Spark Connect needs)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --target $(SPARK_CONNECT) 'pandas>=2.2' 'grpcio>=1.76' 'grpcio-status>=1.76' 'googleapis-common-protos>=1.71' 'zstandard>=0.25'
	@touch $@

test-spark-connect: $(DEVELOP) $(SPARK_CONNECT)/made
	$(call say,format aeron with Spark Connect)
	PYTHONPATH=$(abspath $(SPARK_CONNECT)) $(BIN)/python -m pytest tests/spark/over_connect.py

lint: lint-rust lint-python

lint-rust:
	$(call say,rustfmt and clippy)
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings

lint-python: $(DEVELOP)
	$(call say,ruff$(comma) mypy and stubtest)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=python $(BIN)/python -m mypy.stubtest aeron._aeron

bench: $(BENCH) $(PYSPARK_4_2)/made
	$(call say,benchmarks: this takes a while$(comma) keep the machine quiet)
	$(BIN)/python -m pytest bench/test_calls.py -q --no-header --benchmark-columns=min,median,max
	$(BIN)/python -m bench
	$(call say,beside Kafka$(comma) whose source for Spark exists for PySpark 4.2)
	PYTHONPATH=$(abspath $(PYSPARK_4_2)) $(BIN)/python -m bench kafka

DURATION ?= 1800
soak: $(BENCH)
	$(call say,100$(comma)000 messages at every rate of loss with the real drivers)
	SOAK=1 $(BIN)/python -m pytest tests/interop/test_udp_loss.py -k arrives_whole
	$(call say,the same datagrams to the real C driver and to ours$(comma) longer and more series)
	SOAK=1 $(BIN)/python -m pytest tests/differential
	$(call say,twenty kills of a query on a live stream$(comma) and ten minutes at a steady rate)
	$(BIN)/python -m pytest tests/spark/soak_kills.py tests/spark/soak_sustained.py -s
	$(call say,UDP at full rate with 1 % loss for $(DURATION) s)
	PYTHONPATH=tests $(BIN)/python -m bench.soak --seconds $(DURATION)

FUZZ_SECONDS ?= 120
fuzz:
	$(call say,fuzzing each target for $(FUZZ_SECONDS) s)
	.ci/fuzz $(FUZZ_SECONDS)

SEEDS ?= --all-rows 0..2000
sim:
	$(call say,schedules of the seeds $(SEEDS))
	cargo run --quiet --profile sim -p aeron-simulator -- $(SEEDS)

sim-mutants:
	$(call say,bugs that the simulator must find)
	$(PYTHON) rust/simulator/mutants.py

wheel: $(STAMPS)/venv
	$(call say,building a wheel that needs a C library at least as new as this machine has; its tag names the oldest)
	$(BIN)/maturin build --release --out dist

clean:
	rm -rf $(VENV) dist
	cargo clean
