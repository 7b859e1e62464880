//! The IP addresses that a webhook may have.
//!
//! The configuration of a webhook names a host. The owner of the host name, or the service through a redirect, decides
//! which address Rowmill connects to. To prevent server-side request forgery (SSRF), the address must be public.
//! Private addresses are allowed only if the configuration asks for them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use AddressKind::{Forbidden, Private, Public};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressKind {
    Public,
    /// This machine or a private network: loopback, RFC 1918, RFC 6598 (carrier-grade NAT), IPv6 unique local.
    Private,
    /// Never a valid webhook address: unspecified, link-local (cloud metadata services serve credentials there),
    /// multicast, reserved, documentation and benchmark ranges. Also IPv6 addresses that embed an IPv4 address (mapped,
    /// NAT64, 6to4, Teredo), because they would bypass the rules for IPv4.
    Forbidden,
}

impl AddressKind {
    /// Classifies an address by the IANA special-purpose address registries.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }

    /// True if a webhook may have such an address.
    pub const fn is_allowed(self, allow_private: bool) -> bool {
        match self {
            Public => true,
            Private => allow_private,
            Forbidden => false,
        }
    }
}

const fn of_v4(address: Ipv4Addr) -> AddressKind {
    match address.octets() {
        [10 | 127, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Private,
        // "This network"; link-local.
        [0, ..] | [169, 254, ..] => Forbidden,
        // Protocol assignments, documentation, the 6to4 relay, benchmarks, multicast, reserved, broadcast.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => Forbidden,
        [224..=255, ..] => Forbidden,
        _ => Public,
    }
}

const fn of_v6(address: Ipv6Addr) -> AddressKind {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Private,
        // The AWS metadata service; its address lies inside the unique local range.
        [0xfd00, 0xec2, ..] => Forbidden,
        [0xfc00..=0xfdff, ..] => Private,
        // Teredo, ORCHID, benchmarks and other protocol assignments; documentation; 6to4.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => Forbidden,
        // The only range that IANA has allocated as global unicast.
        [0x2000..=0x3fff, ..] => Public,
        _ => Forbidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_purpose_addresses_are_not_classified_as_public() {
        let table = [
            (Public, "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 52.94.236.248 100.63.255.255 100.128.0.0 126.255.255.255"),
            (Public, "128.0.0.1 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.1"),
            (Public, "192.0.3.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0"),
            (Public, "198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255"),
            (Public, "2000::1 2001:200::1 2001:4860:4860::8888 2003::1 2606:4700::1111 2a05:d018::1 3ffe:ffff::1"),
            (Private, "10.0.0.0 10.255.255.255 127.0.0.1 127.255.255.254 172.16.0.0 172.31.255.255 192.168.0.1"),
            (Private, "192.168.255.255 100.64.0.0 100.127.255.255"),
            (Private, "::1 fc00::1 fd00:ec3::254 fd12:3456::1 fdff:ffff::"),
            (Forbidden, "0.0.0.0 0.1.2.3 169.254.0.1 169.254.169.254 169.254.170.2 192.0.0.1 192.0.0.171 192.0.2.1"),
            (Forbidden, "192.88.99.1 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.7 224.0.0.1 239.255.255.250"),
            (Forbidden, "240.0.0.1 255.255.255.255"),
            (Forbidden, ":: ::7f00:1 ::ffff:8.8.8.8 ::ffff:127.0.0.1 ::ffff:0:7f00:1 64:ff9b::7f00:1 64:ff9b:1::a00:1"),
            (
                Forbidden,
                "100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1 2001:20::1 2001:1ff::1",
            ),
            (Forbidden, "2001:db8::1 2002:7f00:1:: 2002:a00:1::1 3fff::1 3fff:fff::1 4000::1 5f00::1 fe00::1 fe80::1"),
            (Forbidden, "fe80::a9fe:a9fe fec0::1 ff02::1 ff0e::1 fd00:ec2::254"),
        ];
        for (kind, addresses) in table {
            for address in addresses.split(' ') {
                assert_eq!(AddressKind::of(address.parse().unwrap()), kind, "{address}");
            }
        }
    }

    #[test]
    fn private_addresses_need_allow_private_and_forbidden_ones_are_never_allowed() {
        assert_eq!([Public, Private, Forbidden].map(|kind| kind.is_allowed(false)), [true, false, false]);
        assert_eq!([Public, Private, Forbidden].map(|kind| kind.is_allowed(true)), [true, true, false]);
    }
}
