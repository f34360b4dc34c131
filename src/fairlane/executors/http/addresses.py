"""Which addresses are public: everything that is not set aside for something else."""

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

# Written out, after IANA's registries of special addresses: `is_global` has changed its mind
# between versions of Python.
_SET_ASIDE = {
    ipaddress.ip_network(network): what
    for network, what in {
        "0.0.0.0/8": "unspecified",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "shared by a carrier",
        "127.0.0.0/8": "loopback",
        "169.254.0.0/16": "link-local",
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "reserved",
        "192.0.2.0/24": "for documentation",
        "192.88.99.0/24": "6to4",
        "192.168.0.0/16": "private",
        "198.18.0.0/15": "for benchmarks",
        "198.51.100.0/24": "for documentation",
        "203.0.113.0/24": "for documentation",
        "224.0.0.0/4": "multicast",
        "240.0.0.0/4": "reserved",
        "168.63.129.16/32": "a cloud's own",  # Azure's agent: public by number alone
        "::/128": "unspecified",
        "::1/128": "loopback",
        "::ffff:0:0/96": "an IPv4 address in disguise",
        "64:ff9b::/96": "NAT64",
        "64:ff9b:1::/48": "NAT64",
        "2001::/32": "Teredo",
        "2001::/23": "reserved",
        "2001:db8::/32": "for documentation",
        "2002::/16": "6to4",
        "3fff::/20": "for documentation",
        "fc00::/7": "private",
        "fe80::/10": "link-local",
        "ff00::/8": "multicast",
    }.items()
}
_UNICAST = ipaddress.ip_network("2000::/3")  # all of IPv6 that is given out


def set_aside(address: Address) -> str | None:
    """What an address is for, if it is not a public one."""
    for network, what in _SET_ASIDE.items():
        if address in network:
            return what
    if address.version == 6 and address not in _UNICAST:
        return "reserved"
    return None
