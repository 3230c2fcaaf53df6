"""The Image API of the built-in catalogue: `routes` is the table of what it takes, `reads`, `changes` (with
`patch`) and `data` do it, `access` says who may, `view` and `schemas` how images look; `wsgi` is all of it.
"""
