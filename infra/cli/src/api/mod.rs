//! The API, typed: one method per call, with retries and timeouts, over HTTP or by direct invocation.
//!
//! Every call is safe to repeat. Reads are by nature, and so is a cancellation; a job's creation carries an idempotency
//! key, so that a repeated one is answered with the job the first one made; a job that is redriven refuses to be
//! redriven again, which after a lost reply says that it is; an upload announced twice leaves an unused announcement
//! behind, which expires.

mod error;
mod results;
mod retry;
mod shown;
mod transport;

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE};
use hyper::{Request, StatusCode};
use reqwest::Url;
use rowmill_api::at_work::WorkerList;
use rowmill_api::dataset::{DatasetList, RecordList};
use rowmill_api::dead_letter::{self, DeadLetterList};
use rowmill_api::estimate::EstimateView;
use rowmill_api::item::FailedItemPage;
use rowmill_api::job::{JobPage, JobView};
use rowmill_api::live::LiveTicketView;
use rowmill_api::preview::PreviewView;
use rowmill_api::problem::ProblemCode;
use rowmill_api::request::{
    AnnounceRequest, CreateJobRequest, FetchRequest, PreviewRequest, PruneRequest, RedriveRequest, RetuneRequest,
    SignPartsRequest,
};
use rowmill_api::results::ResultsView;
use rowmill_api::routes::Operation;
use rowmill_api::task::{LeaseRequest, ProductRequest, ReleaseRequest, ReportRequest, TaskOrderView, TaskView};
use rowmill_api::upload::{RequestView, UploadView};
use rowmill_core::model::audit::AuditProof;
use rowmill_core::model::ids::{FileGuid, JobGuid};
use rowmill_core::model::job::states::{JobOutcome, Status};
use rowmill_core::model::run_output::FailedItem;
use rowmill_core::model::why::JobWhy;
use serde::de::{DeserializeOwned, IgnoredAny};
use uuid::Uuid;

use crate::gateway::Gateway;
pub use error::{ApiError, Refusal};
pub use results::{MANIFEST, files_of};
pub use retry::{RetryPolicy, is_transient, retry_after};
pub use shown::Shown;
use transport::Transport;
pub(crate) use transport::{http_client, is_loopback};

pub type Job = Shown<JobView>;

pub type Upload = Shown<UploadView>;

pub type DeadLetter = Shown<dead_letter::DeadLetter>;

pub type Audit = Shown<AuditProof>;

pub type Why = Shown<JobWhy>;

/// Longest wait for a complete answer: a little more than the 30 s an HTTP API gives a function.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(35);

#[derive(Debug, Clone, Default)]
pub struct JobFilter {
    pub status: Option<Status>,
    pub outcome: Option<JobOutcome>,
    pub job_type: Option<String>,
}

/// A Rowmill API, called as one caller.
pub struct ApiClient {
    transport: Transport,
    retry: RetryPolicy,
    answer_timeout: Duration,
}

/// An answer with the wait the API asks for before the next look.
#[derive(Debug)]
pub struct Answer<T> {
    pub status: StatusCode,
    pub body: T,
    pub retry_after: Option<Duration>,
}

struct Call {
    name: &'static str,
    method: &'static str,
    url: Url,
    body: Option<(String, Bytes)>,
    idempotency_key: Option<Uuid>,
}

impl Call {
    fn body(mut self, content_type: &str, body: impl Into<Bytes>) -> Self {
        self.body = Some((content_type.to_owned(), body.into()));
        self
    }

    fn json(self, body: &impl serde::Serialize) -> Self {
        let body = serde_json::to_vec(body).expect("a request is JSON");
        self.body("application/json", body)
    }
}

impl ApiClient {
    /// A client of the API at `base`, an `http` or `https` address with or without a path.
    ///
    /// # Errors
    ///
    /// [`ApiError::Address`] where `base` is not such an address, or where `token` would travel unencrypted to another
    /// machine.
    pub fn new(base: &str, token: Option<&str>) -> Result<Self, ApiError> {
        Ok(Self::over(Transport::http(base, token)?))
    }

