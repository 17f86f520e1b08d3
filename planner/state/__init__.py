"""What mergeplan remembers: what is where, what is loaded, who may change it."""
