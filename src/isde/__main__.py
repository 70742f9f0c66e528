"""`python -m isde`: the command line, where the script is not on the path."""

from isde.cli import main

if __name__ == "__main__":
    main(prog_name="isde")