    /// A client that invokes the functions of a stack, which needs no HTTP API.
    pub fn invoking(gateway: Gateway) -> Self {
        Self::over(Transport::gateway(gateway))
    }

    fn over(transport: Transport) -> Self {
        Self { transport, retry: RetryPolicy::default(), answer_timeout: ANSWER_TIMEOUT }
    }

    /// The same client with other patience.
    pub fn with_patience(mut self, retry: RetryPolicy, answer_timeout: Duration) -> Self {
        self.retry = retry;
        self.answer_timeout = answer_timeout;
        self
    }

    /// The number and the patience of this client's tries.
    pub fn retry(&self) -> &RetryPolicy {
        &self.retry
    }

    /// Stores a small file by sending its bytes with the request.
    pub async fn upload_directly(&self, file: &AnnounceRequest, content: Bytes) -> Result<Upload, ApiError> {
        let mut call = self.call("store upload", Operation::CreateUpload, "");
        call.url.query_pairs_mut().append_pair("fileName", &file.file_name);
        self.answer(call.body(&file.content_type, content)).await
    }

    /// Announces a file; the answer says where to send its bytes.
    pub async fn announce_upload(&self, file: &AnnounceRequest) -> Result<Upload, ApiError> {
        self.answer(self.call("announce upload", Operation::CreateUpload, "").json(file)).await
    }

    /// Has a file fetched.
    pub async fn fetch_upload(&self, file: &FetchRequest) -> Result<Upload, ApiError> {
        self.answer(self.call("fetch file", Operation::CreateUpload, "").json(file)).await
    }

    /// Puts the parts of a multipart upload together.
    pub async fn complete_upload(&self, file_guid: FileGuid) -> Result<Upload, ApiError> {
        self.answer(self.call("complete upload", Operation::CompleteUpload, &file_guid.to_string())).await
    }

    /// An upload as it is now, with what the storage has of it.
    pub async fn upload(&self, file_guid: FileGuid) -> Result<Upload, ApiError> {
        self.answer(self.call("look up upload", Operation::ShowUpload, &file_guid.to_string())).await
    }

    /// Has the missing parts of an upload signed again, from part `from` on.
    pub async fn sign_parts(&self, file_guid: FileGuid, from: Option<u32>) -> Result<Upload, ApiError> {
        let call = self.call("sign parts", Operation::SignParts, &file_guid.to_string());
        self.answer(call.json(&SignPartsRequest { from })).await
    }

    /// Deletes an upload, or what is stored of one that is not complete.
    pub async fn delete_upload(&self, file_guid: FileGuid) -> Result<(), ApiError> {
        self.delete(self.call("delete upload", Operation::DeleteUpload, &file_guid.to_string())).await
    }

    /// Deletes an ended job.
    pub async fn delete_job(&self, job_guid: JobGuid) -> Result<(), ApiError> {
        self.delete(self.call("delete job", Operation::DeleteJob, &job_guid.to_string())).await
    }

    async fn delete(&self, call: Call) -> Result<(), ApiError> {
        match self.tried(call).await {
            // An earlier try got no reply, and was carried out all the same.
            (tries, Err(error)) if tries > 1 && error.is(ProblemCode::NotFound) => Ok(()),
            (_, result) => result.map(|answer: Answer<()>| answer.body),
        }
    }

    /// The first rows of an upload as a job would read them.
    pub async fn preview(&self, file_guid: FileGuid, request: &PreviewRequest) -> Result<Shown<PreviewView>, ApiError> {
        let call = self.call("preview upload", Operation::PreviewUpload, &file_guid.to_string());
        self.answer(call.json(request)).await
    }

    /// The API's address, or the place of its functions.
    pub fn server(&self) -> String {
        self.transport.server()
    }

    /// Creates a job. Calls with the same `idempotency_key` create one job at most.
    pub async fn create_job(&self, job: &CreateJobRequest, idempotency_key: Uuid) -> Result<Job, ApiError> {
        Ok(self.find_or_create_job(job, idempotency_key).await?.0)
    }

