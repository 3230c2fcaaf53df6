"""How long hosts that share the nodes of an Ironic take to find, keep and inherit them."""
