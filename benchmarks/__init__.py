"""What is timed, and against whom: `python -m benchmarks [part ...]`.

A part of the site has a folder below `parts/` and a record,
`records/<gpu>/<part>.json`. Each module of the folder says what one list of it holds.
"""
