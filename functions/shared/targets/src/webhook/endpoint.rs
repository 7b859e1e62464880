use std::net::IpAddr;

use reqwest::Url;

use crate::addresses::AddressKind;

/// An allowed URL of a webhook.
///
/// A host name is resolved, and its addresses are checked, for each connection. A URL with an IP address instead of a
/// name is checked here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Endpoint {
    url: Url,
    allow_private: bool,
}

/// Why a URL is not allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UrlRefused {
    /// It is not a URL.
    #[error("it is not a URL")]
    NotAUrl,
    /// It would send the items unencrypted over a network.
    #[error("it must begin with `https://`; `http://` is allowed only on this machine, with `allowPrivate`")]
    NotEncrypted,
    /// It contains a user name or a password, which could end up in logs.
    #[error("it contains a user name or password; remove it: calls are signed, see `Rowmill-Signature`")]
    Credentials,
    /// Its host is an IP address that is not allowed.
    #[error("its host is a private or reserved address; see `allowPrivate`")]
    Address,
}

impl Endpoint {
    /// Checks the URL.
    ///
    /// # Errors
    /// See [`UrlRefused`].
    pub fn new(url: &str, allow_private: bool) -> Result<Self, UrlRefused> {
        Self::at(Url::parse(url).map_err(|_| UrlRefused::NotAUrl)?, allow_private)
    }

    /// The endpoint that a redirect leads to.
    ///
    /// `allowPrivate` applies only to the configured host and port. Any other host, and any host that it redirects to,
    /// must have a public address. So no host can redirect a call into a private network, or to this machine, where
    /// Lambda's runtime API listens.
    pub(super) fn redirected(&self, url: Url) -> Result<Self, UrlRefused> {
        if url.scheme() == "http" && self.url.scheme() != "http" {
            return Err(UrlRefused::NotEncrypted);
        }
        let stays = host_of(&url) == self.host();
        Self::at(url, self.allow_private && stays)
    }

    fn at(url: Url, allow_private: bool) -> Result<Self, UrlRefused> {
        let host = url.host_str().ok_or(UrlRefused::NotAUrl)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(UrlRefused::Credentials);
        }
        let address: Option<IpAddr> = host.trim_start_matches('[').trim_end_matches(']').parse().ok();
        match url.scheme() {
            "https" => {}
            "http" if allow_private && address.map_or(host == "localhost", |address| address.is_loopback()) => {}
            _ => return Err(UrlRefused::NotEncrypted),
        }
        if address.is_some_and(|address| !AddressKind::of(address).is_allowed(allow_private)) {
            return Err(UrlRefused::Address);
        }
        Ok(Self { url, allow_private })
    }

    /// The URL.
    pub const fn url(&self) -> &Url {
        &self.url
    }

    /// Whether it may have a private address.
    pub const fn allows_private(&self) -> bool {
        self.allow_private
    }

    /// Its host and port. They identify the service for concurrency limits and the circuit breaker.
    pub fn host(&self) -> String {
        host_of(&self.url)
    }
}

