"""Adopt existing tables as those of models."""
