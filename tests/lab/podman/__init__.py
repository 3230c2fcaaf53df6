"""A container engine in namespaces of its own, with images that stand in for those of a registry."""
