//! Start-up of a function: telemetry, settings and adapters.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use lambda_http::{Body, Request, Response};
use lambda_runtime::Error;
use rowmill_core::model::messages::{ChunkMessage, CompletionMessage, Grouped, SplitMessage};
use rowmill_core::ports::{Clock, Deliveries, Entropy, Events, JobStore, Queue, RecordStore, Target, UploadStore};
use rowmill_core::progress::JobSteps;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::clients::Clients;
use crate::dynamodb::{DynamoDbJobStore, DynamoDbRecordStore, DynamoDbUploadStore, RowChange};
use crate::eventbridge::EventBridgeEvents;
use crate::lambda::LambdaTarget;
use crate::s3::S3Objects;
use crate::serve::{self, Batch};
use crate::settings::{self, StartError};
use crate::sqs::{SqsDeliveries, SqsQueue};
use crate::system::{SystemClock, SystemEntropy};
use crate::telemetry;

/// Starts a function: sets up its log and the AWS configuration all its clients share.
///
/// # Errors
/// [`StartError`] where a setting of the start itself is wrong.
pub async fn start(function_name: &'static str) -> Result<Runtime, StartError> {
    telemetry::start(function_name)?;
    Ok(Runtime { function_name, clients: Clients::from_environment().await })
}

/// What a function runs on: its settings, its adapters and the loop that feeds its handler.
#[derive(Debug)]
pub struct Runtime {
    function_name: &'static str,
    clients: Clients,
}

impl Runtime {
    /// The setting of this name, or the default where it is not set or empty.
    ///
    /// # Errors
    /// [`StartError::Invalid`], which names the variable, what it holds and what it must hold.
    pub fn setting<T: FromStr>(&self, name: &str, default: T) -> Result<T, StartError> {
        settings::setting(name, default)
    }

    /// The jobs and admission tables, named by `ROWMILL_JOBS_TABLE` and `ROWMILL_ADMISSION_TABLE`. Only a function that
    /// begins or ends attempts uses the second, so only those need it to be set.
    ///
    /// # Errors
    /// [`StartError::Missing`].
    pub fn job_store(&self) -> Result<Arc<dyn JobStore>, StartError> {
        let jobs = settings::required("ROWMILL_JOBS_TABLE", "the name of the jobs table")?;
        let admission = settings::required("ROWMILL_ADMISSION_TABLE", "the name of the admission table").ok();
        Ok(Arc::new(DynamoDbJobStore::new(self.clients.dynamodb(), jobs, admission)))
    }

    /// The uploads table, named by `ROWMILL_UPLOADS_TABLE`.
    ///
    /// # Errors
    /// [`StartError::Missing`].
    pub fn upload_store(&self) -> Result<Arc<dyn UploadStore>, StartError> {
        let table = settings::required("ROWMILL_UPLOADS_TABLE", "the name of the uploads table")?;
        Ok(Arc::new(DynamoDbUploadStore::new(self.clients.dynamodb(), table)))
    }

    /// The records table, named by `ROWMILL_RECORDS_TABLE`.
    ///
    /// # Errors
    /// [`StartError::Missing`].
    pub fn record_store(&self) -> Result<Arc<dyn RecordStore>, StartError> {
        let table = settings::required("ROWMILL_RECORDS_TABLE", "the name of the records table")?;
        Ok(Arc::new(DynamoDbRecordStore::new(self.clients.dynamodb(), table)))
    }

    /// The bucket, named by `ROWMILL_BUCKET`. It is both `Objects` and `DirectTransfers`.
    ///
    /// # Errors
    /// [`StartError::Missing`].
    pub fn objects(&self) -> Result<Arc<S3Objects>, StartError> {
        let bucket = settings::required("ROWMILL_BUCKET", "the name of the bucket")?;
        Ok(Arc::new(S3Objects::new(self.clients.s3(), bucket)))
    }

    /// The Lambda function of this ARN as a target, which has so long to answer.
    pub fn function_target(&self, arn: &str, timeout: Duration) -> Arc<dyn Target> {
        Arc::new(LambdaTarget::new(self.clients.lambda(), arn, timeout))
    }

    /// The jobs queue, at `ROWMILL_JOBS_QUEUE_URL`: jobs to be split.
    ///
    /// # Errors
    /// [`StartError::Missing`].
    pub fn split_queue(&self) -> Result<Arc<dyn Queue<SplitMessage>>, StartError> {
        self.queue("ROWMILL_JOBS_QUEUE_URL", "the URL of the jobs queue")
    }

    /// The items queue, at `ROWMILL_ITEMS_QUEUE_URL`: chunks to be processed.
    ///
    /// # Errors
    /// [`StartError::Missing`].
    pub fn items_queue(&self) -> Result<Arc<dyn Queue<ChunkMessage>>, StartError> {
        self.queue("ROWMILL_ITEMS_QUEUE_URL", "the URL of the items queue")
    }

