"""From paths to text: find files, scan their bytes, decode them, cut out the statements that matter."""
