//! Runs the contract suites against the in-memory adapters.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{Client, Listener, Operator, Outsider, Receiver, Records};
use crate::in_memory::{
    InMemoryBreakers, InMemoryEvents, InMemoryJobStore, InMemoryLive, InMemoryObjects, InMemoryQueue, InMemoryQuotas,
    InMemoryRecordStore, InMemoryUploadStore,
};
use crate::model::messages::ChunkMessage;
use crate::model::records::Dataset;
use crate::ports::{Block, Objects, PresignedRequest};
use rowmill_api::blocks::Principal;

impl Records for InMemoryRecordStore {
    async fn record(&self, dataset: &Dataset, key: &str) -> Option<(String, Map<String, Value>)> {
        let record = self.dataset(&dataset.name).into_iter().find(|record| record.key == key)?;
        Some((record.version.to_string(), record.fields))
    }
}

impl Receiver for InMemoryQueue<ChunkMessage> {
    async fn take(&self) -> Vec<ChunkMessage> {
        Self::take(self)
    }
}

impl Client for InMemoryObjects {
    async fn send(&self, request: &PresignedRequest, body: Bytes) -> bool {
        let place = request.url.strip_prefix("memory:").expect("a request of this store");
        let Some((_, part)) = place.split_once('?') else {
            let only_new = request.headers.contains(&("if-none-match".to_owned(), "*".to_owned()));
            let may_store = !only_new || self.head(place).await.is_err();
            return may_store && self.put(place, "", body, None).await.is_ok();
        };
        let (multipart, number) = part.split_once('&').expect("a part's request");
        self.store_part(multipart, number.parse().expect("a number"), body).is_ok()
    }

    async fn get(&self, request: &PresignedRequest) -> Option<(Bytes, String)> {
        let (key, name) = request.url.strip_prefix("memory:")?.split_once("?as=")?;
        Some((self.read(key).await.ok()?, name.to_owned()))
    }
}

impl Listener for InMemoryEvents {
    async fn heard(&self) -> Vec<(String, Value)> {
        let detail = |event| serde_json::to_value(event).expect("an event is JSON");
        self.take().iter().map(|event| (event.detail_type().to_owned(), detail(event))).collect()
    }
}

impl Outsider for InMemoryObjects {
    async fn store(&self, key: &str, content_type: &str, metadata: BTreeMap<String, String>, bytes: Bytes) {
        Self::store(self, key, content_type, metadata, bytes);
    }
}

impl Operator for InMemoryQuotas {
    async fn set_block(&self, principal: &Principal, block: Option<Block>) {
        Self::set_block(self, principal.clone(), block);
    }
}

#[tokio::test]
async fn the_in_memory_quotas_keep_their_contracts() {
    super::request_counts(async || InMemoryQuotas::default()).await;
    super::blocks(async || InMemoryQuotas::default()).await;
    super::outstanding_uploads(async || InMemoryQuotas::default()).await;
}

#[tokio::test]
async fn the_in_memory_breakers_keep_the_contract() {
    super::breakers(async || InMemoryBreakers::default()).await;
}

#[tokio::test]
async fn the_in_memory_job_store_keeps_the_contract() {
    super::job_store(async || InMemoryJobStore::default()).await;
}

#[tokio::test]
async fn the_in_memory_upload_store_keeps_the_contract() {
    super::upload_store(async || InMemoryUploadStore::default()).await;
}

#[tokio::test]
async fn the_in_memory_record_store_keeps_the_contract() {
    super::record_store(async || InMemoryRecordStore::default()).await;
}

#[tokio::test]
async fn the_in_memory_objects_keep_the_contract() {
    super::objects(async || InMemoryObjects::default()).await;
}

#[tokio::test]
async fn the_in_memory_direct_transfers_keep_the_contract() {
    super::direct_transfers(async || InMemoryObjects::default()).await;
}

#[tokio::test]
async fn the_in_memory_queue_keeps_the_contract() {
    super::queue(async || InMemoryQueue::default()).await;
}

#[tokio::test]
async fn the_in_memory_events_keep_the_contract() {
    super::events(async || InMemoryEvents::default()).await;
}

#[tokio::test]
async fn the_in_memory_live_connections_keep_the_contract() {
    super::live(async || InMemoryLive::default()).await;
}
