"""The benchmark harness: named campaigns, real process grids side by side, raw samples, and sound statistics.

python -m perf run put-get
python -m perf report RECORDS
python -m perf compare BEFORE AFTER
"""

import sys
from importlib.util import find_spec

# At this moment, sys.argv[0] is still "-m" if `python -m perf` is what imports this.
if sys.argv[:1] == ["-m"] and not all(map(find_spec, ("grid", "twisted"))):
    sys.exit("perf: Grid is not installed for this Python: run `make install` and `. .venv/bin/activate`")
