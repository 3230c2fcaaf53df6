"""What is done with a server where it is: mostly one task for its host (`host_task.py`)."""
