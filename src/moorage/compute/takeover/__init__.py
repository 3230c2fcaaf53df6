"""Taking over a cloud of Nova's: its databases are read here, and become ours.

`nova_tables` and `nova_objects` know how Nova writes things down; `api_reader` and `cell_reader` read that
into the records of `nova_cloud`, and `nova_source` opens all databases of a cloud. `survey` counts, and says
what can't come over. `cloud_rows`, `server_rows` and `port_records` make rows of our tables from records;
`imported_rows` is all of them in order, which `writing` writes, and `comparing` looks for afterwards.
"""
