"""What the service or a file said, as tables and words for people and as rows for other programs."""
