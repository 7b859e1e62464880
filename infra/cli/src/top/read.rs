//! Takes snapshots of a stack: its queues from SQS, its active jobs from the jobs table, what the API says of them, and
//! what CloudWatch has counted.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use aws_sdk_cloudwatch::types::{Dimension, Metric, MetricDataQuery, MetricStat};
use aws_sdk_dynamodb::types::{AttributeValue, KeysAndAttributes};
use aws_sdk_sqs::types::QueueAttributeName;
use futures::future::{join_all, try_join, try_join_all};
use jiff::Timestamp;
use rowmill_api::at_work::WorkerList;
use rowmill_core::model::ids::{JobGuid, Owner};
use rowmill_core::ports::WAKE_SHARDS;
use tokio::time::timeout;

use super::{ActiveJob, Counted, JOBS_SHOWN, Queue, Snapshot, metrics};
use crate::api::ApiClient;
use crate::aws::{Aws, CallFailed, failed, job_key};
use crate::gateway::Gateway;

/// Interval of the requests to CloudWatch: its metrics have a value a minute, and each value that is read costs.
const CLOUDWATCH_EVERY: Duration = Duration::from_secs(60);

const CLOUDWATCH_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval of the requests for the workers: each reads the checkpoints of all tasks that they have.
const WORKERS_EVERY: Duration = Duration::from_secs(10);

/// Timeout of the request for one job: the queues must be seen also when the API is down.
const JOB_TIMEOUT: Duration = Duration::from_secs(5);

/// The time over which metrics are summed up.
const COUNTED_OVER: Duration = Duration::from_secs(300);

/// The namespace and dimension of the functions' metrics. A test compares them with what the functions write.
pub const NAMESPACE: &str = "Rowmill";
/// See [`NAMESPACE`].
pub const DIMENSION: &str = "stack";

/// Where a stack is, and how to look at it.
pub struct Reader {
    pub aws: Aws,
    pub stack: String,
    /// The URL of each queue by its name, those with readers first.
    pub queues: Vec<(String, String)>,
    pub jobs_table: String,
    /// Invokes `job-status` in the name of the owners, and `work-task`.
    pub gateway: Gateway,
    /// The scope that a caller needs to read; empty for none.
    pub scope: String,
    cached: Option<(Instant, Option<FromCloudWatch>)>,
    workers: Option<(Instant, Option<WorkerList>)>,
}

#[derive(Debug, Clone)]
struct FromCloudWatch {
    counted: Counted,
    /// The age of the oldest message by queue.
    oldest: HashMap<String, Duration>,
}

impl Reader {
    /// A reader of this stack. `outputs` are those of its template.
    pub fn new(
        aws: Aws,
        stack: String,
        outputs: &[(String, String)],
        jobs_table: String,
        gateway: Gateway,
        scope: String,
    ) -> Self {
        Self { aws, stack, queues: queues_of(outputs), jobs_table, gateway, scope, cached: None, workers: None }
    }

    /// Takes a snapshot.
    ///
    /// # Errors
    ///
    /// [`CallFailed`] if the queues or the table cannot be read. What CloudWatch or the API does not tell is left out.
    pub async fn snapshot(&mut self) -> Result<Snapshot, CallFailed> {
        let known = self.what_cloudwatch_knows().await;
        let oldest = |name: &str| known.as_ref().and_then(|known| known.oldest.get(name).copied());
        let queues = try_join_all(self.queues.iter().map(|(name, url)| self.queue(name, url, oldest(name))));
        let (queues, guids) = try_join(queues, self.active()).await?;
        let newest: Vec<JobGuid> = guids.iter().rev().take(JOBS_SHOWN).copied().collect();
        let owners = self.owners(&newest).await?;
        let jobs = newest.into_iter().filter_map(|guid| Some((guid, owners.get(&guid)?.clone())));
        let jobs = join_all(jobs.map(|(guid, owner)| self.job(guid, owner))).await;
        let workers = self.workers().await;
        let (at, counted) = (Timestamp::now(), known.map(|known| known.counted));
        Ok(Snapshot { stack: self.stack.clone(), at, queues, active: guids.len(), jobs, workers, counted })
    }

