"""Audits during an apply: external tables, new and standalone audits."""
