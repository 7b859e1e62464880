//! Kinds of addresses: one that HTTP can use, one of this machine.

use std::net::IpAddr;

use reqwest::Url;

/// True if a URL is `http` or `https` with a host.
pub fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

/// True if a host is `localhost` or a loopback address. An IPv6 address may be in brackets.
pub fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
