//! The rights of the page in a browser: its Content Security Policy.

/// The origins beside its own that the page may call.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origins(Vec<String>);

impl Origins {
    /// Those of these addresses. One that is empty, or no address with a host, adds nothing.
    pub fn of<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Self {
        let mut origins: Vec<String> = addresses.into_iter().filter_map(origin).collect();
        origins.sort();
        origins.dedup();
        Self(origins)
    }

    /// The policy of the page. Nothing is loaded from elsewhere, no code or style stands in the page itself, no script
    /// makes elements from text, and no other site may show the page in a frame.
    pub fn policy(&self) -> String {
        let origins: String = self.0.iter().map(|origin| format!(" {origin}")).collect();
        format!(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'{origins}; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
             trusted-types 'none'"
        )
    }
}

/// Scheme, host and port of an address, as they stand in a policy.
pub fn origin(address: &str) -> Option<String> {
    let url = reqwest::Url::parse(address).ok()?;
    let host = url.host_str().filter(|host| !host.contains([';', ',', '\'']))?;
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    matches!(url.scheme(), "http" | "https" | "ws" | "wss").then(|| format!("{}://{host}{port}", url.scheme()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_has_no_path_and_no_default_port() {
        assert_eq!(origin("https://b.s3.eu-west-1.amazonaws.com/x?y").unwrap(), "https://b.s3.eu-west-1.amazonaws.com");
        assert_eq!(origin("ws://127.0.0.1:4566/_aws/1").unwrap(), "ws://127.0.0.1:4566");
        assert_eq!(origin("https://issuer.example:443/a").unwrap(), "https://issuer.example");
        for none in ["", "issuer.example", "javascript:alert(1)", "file:///etc", "https://", "https://a;sandbox"] {
            assert_eq!(origin(none), None, "{none}");
        }
    }

    #[test]
    fn the_policy_names_what_the_page_calls_and_allows_nothing_inline() {
        let policy = Origins::of(["https://b.example/x", "", "wss://live.example/stage", "https://b.example"]).policy();
        assert!(policy.contains("connect-src 'self' https://b.example wss://live.example;"), "{policy}");
        assert!(!policy.contains("unsafe") && !policy.contains('*'), "{policy}");
    }
}
