"""How each table format creates tables and commits batches to them: a file for each, behind one port.

`format_tables.py` is the port, `hive_files.py` what parquet and ORC need of it, `delta.py` and `iceberg.py` what
those do.
"""
