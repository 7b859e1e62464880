//! Measures the commits of a tally's chunks: the request is built, signed and sent to a DynamoDB that answers at once,
//! and its answer is read. CONTRIBUTING.md says how to run it.

use std::hint::black_box;
use std::sync::OnceLock;

use aws_config::retry::RetryConfig;
use aws_config::{BehaviorVersion, Region};
use aws_sdk_dynamodb::config::Credentials;
use aws_smithy_runtime_api::client::http::{
    HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector, http_client_fn,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_types::body::SdkBody;
use divan::Bencher;
use divan::counter::ItemsCount;
use jiff::Timestamp;
use rowmill_aws::adapters::dynamodb::DynamoDbJobStore;
use rowmill_aws::sdk::clients::Clients;
use rowmill_core::model::ids::{JobGuid, RunId};
use rowmill_core::model::tally::{CHUNKS_PER_TALLY, ChunkAddress, Commit, Counts, Mark, MarkKind, Tally};
use rowmill_core::ports::{CommitAnswer, Tallies};
use rowmill_core::text::{Chunk, ChunkMode, Position};
use serde_json::Value;
use tokio::runtime::Builder;
use uuid::Uuid;

fn main() {
    divan::main();
}

/// A DynamoDB with one row: it answers each update with the row that was put.
#[derive(Debug, Default)]
struct OneRow(OnceLock<String>);

impl HttpConnector for OneRow {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let target = request.headers().get("x-amz-target").expect("the operation's name");
        let body = if target.ends_with("PutItem") {
            let put: Value = serde_json::from_slice(request.body().bytes().expect("a body")).expect("JSON");
            self.0.set(format!(r#"{{"Attributes": {}}}"#, put["Item"])).expect("one row");
            "{}"
        } else {
            self.0.get().expect("the row was put")
        };
        HttpConnectorFuture::ready(Ok(HttpResponse::new(200.try_into().expect("a status"), SdkBody::from(body))))
    }
}

async fn store() -> DynamoDbJobStore {
    let connector = SharedHttpConnector::new(OneRow::default());
    let config = aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("test", "test", None, None, "test"))
        .retry_config(RetryConfig::disabled())
        .http_client(http_client_fn(move |_: &HttpConnectorSettings, _| connector.clone()))
        .load()
        .await;
    DynamoDbJobStore::new(Clients::new(config).dynamodb(), "jobs".to_owned(), None)
}

/// Counts of each chunk.
const CHUNK: Chunk = Chunk { offset: 0, length: 600_000, first_row: 1, items: 10_000, mode: ChunkMode::Items };

fn commit_of(index: u8) -> Commit {
    Commit {
        chunk: ChunkAddress { attempt: 1, tally: 0, index },
        mark: Mark { kind: MarkKind::Clean, run: RunId::from_bytes([7; RunId::BYTES]) },
        counts: Counts { succeeded: u64::from(CHUNK.items), ..Counts::default() },
        bytes: CHUNK.length,
        at: Timestamp::UNIX_EPOCH,
    }
}

/// The chunks of a tally that commit in one write: one, some, those of an invocation with the default settings, all.
/// The answer is the row with all its marks.
#[divan::bench(args = [1, 3, 10, CHUNKS_PER_TALLY])]
fn commit(bencher: Bencher<'_, '_>, chunks: usize) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (store, job) = (runtime.block_on(store()), JobGuid(Uuid::nil()));
    let commits: Vec<Commit> = (0..).map(commit_of).take(chunks).collect();
    let start = Position { offset: 0, row: 1 };
    let mut tally = Tally::of(1, 0, start, &[CHUNK; CHUNKS_PER_TALLY], Timestamp::UNIX_EPOCH);
    tally.marks.fill(Some(commit_of(0).mark));
    runtime.block_on(store.put_tally(job, &tally)).expect("it is put");
    bencher.counter(ItemsCount::new(chunks)).bench_local(|| {
        let answer = runtime.block_on(store.commit(job, black_box(&commits))).expect("an answer");
        assert!(matches!(answer, CommitAnswer::Applied(_)));
    });
}
