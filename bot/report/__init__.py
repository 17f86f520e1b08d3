"""What people read on GitHub: the plan comment, the checks, the replies. Pure."""
