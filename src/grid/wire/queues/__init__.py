"""Calls that share messages: those made while messages are on their way go into the next one."""
