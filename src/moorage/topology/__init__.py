"""What a flavor and an image ask of a host's processors, memory and devices: typed, checked, and pure.

The Compute API refuses by it what makes no sense, the scheduler makes request groups of it, and drivers pin
guests by it, so that all three read the same words alike.
"""
