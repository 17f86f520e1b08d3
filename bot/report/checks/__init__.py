"""The checks of a pull request: a file for each, and `table`, which registers them."""
