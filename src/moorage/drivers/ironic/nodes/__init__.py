"""The machines of an Ironic: listed, shared out, described for the scheduler; their states and failures.

Nothing here changes one of them."""
