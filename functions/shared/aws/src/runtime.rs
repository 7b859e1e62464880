//! Start-up of a function: its log, the SDK's clients and its ports.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use parking_lot::Mutex;

use rowmill_api::routes;
use rowmill_core::model::job_type_limits::JobTypeLimits;
use rowmill_core::model::messages::{Grouped, SplitMessage};
use rowmill_core::ports::{ConnectionSender, ItemTable, Queue, Target};
use rowmill_core::sending::priority_router::PriorityRouter;
use rowmill_core::wiring::{ChunkQueues, Missing, Port, Ports};
use rowmill_settings::declaration::{Function, Group};
use rowmill_settings::{self as settings, JobTypeSettings, Resource, RouteLimitSettings, SettingsGroup, StartError};
use serde::Serialize;

use crate::adapters::api_gateway::ApiGatewayConnections;
use crate::adapters::dynamodb::{
    DynamoDbBreakers, DynamoDbItemTable, DynamoDbJobStore, DynamoDbLive, DynamoDbQuotas, DynamoDbRecordStore,
    DynamoDbTasks, DynamoDbUploadStore,
};
use crate::adapters::eventbridge::EventBridgeEvents;
use crate::adapters::lambda::LambdaTarget;
use crate::adapters::s3::S3Objects;
use crate::adapters::secrets_manager::StoredSecret;
use crate::adapters::sqs::{SqsDeliveries, SqsQueue};
use crate::adapters::system::{SystemClock, SystemEntropy};
use crate::host::http::Access;
use crate::observe::telemetry;
use crate::sdk::clients::Clients;
use crate::sdk::usage_shares;

/// A function that has started.
pub struct Runtime {
    pub ports: Ports,
    function: &'static Function,
    clients: Clients,
    /// The groups of settings that it has read.
    read: Mutex<BTreeSet<&'static str>>,
}

/// Starts a function. Boxed, so that it is compiled once, in this crate, and not once per function.
///
/// # Errors
/// [`StartError::Invalid`] if `LogLevel` is not a filter, [`StartError::Times`], [`StartError::OtherSettings`],
/// [`StartError::JobTypes`].
pub fn start(function: &'static Function) -> BoxFuture<'static, Result<Runtime, StartError>> {
    started(function).boxed()
}

async fn started(function: &'static Function) -> Result<Runtime, StartError> {
    telemetry::start(function.name)?;
    settings::check_times(groups(function).flat_map(|group| (group.settings)()))?;
    let clients = Clients::from_environment().await;
    let mut runtime = Runtime { ports: ports(&clients), function, clients, read: Mutex::default() };
    if function.declares(JobTypeSettings::NAME) {
        let limits = Arc::new(runtime.settings::<JobTypeSettings>()?.limits()?);
        runtime.ports.chunks = Port(chunks(&runtime.clients, &limits));
        runtime.ports.type_limits = Port::given(limits);
    }
    Ok(runtime)
}

impl Runtime {
    /// The settings of a group.
    ///
    /// # Errors
    /// [`StartError::Undeclared`] if the template does not pass them to the function, [`StartError::Invalid`].
    pub fn settings<G: SettingsGroup>(&self) -> Result<G, StartError> {
        if !groups(self.function).any(|group| group.name == G::NAME) {
            return Err(StartError::Undeclared { function: self.function.name, what: G::NAME });
        }
        self.read.lock().insert(G::NAME);
        G::from_env()
    }

    /// The name of the function, which is built now: it serves next.
    ///
    /// # Errors
    /// [`StartError::Unread`] if the template passes it settings that it has not read.
    pub(crate) fn built(&self) -> Result<&'static str, StartError> {
        let (read, function) = (self.read.lock(), self.function.name);
        match self.function.settings.iter().find(|group| !read.contains(group.name)) {
            Some(group) => Err(StartError::Unread { function, what: group.name }),
            None => Ok(function),
        }
    }

    pub fn connection_sender(&self) -> Result<Arc<dyn ConnectionSender>, Missing> {
        let client = self.clients.connections(&settings::LIVE_URL.read()?);
        Ok(Arc::new(ApiGatewayConnections::new(client)))
    }

    /// The Lambda function of this ARN as a target, which has so long to answer.
    pub fn function_target(&self, arn: &str, timeout: Duration) -> Arc<dyn Target> {
        Arc::new(LambdaTarget::new(self.clients.lambda(), arn, timeout))
    }

    /// The table of this name as one that jobs import into.
    pub fn item_table(&self, name: &str) -> Arc<dyn ItemTable> {
        Arc::new(DynamoDbItemTable::new(self.clients.tables(), name.to_owned()))
    }

    /// The secret that signs the calls of webhooks. It is set if there are job targets.
    pub fn webhook_secret(&self) -> Result<StoredSecret, Missing> {
        Ok(StoredSecret::new(self.clients.secrets_manager(), settings::WEBHOOK_SECRET.read()?))
    }
}

