"""The pipeline: many files, one file, and what files know of each other."""
