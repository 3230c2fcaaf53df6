"""Servers: their rows, states, actions and traces, and what users may ask of them."""