/// The groups of settings that a function reads: those of its declaration, and those that this crate reads for every
/// function, or for those behind the HTTP API. The template passes these.
pub fn groups(function: &Function) -> impl Iterator<Item = Group> {
    let of_api = function.serves_http().then_some(Access::GROUP);
    let of_guard = routes::are_limited(function.name).then_some(RouteLimitSettings::GROUP);
    let of_all = [telemetry::LogSettings::GROUP].into_iter();
    of_all.chain(of_api).chain(of_guard).chain(function.settings.iter().copied())
}

/// The ports whose resources the environment names. The template names those that a function declares, so no function
/// builds a client that it has no use for.
fn ports(clients: &Clients) -> Ports {
    let quotas = |table| Arc::new(DynamoDbQuotas::new(clients.dynamodb(), table));
    let bucket = |name| Arc::new(S3Objects::new(clients.s3(), name));
    let live = |table| Arc::new(DynamoDbLive::new(clients.dynamodb(), table));
    let deliveries = |url| Arc::new(SqsDeliveries::new(clients.sqs(), url));
    Ports {
        jobs: Port::on(settings::JOBS_TABLE.read(), |table| {
            // Only functions that begin or end attempts use the admission table.
            let admission = settings::ADMISSION_TABLE.read().ok();
            let store = DynamoDbJobStore::new(clients.dynamodb(), table, admission);
            Arc::new(store.metered(&usage_shares::OF_PROCESS)) as _
        }),
        uploads: Port::on(settings::UPLOADS_TABLE.read(), |table| {
            Arc::new(DynamoDbUploadStore::new(clients.dynamodb(), table)) as _
        }),
        outstanding: Port::on(settings::ADMISSION_TABLE.read(), |table| quotas(table) as _),
        blocks: Port::on(settings::ADMISSION_TABLE.read(), |table| quotas(table) as _),
        request_counts: Port::on(settings::ADMISSION_TABLE.read(), |table| quotas(table) as _),
        breakers: Port::on(settings::ADMISSION_TABLE.read(), |table| {
            Arc::new(DynamoDbBreakers::new(clients.dynamodb(), table)) as _
        }),
        records: Port::on(settings::RECORDS_TABLE.read(), |table| {
            Arc::new(DynamoDbRecordStore::new(clients.dynamodb(), table, Arc::new(SystemClock))) as _
        }),
        objects: Port::on(settings::BUCKET.read(), |name| bucket(name) as _),
        multipart: Port::on(settings::BUCKET.read(), |name| bucket(name) as _),
        erasures: Port::on(settings::BUCKET.read(), |name| bucket(name) as _),
        lists: Port::on(settings::BUCKET.read(), |name| bucket(name) as _),
        transfers: Port::on(settings::BUCKET.read(), |name| bucket(name) as _),
        fetches: Port(queue(clients, settings::FETCHES_QUEUE)),
        fetch_deliveries: Port::on(settings::FETCHES_QUEUE.read(), |url| deliveries(url) as _),
        splits: Port(splits(clients)),
        starts: Port(queue(clients, settings::STARTS_QUEUE)),
        // With the limits of job types: see `start`.
        chunks: Port::default(),
        lane_deliveries: Port::on(settings::LANES_QUEUE.read(), |url| deliveries(url) as _),
        completions: Port(queue(clients, settings::COMPLETIONS_QUEUE)),
        inbox_deliveries: Port::on(settings::INBOX_QUEUE.read(), |url| deliveries(url) as _),
        events: Port::on(settings::EVENT_BUS.read(), |bus| {
            Arc::new(EventBridgeEvents::new(clients.eventbridge(), bus)) as _
        }),
        tickets: Port::on(settings::CONNECTIONS_TABLE.read(), |table| live(table) as _),
        connections: Port::on(settings::CONNECTIONS_TABLE.read(), |table| live(table) as _),
        subscriptions: Port::on(settings::CONNECTIONS_TABLE.read(), |table| live(table) as _),
        tasks: Port::on(settings::TASKS_TABLE.read(), |table| {
            Arc::new(DynamoDbTasks::new(clients.dynamodb(), table)) as _
        }),
        // `process-items` gives its own, with its item timeout.
        batches: Port::default(),
        clock: Port::given(Arc::new(SystemClock)),
        entropy: Port::given(Arc::new(SystemEntropy)),
        type_limits: Port::default(),
    }
}

