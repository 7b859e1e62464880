//! Names to addresses, and only those that may be connected to.
//!
//! The check is in the resolver that the connection itself is made by: the very addresses that were checked are connected
//! to, and no second lookup can put others in their place.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use rowmill_core::ports::BoxError;

use crate::addresses::AddressKind;

/// Where the addresses of a host come from.
#[async_trait]
pub trait Lookup: Send + Sync {
    /// The addresses of a host.
    ///
    /// # Errors
    /// Where they cannot be had.
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system's resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemLookup;

#[async_trait]
impl Lookup for SystemLookup {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// A host that is at no address where a webhook may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the host is at a private or reserved address")]
pub struct AddressRefused;

/// Resolves names to the addresses that may be connected to.
#[derive(Clone)]
pub(crate) struct CheckedLookup {
    pub lookup: Arc<dyn Lookup>,
    pub private_too: bool,
}

impl CheckedLookup {
    async fn checked(&self, host: &str) -> Result<Vec<IpAddr>, BoxError> {
        let mut addresses = self.lookup.addresses(host).await?;
        let found = addresses.len();
        addresses.retain(|address| AddressKind::of(*address).is_allowed(self.private_too));
        if addresses.is_empty() && found > 0 { Err(AddressRefused.into()) } else { Ok(addresses) }
    }
}

impl Resolve for CheckedLookup {
    fn resolve(&self, name: Name) -> Resolving {
        let this = self.clone();
        Box::pin(async move {
            let addresses = this.checked(name.as_str()).await?;
            // The port is the URL's.
            let addresses: Addrs = Box::new(addresses.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(addresses)
        })
    }
}
