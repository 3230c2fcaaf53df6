"""The proxy to guests' screens and serial lines: pages, WebSockets, and what lies behind them."""