    /// The same, with whether the job is an older one that a request with `dedupe` has found.
    pub async fn find_or_create_job(
        &self,
        job: &CreateJobRequest,
        idempotency_key: Uuid,
    ) -> Result<(Job, bool), ApiError> {
        let mut call = self.call("create job", Operation::CreateJob, "").json(job);
        call.idempotency_key = Some(idempotency_key);
        let answer = self.tried(call).await.1?;
        Ok((answer.body, answer.status == StatusCode::OK))
    }

    /// Expected cost and duration of a job. Creates none.
    pub async fn estimate_job(&self, job: &CreateJobRequest) -> Result<Shown<EstimateView>, ApiError> {
        self.answer(self.call("estimate job", Operation::EstimateJob, "").json(job)).await
    }

    /// Checks all of a request that can be checked before its file is uploaded. False if the job type reads no file.
    pub async fn check_job(&self, job: &CreateJobRequest) -> Result<bool, ApiError> {
        let call = self.call("check job", Operation::EstimateJob, "").json(job);
        let answer: Answer<IgnoredAny> = self.tried(call).await.1?;
        Ok(answer.status == StatusCode::NO_CONTENT)
    }

    pub async fn job(&self, job_guid: JobGuid) -> Result<Job, ApiError> {
        self.answer(self.call("look up job", Operation::ShowJob, &job_guid.to_string())).await
    }

    /// One look at a job within `timeout`, without retry: for a caller that looks again anyway.
    pub async fn glance_at_job(&self, job_guid: JobGuid, timeout: Duration) -> Result<Answer<Job>, ApiError> {
        let call = self.call("look up job", Operation::ShowJob, &job_guid.to_string());
        self.send(&call, timeout.min(self.answer_timeout)).await
    }

    /// A ticket for a live connection. Tried once: who asks can poll instead.
    pub async fn live_ticket(&self) -> Result<LiveTicketView, ApiError> {
        let call = self.call("get a ticket", Operation::CreateLiveTicket, "");
        Ok(self.send(&call, self.answer_timeout).await?.body)
    }

    /// A page of the caller's jobs, newest first, from cursor `after` on.
    pub async fn jobs(
        &self,
        filter: &JobFilter,
        limit: usize,
        after: Option<JobGuid>,
    ) -> Result<Shown<JobPage>, ApiError> {
        let mut call = self.call("list jobs", Operation::ListJobs, "");
        {
            let mut query = call.url.query_pairs_mut();
            query.append_pair("limit", &limit.to_string());
            if let Some(status) = filter.status {
                query.append_pair("status", status.as_str());
            }
            if let Some(outcome) = filter.outcome {
                query.append_pair("outcome", outcome.as_str());
            }
            if let Some(job_type) = &filter.job_type {
                query.append_pair("jobType", job_type);
            }
            if let Some(after) = after {
                query.append_pair("after", &after.to_string());
            }
        }
        self.answer(call).await
    }

    /// Has a job stopped. Cancelling one that is cancelled changes nothing.
    pub async fn cancel_job(&self, job_guid: JobGuid) -> Result<Job, ApiError> {
        self.answer(self.call("cancel job", Operation::CancelJob, &job_guid.to_string())).await
    }

    /// Pauses a job. Pausing one that is paused changes nothing.
    pub async fn pause_job(&self, job_guid: JobGuid) -> Result<Job, ApiError> {
        self.answer(self.call("pause job", Operation::PauseJob, &job_guid.to_string())).await
    }

    /// Resumes a paused job. Resuming one that is not paused changes nothing.
    pub async fn resume_job(&self, job_guid: JobGuid) -> Result<Job, ApiError> {
        self.answer(self.call("resume job", Operation::ResumeJob, &job_guid.to_string())).await
    }

    /// Changes limits of an active job. The same limits again change nothing.
    pub async fn retune_job(&self, job_guid: JobGuid, limits: &RetuneRequest) -> Result<Job, ApiError> {
        self.answer(self.call("retune job", Operation::RetuneJob, &job_guid.to_string()).json(limits)).await
    }

    /// Has the failed items of an ended job processed again.
    pub async fn redrive_job(&self, job_guid: JobGuid, redrive: &RedriveRequest) -> Result<Job, ApiError> {
        let call = self.call("redrive job", Operation::RedriveJob, &job_guid.to_string());
        match self.tried(call.json(redrive)).await {
            // An earlier try got no reply, and was carried out all the same.
            (tries, Err(error)) if tries > 1 && error.is(ProblemCode::JobActive) => self.job(job_guid).await,
            (_, result) => result.map(|answer| answer.body),
        }
    }

