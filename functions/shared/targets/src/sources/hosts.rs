//! The setting `ROWMILL_FETCH_HOSTS`: a JSON object from host to its settings. Without it nothing is fetched.
//!
//! ```json
//! {"data.example.org": {}, "files.example.org:8443": {}, "10.0.0.7:8443": {"allowPrivate": true}}
//! ```
//!
//! A key is `host`, for port 443, or `host:port`. The key `*` stands for all hosts with public addresses.
//! `allowPrivate` says that the host may have a private address, and that `http://` is allowed on this machine.

use std::collections::BTreeMap;

use reqwest::Url;
use serde::Deserialize;

use crate::webhook::{Endpoint, UrlRefused};

/// Stands for every public host.
const ANY: &str = "*";

/// The longest URL, in bytes.
pub const URL_MAX_BYTES: usize = 2048;

/// The hosts that files may be fetched from.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FetchHosts(BTreeMap<String, HostSettings>);

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct HostSettings {
    allow_private: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum FetchHostsError {
    #[error("it is not a JSON object such as {{\"data.example.org\": {{}}}}: {0}")]
    Json(#[from] serde_json::Error),
    #[error("`{host}` is not `host` or `host:port`: {reason}")]
    Host { host: String, reason: UrlRefused },
    #[error("`*` cannot allow private addresses; name the host")]
    AnyPrivate,
}

/// Why a URL is not fetched. The texts continue a sentence about it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SourceRefused {
    #[error("cannot be fetched: this stack fetches no files, see its parameter `FetchHosts`")]
    Off,
    #[error("has more than {URL_MAX_BYTES} bytes")]
    TooLong,
    #[error("cannot be fetched: {0}")]
    Url(#[from] UrlRefused),
    #[error("cannot be fetched: its host is not in the parameter `FetchHosts` of the stack")]
    Host,
}

impl FetchHosts {
    /// Reads the setting.
    pub fn parse(json: &str) -> Result<Self, FetchHostsError> {
        if json.trim().is_empty() {
            return Ok(Self::default());
        }
        let hosts: BTreeMap<String, HostSettings> = serde_json::from_str(json)?;
        let read = hosts.into_iter().map(|(host, settings)| match host.as_str() {
            ANY if settings.allow_private => Err(FetchHostsError::AnyPrivate),
            ANY => Ok((host, settings)),
            // There are no other wildcards, although a host may have a `*` for the parser.
            _ if host.contains('*') => Err(FetchHostsError::Host { host, reason: UrlRefused::NotAUrl }),
            _ => match Endpoint::new(&format!("https://{host}"), settings.allow_private) {
                // Anything behind the host would be ignored.
                Ok(endpoint) if endpoint.url().path() == "/" && endpoint.url().query().is_none() => {
                    Ok((endpoint.host(), settings))
                }
                Ok(_) => Err(FetchHostsError::Host { host, reason: UrlRefused::NotAUrl }),
                Err(reason) => Err(FetchHostsError::Host { host, reason }),
            },
        });
        Ok(Self(read.collect::<Result<_, _>>()?))
    }

    /// The place of a file at this URL.
    pub fn check(&self, url: &str) -> Result<Endpoint, SourceRefused> {
        if url.len() > URL_MAX_BYTES {
            return Err(SourceRefused::TooLong);
        }
        self.at(&Url::parse(url).map_err(|_| UrlRefused::NotAUrl)?, None)
    }

    /// The place that a redirect leads to. Only a host that redirects to itself may have a private address, so no host
    /// can redirect into a private network.
    pub fn redirected(&self, from: &Endpoint, url: &Url) -> Result<Endpoint, SourceRefused> {
        self.at(url, Some(&from.host()))
    }

    fn at(&self, url: &Url, from: Option<&str>) -> Result<Endpoint, SourceRefused> {
        if self.0.is_empty() {
            return Err(SourceRefused::Off);
        }
        let port = url.port_or_known_default().unwrap_or_default();
        let host = format!("{}:{port}", url.host_str().unwrap_or_default());
        let settings = self.0.get(&host).or_else(|| self.0.get(ANY)).copied();
        let stays = from.is_none_or(|from| from == host);
        let allow_private = settings.unwrap_or_default().allow_private && stays;
        let endpoint = Endpoint::new(url.as_str(), allow_private)?;
        if settings.is_some() { Ok(endpoint) } else { Err(SourceRefused::Host) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_fetched_from_named_hosts_only() {
        let hosts = FetchHosts::parse(r#"{"Data.example.org": {}, "b.example:8443": {}}"#).unwrap();
        for url in ["https://data.example.org/a.csv?b=c", "https://data.example.org:443/", "https://b.example:8443/a"] {
            assert!(hosts.check(url).is_ok(), "{url}");
        }
        for url in ["https://example.org/", "https://data.example.org:8443/", "https://b.example/", "https://8.8.8.8/"]
        {
            assert_eq!(hosts.check(url), Err(SourceRefused::Host), "{url}");
        }
        let refused = |url: &str| match hosts.check(url) {
            Err(SourceRefused::Url(refused)) => refused,
            other => panic!("{url}: {other:?}"),
        };
        assert_eq!(refused("data.example.org/a"), UrlRefused::NotAUrl);
        assert_eq!(refused("http://data.example.org/a"), UrlRefused::NotEncrypted);
        assert_eq!(refused("file:///etc/passwd"), UrlRefused::NotAUrl);
        assert_eq!(refused("https://me:secret@data.example.org/a"), UrlRefused::Credentials);
        let long = format!("https://data.example.org/{}", "a".repeat(URL_MAX_BYTES));
        assert_eq!(hosts.check(&long), Err(SourceRefused::TooLong));
    }

    #[test]
    fn without_hosts_nothing_is_fetched() {
        for json in ["", " ", "{}"] {
            let hosts = FetchHosts::parse(json).unwrap();
            assert_eq!(hosts.check("https://example.org/"), Err(SourceRefused::Off));
        }
    }

    #[test]
    fn a_star_is_every_public_host_and_a_private_one_is_named() {
        let json = r#"{"*": {}, "127.0.0.1:8080": {"allowPrivate": true}, "10.0.0.7": {"allowPrivate": true}}"#;
        let hosts = FetchHosts::parse(json).unwrap();
        for url in ["https://example.org/", "https://10.0.0.7/a", "http://127.0.0.1:8080/a"] {
            assert!(hosts.check(url).is_ok(), "{url}");
        }
        for url in ["https://10.0.0.8/", "https://127.0.0.1/", "https://169.254.169.254/", "https://[::1]/"] {
            assert_eq!(hosts.check(url), Err(UrlRefused::Address.into()), "{url}");
        }
        for url in ["http://127.0.0.1:8081/", "http://10.0.0.7/"] {
            assert_eq!(hosts.check(url), Err(UrlRefused::NotEncrypted.into()), "{url}");
        }
    }

    #[test]
    fn a_redirect_leads_to_a_private_address_only_at_the_same_host() {
        let json = r#"{"a.example": {}, "10.0.0.7": {"allowPrivate": true}, "10.0.0.8": {"allowPrivate": true}}"#;
        let hosts = FetchHosts::parse(json).unwrap();
        let from = |from: &str, to: &str| hosts.redirected(&hosts.check(from).unwrap(), &Url::parse(to).unwrap()).err();
        assert_eq!(from("https://a.example/", "https://a.example/b"), None);
        assert_eq!(from("https://10.0.0.7/", "https://10.0.0.7/b"), None);
        assert_eq!(from("https://10.0.0.7/", "https://a.example/b"), None);
        for (start, to) in [("https://a.example/", "https://10.0.0.7/"), ("https://10.0.0.8/", "https://10.0.0.7/")] {
            assert_eq!(from(start, to), Some(UrlRefused::Address.into()), "{start} to {to}");
        }
        assert_eq!(from("https://a.example/", "https://b.example/"), Some(SourceRefused::Host));
        assert_eq!(from("https://a.example/", "http://a.example/"), Some(UrlRefused::NotEncrypted.into()));
    }

    #[test]
    fn a_wrong_setting_is_refused_with_the_reason() {
        for (json, says) in [
            ("[]", "not a JSON object"),
            (r#"{"a.example": {"private": true}}"#, "unknown field `private`"),
            (r#"{"https://a.example": {}}"#, "`https://a.example` is not `host` or `host:port`"),
            (r#"{"*.a.example": {}}"#, "`*.a.example` is not"),
            (r#"{"a.example/b": {}}"#, "`a.example/b` is not"),
            (r#"{"me@a.example": {}}"#, "contains a user name"),
            (r#"{"10.0.0.7": {}}"#, "private or reserved address"),
            (r#"{"*": {"allowPrivate": true}}"#, "`*` cannot allow private addresses"),
        ] {
            let error = FetchHosts::parse(json).unwrap_err().to_string();
            assert!(error.contains(says), "{json}: {error}");
        }
    }
}
