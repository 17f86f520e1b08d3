"""Where packages are fetched from, as the operator says. Pure."""
