"""Local routes to parts of 198.18.0.0/15, for pod addresses that the proxy of a real API server accepts.

RFC 2544 reserves that network for benchmarks between machines, so it is unused elsewhere. As with 127.0.0.0/8, every
address of a routed part belongs to this machine, without being added to an interface.
"""

import socket
import struct
import sys

RTM_NEWROUTE, RTM_DELROUTE, NLMSG_ERROR = 24, 25, 2
NLM_F_REQUEST, NLM_F_ACK, NLM_F_REPLACE, NLM_F_CREATE = 1, 4, 0x100, 0x400
RTA_DST, RTA_OIF = 1, 4
TABLE_LOCAL, PROTOCOL_STATIC, SCOPE_HOST, TYPE_LOCAL = 255, 4, 254, 2
# A network has 512 addresses: 250 such networks fit into 198.18.0.0/15.
ROUTED_BITS = 23


def add_local_route(network: str) -> bool:
    """Add a local route to the network; return False if this process may not or the system is not Linux."""
    return _change(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, network)


def remove_local_route(network: str) -> bool:
    return _change(RTM_DELROUTE, 0, network)


def _change(what: int, flags: int, network: str) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        # A struct rtmsg and its attributes, behind a struct nlmsghdr.
        body = struct.pack(
            "=8BI", socket.AF_INET, ROUTED_BITS, 0, 0, TABLE_LOCAL, PROTOCOL_STATIC, SCOPE_HOST, TYPE_LOCAL, 0
        )
        body += struct.pack("=HH4s", 8, RTA_DST, socket.inet_aton(network))
        body += struct.pack("=HHI", 8, RTA_OIF, socket.if_nametoindex("lo"))
        header = struct.pack("=IHHII", 16 + len(body), what, NLM_F_REQUEST | NLM_F_ACK | flags, 1, 0)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
            kernel.bind((0, 0))
            kernel.send(header + body)
            answer = kernel.recv(4096)
    except OSError:
        return False
    _, kind, _, _, _, error = struct.unpack("=IHHIIi", answer[:20])
    # The kernel acknowledges a success as error 0.
    return bool(kind == NLMSG_ERROR and error == 0)
