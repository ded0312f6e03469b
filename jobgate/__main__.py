"""`python -m jobgate`: the commands of the client."""

from jobgate.cli.commands import main
from jobgate.streams import prepare_streams

if __name__ == "__main__":
    prepare_streams()
    main()
