"""The ports of servers while an operation works on them."""
