use std::net::IpAddr;
use std::sync::Arc;

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
    /// The hosts with their ports that a call may be redirected to: the configured one, and those it names.
    hosts: Arc<[String]>,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum UrlRefused {
    #[error("it is not a URL")]
    NotAUrl,
    /// It would send the items unencrypted over a network.
    #[error("it must begin with `https://`; `http://` is allowed only on this machine, with `allowPrivate`")]
    NotEncrypted,
    /// It contains a user name or a password, which could end up in logs.
    #[error("it contains a user name or password; remove it")]
    Credentials,
    /// Its host is an IP address that is not allowed.
    #[error("its host is a private or reserved address; see `allowPrivate`")]
    Address,
    /// A redirect leads to a host that the target does not name.
    #[error("it is at another host; see `redirectHosts`")]
    OtherHost,
}

impl Endpoint {
    /// Checks the URL.
    pub fn new(url: &str, allow_private: bool) -> Result<Self, UrlRefused> {
        let url = Url::parse(url).map_err(|_| UrlRefused::NotAUrl)?;
        let hosts = Arc::from([host_of(&url)]);
        Self::at(url, allow_private, hosts)
    }

    /// The same endpoint, from which a call may also be redirected to these hosts: `host` for port 443, or `host:port`.
    ///
    /// # Errors
    /// [`UrlRefused::NotAUrl`] if one of them is something else, [`UrlRefused::Address`] if it is a private address.
    pub fn with_redirect_hosts(self, hosts: &[String]) -> Result<Self, UrlRefused> {
        let more: Vec<String> = hosts.iter().map(|host| redirect_host(host)).collect::<Result<_, _>>()?;
        Ok(Self { hosts: self.hosts.iter().cloned().chain(more).collect(), ..self })
    }

    /// The endpoint that a redirect leads to. It must be at the configured host and port, or at one that the target
    /// names.
    ///
    /// `allowPrivate` applies only to the configured host and port. Any other host, and any host that it redirects to,
    /// must have a public address. So no host can redirect a call into a private network, or to this machine, where
    /// Lambda's runtime API listens.
    pub(super) fn redirected(&self, url: Url) -> Result<Self, UrlRefused> {
        if url.scheme() == "http" && self.url.scheme() != "http" {
            return Err(UrlRefused::NotEncrypted);
        }
        let stays = host_of(&url) == self.host();
        let redirected = Self::at(url, self.allow_private && stays, Arc::clone(&self.hosts))?;
        if self.hosts.contains(&redirected.host()) { Ok(redirected) } else { Err(UrlRefused::OtherHost) }
    }

    fn at(url: Url, allow_private: bool, hosts: Arc<[String]>) -> Result<Self, UrlRefused> {
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
        Ok(Self { url, allow_private, hosts })
    }

    pub const fn url(&self) -> &Url {
        &self.url
    }

    pub const fn allows_private(&self) -> bool {
        self.allow_private
    }

    /// Its host and port. They identify the service for concurrency limits and the gate in front of it.
    pub fn host(&self) -> String {
        host_of(&self.url)
    }

    /// The value of the `Host` header: it has no port if that is the default one of the scheme.
    pub(super) fn host_header(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        self.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// The path with the query, as in the first line of the request.
    pub(super) fn path_and_query(&self) -> String {
        let query = self.url.query().map(|query| format!("?{query}")).unwrap_or_default();
        format!("{}{query}", self.url.path())
    }
}

/// An entry of `redirectHosts` in the form of [`Endpoint::host`].
fn redirect_host(entry: &str) -> Result<String, UrlRefused> {
    // Everything else that a URL may have begins with one of these, or is space that the parser drops. There are no
    // wildcards, although a host may have a `*` for the parser.
    if entry.contains(|c: char| matches!(c, '/' | '\\' | '?' | '#' | '@' | '*') || c.is_whitespace()) {
        return Err(UrlRefused::NotAUrl);
    }
    Ok(Endpoint::new(&format!("https://{entry}"), false)?.host())
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
        assert_eq!(from("https://example.com/", false, "https://example.com/moved"), None);
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
        let hook = Endpoint::new("https://hook.example/", true).unwrap();
        let hook = hook.with_redirect_hosts(&["intranet.example".to_owned()]).unwrap();
        let elsewhere = hook.redirected(Url::parse("https://intranet.example/").unwrap()).unwrap();
        assert!(!elsewhere.allows_private(), "its name may have a private address");
        let back = elsewhere.redirected(Url::parse("https://hook.example/").unwrap()).unwrap();
        assert!(!back.allows_private(), "another host chose the URL");
    }

