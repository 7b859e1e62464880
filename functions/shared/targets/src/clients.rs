//! HTTP clients that connect to allowed addresses only.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Client;

use crate::lookup::{CheckedLookup, Lookup};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Lifetime of an idle connection. Short, because a frozen Lambda process does not notice that the peer closed it.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// The clients of a process. They ignore proxy settings of the environment, keep no cookies, follow no redirects, and do
/// not decompress responses.
pub(crate) struct CheckedClients {
    public_only: Client,
    allow_private: Client,
}

impl CheckedClients {
    /// Clients that resolve hosts with this lookup, and wait at most so long for the next bytes of an answer.
    ///
    /// # Errors
    /// If TLS cannot be set up.
    pub fn new(lookup: &Arc<dyn Lookup>, read_timeout: Option<Duration>) -> Result<Self, reqwest::Error> {
        // Fails if a provider is already installed, and then that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = |allow_private| {
            let builder = Client::builder()
                .dns_resolver(CheckedLookup { lookup: Arc::clone(lookup), allow_private })
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never())
                .no_proxy()
                .referer(false)
                .connect_timeout(CONNECT_TIMEOUT)
                .pool_idle_timeout(IDLE_TIMEOUT)
                .user_agent(concat!("rowmill/", env!("CARGO_PKG_VERSION")));
            match read_timeout {
                Some(timeout) => builder.read_timeout(timeout),
                None => builder,
            }
            .build()
        };
        Ok(Self { public_only: client(false)?, allow_private: client(true)? })
    }

    pub const fn to(&self, allow_private: bool) -> &Client {
        if allow_private { &self.allow_private } else { &self.public_only }
    }
}
