"""The rules that tests/test_tidy.py checks, and what is allowed to break them."""