/// Jobs of low priority share the queue of normal priority.
fn splits(clients: &Clients) -> Result<Arc<dyn Queue<SplitMessage>>, Missing> {
    let (high, normal) = (queue(clients, settings::JOBS_HIGH_QUEUE)?, queue(clients, settings::JOBS_QUEUE)?);
    Ok(Arc::new(PriorityRouter { high, normal, low: None }))
}

fn chunks(clients: &Clients, limits: &JobTypeLimits) -> Result<Arc<ChunkQueues>, Missing> {
    let lanes = Arc::new(SqsQueue::of_lanes(clients.sqs(), settings::LANES_QUEUE.read()?));
    let (high, normal) = (queue(clients, settings::ITEMS_HIGH_QUEUE)?, queue(clients, settings::ITEMS_QUEUE)?);
    let low = Some(queue(clients, settings::ITEMS_LOW_QUEUE)?);
    let isolated = queue(clients, settings::ISOLATE_QUEUE)?;
    Ok(Arc::new(ChunkQueues::new(limits, lanes, PriorityRouter { high, normal, low }, isolated)))
}

fn queue<M>(clients: &Clients, queue: Resource) -> Result<Arc<dyn Queue<M>>, Missing>
where
    M: Grouped + Serialize + Send + Sync + 'static,
{
    Ok(Arc::new(SqsQueue::<M>::new(clients.sqs(), queue.read()?)))
}

#[cfg(test)]
mod tests {
    use rowmill_settings::declaration::Trigger;
    use rowmill_settings::{ConnectionLimits, JobTargets, Links};

    use super::*;

    static FUNCTION: Function = Function {
        name: "upload",
        triggers: &[Trigger::Http],
        settings: &[Links::GROUP, ConnectionLimits::GROUP],
        ..Function::DEFAULT
    };

    #[tokio::test]
    async fn a_function_reads_what_it_declares_no_more_and_no_less() {
        let clients = Clients::from_environment().await;
        let runtime = Runtime { ports: Ports::default(), function: &FUNCTION, clients, read: Mutex::default() };
        runtime.settings::<Access>().unwrap();
        runtime.settings::<Links>().unwrap();
        let undeclared = runtime.settings::<JobTargets>().unwrap_err();
        assert!(matches!(undeclared, StartError::Undeclared { function: "upload", what: "JobTargets" }));
        assert!(matches!(runtime.built(), Err(StartError::Unread { function: "upload", what: "ConnectionLimits" })));
        runtime.settings::<ConnectionLimits>().unwrap();
        assert_eq!(runtime.built().unwrap(), "upload");
    }
}
