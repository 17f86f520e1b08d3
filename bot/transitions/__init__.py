"""How the records change: one typed function a transition. Pure."""
