"""Images: where they are looked up (`contract`, with `glance` and the built-in `catalogue`), and their data
on its way to and from agents (`store` over HTTP, `local_store` in one process). `record`, `files` and
`uploads` are the catalogue's, `api` is how clients reach it.
"""
