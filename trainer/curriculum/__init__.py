"""Which prompts come, who may start on them, and which groups make the next batch."""
