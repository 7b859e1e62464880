//! Webhook calls to a local service that answers correctly, wrongly, partly or not at all.

mod answers;
mod call_gate;
mod calls;
mod redirects;
mod server;

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use rowmill_core::in_memory::ManualClock;
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::processor::Item;
use rowmill_core::ports::{Clock, Target, TargetError, TargetItem, TargetRequest};
use rowmill_core::text::Record;
use rowmill_targets::lookup::{Lookup, SystemLookup};
use rowmill_targets::signature::WebhookSecret;
use rowmill_targets::webhook::{Endpoint, WebhookClient, WebhookTarget};
use serde_json::{Map, json};

const SECRET: &str = "correct horse battery staple";

/// Longer than anything on this machine takes; no test waits for it to expire.
const LONG: Duration = Duration::from_secs(60);

/// A new client for a test, with a clock that stands still.
fn client(lookup: Arc<dyn Lookup>) -> Arc<WebhookClient> {
    let secret = WebhookSecret::new(SECRET).unwrap();
    Arc::new(WebhookClient::new(secret, lookup, clock()).unwrap())
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(ManualClock::default())
}

/// The webhook at this URL, with private addresses allowed.
fn webhook(url: &str, timeout: Duration) -> WebhookTarget {
    WebhookTarget::new(client(Arc::new(SystemLookup)), Endpoint::new(url, true).unwrap(), timeout)
}

fn job_guid() -> JobGuid {
    "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap()
}

fn items(rows: u64) -> Vec<Item> {
    let item = |row| Item { job_guid: job_guid(), row, record: Record::Json(json!({ "name": format!("n{row}") })) };
    (1..=rows).map(item).collect()
}

/// Calls a target with two items.
async fn call(target: &dyn Target) -> Result<Vec<u8>, TargetError> {
    let (items, params) = (items(2), Map::new());
    let items = items.iter().map(TargetItem::from).collect();
    target.call(&TargetRequest { job_guid: job_guid(), job_type: "notify", params: &params, items }).await
}

/// A resolver that returns these lists of addresses, one for each lookup; it repeats the last one.
struct Scripted {
    addresses: Vec<Vec<&'static str>>,
    asked: Mutex<Vec<String>>,
}

impl Scripted {
    fn new(addresses: &[&[&'static str]]) -> Arc<Self> {
        let addresses = addresses.iter().map(|addresses| addresses.to_vec()).collect();
        Arc::new(Self { addresses, asked: Mutex::default() })
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Lookup for Scripted {
    async fn addresses(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let mut asked = self.asked.lock().unwrap();
        let addresses = &self.addresses[asked.len().min(self.addresses.len() - 1)];
        asked.push(host.to_owned());
        Ok(addresses.iter().map(|address| address.parse().unwrap()).collect())
    }
}
