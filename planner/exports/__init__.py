"""The catalog in the formats of other tools."""
