use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acceptance::served::{answer, served, target};
use aws_sdk_dynamodb::Client;
use aws_smithy_runtime_api::client::http::HttpConnectorFuture;
use dynoxide::Database;
use rowmill_aws::sdk::clients::Clients;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::Instant;

/// Travel time of a request, and of its answer.
const WAY: Duration = Duration::from_millis(2);

/// Time a transaction holds its items.
const HELD: Duration = Duration::from_millis(8);

/// DynamoDB in this process, without a socket, so that its time is virtual. Where a write meets an item that a
/// transaction holds, it is refused as DynamoDB does it.
#[derive(Clone)]
pub struct ContendedServer {
    database: Arc<Database>,
    held: Arc<Mutex<HashSet<String>>>,
    conflicts: Arc<Mutex<HashMap<String, u32>>>,
    calls: Arc<AtomicU32>,
    throttled_until: Arc<Mutex<Option<Instant>>>,
    keys: Arc<Mutex<Keys>>,
}

/// The partition keys of the tables, if they are limited.
#[derive(Default)]
struct Keys {
    /// Writes a second that each takes, if they are limited.
    writes_per_second: Option<f64>,
    /// When each has used up what it was granted.
    free_at: HashMap<String, Instant>,
    /// Number of refused writes.
    throttled: u32,
    /// Number of accepted writes.
    written: u32,
}

impl Keys {
    /// True if a key takes one more write. It takes the writes of a tenth of a second at once.
    fn take(&mut self, key: &str) -> bool {
        let Some(rate) = self.writes_per_second else { return true };
        let now = Instant::now();
        let free_at = self.free_at.entry(key.to_owned()).or_insert(now);
        if *free_at > now + Duration::from_millis(100) {
            self.throttled += 1;
            return false;
        }
        self.written += 1;
        *free_at = (*free_at).max(now) + Duration::from_secs_f64(1.0 / rate);
        true
    }
}

impl ContendedServer {
    pub fn start() -> Self {
        let database = Arc::new(Database::memory().unwrap());
        let (held, conflicts, calls) = (Arc::default(), Arc::default(), Arc::default());
        Self { database, held, conflicts, calls, throttled_until: Arc::default(), keys: Arc::default() }
    }

    pub async fn client(&self) -> Client {
        self.clients().await.dynamodb()
    }

    pub async fn clients(&self) -> Clients {
        let server = self.clone();
        let config = served(move |request| {
            let server = server.clone();
            HttpConnectorFuture::new(async move {
                let operation = target(&request).split_once('.').unwrap().1;
                let body = std::str::from_utf8(request.body().bytes().unwrap()).unwrap();
                tokio::time::sleep(WAY).await;
                let (status, said) = server.answer(operation, body).await;
                tokio::time::sleep(WAY).await;
                answer(status, &[], said).await
            })
        });
        Clients::new(config.await)
    }

    /// Number of writes refused because a transaction held one of their items, by item.
    pub fn conflicts(&self) -> HashMap<String, u32> {
        self.conflicts.lock().unwrap().clone()
    }

    /// Number of transactions sent.
    pub fn transactions(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Throttles every request for this time, as DynamoDB does for a key that gets too many.
    pub fn throttle(&self, time: Duration) {
        *self.throttled_until.lock().unwrap() = Some(Instant::now() + time);
    }

    /// Limits the writes of each partition key from now on.
    pub fn limit_keys(&self, writes_per_second: f64) {
        *self.keys.lock().unwrap() = Keys { writes_per_second: Some(writes_per_second), ..Keys::default() };
    }

    /// Number of single writes refused because their partition key had too many, and number of the others.
    pub fn throttled(&self) -> (u32, u32) {
        let keys = self.keys.lock().unwrap();
        (keys.throttled, keys.written)
    }

    fn is_throttled(&self) -> bool {
        self.throttled_until.lock().unwrap().is_some_and(|until| Instant::now() < until)
    }

    async fn answer(&self, operation: &str, body: &str) -> (u16, String) {
        let request: Value = serde_json::from_str(body).unwrap();
        if self.is_throttled() {
            return throttled(operation, &request);
        }
        match operation {
            "TransactWriteItems" => self.transact(&request, body).await,
            "UpdateItem" | "PutItem" | "DeleteItem" => match self.conflicts_of(&[item_of(&request)]).contains(&true) {
                true => refusal("TransactionConflictException", json!({})),
                false if !self.keys.lock().unwrap().take(&key_of(&request)) => throttled(operation, &request),
                false => self.apply(operation, body),
            },
            _ => self.apply(operation, body),
        }
    }

    async fn transact(&self, request: &Value, body: &str) -> (u16, String) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let actions = request["TransactItems"].as_array().unwrap();
        let items: Vec<String> =
            actions.iter().map(|action| item_of(action.as_object().unwrap().values().next().unwrap())).collect();
        let conflicts = self.conflicts_of(&items);
        if conflicts.contains(&true) {
            let code = |conflict: &bool| json!({ "Code": if *conflict { "TransactionConflict" } else { "None" } });
            let reasons: Vec<Value> = conflicts.iter().map(code).collect();
            return refusal("TransactionCanceledException", json!({ "CancellationReasons": reasons }));
        }
        self.held.lock().unwrap().extend(items.iter().cloned());
        tokio::time::sleep(HELD).await;
        let answer = self.apply("TransactWriteItems", body);
        self.held.lock().unwrap().retain(|item| !items.contains(item));
        answer
    }

