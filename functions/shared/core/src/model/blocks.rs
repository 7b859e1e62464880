//! Callers as quotas see them, and the rows by which an operator blocks a caller.
//!
//! `rowmill block` writes these rows to the admission table, and the functions read them. A row has the key
//! [`scope`] and the attributes [`AT`] and, if there is one, [`REASON`].

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use crate::model::ids::Owner;

pub const SCOPE_PREFIX: &str = "block#";

/// The attribute with the time of the block, in milliseconds since 1970.
pub const AT: &str = "at";

/// The field in the authorizer context of an event that names the owner for whom an operator of the stack acts.
pub const OPERATOR_FOR: &str = "operatorFor";

/// The attribute with the operator's reason.
pub const REASON: &str = "reason";

pub const REASON_MAX_BYTES: usize = 500;

/// Bits of an IPv6 address that count. A provider gives a customer a network of 64 bits, so one caller has all of its
/// addresses.
const IPV6_NETWORK_BITS: u32 = 64;

/// One whose requests are counted together and who can be blocked: `owner:user-7`, `address:192.0.2.7`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Principal {
    Owner(Owner),
    /// An IPv4 address, or the first address of an IPv6 network of 64 bits: see [`Principal::of_address`].
    Address(IpAddr),
}

impl Principal {
    /// The principal of a source address: the address itself, or its /64 network for IPv6.
    pub fn of_address(address: IpAddr) -> Self {
        Self::Address(match address.to_canonical() {
            IpAddr::V6(address) => {
                let network = u128::from(address) >> (128 - IPV6_NETWORK_BITS) << (128 - IPV6_NETWORK_BITS);
                IpAddr::V6(Ipv6Addr::from(network))
            }
            v4 @ IpAddr::V4(_) => v4,
        })
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Owner(owner) => write!(f, "owner:{owner}"),
            Self::Address(address @ IpAddr::V4(_)) => write!(f, "address:{address}"),
            Self::Address(address @ IpAddr::V6(_)) => write!(f, "address:{address}/{IPV6_NETWORK_BITS}"),
        }
    }
}

/// The key of the row that blocks a principal.
pub fn scope(principal: &Principal) -> String {
    format!("{SCOPE_PREFIX}{principal}")
}

/// The principal that the row of this key blocks. `None` if it is another row.
pub fn principal_of(scope: &str) -> Option<Principal> {
    let principal = scope.strip_prefix(SCOPE_PREFIX)?;
    if let Some(owner) = principal.strip_prefix("owner:") {
        return Owner::of_name(owner).map(Principal::Owner);
    }
    let address = principal.strip_prefix("address:")?;
    address.strip_suffix("/64").unwrap_or(address).parse().ok().map(Principal::of_address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Principal {
        Principal::of_address(text.parse().unwrap())
    }

    #[test]
    fn a_key_leads_back_to_its_principal() {
        for (principal, key) in [
            (Principal::Owner(Owner("a:b/64".into())), "block#owner:a:b/64"),
            (address("192.0.2.7"), "block#address:192.0.2.7"),
            (address("2001:db8:1:2:3::4"), "block#address:2001:db8:1:2::/64"),
        ] {
            assert_eq!(scope(&principal), key);
            assert_eq!(principal_of(key), Some(principal));
        }
        for other in ["owner#me", "block#me", "block#owner:", "block#address:here", "system"] {
            assert_eq!(principal_of(other), None, "{other}");
        }
    }

    #[test]
    fn all_addresses_of_an_ipv6_network_are_one_principal() {
        assert_eq!(address("2001:db8:1:2::1"), address("2001:db8:1:2:ffff::9"));
        assert_ne!(address("2001:db8:1:2::1"), address("2001:db8:1:3::1"));
        assert_eq!(address("::ffff:192.0.2.7"), address("192.0.2.7"));
    }
}
