"""Ansible, with the collection of modules for OpenStack."""
