"""The pipeline: many files, one file, and cross-file facts."""
