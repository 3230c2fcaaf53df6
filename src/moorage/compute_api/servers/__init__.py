"""`/servers`: bodies, views, filters, actions, and what is below a server."""
