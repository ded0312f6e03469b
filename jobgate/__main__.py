"""`python -m jobgate`: the commands of the client."""

from jobgate.interrupts import silent_interrupts
from jobgate.streams import prepare_streams

if __name__ == "__main__":
    prepare_streams()
    with silent_interrupts():
        from jobgate.cli.command import main
    main()