    /// The workers of all job types. An operator may see them whoever may work.
    async fn workers(&mut self) -> Option<WorkerList> {
        match &self.workers {
            Some((at, workers)) if at.elapsed() < WORKERS_EVERY => workers.clone(),
            _ => {
                let api = ApiClient::invoking(self.gateway.as_operator(&Owner(Owner::LOCAL.to_owned())));
                let workers = timeout(JOB_TIMEOUT, api.workers()).await.ok().and_then(Result::ok);
                self.workers = Some((Instant::now(), workers.clone()));
                workers
            }
        }
    }

    async fn queue(&self, name: &str, url: &str, oldest: Option<Duration>) -> Result<Queue, CallFailed> {
        let waiting = QueueAttributeName::ApproximateNumberOfMessages;
        let in_flight = QueueAttributeName::ApproximateNumberOfMessagesNotVisible;
        let request = self.aws.sqs.get_queue_attributes().queue_url(url);
        let request = request.attribute_names(waiting.clone()).attribute_names(in_flight.clone());
        let output = request.send().await.map_err(failed(format!("read the queue {name}")))?;
        let number = |attribute| output.attributes()?.get(&attribute)?.parse().ok();
        let [waiting, in_flight] = [waiting, in_flight].map(|attribute| number(attribute).unwrap_or_default());
        Ok(Queue { name: name.to_owned(), waiting, in_flight, oldest })
    }

    /// The active jobs, the oldest first: only those are in the index of the sweep.
    async fn active(&self) -> Result<Vec<JobGuid>, CallFailed> {
        let request = self.aws.dynamodb.scan().table_name(&self.jobs_table).index_name("wake-index");
        // Deleted jobs have a shard of their own.
        let shards = AttributeValue::N(WAKE_SHARDS.to_string());
        let request = request.filter_expression("#shard < :shards").expression_attribute_names("#shard", "wakeShard");
        let request = request.expression_attribute_values(":shards", shards);
        let mut rows = request.projection_expression("jobId").into_paginator().items().send();
        let mut guids = Vec::new();
        while let Some(row) = rows.next().await {
            let row = row.map_err(failed("list the active jobs"))?;
            guids.extend(guid_of(&row));
        }
        guids.sort_by_key(|guid: &JobGuid| guid.0);
        Ok(guids)
    }

    /// The owners of these jobs. A job that is gone is left out.
    async fn owners(&self, guids: &[JobGuid]) -> Result<HashMap<JobGuid, Owner>, CallFailed> {
        if guids.is_empty() {
            return Ok(HashMap::new());
        }
        let keys = guids.iter().copied().map(job_key).collect();
        let keys = KeysAndAttributes::builder().set_keys(Some(keys));
        let keys = keys.projection_expression("jobId, #owner").expression_attribute_names("#owner", "owner").build();
        let keys = keys.map_err(failed("read the active jobs"))?;
        let request = self.aws.dynamodb.batch_get_item().request_items(&self.jobs_table, keys);
        let output = request.send().await.map_err(failed("read the active jobs"))?;
        let rows = output.responses.unwrap_or_default().remove(&self.jobs_table).unwrap_or_default();
        let owner = |row: &HashMap<String, AttributeValue>| Some(Owner(row.get("owner")?.as_s().ok()?.clone()));
        Ok(rows.iter().filter_map(|row| Some((guid_of(row)?, owner(row)?))).collect())
    }

    async fn job(&self, job_guid: JobGuid, owner: Owner) -> ActiveJob {
        let api = ApiClient::invoking(self.gateway.for_owner(&owner, &self.scope));
        let view = api.glance_at_job(job_guid, JOB_TIMEOUT).await.ok().map(|answer| (*answer.body).clone());
        ActiveJob { job_guid, owner, view }
    }

