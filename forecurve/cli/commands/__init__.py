"""One module a command, or a noun with its verbs."""
