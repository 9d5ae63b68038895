"""The fsspec file system: `grid://` and `grid+cap://` URLs for pandas, pyarrow, zarr, dask and similar programs."""
