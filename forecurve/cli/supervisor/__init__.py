"""What `forecurve up` does: start every part of the service on one machine, watch them, stop them cleanly."""
