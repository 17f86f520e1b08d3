"""How the state database came to be, one step after another."""
