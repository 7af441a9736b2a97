"""Function summaries: the effects of project functions, computed when they are called."""
