"""Databases as releases left them, each opened by this code."""
