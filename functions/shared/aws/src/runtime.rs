//! Start-up of a function: log, adapters and the loop that serves invocations.

use std::sync::Arc;
use std::time::Duration;

use lambda_http::{Body, Response};
use lambda_runtime::Error;
use rowmill_api::routes;
use rowmill_core::callers::blocked::BlockCheck;
use rowmill_core::callers::refused::RefusalMemory;
use rowmill_core::model::breaker::BreakerLimits;
use rowmill_core::model::lanes::JobTypeLimits;
use rowmill_core::model::messages::{ChunkMessage, CompletionMessage, Grouped, SplitMessage};
use rowmill_core::model::request_limits::RequestLimits;
use rowmill_core::ports::{
    BatchRunner, Clock, ConnectionSender, Deliveries, Entropy, Events, JobStore, OutstandingUploads, Queue,
    RecordStore, Target, UploadStore,
};
use rowmill_core::progress::JobSteps;
use rowmill_core::progress::breaker::BreakerSteps;
use rowmill_core::progress::commit::resend::ChunkResender;
use rowmill_core::sending::lane_router::LaneRouter;
use rowmill_core::sending::priority_router::PriorityRouter;
use rowmill_settings::{self as settings, JobTypeSettings, Resource, SettingsGroup, StartError};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::adapters::api_gateway::ApiGatewayConnections;
use crate::adapters::dynamodb::{
    DynamoDbBreakers, DynamoDbJobStore, DynamoDbLive, DynamoDbQuotas, DynamoDbRecordStore, DynamoDbUploadStore,
    RowChange,
};
use crate::adapters::eventbridge::EventBridgeEvents;
use crate::adapters::lambda::LambdaTarget;
use crate::adapters::s3::S3Objects;
use crate::adapters::secrets_manager::StoredSecret;
use crate::adapters::sqs::{SqsDeliveries, SqsQueue};
use crate::adapters::system::{SystemClock, SystemEntropy};
use crate::host::batch_threads::BatchThreads;
use crate::host::http::{Access, Api, Call, Guard, Problem};
use crate::host::live_events::{self, LiveEvent};
use crate::host::serve::{self, Batch};
use crate::observe::telemetry;
use crate::sdk::clients::Clients;
use crate::sdk::usage_shares;

/// Starts a function: sets up its log and the AWS configuration all its clients share.
///
/// # Errors
/// [`StartError::Invalid`] if `RUST_LOG` is not a filter; [`StartError::Times`].
pub async fn start(function_name: &'static str) -> Result<Runtime, StartError> {
    telemetry::start(function_name)?;
    settings::check_times()?;
    Ok(Runtime { function_name, clients: Clients::from_environment().await })
}

/// The environment of a function: its adapters and the loop that calls its handler.
#[derive(Debug)]
pub struct Runtime {
    function_name: &'static str,
    clients: Clients,
}

impl Runtime {
    /// The jobs and admission tables. Only a function that begins or ends attempts uses the second, so only those
    /// functions need it to be set.
    ///
    /// # Errors
    /// [`StartError::Missing`], as from all adapters.
    pub fn job_store(&self) -> Result<Arc<dyn JobStore>, StartError> {
        let (jobs, admission) = (settings::JOBS_TABLE.read()?, settings::ADMISSION_TABLE.read().ok());
        let store = DynamoDbJobStore::new(self.clients.dynamodb(), jobs, admission);
        Ok(Arc::new(store.metered(&usage_shares::OF_PROCESS)))
    }

    pub fn upload_store(&self) -> Result<Arc<dyn UploadStore>, StartError> {
        Ok(Arc::new(DynamoDbUploadStore::new(self.clients.dynamodb(), settings::UPLOADS_TABLE.read()?)))
    }

    fn quotas(&self) -> Result<Arc<DynamoDbQuotas>, StartError> {
        Ok(Arc::new(DynamoDbQuotas::new(self.clients.dynamodb(), settings::ADMISSION_TABLE.read()?)))
    }

    /// The announced uploads that are not completed, in the admission table.
    pub fn outstanding_uploads(&self) -> Result<Arc<dyn OutstandingUploads>, StartError> {
        Ok(self.quotas()?)
    }

    /// The check whether a caller is blocked, in the admission table.
    pub fn block_check(&self) -> Result<BlockCheck, StartError> {
        Ok(BlockCheck::new(self.quotas()?, self.clock()))
    }

    /// The breakers of the job types, in the admission table.
    pub fn breaker(&self, limits: BreakerLimits) -> Result<BreakerSteps, StartError> {
        let breakers = DynamoDbBreakers::new(self.clients.dynamodb(), settings::ADMISSION_TABLE.read()?);
        Ok(BreakerSteps::new(self.job_store()?, Arc::new(breakers), self.clock(), self.entropy(), limits))
    }

