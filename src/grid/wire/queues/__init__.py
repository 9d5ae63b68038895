"""Calls that share messages: what is asked while messages are on their way goes into the next one."""
