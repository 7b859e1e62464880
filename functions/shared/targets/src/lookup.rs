//! DNS lookup that returns only allowed addresses.
//!
//! The check runs inside the resolver of the HTTP client: the client connects to exactly the addresses that were
//! checked. So a second lookup cannot replace them (DNS rebinding).

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use rowmill_core::ports::BoxError;

use crate::addresses::AddressKind;

/// Resolves host names to addresses.
#[async_trait]
pub trait Lookup: Send + Sync {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// The error for a host without an allowed address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the host has a private or reserved address")]
pub struct AddressRefused;

/// Resolves names and keeps the allowed addresses only.
#[derive(Clone)]
pub(crate) struct CheckedLookup {
    pub lookup: Arc<dyn Lookup>,
    pub allow_private: bool,
}

impl CheckedLookup {
    async fn checked(&self, host: &str) -> Result<Vec<IpAddr>, BoxError> {
        let mut addresses = self.lookup.addresses(host).await?;
        let found = addresses.len();
        addresses.retain(|address| AddressKind::of(*address).is_allowed(self.allow_private));
        if addresses.is_empty() && found > 0 { Err(AddressRefused.into()) } else { Ok(addresses) }
    }
}

impl Resolve for CheckedLookup {
    fn resolve(&self, name: Name) -> Resolving {
        let this = self.clone();
        Box::pin(async move {
            let addresses = this.checked(name.as_str()).await?;
            // Port 0: the client takes the port from the URL.
            let addresses: Addrs = Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}