    /// The guard of this function's routes, if one of them is limited.
    fn guard(&self) -> Result<Option<Guard>, StartError> {
        if !routes::all().any(|route| route.function == self.function_name && route.is_limited()) {
            return Ok(None);
        }
        let (blocked, limits) = (self.block_check()?, RequestLimits::from_env()?);
        let counts = Arc::new(RefusalMemory::new(self.quotas()?));
        let (clock, entropy) = (self.clock(), self.entropy());
        Ok(Some(Guard { blocked, counts, clock, entropy, limits }))
    }

    pub fn record_store(&self) -> Result<Arc<dyn RecordStore>, StartError> {
        Ok(Arc::new(DynamoDbRecordStore::new(self.clients.dynamodb(), settings::RECORDS_TABLE.read()?)))
    }

    /// The bucket: both `Objects` and `DirectTransfers`.
    pub fn objects(&self) -> Result<Arc<S3Objects>, StartError> {
        Ok(Arc::new(S3Objects::new(self.clients.s3(), settings::BUCKET.read()?)))
    }

    /// The jobs queues: jobs to split. Those of low priority share that of normal priority.
    pub fn split_queue(&self) -> Result<Arc<dyn Queue<SplitMessage>>, StartError> {
        let (high, normal) = (self.queue(settings::JOBS_HIGH_QUEUE)?, self.queue(settings::JOBS_QUEUE)?);
        Ok(Arc::new(PriorityRouter { high, normal, low: None }))
    }

    /// The limits that job types have of their own.
    pub fn type_limits(&self) -> Result<JobTypeLimits, StartError> {
        JobTypeSettings::from_env()?.limits()
    }

    /// The queue with the lanes beside it, for the chunks of job types that have lanes.
    pub fn with_lanes(&self, queue: Resource) -> Result<Arc<dyn Queue<ChunkMessage>>, StartError> {
        let lanes = SqsQueue::of_lanes(self.clients.sqs(), settings::LANES_QUEUE.read()?);
        Ok(Arc::new(LaneRouter { limits: self.type_limits()?, queue: self.queue(queue)?, lanes: Arc::new(lanes) }))
    }

    /// The items queues: chunks to process. Those of some job types go on lanes.
    pub fn items_queues(&self) -> Result<Arc<PriorityRouter<ChunkMessage>>, StartError> {
        let (high, normal) = (self.with_lanes(settings::ITEMS_HIGH_QUEUE)?, self.with_lanes(settings::ITEMS_QUEUE)?);
        let low = Some(self.with_lanes(settings::ITEMS_LOW_QUEUE)?);
        Ok(Arc::new(PriorityRouter { high, normal, low }))
    }

    /// The isolate queue: chunks to process one item at a time. Those of some job types go on lanes.
    pub fn isolate_queue(&self) -> Result<Arc<dyn Queue<ChunkMessage>>, StartError> {
        self.with_lanes(settings::ISOLATE_QUEUE)
    }

    pub fn lane_deliveries(&self) -> Result<Arc<dyn Deliveries>, StartError> {
        Ok(Arc::new(SqsDeliveries::new(self.clients.sqs(), settings::LANES_QUEUE.read()?)))
    }

    /// The completions queue: attempts to end.
    pub fn completions_queue(&self) -> Result<Arc<dyn Queue<CompletionMessage>>, StartError> {
        self.queue(settings::COMPLETIONS_QUEUE)
    }

    /// The deliveries of the inbox queue: files dropped into the bucket.
    pub fn inbox_deliveries(&self) -> Result<Arc<dyn Deliveries>, StartError> {
        Ok(Arc::new(SqsDeliveries::new(self.clients.sqs(), settings::INBOX_QUEUE.read()?)))
    }

    /// The bus that receives the events of jobs.
    pub fn events(&self) -> Result<Arc<dyn Events>, StartError> {
        Ok(Arc::new(EventBridgeEvents::new(self.clients.eventbridge(), settings::EVENT_BUS.read()?)))
    }

    /// The connections table: `Tickets`, `Connections` and `Subscriptions`.
    pub fn live_store(&self) -> Result<Arc<DynamoDbLive>, StartError> {
        Ok(Arc::new(DynamoDbLive::new(self.clients.dynamodb(), settings::CONNECTIONS_TABLE.read()?)))
    }

    /// Where clients open live connections; none in a stack without an HTTP API.
    pub fn live_url(&self) -> Option<String> {
        settings::LIVE_URL.read().ok()
    }

    pub fn connection_sender(&self) -> Result<Arc<dyn ConnectionSender>, StartError> {
        let client = self.clients.connections(&settings::LIVE_URL.read()?);
        Ok(Arc::new(ApiGatewayConnections::new(client)))
    }

