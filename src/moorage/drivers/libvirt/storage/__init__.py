"""The disks of guests: a directory for each server (`server_directory.py`), whose disks (`disks.py`) lie over
base images that servers share (`image_cache.py`). `qemu_img.py` is the program that all of them use."""