    #[test]
    fn a_redirect_to_another_host_or_port_needs_an_entry_in_redirect_hosts() {
        let from = |hosts: &[&str], to: &str| {
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            let endpoint = Endpoint::new("https://hook.example/a", false).unwrap().with_redirect_hosts(&hosts).unwrap();
            endpoint.redirected(Url::parse(to).unwrap()).err()
        };
        for to in ["https://other.example/", "https://hook.example:8443/", "https://hook.example.org/"] {
            assert_eq!(from(&[], to), Some(UrlRefused::OtherHost), "{to}");
        }
        let hosts = ["Other.example", "third.example:8443"];
        for to in ["https://other.example/a?b", "https://third.example:8443/", "https://hook.example:443/b"] {
            assert_eq!(from(&hosts, to), None, "{to}");
        }
        for to in ["https://other.example:8443/", "https://third.example/", "https://a.other.example/"] {
            assert_eq!(from(&hosts, to), Some(UrlRefused::OtherHost), "{to}");
        }
        assert_eq!(from(&hosts, "http://other.example/"), Some(UrlRefused::NotEncrypted));
    }

    #[test]
    fn a_call_may_return_from_another_host_to_the_configured_one() {
        let endpoint = Endpoint::new("https://hook.example/", false).unwrap();
        let endpoint = endpoint.with_redirect_hosts(&["other.example".to_owned()]).unwrap();
        let other = endpoint.redirected(Url::parse("https://other.example/").unwrap()).unwrap();
        assert!(other.redirected(Url::parse("https://hook.example/b").unwrap()).is_ok());
        let third = other.redirected(Url::parse("https://third.example/").unwrap());
        assert_eq!(third.err(), Some(UrlRefused::OtherHost), "the other host chose the URL");
    }

    #[test]
    fn an_entry_of_redirect_hosts_is_a_public_host_with_or_without_a_port() {
        let refused = |entry: &str| {
            let endpoint = Endpoint::new("https://hook.example/", true).unwrap();
            endpoint.with_redirect_hosts(&[entry.to_owned()]).err()
        };
        for entry in ["other.example", "other.example:8443", "8.8.8.8", "[2606:4700::1111]:8443"] {
            assert_eq!(refused(entry), None, "{entry}");
        }
        for entry in [
            "",
            "https://other.example",
            "other.example/path",
            "a?b",
            "a#b",
            "me@other.example",
            " a",
            "a:b",
            "*",
            "a\\b",
        ] {
            assert_eq!(refused(entry), Some(UrlRefused::NotAUrl), "{entry}");
        }
        assert_eq!(refused("10.0.0.1"), Some(UrlRefused::Address));
    }

    #[test]
    fn host_header_and_path_are_those_of_the_request() {
        let parts = |url| {
            let endpoint = Endpoint::new(url, false).unwrap();
            (endpoint.host_header(), endpoint.path_and_query())
        };
        let expected = |host: &str, path: &str| (host.to_owned(), path.to_owned());
        assert_eq!(parts("https://Example.com:443"), expected("example.com", "/"));
        assert_eq!(parts("https://example.com:8443/a b?c=d#e"), expected("example.com:8443", "/a%20b?c=d"));
        assert_eq!(parts("https://[2606:4700::1111]/?"), expected("[2606:4700::1111]", "/?"));
    }

    #[test]
    fn services_at_one_host_and_port_share_their_host() {
        let host = |url| Endpoint::new(url, false).unwrap().host();
        assert_eq!(host("https://Example.com/a"), host("https://example.com:443/b?c"));
        assert_ne!(host("https://example.com/"), host("https://example.com:8443/"));
    }
}
