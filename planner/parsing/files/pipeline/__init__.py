"""Spark Declarative Pipelines: their specification and their SQL files, as texts of models."""