    /// The job that undoes a job. Undoing one again changes nothing.
    pub async fn undo_job(&self, job_guid: JobGuid) -> Result<Job, ApiError> {
        self.answer(self.call("undo job", Operation::UndoJob, &job_guid.to_string())).await
    }

    /// The job that removes the records which an import has not got, or counts them.
    pub async fn prune_dataset(&self, import: JobGuid, prune: PruneRequest) -> Result<Job, ApiError> {
        let call = self.call("prune dataset", Operation::PruneDataset, &import.to_string());
        self.answer(call.json(&prune)).await
    }

    /// The job that deletes the records of a dataset.
    pub async fn delete_dataset(&self, dataset: &str) -> Result<Job, ApiError> {
        self.answer(self.call("delete dataset", Operation::DeleteDataset, dataset)).await
    }

    /// The messages of a job that a queue gave up on, oldest first.
    pub async fn dead_letters(&self, job_guid: JobGuid) -> Result<Vec<DeadLetter>, ApiError> {
        let call = self.call("list dead letters", Operation::ListDeadLetters, &job_guid.to_string());
        let list: Shown<DeadLetterList> = self.answer(call).await?;
        Ok(list.entries("deadLetters", |list| list.dead_letters))
    }

    /// The audit of a job: its first part, or the part after that cursor.
    pub async fn audit(&self, job_guid: JobGuid, after: Option<&str>) -> Result<Audit, ApiError> {
        let mut call = self.call("audit job", Operation::AuditJob, &job_guid.to_string());
        if let Some(after) = after {
            call.url.query_pairs_mut().append_pair("after", after);
        }
        self.answer(call).await
    }

    /// The request for a job that does the same as this one; as a dry run or not, if that is given.
    pub async fn request_of(&self, job_guid: JobGuid, dry_run: Option<bool>) -> Result<CreateJobRequest, ApiError> {
        let mut call = self.call("look up request", Operation::ShowRequest, &job_guid.to_string());
        if let Some(dry_run) = dry_run {
            call.url.query_pairs_mut().append_pair("dryRun", &dry_run.to_string());
        }
        self.answer(call).await
    }

    /// What holds a job up now.
    pub async fn why(&self, job_guid: JobGuid) -> Result<Why, ApiError> {
        self.answer(self.call("explain job", Operation::ExplainJob, &job_guid.to_string())).await
    }

    /// The first failed items of a job.
    pub async fn failed_items(&self, job_guid: JobGuid, limit: usize) -> Result<Vec<FailedItem>, ApiError> {
        let mut call = self.call("list failed items", Operation::ListItems, &job_guid.to_string());
        call.url.query_pairs_mut().append_pair("outcome", "failed").append_pair("limit", &limit.to_string());
        let page: FailedItemPage = self.answer(call).await?;
        Ok(page.items)
    }

    /// The results of an ended job, with links that expire.
    pub async fn results(&self, job_guid: JobGuid) -> Result<ResultsView, ApiError> {
        self.answer(self.call("look up results", Operation::ShowResults, &job_guid.to_string())).await
    }

    /// A page of the caller's datasets.
    pub async fn datasets(&self, limit: usize, after: Option<&str>) -> Result<DatasetList, ApiError> {
        let mut call = self.call("list datasets", Operation::ListDatasets, "");
        call.url.query_pairs_mut().append_pair("limit", &limit.to_string());
        if let Some(after) = after {
            call.url.query_pairs_mut().append_pair("after", after);
        }
        self.answer(call).await
    }

    /// A page of the records of a dataset that `query` narrows.
    pub async fn records(&self, dataset: &str, query: &[(&str, &str)]) -> Result<RecordList, ApiError> {
        let mut call = self.call("list records", Operation::ListRecords, dataset);
        call.url.query_pairs_mut().extend_pairs(query);
        self.answer(call).await
    }

