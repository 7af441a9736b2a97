"""Function summaries: what the functions of the project do, worked out when somebody calls them."""
