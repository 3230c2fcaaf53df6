# Every target works on a fresh Debian with Python 3.11, pip, git and make, as root or not, and costs
# nothing when nothing changed. `make help` lists them.

PYTHON ?= python3
VENV ?= .venv
DATA ?= data
ARGS ?=
# More than cores, since many tests wait more than they work. Files are kept whole, because a file's tests may
# share a server, and are handed out in the order of tests/support/order.py.
WORKERS ?= 6
PYTEST ?= $(VENV)/bin/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INPUTS := pyproject.toml requirements/ci.txt

.DEFAULT_GOAL := help
.PHONY: deb dist licences packages audits clients guest-image help machines up up-libvirt test lint format unit docs graphs microversions conformance chaos step-kills bench-placement bench-aggregates bench-boot bench-fleet bench-machines bench-ports bench-takeover bench-targeted integration reference lab lock novnc release-note rolling-upgrade soak tempest clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

up: $(VENV)/.run  ## install and run Moorage in one process (SQLite in ./data, loopback)
	$(BIN)/moorage up --data $(DATA) $(ARGS)

# What is missing on this machine, `moorage doctor --driver libvirt` says, with the command that installs it.
up-libvirt: $(VENV)/.libvirt guest-image  ## as `up`, with real servers: on this machine, by its libvirt (as root)
	$(BIN)/moorage up --driver libvirt --data $(DATA) $(ARGS)

guest-image: .cache/guest/disk.qcow2  ## make a small guest that real hosts can boot (Debian, amd64)

