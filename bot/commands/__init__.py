"""The commands of pull requests: a command is a file in `verbs/`, and a line of the table that registers it. Pure."""