    /// The isolate queue, at `ROWMILL_ISOLATE_QUEUE_URL`: chunks whose items are run one at a time.
    ///
    /// # Errors
    /// [`StartError::Missing`].
    pub fn isolate_queue(&self) -> Result<Arc<dyn Queue<ChunkMessage>>, StartError> {
        self.queue("ROWMILL_ISOLATE_QUEUE_URL", "the URL of the isolate queue")
    }

    /// The completions queue, at `ROWMILL_COMPLETIONS_QUEUE_URL`: attempts to be ended.
    ///
    /// # Errors
    /// [`StartError::Missing`].
    pub fn completions_queue(&self) -> Result<Arc<dyn Queue<CompletionMessage>>, StartError> {
        self.queue("ROWMILL_COMPLETIONS_QUEUE_URL", "the URL of the completions queue")
    }

    /// The deliveries of the inbox queue, at `ROWMILL_INBOX_QUEUE_URL`: objects dropped into the bucket.
    ///
    /// # Errors
    /// [`StartError::Missing`].
    pub fn inbox_deliveries(&self) -> Result<Arc<dyn Deliveries>, StartError> {
        let url = settings::required("ROWMILL_INBOX_QUEUE_URL", "the URL of the inbox queue")?;
        Ok(Arc::new(SqsDeliveries::new(self.clients.sqs(), url)))
    }

    /// The bus on which other systems hear of jobs, named by `ROWMILL_EVENT_BUS_NAME`.
    ///
    /// # Errors
    /// [`StartError::Missing`].
    pub fn events(&self) -> Result<Arc<dyn Events>, StartError> {
        let bus = settings::required("ROWMILL_EVENT_BUS_NAME", "the name of the event bus")?;
        Ok(Arc::new(EventBridgeEvents::new(self.clients.eventbridge(), bus)))
    }

    /// What brings a job's accounts forward, over the jobs table, the bucket, the items queue and the completions queue.
    ///
    /// # Errors
    /// [`StartError::Missing`].
    pub fn job_steps(&self) -> Result<JobSteps, StartError> {
        let (chunks, completions) = (self.items_queue()?, self.completions_queue()?);
        Ok(JobSteps::new(self.job_store()?, self.objects()?, chunks, completions, self.clock()))
    }

    fn queue<M>(&self, name: &str, expected: &'static str) -> Result<Arc<dyn Queue<M>>, StartError>
    where
        M: Grouped + Serialize + Send + Sync + 'static,
    {
        let url = settings::required(name, expected)?;
        Ok(Arc::new(SqsQueue::<M>::new(self.clients.sqs(), url)))
    }

    /// The system's clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(SystemClock)
    }

    /// The system's source of random bytes.
    pub fn entropy(&self) -> Arc<dyn Entropy> {
        Arc::new(SystemEntropy)
    }

    /// Serves HTTP requests until the execution environment ends.
    ///
    /// # Errors
    /// Where the Lambda runtime API cannot be reached.
    pub async fn serve_http<H, F>(self, handler: H) -> Result<(), Error>
    where
        H: Fn(Request) -> F + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        serve::http(self.function_name, handler).await
    }

    /// Serves batches of a queue's messages until the execution environment ends. The handler answers with the ids of
    /// the messages to be delivered again.
    ///
    /// # Errors
    /// Where the Lambda runtime API cannot be reached.
    pub async fn serve_queue<M, H, F>(self, handler: H) -> Result<(), Error>
    where
        M: DeserializeOwned + Send + 'static,
        H: Fn(Batch<M>) -> F + Send + Sync + 'static,
        F: Future<Output = Vec<String>> + Send + 'static,
    {
        serve::queue(self.function_name, handler).await
    }

    /// Serves changes of a table's rows, in the order they were made, until the execution environment ends. The handler
    /// answers with the sequence number from which they are to be delivered again, if they are; where it fails, all of them
    /// are.
    ///
    /// # Errors
    /// Where the Lambda runtime API cannot be reached.
    pub async fn serve_stream<H, F, E>(self, handler: H) -> Result<(), Error>
    where
        H: Fn(Vec<RowChange>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Option<String>, E>> + Send + 'static,
        E: Into<Error> + Send + 'static,
    {
        serve::stream(self.function_name, handler).await
    }

    /// Runs at the ticks of a schedule until the execution environment ends.
    ///
    /// # Errors
    /// Where the Lambda runtime API cannot be reached.
    pub async fn serve_schedule<H, F, E>(self, handler: H) -> Result<(), Error>
    where
        H: Fn() -> F + Send + Sync + 'static,
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Error> + Send + 'static,
    {
        serve::schedule(self.function_name, handler).await
    }
}