    /// The metrics of CloudWatch; none for an emulator, and if it does not answer: the rest is worth showing.
    async fn what_cloudwatch_knows(&mut self) -> Option<FromCloudWatch> {
        if self.aws.is_emulator() {
            return None;
        }
        if let Some((at, known)) = &self.cached
            && at.elapsed() < CLOUDWATCH_EVERY
        {
            return known.clone();
        }
        // No answer is kept as long as an answer: the queues do not wait for CloudWatch at every look.
        let known = timeout(CLOUDWATCH_TIMEOUT, self.ask_cloudwatch()).await.ok().and_then(Result::ok);
        self.cached = Some((Instant::now(), known.clone()));
        known
    }

    async fn ask_cloudwatch(&self) -> Result<FromCloudWatch, CallFailed> {
        let now = Timestamp::now().as_second();
        let time = |second: i64| aws_sdk_cloudwatch::primitives::DateTime::from_secs(second);
        let since = now - i64::try_from(COUNTED_OVER.as_secs()).unwrap_or(0);
        let request = self.aws.cloudwatch.get_metric_data().start_time(time(since)).end_time(time(now));
        let counted = metrics()
            .into_iter()
            .enumerate()
            .map(|(place, name)| query(format!("m{place}"), [NAMESPACE, name, DIMENSION, &self.stack], "Sum"));
        let ages = self.queues.iter().enumerate().map(|(place, (_, url))| {
            let of = ["AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", queue_name(url)];
            query(format!("q{place}"), of, "Maximum")
        });
        let output = request.set_metric_data_queries(Some(counted.chain(ages).collect())).send().await;
        let output = output.map_err(failed("read the metrics"))?;
        let values: HashMap<&str, &[f64]> =
            output.metric_data_results().iter().filter_map(|result| Some((result.id()?, result.values()))).collect();
        let sum = |(place, name): (usize, &str)| {
            let values = values.get(format!("m{place}").as_str())?;
            Some((name.to_owned(), values.iter().sum()))
        };
        let sums = metrics().into_iter().enumerate().filter_map(sum).collect();
        // The newest value comes first.
        let age = |(place, (name, _)): (usize, &(String, String))| {
            let newest = values.get(format!("q{place}").as_str())?.first()?;
            Some((name.clone(), Duration::from_secs_f64(newest.max(0.0))))
        };
        let oldest = self.queues.iter().enumerate().filter_map(age).collect();
        Ok(FromCloudWatch { counted: Counted { over: COUNTED_OVER, sums }, oldest })
    }
}

fn query(id: String, [namespace, name, dimension, value]: [&str; 4], statistic: &str) -> MetricDataQuery {
    let dimension = Dimension::builder().name(dimension).value(value).build();
    let metric = Metric::builder().namespace(namespace).metric_name(name).dimensions(dimension).build();
    let metric = MetricStat::builder().metric(metric).period(60).stat(statistic).build();
    MetricDataQuery::builder().id(id).metric_stat(metric).build()
}

fn guid_of(row: &HashMap<String, AttributeValue>) -> Option<JobGuid> {
    row.get("jobId")?.as_s().ok()?.parse().ok()
}

/// The name at the end of a queue's URL.
fn queue_name(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or(url)
}

/// The queues among the outputs of a stack: every output that ends in `QueueUrl`, those with readers first.
fn queues_of(outputs: &[(String, String)]) -> Vec<(String, String)> {
    let queue = |(key, url): &(String, String)| Some((key.strip_suffix("QueueUrl")?.to_owned(), url.clone()));
    let mut queues: Vec<_> = outputs.iter().filter_map(queue).collect();
    queues.sort_by_key(|(name, _)| name.ends_with("DeadLetter"));
    queues
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queues_of_a_stack_are_those_among_its_outputs() {
        let output = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let outputs = [
            output("JobsDeadLetterQueueUrl", "https://sqs/1/a-JobsDeadLetterQueue-X"),
            output("JobsTable", "a-JobsTable"),
            output("JobsQueueUrl", "https://sqs/1/a-JobsQueue-Y"),
        ];
        let queues = queues_of(&outputs);
        let found: Vec<_> = queues.iter().map(|(name, url)| (name.as_str(), queue_name(url))).collect();
        assert_eq!(found, [("Jobs", "a-JobsQueue-Y"), ("JobsDeadLetter", "a-JobsDeadLetterQueue-X")]);
    }
}
