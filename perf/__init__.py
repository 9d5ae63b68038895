"""The benchmark harness: named campaigns, real grids of processes side by side, raw samples, honest statistics.

python -m perf run put-get
python -m perf report RECORDS
python -m perf compare BEFORE AFTER
"""
