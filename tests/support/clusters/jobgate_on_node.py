"""The program `jobgate` in a pod of the node agent.

The pods of a node agent share the network of this machine, so each process listens on the address of its pod alone.
"""

import socket
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from jobgate.__main__ import main

EVERYWHERE = "0.0.0.0"

if __name__ == "__main__":
    address = socket.gethostbyname(socket.gethostname())
    sys.argv[1:] = [address if argument == EVERYWHERE else argument for argument in sys.argv[1:]]
    main()
