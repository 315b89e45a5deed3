"""One module per method; `reference.catalogue` lists them."""
