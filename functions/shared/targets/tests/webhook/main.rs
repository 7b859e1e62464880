//! Webhook calls to a local service, and files fetched from one, that answers correctly, wrongly, partly or not at all.

mod answers;
mod calls;
mod gate;
mod redirects;
mod server;
mod sources;

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use rowmill_core::model::ids::JobGuid;
use rowmill_core::ports::processor::Item;
use rowmill_core::ports::{Clock, Target, TargetError, TargetItem, TargetRequest};
use rowmill_core::text::Record;
use rowmill_targets::lookup::{Lookup, SystemLookup};
use rowmill_targets::signature::{SigningKeys, WebhookSecrets};
use rowmill_targets::webhook::{Endpoint, WebhookClient, WebhookTarget};
use rowmill_testing::in_memory::ManualClock;
use serde_json::{Map, json};
use sha2::Sha256;

use crate::server::Seen;

const SECRET: &str = "correct horse battery staple";

/// Longer than anything on this machine takes; no test waits for it to expire.
const LONG: Duration = Duration::from_secs(60);

/// A new client for a test, with a clock that stands still.
fn client(lookup: Arc<dyn Lookup>) -> Arc<WebhookClient> {
    Arc::new(WebhookClient::new(lookup, clock()).unwrap())
}

/// The keys of the target `notify`.
fn keys() -> SigningKeys {
    WebhookSecrets::new(SECRET, None).unwrap().keys_of("notify")
}

/// The signature that the service `notify` expects: computed as the documentation tells it, from what the service sees.
fn expected_signature(seen: &Seen) -> String {
    let header = |name| seen.headers[name].as_str();
    let mut text =
        ["v2", header("rowmill-timestamp"), "POST", header("host"), &seen.path, header("idempotency-key"), ""]
            .join("\n")
            .into_bytes();
    text.extend_from_slice(&seen.body);
    format!("v2={}", hex(&hmac(&key(), &text)))
}

/// The same for Standard Webhooks.
fn expected_standard_signature(seen: &Seen) -> String {
    let mut text = format!("{}.{}.", seen.headers["webhook-id"], seen.headers["webhook-timestamp"]).into_bytes();
    text.extend_from_slice(&seen.body);
    format!("v1,{}", STANDARD.encode(hmac(&key(), &text)))
}

/// The key of the target `notify`, as a text.
fn key() -> String {
    hex(&hmac(SECRET, b"rowmill webhook\nnotify"))
}

fn hmac(key: &str, text: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
    mac.update(text);
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn clock() -> Arc<dyn Clock> {
    Arc::new(ManualClock::default())
}

/// The webhook at this URL, with private addresses allowed.
fn webhook(url: &str, timeout: Duration) -> WebhookTarget {
    webhook_at(Endpoint::new(url, true).unwrap(), Arc::new(SystemLookup), timeout)
}

/// The webhook at this endpoint, whose host is resolved by this lookup.
fn webhook_at(endpoint: Endpoint, lookup: Arc<dyn Lookup>, timeout: Duration) -> WebhookTarget {
    WebhookTarget::new(client(lookup), endpoint, keys(), timeout)
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
    target.call(&TargetRequest::of(job_guid(), "notify", &params, items)).await
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
