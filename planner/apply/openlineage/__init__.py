"""Telling others, in OpenLineage's words, what ran, what it read and what it wrote."""
