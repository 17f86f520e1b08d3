"""What was worked out before, kept on this machine by content: dropping it loses time and nothing else."""
