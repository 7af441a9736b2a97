"""The website: hand-written pages from ``docs/``, and pages generated from the rules, the options and the parsers.

``python -m website`` builds it, ``python -m website.check`` opens every page in a browser, and
``python -m website.wild FOLDER ...`` counts findings in public code for the page "Found in the wild".
"""
