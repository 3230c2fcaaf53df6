"""Prefilters: conditions that Placement can check itself, put into the query instead of checked afterwards.

Each gets what it has to know as plain values, and answers with a narrower request.
"""
