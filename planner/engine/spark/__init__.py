"""Spark itself: finding a Java, starting it quietly, sharing its catalog, and the verbs of the engine on it."""
