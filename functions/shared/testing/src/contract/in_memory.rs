//! Runs the contract suites against the in-memory adapters.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{Application, Client, Listener, Operator, Outsider, Receiver};
use crate::in_memory::{
    InMemoryBreakers, InMemoryEvents, InMemoryItemTable, InMemoryJobStore, InMemoryLive, InMemoryObjects,
    InMemoryQueue, InMemoryQuotas, InMemoryRecordStore, InMemoryTasks, InMemoryUploadStore,
};
use rowmill_core::model::blocks::Principal;
use rowmill_core::model::messages::ChunkMessage;
use rowmill_core::ports::{Block, Objects, PresignedRequest};

impl Receiver for Arc<InMemoryQueue<ChunkMessage>> {
    async fn take(&self) -> Vec<ChunkMessage> {
        InMemoryQueue::take(self)
    }
}

impl Client for Arc<InMemoryObjects> {
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

impl Application for InMemoryItemTable {
    async fn store(&self, attributes: Map<String, Value>) {
        Self::store(self, attributes);
    }

    async fn items(&self) -> Vec<Map<String, Value>> {
        Self::items(self)
    }
}

impl Listener for Arc<InMemoryEvents> {
    async fn heard(&self) -> Vec<(String, Value)> {
        let detail = |event| serde_json::to_value(event).expect("an event is JSON");
        InMemoryEvents::take(self).iter().map(|event| (event.detail_type().to_owned(), detail(event))).collect()
    }
}

impl Outsider for Arc<InMemoryObjects> {
    async fn store(&self, key: &str, content_type: &str, metadata: BTreeMap<String, String>, bytes: Bytes) {
        InMemoryObjects::store(self, key, content_type, metadata, bytes);
    }
}

impl Operator for Arc<InMemoryQuotas> {
    async fn set_block(&self, principal: &Principal, block: Option<Block>) {
        InMemoryQuotas::set_block(self, principal.clone(), block);
    }
}

/// A test per suite: an adapter made by `Default` keeps it.
macro_rules! keep {
    ($($name:ident: $($suite:ident),+ by $adapter:ty;)+) => {
        $(#[tokio::test]
        async fn $name() {
            $(super::$suite(async || <$adapter>::default()).await;)+
        })+
    };
}

keep! {
    the_in_memory_breakers_keep_the_contract: breakers by InMemoryBreakers;
    the_in_memory_job_store_keeps_the_contract: job_store by InMemoryJobStore;
    the_in_memory_upload_store_keeps_the_contract: upload_store by InMemoryUploadStore;
    the_in_memory_item_table_keeps_the_contract: item_table by InMemoryItemTable;
    the_in_memory_objects_keep_the_contracts: objects, direct_transfers by Arc<InMemoryObjects>;
    the_in_memory_queue_keeps_the_contract: queue by Arc<InMemoryQueue<ChunkMessage>>;
    the_in_memory_events_keep_the_contract: events by Arc<InMemoryEvents>;
    the_in_memory_live_connections_keep_the_contract: live by InMemoryLive;
    the_in_memory_quotas_keep_the_contracts_of_uploads_and_requests: request_counts, outstanding_uploads by InMemoryQuotas;
    the_in_memory_tasks_keep_the_contract: tasks by InMemoryTasks;
    the_in_memory_blocks_keep_the_contract: blocks by Arc<InMemoryQuotas>;
}

#[tokio::test]
async fn the_in_memory_record_store_keeps_the_contract() {
    let store = async || {
        let store = InMemoryRecordStore::default();
        store.expire_by(super::records_clock());
        store
    };
    super::record_store(store).await;
}
