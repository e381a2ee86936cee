# The commands of this project. Each works on a fresh machine with Python 3.11+ and a Rust toolchain: it makes the
# virtual environment, builds and installs. Interop tests also need a JDK with Maven, tests with Spark a JDK.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
# The goal is built for the whole workspace: with the features of this one package, cargo would build its crates again.
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
SIMULATOR := $(TARGET)/debug/aeron-simulator
# A separate path: the loom build has other flags, and would otherwise rebuild all crates each time.
LOOM_TARGET_DIR := $(TARGET)/loom

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find rust -name '*.rs' -o -name 'Cargo.toml' -o -path '*/src/docs/*.txt')
say = @printf '\n== %s  %s\n' "$$(date +%T)" '$(1)'

.PHONY: help faketime tmux prometheus systemd demo quick check check-python test test-waiting test-computing test-rust test-loom test-differential test-python test-shipped test-upgrades old-package test-spark-4.2 test-spark-connect sim sim-archives sim-night sim-mutants sim-reach mutants sbe-cases \
	lint lint-rust lint-python reference docs docs-rust docs-site dependencies miri bench bench-build soak soak-kills soak-shipped fuzz wheel clean
.DELETE_ON_ERROR:

help:
	@echo "make demo    market data through an embedded driver, to an archive that is killed and replays it, and to Spark (with a JDK)"
	@echo "make check   after every edit: lint, Rust tests, and quick Python tests without Java"
	@echo "make quick   the native module without optimisation, installed into .venv for single tests"
	@echo "make test    Rust tests, loom models, the simulator, all Python tests, including the real Aeron and Spark"
	@echo "make lint    rustfmt, clippy, the documentation, plain English, ruff, mypy, stubtest, and whether docstrings are up to date"
	@echo "make reference  keywords of the stubs and the pages of settings, from the native module"
	@echo "make bench   benchmarks against peers, for up to three hours; writes bench/results and the tables of docs/performance.md"
	@echo "make bench-build  builds what the benchmarks measure, and prints its directory, for a comparison of two builds"
	@echo "make soak    long tests: lossy streams, differential tests, kills of Spark and of an archive, then UDP at full rate with 1 % loss for DURATION (default 1800) seconds"
	@echo "make fuzz    each fuzz target for FUZZ_SECONDS (default 120) seconds"
	@echo "make sbe-cases  messages of SBE_CASES=1000 random schemas, with the reference implementation of SBE; SBE_SEED chooses the first"
	@echo "make sim     drivers and clients in a simulated network, SEEDS=0..2000 (or one seed, with all events)"
	@echo "make sim-archives  the same with archives, recorded publishers and followers, kills at any write and failing disks, ARCHIVE_SEEDS=0..300"
	@echo "make sim-night  schedules of seeds that were not run before, for HOURS=8; prints the seeds that find a bug"
	@echo "make mutants changes the sources at random in MUTANTS=100 places, and shows the changes that no test finds"
	@echo "make docs    the Rust documentation, and the site in target/site; a warning is an error"
	@echo "make dependencies  licences, sources and advisories of dependencies, and unused dependencies"
	@echo "make miri    the tests that Miri can run, with a nightly Rust"
	@echo "make image   builds the image of containers/Dockerfile from the wheel by buildah, and runs a driver and services from it, as root"
	@echo "make wheel   an abi3 wheel in dist/ for machines like this one; the release workflow builds those for glibc 2.17"

# ---- environment -----------------------------------------------------------------------------------------------------

$(STAMPS)/venv:
	$(call say,making the virtual environment in $(VENV))
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else f"Python 3.11 or later is needed, $(PYTHON) is {v.major}.{v.minor}; choose one with: make PYTHON=python3.12")'
	@command -v cargo >/dev/null || { echo "a Rust toolchain is needed (https://rustup.rs)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2' 'wheel>=0.43'
	@mkdir -p $(STAMPS) && touch $@

# $(call install,OPTIONS OF THE BUILD,EXTRAS) builds the native module, and installs the package. The packages of the
# extras are fetched while the compiler runs: PySpark alone is 450 MB, and pip makes a wheel of it.
list_extras = import sys, tomllib; extras = tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]; \
	print(*(line for name in sys.argv[1].split(",") for line in extras[name]), sep="\n")
