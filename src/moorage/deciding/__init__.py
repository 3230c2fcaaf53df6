"""From servers' requests to hosts: what they refer to, the states of hosts, the decision, the plan."""