    /// The workers that have tasks, of all job types that the caller may work on.
    pub async fn workers(&self) -> Result<WorkerList, ApiError> {
        self.answer(self.call("list workers", Operation::ListWorkers, "")).await
    }

    /// Leases a task, if there is one. Tried once: what a lost reply leased is lost for half a minute, so who asks again
    /// asks for another one.
    pub async fn lease_task(&self, lease: &LeaseRequest) -> Result<Answer<Option<TaskView>>, ApiError> {
        self.send(&self.call("lease task", Operation::LeaseTask, "").json(lease), self.answer_timeout).await
    }

    /// Keeps a task, and reports outcomes of it. Tried once, within `timeout`. A report may be repeated.
    pub async fn beat_task(
        &self,
        task_id: &str,
        report: &ReportRequest,
        timeout: Duration,
    ) -> Result<TaskOrderView, ApiError> {
        let call = self.call("beat task", Operation::BeatTask, task_id).json(report);
        Ok(self.send(&call, timeout.min(self.answer_timeout)).await?.body)
    }

    /// The request that stores a product of an item.
    pub async fn store_product(&self, task_id: &str, product: &ProductRequest) -> Result<RequestView, ApiError> {
        self.answer(self.call("store product", Operation::StoreProduct, task_id).json(product)).await
    }

    /// Gives a task back. Tried once. May be repeated.
    pub async fn release_task(&self, task_id: &str, release: &ReleaseRequest) -> Result<TaskOrderView, ApiError> {
        let call = self.call("release task", Operation::ReleaseTask, task_id).json(release);
        Ok(self.send(&call, self.answer_timeout).await?.body)
    }

    /// A request to a route. `parameter` takes the place of the parameter in its path.
    fn call(&self, name: &'static str, operation: Operation, parameter: &str) -> Call {
        let (route, mut url) = (operation.route(), self.transport.base().clone());
        url.set_query(None);
        url.set_fragment(None);
        let segments = route.path.split('/').skip(1);
        let segments = segments.map(|segment| if segment.starts_with('{') { parameter } else { segment });
        url.path_segments_mut().expect("a transport is http or https").pop_if_empty().extend(segments);
        Call { name, method: route.method, url, body: None, idempotency_key: None }
    }

    async fn answer<T: DeserializeOwned>(&self, call: Call) -> Result<T, ApiError> {
        Ok(self.tried(call).await.1?.body)
    }

    /// The answer, or the last error, with the number of tries it took.
    async fn tried<T: DeserializeOwned>(&self, call: Call) -> (u32, Result<Answer<T>, ApiError>) {
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match self.send(&call, self.answer_timeout).await {
                Ok(answer) => return (tries, Ok(answer)),
                Err(error) if error.is_transient() => error,
                Err(error) => return (tries, Err(error)),
            };
            match self.retry.delay(tries, error.retry_after(), fastrand::f64()) {
                Some(delay) => tokio::time::sleep(delay).await,
                None => return (tries, Err(error)),
            }
        }
    }

    async fn send<T: DeserializeOwned>(&self, call: &Call, timeout: Duration) -> Result<Answer<T>, ApiError> {
        let mut request = Request::builder().method(call.method).uri(call.url.as_str());
        if let Some(key) = call.idempotency_key {
            request = request.header("idempotency-key", key.to_string());
        }
        let mut content = Bytes::new();
        if let Some((content_type, body)) = &call.body {
            request = request.header(CONTENT_TYPE, content_type).header(CONTENT_LENGTH, body.len());
            content = body.clone();
        }
        let request = request.body(content).map_err(|source| ApiError::Unsendable { call: call.name, source })?;
        let response = self.transport.send(call.name, request, timeout).await?;
        let (status, body) = (response.status(), response.body());
        let retry_after = retry_after(response.headers());
        if !status.is_success() {
            let refusal = Refusal::read(call.name, status, body, retry_after);
            return Err(ApiError::Refused(Box::new(refusal)));
        }
        // 204 has no body.
        let body: &[u8] = if body.is_empty() { b"null" } else { body };
        let body = serde_json::from_slice(body).map_err(|source| ApiError::Unreadable { call: call.name, source })?;
        Ok(Answer { status, body, retry_after })
    }
}

#[cfg(test)]
mod tests;