    /// The Lambda function of this ARN as a target, which has so long to answer.
    pub fn function_target(&self, arn: &str, timeout: Duration) -> Arc<dyn Target> {
        Arc::new(LambdaTarget::new(self.clients.lambda(), arn, timeout))
    }

    /// The secret that signs the calls of webhooks. It is set if there are job targets.
    pub fn webhook_secret(&self) -> Result<StoredSecret, StartError> {
        Ok(StoredSecret::new(self.clients.secrets_manager(), settings::WEBHOOK_SECRET.read()?))
    }

    /// The steps that several functions share, over the jobs table, the bucket, the items queues and the completions queue.
    pub fn job_steps(&self) -> Result<JobSteps, StartError> {
        let (chunks, completions) = (self.items_queues()?, self.completions_queue()?);
        Ok(JobSteps::new(self.job_store()?, self.objects()?, chunks, completions, self.clock()))
    }

    /// Resends missing chunks to the items queues and the isolate queue.
    pub fn resender(&self) -> Result<ChunkResender, StartError> {
        let JobSteps { committer, window, .. } = self.job_steps()?;
        let (chunks, isolated) = (self.items_queues()?, self.isolate_queue()?);
        Ok(ChunkResender { jobs: self.job_store()?, objects: self.objects()?, chunks, isolated, window, committer })
    }

    fn queue<M>(&self, queue: Resource) -> Result<Arc<dyn Queue<M>>, StartError>
    where
        M: Grouped + Serialize + Send + Sync + 'static,
    {
        Ok(Arc::new(SqsQueue::<M>::new(self.clients.sqs(), queue.read()?)))
    }

    /// The threads that run the items. An item that holds its thread for so long stops its job.
    pub fn batch_runner(&self, item_timeout: Duration) -> Arc<dyn BatchRunner> {
        Arc::new(BatchThreads::new(item_timeout))
    }

    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    /// The system's source of random bytes.
    pub fn entropy(&self) -> Arc<dyn Entropy> {
        Arc::new(SystemEntropy)
    }

    /// Serves the API's routes of this function until the execution environment ends.
    ///
    /// # Errors
    /// If a setting is wrong, or the Lambda runtime API cannot be reached.
    pub async fn serve_api<H, F>(self, handler: H) -> Result<(), Error>
    where
        H: Fn(Call) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Response<Body>, Problem>> + Send + 'static,
    {
        let api = Arc::new(Api { function: self.function_name, access: Access::from_env()?, guard: self.guard()? });
        let handler = Arc::new(handler);
        let answer = move |request| {
            let (api, handler) = (Arc::clone(&api), Arc::clone(&handler));
            async move { api.answer(request, |call| handler(call)).await }
        };
        serve::http(self.function_name, answer).await
    }

    /// Serves batches of a queue's messages until the execution environment ends. The handler returns the ids of the
    /// messages to deliver again.
    ///
    /// # Errors
    /// If the Lambda runtime API cannot be reached.
    pub async fn serve_queue<M, H, F>(self, handler: H) -> Result<(), Error>
    where
        M: DeserializeOwned + Send + 'static,
        H: Fn(Batch<M>) -> F + Send + Sync + 'static,
        F: Future<Output = Vec<String>> + Send + 'static,
    {
        serve::queue(self.function_name, handler).await
    }

    /// Serves changes of a table's rows, in their order, until the execution environment ends. The handler returns the
    /// sequence number from which to deliver again, if any. If it fails, all changes are delivered again.
    ///
    /// # Errors
    /// If the Lambda runtime API cannot be reached.
    pub async fn serve_stream<H, F, E>(self, handler: H) -> Result<(), Error>
    where
        H: Fn(Vec<RowChange>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Option<String>, E>> + Send + 'static,
        E: Into<Error> + Send + 'static,
    {
        serve::stream(self.function_name, handler).await
    }

    /// Serves what happens on the connections of a WebSocket API until the execution environment ends. The handler returns
    /// the HTTP status of its answer: an opening connection with another status than 200 is refused.
    ///
    /// # Errors
    /// If the Lambda runtime API cannot be reached.
    pub async fn serve_live<H, F>(self, handler: H) -> Result<(), Error>
    where
        H: Fn(LiveEvent) -> F + Send + Sync + 'static,
        F: Future<Output = u16> + Send + 'static,
    {
        live_events::live(self.function_name, handler).await
    }

    /// Calls the handler at each tick of a schedule until the execution environment ends.
    ///
    /// # Errors
    /// If the Lambda runtime API cannot be reached.
    pub async fn serve_schedule<H, F, E>(self, handler: H) -> Result<(), Error>
    where
        H: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Error> + Send + 'static,
    {
        serve::schedule(self.function_name, handler).await
    }
}
