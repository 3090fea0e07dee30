"""Stop, continue or scale: the advice for a run or a sweep, with the numbers that it rests on and its words."""
