# Each target sets up all that it needs: Python 3.11 or newer with its venv module is all that must be there.
# PYTHON=/path/to/python3 chooses one.

.PHONY: help install demo test test-deep lint types tests interop browser docs perf-smoke packaging py312 py313 peers peers-test doors main-job measure format clean

help:
	@echo "make install Grid and its command, grid, in .venv"
	@echo "make demo    ten nodes, a file put, seven nodes stopped, the file back again"
	@echo "make test    everything: lint, types, docs, perf-smoke, packaging, interop, browser, tests, py312, py313 (one at a time: make lint, ...)"
	@echo "make test-deep  all rows of all tests, and many examples of each property: hours, for the night"
	@echo "make docs    the documentation as a site, in .tox/docs/site"
	@echo "make peers   the programs that Grid is measured beside, in the user's cache (GRID_PEERS); PEERS='minio azurite' adds those that are not installed unasked"
	@echo "make peers-test each of them driven as campaigns drive it; a missing one is named and skipped"
	@echo "make doors   real clients at the doors of a real grid: boto3, aws, rclone, s5cmd, restic, pandas, zarr, dask; a missing one is named and skipped"
	@echo "make measure every published scenario beside its peers, about three hours; the page is .tox/measure/found/index.html"
	@echo "make main-job 10,000 small files and two of a gigabyte from an S3 and an SFTP server onto a grid and back, killed on the way; 30 GB in TMPDIR"
	@echo "make format  lay the sources out"
	@echo "make clean   remove all that these have set up"

install: .venv/installed
	@echo "Installed. In each new shell: . .venv/bin/activate"

demo: .venv/installed
	.venv/bin/python scripts/demo.py

.venv/installed: setup.cfg setup.py pyproject.toml $(shell find src/grid -name '*.py' -o -name '*.c')
	@echo "Installing Grid, and what it needs from PyPI, into .venv. This takes about a minute."
	sh scripts/make_venv.sh .venv
	sh scripts/retry.sh .venv/bin/python -m pip install --quiet .
	touch $@

SETUP = environment,tahoe-peer,programs
STAGES = interop,tests,lint,packaging,docs,browser,types,perf-smoke,py312,py313

# Three at a time, in this order: the two longest have a lane each, and the others take turns in the third. Nobody looks at pictures of the
# pages, which take an eighth of the browser's time; `make browser` takes them.
test: .tox/bootstrap/installed
	GRID_SCREENSHOTS= .tox/bootstrap/bin/tox run-parallel --parallel 3 --parallel-no-spinner -e $(SETUP),$(STAGES)

interop: .tox/bootstrap/installed
	.tox/bootstrap/bin/tox run -e $(SETUP),$@

lint types tests browser docs perf-smoke packaging: .tox/bootstrap/installed
	.tox/bootstrap/bin/tox run -e environment,$@

py312 py313: .tox/bootstrap/installed
	.tox/bootstrap/bin/tox run -e $@

# What repeats a claim that make test holds with fewer rows: every night, and before a release.
test-deep: .tox/bootstrap/installed
	.tox/bootstrap/bin/tox run -e $(SETUP),deep

peers: .tox/bootstrap/installed
	.tox/bootstrap/bin/python scripts/make_peers.py $(PEERS)

peers-test: .tox/bootstrap/installed
	.tox/bootstrap/bin/tox run -e environment,peers

measure: .tox/bootstrap/installed
	-.tox/bootstrap/bin/python scripts/make_peers.py
	.tox/bootstrap/bin/tox run -e environment,tahoe-peer,$@ -- $(ARGS)

main-job: .tox/bootstrap/installed
	GRID_MAIN_JOB=full .tox/bootstrap/bin/tox run -e environment,doors -- -s tests/doors/test_main_job.py

doors: .tox/bootstrap/installed
	.tox/bootstrap/bin/tox run -e environment,$@

format: .tox/bootstrap/installed
	.tox/bootstrap/bin/tox run -e environment
	.tox/environment/bin/ruff format .
	.tox/environment/bin/ruff check --fix .

.tox/bootstrap/installed: constraints.txt
	sh scripts/make_venv.sh .tox/bootstrap
	-.tox/bootstrap/bin/python -m pip install --quiet --no-compile --only-binary :all: --constraint constraints.txt uv
	PIP_CONSTRAINT=constraints.txt sh scripts/install.sh .tox/bootstrap/bin/python tox
	touch $@

clean:
	rm -rf .venv .tox build
