"""What the verbs print, as text: one file for each subject."""
