"""How the records change: each function takes a record as it is stored and returns the next one. Pure.

`Pulls.update` and `Prods.update` apply them to the newest record within one transaction. A transition sets the fields
that it is about and copies the rest, so two writers of different fields lose nothing.
"""
