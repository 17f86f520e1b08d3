"""Who may do what, who must agree, and when nothing is promoted. Pure."""