fn host_of(url: &Url) -> String {
    format!("{}:{}", url.host_str().unwrap_or_default(), url.port_or_known_default().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_must_be_public_and_encrypted() {
        let refused = |url| Endpoint::new(url, false).err();
        assert_eq!(refused("https://example.com/hook?a=b"), None);
        assert_eq!(refused("https://8.8.8.8:8443/"), None);
        for url in ["", "example.com", "https://", "/hook", "https://exa mple.com"] {
            assert_eq!(refused(url), Some(UrlRefused::NotAUrl), "{url}");
        }
        for url in
            ["http://example.com", "http://127.0.0.1/", "http://localhost", "ftp://example.com/", "ws://example.com"]
        {
            assert_eq!(refused(url), Some(UrlRefused::NotEncrypted), "{url}");
        }
        assert_eq!(refused("https://me@example.com"), Some(UrlRefused::Credentials));
        assert_eq!(refused("https://:secret@example.com"), Some(UrlRefused::Credentials));
    }

    #[test]
    fn a_private_address_is_refused_in_every_notation() {
        let written = [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "10.0.0.1",
            "169.254.169.254",
            "[::1]",
            "0.0.0.0",
            "[::ffff:127.0.0.1]",
            "[fd00:ec2::254]",
            "[64:ff9b::a9fe:a9fe]",
            "[2002:7f00:1::]",
            "１２７.0.0.1",
            "192.168.0.1",
        ];
        for host in written {
            assert_eq!(Endpoint::new(&format!("https://{host}/"), false).err(), Some(UrlRefused::Address), "{host}");
        }
    }

    #[test]
    fn allow_private_permits_private_networks_and_plain_http_on_this_machine() {
        let refused = |url| Endpoint::new(url, true).err();
        let good = [
            "https://10.0.0.1/",
            "https://[fc00::1]/",
            "http://127.0.0.1:8080/",
            "http://[::1]/",
            "http://localhost:1/",
        ];
        assert!(good.iter().all(|url| refused(url).is_none()));
        for url in ["http://10.0.0.1/", "http://example.com/", "http://localhost.example.com/"] {
            assert_eq!(refused(url), Some(UrlRefused::NotEncrypted), "{url}");
        }
        for url in ["https://169.254.169.254/", "https://[::ffff:10.0.0.1]/", "https://[fd00:ec2::254]/"] {
            assert_eq!(refused(url), Some(UrlRefused::Address), "{url}");
        }
    }

    #[test]
    fn a_redirect_is_checked_like_the_webhook_and_cannot_lead_to_this_machine() {
        let from = |url, allow_private, to: &str| {
            Endpoint::new(url, allow_private).unwrap().redirected(Url::parse(to).unwrap()).err()
        };
        assert_eq!(from("https://example.com/", false, "https://example.org/"), None);
        assert_eq!(from("https://example.com/", false, "https://10.0.0.1/"), Some(UrlRefused::Address));
        assert_eq!(from("https://example.com/", false, "http://example.com/"), Some(UrlRefused::NotEncrypted));
        assert_eq!(from("https://10.0.0.1/", true, "http://127.0.0.1:9001/"), Some(UrlRefused::NotEncrypted));
    }

    #[test]
    fn a_redirect_may_use_a_private_address_only_at_the_configured_host() {
        let from = |url, to: &str| Endpoint::new(url, true).unwrap().redirected(Url::parse(to).unwrap());
        for (url, to) in [
            ("https://10.0.0.1/", "https://10.0.0.1/moved"),
            ("https://10.0.0.1/", "https://10.0.0.1:443/moved"),
            ("http://127.0.0.1:1/", "http://127.0.0.1:1/moved"),
            ("https://hook.example/", "https://hook.example/moved"),
        ] {
            assert!(from(url, to).unwrap().allows_private(), "{url} to {to}");
        }
        for (url, to) in [
            ("https://hook.example/", "https://10.0.0.1/"),
            ("https://10.0.0.1/", "https://10.0.0.2/"),
            ("https://10.0.0.1/", "https://10.0.0.1:8443/"),
        ] {
            assert_eq!(from(url, to).err(), Some(UrlRefused::Address), "{url} to {to}");
        }
        assert_eq!(from("http://127.0.0.1:1/", "http://127.0.0.1:2/").err(), Some(UrlRefused::NotEncrypted));
        let elsewhere = from("https://hook.example/", "https://intranet.example/").unwrap();
        assert!(!elsewhere.allows_private(), "its name may have a private address");
        let back = elsewhere.redirected(Url::parse("https://hook.example/").unwrap()).unwrap();
        assert!(!back.allows_private(), "another host chose the URL");
    }

    #[test]
    fn services_at_one_host_and_port_share_their_host() {
        let host = |url| Endpoint::new(url, false).unwrap().host();
        assert_eq!(host("https://Example.com/a"), host("https://example.com:443/b?c"));
        assert_ne!(host("https://example.com/"), host("https://example.com:8443/"));
    }
}
