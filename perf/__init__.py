"""The benchmark harness: named campaigns, real process grids side by side, raw samples, and sound statistics.

python -m perf run put-get
python -m perf report RECORDS
python -m perf compare BEFORE AFTER
"""
