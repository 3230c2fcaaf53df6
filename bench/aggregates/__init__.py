"""What it takes to mirror host aggregates in Placement."""
