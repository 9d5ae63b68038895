"""The file system for fsspec: `grid://` and `grid+cap://` URLs for pandas, pyarrow, zarr, dask and their kin."""
