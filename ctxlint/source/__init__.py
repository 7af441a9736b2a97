"""From paths to text: discover files, scan their bytes, decode them, extract the relevant statements."""
