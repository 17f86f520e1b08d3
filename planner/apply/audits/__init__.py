"""Audits during an apply: their order, external tables, new and standalone audits."""
