"""What administrators see of hosts: services, hypervisors, aggregates, zones."""
