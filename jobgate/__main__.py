"""`python -m jobgate`: the commands of the client."""

from jobgate.cli.commands import main

if __name__ == "__main__":
    main()
