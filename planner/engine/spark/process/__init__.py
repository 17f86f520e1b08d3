"""The Java process of an embedded Spark: its installation, options, start, health and confinement."""
