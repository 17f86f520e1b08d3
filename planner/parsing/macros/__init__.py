"""Macros: from the tokens that a person wrote to the tokens that they stand for."""
