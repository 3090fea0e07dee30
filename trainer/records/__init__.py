"""What a run leaves behind: its directory, its checkpoints, its reports; and how it goes on from them."""
