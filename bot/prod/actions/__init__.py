"""What `decide_prod` may ask for, done: one function an action, over the facts of one pass."""
