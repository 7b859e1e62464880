//! The one stack of this process. A proxy makes the AWS calls of its functions fail when a test asks for it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use acceptance::fault_proxy::FaultProxy;
use acceptance::local_stack::{LocalStack, http_client, options};
use rowmill::stack::{FunctionsEndpoint, StackOptions};

/// The maximum number of items in a chunk.
pub const CHUNK_MAX_ITEMS: u32 = 50;

/// The ceiling of active jobs per owner. There is only one owner, so it holds for the whole system.
pub const OWNER_JOB_CEILING: i64 = 10;

pub const TYPE_JOB_CEILING: i64 = 6;

/// The stack, and the proxy between its functions and the emulator.
pub struct ChaosStack {
    pub stack: LocalStack,
    /// The proxy. It injects no faults unless a test sets some.
    pub proxy: Arc<FaultProxy>,
}

static STACK: OnceLock<ChaosStack> = OnceLock::new();
static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
static TURN: RwLock<()> = RwLock::new(());

/// Runs a test that counts slots or kills processes. No other test runs at the same time.
pub fn alone_on_the_stack<F: Future<Output = ()>>(test: impl FnOnce(&'static ChaosStack) -> F) {
    let _turn = TURN.write().unwrap_or_else(PoisonError::into_inner);
    run(test);
}

/// Runs a test in parallel with others.
pub fn on_the_stack<F: Future<Output = ()>>(test: impl FnOnce(&'static ChaosStack) -> F) {
    let _turn = TURN.read().unwrap_or_else(PoisonError::into_inner);
    run(test);
}

fn run<F: Future<Output = ()>>(test: impl FnOnce(&'static ChaosStack) -> F) {
    let runtime = RUNTIME.get_or_init(|| tokio::runtime::Runtime::new().expect("a runtime"));
    let chaos = STACK.get_or_init(|| runtime.block_on(ChaosStack::up()));
    runtime.block_on(test(chaos));
}

/// The random seed: `ROWMILL_CHAOS_SEED`, or 1.
pub fn seed() -> u64 {
    std::env::var("ROWMILL_CHAOS_SEED").map_or(1, |seed| seed.parse().expect("ROWMILL_CHAOS_SEED is a whole number"))
}

impl ChaosStack {
    async fn up() -> Self {
        let file = crate::fetch::serve().await;
        let fetch_hosts = crate::fetch::FILE.get_or_init(|| file).hosts();
        let parameters = [
            ("ProcessTimeoutSeconds", "3"),
            ("ItemTimeoutSeconds", "1"),
            ("ProcessMarginSeconds", "1"),
            ("SplitTimeoutSeconds", "5"),
            ("SplitMarginSeconds", "1"),
            ("CompleteTimeoutSeconds", "10"),
            ("StaleSeconds", "5"),
            ("StopGraceSeconds", "5"),
            ("SweepBackoffMaxSeconds", "10"),
            ("BreakerProbeSeconds", "1"),
            ("ChunkMaxItems", &CHUNK_MAX_ITEMS.to_string()),
            ("FastChunkFactor", "1"),
            ("OwnerJobCeiling", &OWNER_JOB_CEILING.to_string()),
            ("TypeJobCeiling", &TYPE_JOB_CEILING.to_string()),
            ("FetchHosts", &fetch_hosts),
        ];
        let state_dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("chaos");
        let hostile = PathBuf::from(env!("CARGO_BIN_EXE_hostile"));
        // The endpoint is called for each emulator that is started; the last emulator stays, and so does its proxy.
        let proxy = Arc::new(Mutex::new(None));
        let started = Arc::clone(&proxy);
        let endpoint = FunctionsEndpoint::new(move |emulator| {
            let proxy = Arc::new(FaultProxy::start(emulator, http_client(), seed()));
            let url = proxy.url().to_owned();
            *started.lock().expect("no thread panics while it holds the lock") = Some(proxy);
            url
        });
        let options = StackOptions {
            binaries: ["create-job", "process-items"].map(|name| (name.to_owned(), hostile.clone())).into(),
            functions_endpoint: Some(endpoint),
            ..options(state_dir, &parameters)
        };
        let stack = LocalStack::up(&options).await;
        let proxy =
            proxy.lock().expect("no thread panics while it holds the lock").take().expect("the emulator was started");
        // Longer than the timeout of the function that reads the queue.
        let hide = |queues: &'static [&str], seconds| stack.hide_messages_for(queues, Duration::from_secs(seconds));
        hide(&["ItemsQueueUrl", "IsolateQueueUrl"], 4).await;
        hide(&["JobsQueueUrl", "JobsDeadLetterQueueUrl"], 6).await;
        hide(&["ItemsDeadLetterQueueUrl", "CompletionsDeadLetterQueueUrl"], 6).await;
        hide(&["CompletionsQueueUrl"], 11).await;
        Self { stack, proxy }
    }
}
