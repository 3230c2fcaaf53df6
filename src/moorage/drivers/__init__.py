"""What keeps servers on nodes: the contract, its parts, and the drivers that come with Moorage.

`contract.py` is what every driver does, `parts.py` what only some can, and `capabilities.py` what nodes tell
of that; `plugin.py` and `installed.py` are how a driver is found. Each driver has a package of its own.
"""
