"""`python -m midst` is `midst`."""

from midst.cli import main

main()
