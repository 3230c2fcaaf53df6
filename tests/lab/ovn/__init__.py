"""OVN for the tests: its databases on this machine, and on each host Open vSwitch in user space."""
