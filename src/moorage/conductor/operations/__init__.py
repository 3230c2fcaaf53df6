"""The kinds of operations, one a file, all of them in `register.py`.

What makes a server and ends it is here; what is done with one that is there is in `guests`, what moves it in
`moves`, what makes images of it in `imaging`, and what changes its ports in `interfaces`.
"""
