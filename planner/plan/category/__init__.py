"""The category of a change: breaking, non-breaking or forward-only, and its reasons."""
