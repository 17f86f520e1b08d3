"""What mergeplan gives programs: each JSON line as a type, with a version. Writer, reader, schema and docs use it."""
