"""What a person gives: flags, amounts, files of curves, recipes."""