pip = $(BIN)/python -m pip install --quiet --disable-pip-version-check
maturin = VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --quiet
define install
	@$(BIN)/python -c '$(list_extras)' $(2) | $(pip) --requirement /dev/stdin & fetching=$$!; \
	$(maturin) $(1) --skip-install && wait $$fetching
	$(maturin) $(1) --extras $(2)
endef

# $(call crates_with,SETTING ...) are options of maturin: settings of the profile `dev` for the crates of this project,
# and not for their dependencies.
crates_with = $(foreach crate,$(notdir $(wildcard rust/*)),$(foreach setting,$(1),--config profile.dev.package.aeron-$(crate).$(setting)))
# The crates of this project are optimised, without the checks of tests. Optimisation of dependencies and across crates
# takes most of the time of a release build, and the demo does not need it.
OPTIMISED := --profile dev $(call crates_with,opt-level=2 debug-assertions=false overflow-checks=false)

# Each goal installs the extras that it needs: `make demo` does not install the tools of the test suite.
# The name of a stamp has the kind of the build and the extras: `installed-demo-spark+demo`.
profile = $(firstword $(subst -, ,$*))
build = $(if $(filter demo,$(profile)),$(OPTIMISED),--profile $(profile))
extras = $(subst +,$(comma),$(lastword $(subst -, ,$*)))
$(STAMPS)/installed-%: $(STAMPS)/venv pyproject.toml $(RUST_SOURCES)
	$(call say,building the native module ($(profile)) and installing aeron-py with: $(extras))
	$(call install,$(build),$(extras))
	@rm -f $(QUICK) $(STAMPS)/installed-* && touch $@

# The same with the profile of the Rust tests: it shares their builds, and checks overflows and assertions. Only this
# build has the test hooks, at which tests stop a process to kill it.
QUICK := $(STAMPS)/quick
$(QUICK): $(STAMPS)/venv pyproject.toml $(RUST_SOURCES)
	$(call say,building the native module (unoptimised) and installing aeron-py with all extras)
	$(call install,--features test-hooks,arrow$(comma)spark$(comma)test$(comma)lint$(comma)docs)
	@rm -f $(STAMPS)/installed-* && touch $@

comma := ,
DEMO := $(STAMPS)/installed-demo-spark+demo
# The release workflow sets the profile `release`.
SHIPPED_PROFILE ?= demo
SHIPPED := .cache/shipped-$(SHIPPED_PROFILE)/made
# An older version for tests of upgrades.
OLD_COMMIT := $(shell sed -n 's/^OLD_COMMIT = "\(.*\)"$$/\1/p' tests/interop/toolchain.py)
OLD := .cache/old-$(OLD_COMMIT)
BENCH := $(STAMPS)/installed-release-arrow+spark+bench+test
PYSPARK_4_2 := .cache/pyspark-4.2
SPARK_CONNECT := .cache/spark-connect

# ---- goals -----------------------------------------------------------------------------------------------------------

demo: $(DEMO)
	$(call say,running the demo)
	$(BIN)/aeron demo --archive --spark --input examples/data/btcusdt-trades.parquet --input examples/data/usdjpy-ticks.csv --generate

quick: $(QUICK)

# Without the documentation, which takes a minute: `.ci/run` makes it.
check: lint test-rust check-python

check-python: $(QUICK)
	$(call say,quick Python tests without the real Aeron and Spark)
	$(PYTEST) -m "not interop and not spark and not slow"

# Tests that wait (for drivers, Java and Spark) run beside tests that compute. The latter have the lowest priority, so
# that they only take the processor time that is left. Their output is shown at the end.
COMPUTING_LOG := target/test-computing.log
# The simulator is built before: a build of the lowest priority would hold the lock for which builds of tests wait.
test: test-rust $(SIMULATOR) test-differential
	@nice -n 19 $(MAKE) --no-print-directory test-computing >$(COMPUTING_LOG) 2>&1 & computing=$$!; \
	trap 'kill $$computing' INT TERM; \
	$(MAKE) --no-print-directory test-waiting; waiting=$$?; \
	wait $$computing; computed=$$?; cat $(COMPUTING_LOG); exit $$((waiting || computed))
	@$(MAKE) --no-print-directory test-shipped test-upgrades

test-waiting: test-python test-spark-4.2 test-spark-connect
test-computing: test-loom sim sim-archives $(SHIPPED) old-package

test-rust:
	$(call say,Rust tests)
	cargo test --workspace --quiet

test-loom:
	$(call say,loom models of the lock-free algorithms)
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$(LOOM_TARGET_DIR) CARGO_PROFILE_RELEASE_LTO=off cargo test --quiet --release -p aeron-memory --test 'loom_*'

# Two processes run tests. With three, 4,600 tests take 18 minutes instead of 23, but Spark does not get its Python
# processes within the ten seconds that it gives them. The tests of a file run in one process: they
# share its drivers and its Spark session. The order is that of the folders: pytest-xdist would start with the largest
# files, and end with the few tests that take minutes.
PYTEST := $(BIN)/python -m pytest --numprocesses=2 --dist=loadfile --no-loadscope-reorder
test-python: $(QUICK) $(STAMPS)/spark-classes faketime tmux prometheus systemd
	$(call say,Python and interop tests)
	$(PYTEST) --ignore=tests/differential $(PYTEST_ARGS)

# A real driver and ours get the same datagrams at the same times. On a busy machine they would differ, so `make test`
# runs these tests before the others.
test-differential: $(QUICK)
	$(call say,the real drivers beside ours)
	$(PYTEST) --durations-file=target/differential-durations.csv tests/differential

# Debian packages of single tests: a library that sets the clock of processes for tests/interop/test_clocks.py, a
# terminal for tests/test_cli_top.py, Prometheus for tests of alarms and dashboards, and `systemd-analyze` for
# tests/test_services.py. Only root can install them. Without them, these tests are skipped, or fail in CI.
# $(call install_package,PACKAGE,SUBJECT OF THE TESTS)
apt_install := apt-get install -y -qq
install_package = { [ $$(id -u) = 0 ] && { $(apt_install) $(1) || { apt-get update -qq && $(apt_install) $(1); }; }; } || \
	echo "for tests of $(2), run as root: $(apt_install) $(1)"
faketime:
	@ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 || $(call install_package,faketime,clocks)
tmux:
	@command -v tmux >/dev/null || $(call install_package,tmux,aeron top)
# With systemd, the package also starts a server on port 9090: `systemctl disable --now prometheus` ends it.
prometheus:
	@command -v promtool >/dev/null || $(call install_package,--no-install-recommends prometheus,alarms)
# Only the program is used: the package does not replace the first process of a container.
systemd:
	@command -v systemd-analyze >/dev/null || $(call install_package,--no-install-recommends systemd,the units of services)

# Tests start Spark some forty times. With an archive of its classes each start takes a quarter of the processor time.
$(STAMPS)/spark-classes: | $(QUICK)
	$(call say,an archive of the classes of Spark)
	$(BIN)/python tests/spark/jvm.py
	@touch $@

# The module as users get it, optimised and without hooks. A part of the tests shows that it behaves in
# the same way. Only this package is installed, beside the environment. On the path it comes before the module with
# hooks. The dependencies are those of the profile `dev`, which the other goals have built.
$(SHIPPED): pyproject.toml $(RUST_SOURCES) $(shell find python -name '*.py' -o -name '*.pyi') | $(STAMPS)/venv
	$(call say,building a wheel ($(SHIPPED_PROFILE)))
	rm -rf $(@D) && mkdir -p $(@D)
	$(call link_dependencies,$(TARGET)/shipped/debug)
	CARGO_TARGET_DIR=$(TARGET)/shipped $(BIN)/maturin build $(if $(filter demo,$(SHIPPED_PROFILE)),$(OPTIMISED),--profile $(SHIPPED_PROFILE)) --quiet --out $(@D)
	$(BIN)/python tools/stub_docstrings.py $(@D)/*.whl
	$(pip) --no-deps --target $(@D) $(@D)/*.whl
	@touch $@

SHIPPED_TESTS := tests/shipped_module.py tests/test_package.py tests/test_batches.py tests/test_udp.py tests/interop/test_streams.py \
	tests/interop/test_udp_streams.py tests/spark/test_smoke.py
test-shipped: $(QUICK) $(SHIPPED)
	$(call say,the module as users get it)
	PYTHONPATH=$(abspath $(dir $(SHIPPED))) $(PYTEST) $(SHIPPED_TESTS)

# $(call link_dependencies,DIRECTORY) links the dependencies that `make quick` has built into another directory for
# builds. A build there compiles only the crates of this project, and does not hold the lock for which builds of tests
# wait. Without hard links, the build compiles the dependencies too.
define link_dependencies
	@rm -rf $(1) && mkdir -p $(1)
	-@cp -al $(TARGET)/debug/.fingerprint $(TARGET)/debug/build $(TARGET)/debug/deps $(1)
	@rm -rf $(1)/*/*aeron* $(1)/.fingerprint/*aeron*
endef

# A clone without the commit skips the tests, and fails in CI.
$(OLD)/made: | $(STAMPS)/venv
	$(call say,building the package of commit $(OLD_COMMIT))
	rm -rf $(OLD) && mkdir -p $(OLD)/source
	git archive $(OLD_COMMIT) | tar -x -C $(OLD)/source
	$(call link_dependencies,$(TARGET)/old/debug)
	cd $(OLD)/source && CARGO_TARGET_DIR=$(TARGET)/old $(abspath $(BIN))/maturin build --profile dev $(call crates_with,opt-level=0) --quiet --out ..
	$(pip) --no-deps --target $(OLD)/package $(OLD)/*.whl
	rm -rf $(OLD)/source
	@touch $@

old-package:
	@if git cat-file -e $(OLD_COMMIT)^{commit} 2>/dev/null; then $(MAKE) --no-print-directory $(OLD)/made; else \
		echo "commit $(OLD_COMMIT) is not in this clone: if it is shallow, run git fetch --unshallow, for tests of upgrades"; [ -z "$$CI" ]; fi

test-upgrades: $(QUICK) old-package
	$(call say,this version and commit $(OLD_COMMIT))
	$(PYTEST) --durations-file=target/upgrades-durations.csv tests/interop/upgrades.py

# The oldest supported PySpark. Only this package is installed, once. On the path it comes before the PySpark of the
# environment.
$(PYSPARK_4_2)/made: | $(STAMPS)/venv
	$(call say,fetching PySpark 4.2)
	$(pip) --no-deps --target $(PYSPARK_4_2) 'pyspark==4.2.*'
	@touch $@

test-spark-4.2: $(QUICK) $(PYSPARK_4_2)/made
	$(call say,format aeron with PySpark 4.2)
	PYTHONPATH=$(abspath $(PYSPARK_4_2)) $(BIN)/python -m pytest tests/spark/test_smoke.py

# Packages for Spark Connect, such as pandas. All other tests run without them: the product works without pandas.
$(SPARK_CONNECT)/made: | $(STAMPS)/venv
	$(call say,fetching packages for Spark Connect)
	$(pip) --target $(SPARK_CONNECT) 'pandas>=2.2' 'grpcio>=1.76' 'grpcio-status>=1.76' 'googleapis-common-protos>=1.71' 'zstandard>=0.25'
	@touch $@

test-spark-connect: $(QUICK) $(SPARK_CONNECT)/made
	$(call say,format aeron with Spark Connect$(comma) and the demo of crashes with pandas)
	PYTHONPATH=$(abspath $(SPARK_CONNECT)) $(BIN)/python -m pytest tests/spark/over_connect.py tests/spark/demo_crashes.py

lint: lint-rust lint-python

lint-rust:
	$(call say,rustfmt and clippy)
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	@# The fuzz targets are a separate workspace, which no other goal compiles. With the same versions and the same
	@# directory, its dependencies are checked already. The variable skips the build of libFuzzer, which is only linked.
	@[ fuzz/Cargo.lock -nt Cargo.lock ] || cp Cargo.lock fuzz/Cargo.lock
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	CUSTOM_LIBFUZZER_PATH=$(TARGET)/none cargo clippy --manifest-path fuzz/Cargo.toml --target-dir $(TARGET) --bins --quiet -- -D warnings

lint-python: $(QUICK)
	$(call say,plain English$(comma) ruff$(comma) mypy and stubtest)
	$(BIN)/python tools/plain_english.py
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy tools
	$(BIN)/python -m mypy.stubtest aeron --mypy-config-file pyproject.toml --allowlist tools/stubtest.allowlist --concise
	@# Keywords of the stubs, and the pages of settings: `make reference` writes them.
	$(BIN)/python tools/reference.py --check

reference: $(QUICK)
	$(call say,keywords of the stubs$(comma) and the pages of settings)
	$(BIN)/python tools/reference.py

docs: docs-rust docs-site

# Includes private items: contributors read them too, so links to them are allowed.
docs-rust:
	$(call say,Rust documentation)
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --workspace --no-deps --document-private-items --locked --quiet

# The reference is made from the installed package. With `--quiet` mkdocs would not count its warnings. The variable
# keeps an advertisement for another tool out of the output.
docs-site: $(QUICK)
	$(call say,the documentation as a site in target/site)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

# cargo builds both tools once, from crates.io.
dependencies:
	$(call say,licences$(comma) sources and advisories$(comma) and unused dependencies)
	@cargo deny --version >/dev/null 2>&1 || cargo install --quiet --locked cargo-deny
	@cargo machete --version >/dev/null 2>&1 || cargo install --quiet --locked cargo-machete
	cargo deny check
	cargo machete

# Miri cannot map files or start processes, so the tests cnc, processes and log::layout are left out. Also left out are
# the models of loom, the crates that open sockets, and the native module. Property tests get few cases: Miri is 100
# times slower.
MIRI := MIRIFLAGS=-Zmiri-disable-isolation PROPTEST_CASES=4 cargo +nightly miri test --quiet
miri:
	$(call say,tests under Miri)
	$(MIRI) -p aeron-protocol
	$(MIRI) -p aeron-memory --lib --test broadcast --test captures --test counters --test error_log --test loss_report --test ring
	$(MIRI) -p aeron-memory --test log -- --skip layout

bench: $(BENCH) $(PYSPARK_4_2)/made
	$(call say,benchmarks: this takes up to three hours$(comma) keep the machine quiet)
	$(BIN)/python -m pytest bench/test_calls.py -q --no-header --benchmark-columns=min,median,max
	$(BIN)/python -m bench run
	$(call say,benchmarks against Kafka$(comma) with PySpark 4.2 for its source)
	PYTHONPATH=$(abspath $(PYSPARK_4_2)) $(BIN)/python -m bench run kafka

bench-build: $(BENCH)
	$(call say,the release wheel and the native program$(comma) in an environment)
	@$(BIN)/python -m bench build

DURATION ?= 1800
# Each part uses its own module: kills at chosen points need the test hooks, rates need the module as users get it.
soak:
	$(MAKE) soak-kills
	$(MAKE) soak-shipped

soak-kills: $(QUICK)
	$(call say,twenty kills of a query on a live stream)
	$(BIN)/python -m pytest tests/spark/soak_kills.py -s
	$(call say,two hundred kills of an archive$(comma) and forty of its drivers and publishers)
	SOAK=1 $(BIN)/python -m pytest tests/interop/test_archive_kills.py -k "restarted_archive or kills_of"

soak-shipped: $(BENCH)
	$(call say,100$(comma)000 messages at every rate of loss with the real drivers)
	SOAK=1 $(BIN)/python -m pytest tests/interop/test_udp_loss.py -k arrives_completely
	$(call say,the same datagrams to the real C driver and to ours$(comma) more and longer series)
	SOAK=1 $(BIN)/python -m pytest tests/differential
	$(call say,the reply$(comma) the image and the first offer of an IPC publication)
	SOAK=1 $(BIN)/python -m pytest tests/interop/test_ipc_images.py -s
	$(call say,right passwords beside hosts with wrong ones$(comma) and a hundred publishers after a restart of their archive)
	SOAK=1 $(BIN)/python -m pytest tests/test_archive_doors.py -k "right_password_is or all_publishers" -s
	$(call say,connections to an archive through loss)
	SOAK=1 $(BIN)/python -m pytest tests/interop/test_archive_loss.py -s
	$(call say,a query on a live stream for ten minutes at a steady rate)
	$(BIN)/python -m pytest tests/spark/soak_sustained.py -s
	$(call say,UDP at full rate with 1 % loss for $(DURATION) s)
	PYTHONPATH=tests $(BIN)/python -m bench.soak --seconds $(DURATION)

FUZZ_SECONDS ?= 120
fuzz:
	$(call say,fuzzing each target for $(FUZZ_SECONDS) s)
	.ci/fuzz $(FUZZ_SECONDS)

.PHONY: $(SIMULATOR)
$(SIMULATOR):
	cargo build --quiet --workspace --bin aeron-simulator

SEEDS ?= --all-rows 0..2000
sim: $(SIMULATOR)
	$(call say,schedules of the seeds $(SEEDS))
	$(SIMULATOR) $(SEEDS)

ARCHIVE_SEEDS ?= 0..300
sim-archives: $(SIMULATOR)
	$(call say,schedules with archives of the seeds $(ARCHIVE_SEEDS))
	$(SIMULATOR) --archive $(ARCHIVE_SEEDS)
	$(SIMULATOR) --publishers $(ARCHIVE_SEEDS)
	$(SIMULATOR) --followers $(ARCHIVE_SEEDS)

HOURS ?= 8
sim-night:
	$(call say,schedules of new seeds for $(HOURS) hours)
	$(PYTHON) rust/simulator/night.py $(HOURS)

SBE_CASES ?= 1000
SBE_SEED ?= $(shell date +%s)

sbe-cases: $(QUICK)
	$(call say,$(SBE_CASES) random schemas with the reference implementation)
	SBE_CASES=$(SBE_CASES) SBE_SEED=$(SBE_SEED) $(BIN)/python -m pytest tests/interop/test_sbe.py

sim-mutants:
	$(call say,bugs that the simulator must find)
	$(PYTHON) rust/simulator/mutants.py

# The compiler's component llvm-tools reads the counts.
sim-reach: $(QUICK)
	$(call say,functions that no schedule enters)
	rustup component add llvm-tools
	$(PYTHON) rust/simulator/reach.py "$(SEEDS)" $(foreach kind,archive publishers followers,"--$(kind) $(ARCHIVE_SEEDS)")

# The same mutants with the same MUTANTS_SEED. One build has all of them. A mutant takes some seconds, or four minutes
# if no Rust test finds it.
MUTANTS ?= 100
mutants: $(QUICK)
	$(call say,random changes that tests must find)
	@command -v cargo-mutants >/dev/null || cargo install --locked cargo-mutants
	$(BIN)/python tools/random_mutants.py --count $(MUTANTS) $(if $(MUTANTS_SEED),--seed $(MUTANTS_SEED))

wheel: $(STAMPS)/venv
	$(call say,building a wheel for a C library of this version or newer; its tag names the oldest one)
	$(BIN)/maturin build --release --out dist
	$(BIN)/python tools/stub_docstrings.py dist/*.whl

# Without a daemon and without a registry: mmdebstrap makes the Debian on which the image is built.
IMAGE_BASE := .cache/image-base.tar
.PHONY: image image-tools
image-tools:
	@{ command -v buildah && command -v crun && command -v mmdebstrap; } >/dev/null || \
		$(call install_package,--no-install-recommends buildah crun mmdebstrap debian-archive-keyring,the image)
$(IMAGE_BASE): | image-tools
	@mkdir -p $(@D)
	mmdebstrap --quiet --variant=minbase --include=ca-certificates trixie $@
image: $(QUICK) wheel $(IMAGE_BASE)
	$(call say,the image of containers/Dockerfile$(comma) and a driver and services in its containers)
	$(BIN)/python -m pytest tests/container_image.py

clean:
	rm -rf $(VENV) dist
	cargo clean