    /// Which of these items a transaction holds.
    fn conflicts_of(&self, items: &[String]) -> Vec<bool> {
        let held = self.held.lock().unwrap();
        let conflicts: Vec<bool> = items.iter().map(|item| held.contains(item)).collect();
        let mut counted = self.conflicts.lock().unwrap();
        for (item, _) in items.iter().zip(&conflicts).filter(|(_, conflict)| **conflict) {
            *counted.entry(item.clone()).or_default() += 1;
        }
        conflicts
    }

    fn apply(&self, operation: &str, body: &str) -> (u16, String) {
        fn call<Q: DeserializeOwned, A: Serialize>(
            body: &str,
            operation: impl FnOnce(Q) -> dynoxide::Result<A>,
        ) -> (u16, String) {
            match operation(serde_json::from_str(body).unwrap()) {
                Ok(answer) => (200, serde_json::to_string(&answer).unwrap()),
                Err(error) => (error.status_code(), error.to_json()),
            }
        }
        let database = &self.database;
        match operation {
            "CreateTable" => call(body, |request| database.create_table(request)),
            "GetItem" => call(body, |request| database.get_item(request)),
            "BatchGetItem" => call(body, |request| database.batch_get_item(request)),
            "UpdateItem" => call(body, |request| database.update_item(request)),
            "PutItem" => call(body, |request| database.put_item(request)),
            "Query" => call(body, |request| database.query(request)),
            "BatchExecuteStatement" => call(body, |request| database.batch_execute_statement(request)),
            "TransactWriteItems" => call(body, |request| database.transact_write_items(request)),
            other => panic!("{other} is not asked for"),
        }
    }
}

/// The key of the item that a write is about.
fn item_of(action: &Value) -> String {
    let attributes = action.get("Key").or_else(|| action.get("Item")).unwrap();
    let key: Vec<&str> = ["jobId", "row", "scope"].iter().filter_map(|name| attributes[name]["S"].as_str()).collect();
    key.join(" ")
}

/// The partition key that a write is about, with its table.
fn key_of(action: &Value) -> String {
    let attributes = action.get("Key").or_else(|| action.get("Item")).unwrap();
    let key = ["jobId", "scope", "bucket"].iter().find_map(|name| attributes[name]["S"].as_str());
    format!("{} {}", action["TableName"], key.unwrap_or_default())
}

fn throttled(operation: &str, request: &Value) -> (u16, String) {
    let of_batch = match operation {
        "BatchExecuteStatement" => {
            let error = json!({ "Error": { "Code": "ThrottlingError", "Message": "made up" } });
            let statements = request["Statements"].as_array().unwrap();
            json!({ "Responses": vec![error; statements.len()] })
        }
        "BatchGetItem" => json!({ "Responses": {}, "UnprocessedKeys": request["RequestItems"] }),
        _ => return refusal("ProvisionedThroughputExceededException", json!({})),
    };
    (200, of_batch.to_string())
}

fn refusal(code: &str, more: Value) -> (u16, String) {
    let mut error = json!({ "__type": format!("com.amazonaws.dynamodb.v20120810#{code}"), "message": "made up" });
    error.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    (400, error.to_string())
}