.cache/guest/disk.qcow2: $(wildcard guest/*)
	$(PYTHON) -m guest .cache/guest

test: $(VENV)/.test  ## everything that CI runs: lint, types, layers, docs, all tests
	@$(MAKE) --no-print-directory --jobs 2 --output-sync lint docs reference lab
	$(PYTEST) $(ARGS)

lint: $(VENV)/.test  ## style, types, and the layers of the design
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.test  ## put the code into the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

unit: $(VENV)/.test  ## the quick tests only
	$(PYTEST) tests/unit $(ARGS)

conformance: $(VENV)/.test reference lab  ## suites that others publish, and the differential tests
	MOORAGE_EXAMPLES=1 $(PYTEST) tests/conformance tests/unit/placement tests/functional/compute/test_junk_requests.py $(ARGS)

# `ARGS='--regex test_server_actions --stay'` for some of it, and a cloud that stays up to look at.
tempest: $(VENV)/.test lab  ## OpenStack's own tests of a Compute API, against a cloud that is made for it (long)
	$(BIN)/python -m tests.conformance.tempest $(ARGS)

integration: $(VENV)/.test lab  ## with real neighbours: Keystone, the official client
	$(PYTEST) tests/integration $(ARGS)

# More and longer schedules than in CI; `CHAOS_SEED=N` (which each run prints) repeats one.
chaos: $(VENV)/.test lab  ## kill and race the services for half an hour, then check their books
	CHAOS_SCHEDULES=$${CHAOS_SCHEDULES:-16} CHAOS_KILLS=$${CHAOS_KILLS:-24} CHAOS_SERVERS=$${CHAOS_SERVERS:-240} CHAOS_DRAINED=$${CHAOS_DRAINED:-200} \
	    $(BIN)/pytest -s tests/chaos $(ARGS)

# `SOAK_SERVERS=N` for fewer. What the database, the journals and the memory have come to is printed.
soak: $(VENV)/.test  ## boot and delete a million servers, and see that nothing grows (long)
	SOAK_SERVERS=$${SOAK_SERVERS:-1000000} $(BIN)/pytest -s -p no:logging tests/functional/conductor/test_soak.py -k sqlite $(ARGS)

# Ten minutes; `AUDIT_KILLS=N` for more or fewer. None may find what is merely under way.
audits: $(VENV)/.test  ## audit a cloud every second beside a load of boots, deletes and kills (long)
	AUDIT_KILLS=$${AUDIT_KILLS:-280} $(BIN)/pytest -s tests/chaos/test_boot_kills.py --timeout 1800 $(ARGS)

# The long form of what CI has of it: each process killed at each step of each kind of operation, on both databases.
step-kills: $(VENV)/.test lab  ## kill each process at each step of each kind of operation (long)
	MOORAGE_STEP_KILLS=all $(BIN)/pytest -s tests/chaos/test_step_kills.py tests/chaos/test_repair_kills.py $(ARGS)

# At 50 requests a second; what was asked, lost and left stuck is printed.
rolling-upgrade: $(VENV)/.test  ## upgrade a cloud in pieces under load, process by process, and take some back (long)
	MOORAGE_ROLLING_UPGRADES=$${MOORAGE_ROLLING_UPGRADES:-2} MOORAGE_RESTARTS=10 $(BIN)/pytest -s --timeout 1800 \
	    tests/integration/test_rolling_upgrade.py tests/functional/cli/test_rolling_restarts.py $(ARGS)

# The long form of what CI has of it: all moves and more kills.
machines: $(VENV)/.test lab guest-image  ## with real virtual machines on hosts in namespaces (as root, long)
	MOORAGE_MACHINES=1 MOORAGE_GUEST_KILLS=$${MOORAGE_GUEST_KILLS:-20} $(BIN)/pytest tests/integration/libvirt $(ARGS)

# Horizon in a headless Chromium, which is installed if we are root, and Ansible's modules; pictures: .cache/horizon
clients: $(VENV)/.test lab  ## Horizon, and Ansible's modules for OpenStack, on a cloud of ours (long)
	MOORAGE_CLIENTS=1 $(BIN)/pytest tests/integration/clients $(ARGS)

bench-placement: $(VENV)/.test reference  ## side by side with the reference Placement (long)
	$(BIN)/python -m bench.placement $(ARGS)

bench-aggregates: $(VENV)/.test  ## aggregates mirrored in Placement: all hosts at once, and one by one (long)
	$(BIN)/python -m bench.aggregates $(ARGS)

bench-targeted: $(VENV)/.test  ## a decision for one certain host, beside one for any, in growing fleets
	$(BIN)/python -m bench.targeted $(ARGS)

bench-takeover: $(VENV)/.test reference  ## coming over from a large reference Placement, and going back (long)
	$(BIN)/python -m bench.takeover $(ARGS)

bench-boot: $(VENV)/.test  ## servers a second on simulated nodes, embedded and scaled (long)
	$(BIN)/python -m bench.boot $(ARGS)

bench-ports: $(VENV)/.test lab  ## calls to Neutron a boot, and the time of both phases
	$(BIN)/python -m bench.ports $(ARGS)

bench-fleet: $(VENV)/.test  ## share a simulated Ironic's nodes among hosts (long)
	$(BIN)/python -m bench.fleet $(ARGS)

bench-machines: $(VENV)/.test guest-image  ## boot and move real guests, beside `virsh` alone (as root, long)
	$(BIN)/python -m bench.machines $(ARGS)

# A wheel and the source, as an index of packages takes them.
dist: $(VENV)/.run  ## build the wheel and the source archive into ./dist
	$(PIP) build
	$(BIN)/python -m build --quiet --outdir dist .

# Built with this Python, and for Debian's of the same version: 3.11 is bookworm's.
deb: $(VENV)/.run  ## build packages of Debian into ./dist
	$(BIN)/python -m packages.debian dist

licences: $(VENV)/.test  ## list the licences of all that comes along, in docs/licences.md
	$(BIN)/python -m packages.licences > docs/licences.md

packages: $(VENV)/.test lab  ## build, install, run, upgrade and purge all that is published (as root, long)
	MOORAGE_PACKAGES=1 $(BIN)/pytest -s tests/integration/packages $(ARGS)

reference: $(VENV)/.test
	@$(BIN)/python -m tests.conformance.reference_env >/dev/null

lab: $(VENV)/.test
	@$(BIN)/python -m tests.lab >/dev/null

docs: $(VENV)/.test  ## build the documentation into docs/_build/html
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

graphs: $(VENV)/.test  ## draw the steps of each kind of operation into the documentation
	$(BIN)/python -m moorage.conductor.operations.graphs > docs/compute/operations.md

microversions: $(VENV)/.test  ## write the tables of microversions into the documentation
	$(BIN)/python -m moorage.compute_api.microversions > docs/compute/microversions.md
	$(BIN)/python -m moorage.placement.microversions > docs/placement/microversions.md

# Only what the pages need: the library, and what it imports.
NOVNC ?= 1.7.0
novnc:  ## take noVNC (NOVNC=version) from npm's registry into src/moorage/consoles/novnc
	rm -rf .cache/novnc && mkdir -p .cache/novnc
	cd .cache/novnc && npm pack --silent @novnc/novnc@$(NOVNC) && tar -xzf *.tgz
	rm -rf src/moorage/consoles/novnc && mkdir -p src/moorage/consoles/novnc/docs src/moorage/consoles/novnc/vendor
	cd .cache/novnc/package && cp -r core AUTHORS LICENSE.txt $(CURDIR)/src/moorage/consoles/novnc
	cp -r .cache/novnc/package/vendor/pako src/moorage/consoles/novnc/vendor
	cp .cache/novnc/package/docs/LICENSE.MPL-2.0 src/moorage/consoles/novnc/docs
	echo $(NOVNC) > src/moorage/consoles/novnc/VERSION

release-note: $(VENV)/.test  ## start a release note: make release-note ARGS=short-name
	$(BIN)/reno new $(ARGS)

lock: $(VENV)/.test  ## write down what is installed now as what CI uses
	@{ grep '^#' requirements/ci.txt; $(BIN)/python -m pip freeze --exclude-editable | grep '=='; } > requirements/ci.new
	@mv requirements/ci.new requirements/ci.txt

clean:  ## remove environments, caches and built documents; ./data stays
	rm -rf $(VENV) .venvs .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build docs/_build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.run: $(BIN)/python $(INPUTS)
	$(PIP) -c requirements/ci.txt -e .
	@touch $@

$(VENV)/.libvirt: $(VENV)/.run
	$(PIP) -c requirements/ci.txt -e '.[libvirt]'
	@touch $@

$(VENV)/.test: $(BIN)/python $(INPUTS)
	$(PIP) -c requirements/ci.txt -e '.[test,docs]'
	@touch $@ $(VENV)/.run

# Debian's Python comes without `ensurepip` unless python3-venv is installed; `virtualenv` brings its own
# pip, and goes into a directory of its own because Debian's pip refuses to touch the system.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Moorage needs Python 3.11 or newer")'
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { \
	    rm -rf $(VENV); \
	    $(PYTHON) -m pip install --quiet --target .cache/virtualenv virtualenv && \
	    PYTHONPATH=.cache/virtualenv $(PYTHON) -m virtualenv --quiet $(VENV); }
