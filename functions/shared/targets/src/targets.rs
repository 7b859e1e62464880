//! Turns the setting into job types.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rowmill_core::job_types::{TableKey, TableType, TargetType};
use rowmill_core::ports::processor::JobType;
use rowmill_core::ports::{Clock, ItemTable, Target};

use crate::config::{self, ConfigError, TargetConfig, TargetKind};
use crate::gate::{CALLS_MAX, Gate, GatedTarget, ProcessPermits};
use crate::lookup::{Lookup, SystemLookup};
use crate::signature::WebhookSecrets;
use crate::webhook::{WebhookClient, WebhookTarget};

/// Maximum concurrent calls to one function from one process: the limit of the process. Lambda itself enforces the
/// limits of the function.
const FUNCTION_CONCURRENCY: usize = CALLS_MAX;

#[derive(Clone, PartialEq, Debug, Default)]
pub struct Targets(Vec<TargetConfig>);

/// The adapters and secrets that connect targets.
pub struct Connections<'a> {
    /// Makes a target from the ARN of a function and the timeout of a call.
    pub function: &'a dyn Fn(&str, Duration) -> Arc<dyn Target>,
    /// Makes the table of a name.
    pub table: &'a dyn Fn(&str) -> Arc<dyn ItemTable>,
    /// The secrets that sign the calls of webhooks; `None` will do if [`Targets::have_webhooks`] is false.
    pub webhook_secrets: Option<WebhookSecrets>,
    pub lookup: Arc<dyn Lookup>,
    pub clock: Arc<dyn Clock>,
}

impl<'a> Connections<'a> {
    /// Connections that use the system's DNS resolver.
    pub fn new(
        function: &'a dyn Fn(&str, Duration) -> Arc<dyn Target>,
        table: &'a dyn Fn(&str) -> Arc<dyn ItemTable>,
        webhook_secrets: Option<WebhookSecrets>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { function, table, webhook_secrets, lookup: Arc::new(SystemLookup), clock }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// There is a webhook, but no secret to sign its calls.
    #[error("ROWMILL_JOB_TARGETS has webhooks, and their calls must be signed: there is no secret")]
    NoSecret,
    /// TLS cannot be set up.
    #[error("the HTTP client for webhooks cannot be created")]
    Client(#[source] reqwest::Error),
}

impl Targets {
    /// Parses the setting. An empty setting means no targets. `built_in` lists the names that are taken.
    pub fn parse(json: &str, built_in: &[&str]) -> Result<Self, ConfigError> {
        config::parse(json, built_in).map(Self)
    }

    /// True if one of the targets is a web service, whose calls need a secret.
    pub fn have_webhooks(&self) -> bool {
        self.0.iter().any(|config| matches!(config.kind, TargetKind::Webhook { .. }))
    }

    /// The job types without connections, for a function that only checks params.
    pub fn types(&self) -> Vec<Arc<dyn JobType>> {
        self.0.iter().map(|config| job_type(config, None)).collect()
    }

    /// The job types, connected to their targets.
    pub fn connected_types(&self, connections: &Connections<'_>) -> Result<Vec<Arc<dyn JobType>>, ConnectError> {
        let Connections { function, table, webhook_secrets, lookup, clock } = connections;
        let mut webhooks = None;
        if self.have_webhooks() {
            let secrets = webhook_secrets.as_ref().ok_or(ConnectError::NoSecret)?;
            let client = WebhookClient::new(Arc::clone(lookup), Arc::clone(clock)).map_err(ConnectError::Client)?;
            webhooks = Some((Arc::new(client), secrets));
        }
        let gates = self.gates(clock);
        let connect = |config: &TargetConfig| {
            let target: Arc<dyn Target> = match (&config.kind, &webhooks) {
                (TargetKind::Function(arn), _) => function(arn, config.timeout),
                (TargetKind::Webhook { endpoint, .. }, Some((client, secrets))) => {
                    let keys = secrets.keys_of(&config.name);
                    Arc::new(WebhookTarget::new(Arc::clone(client), endpoint.clone(), keys, config.timeout))
                }
                (TargetKind::Webhook { .. }, None) => return None,
                (TargetKind::Workers, _) => return Some(job_type(config, None)),
                (TargetKind::Table { name, key }, _) => return Some(table_type(config, key, Some(table(name)))),
            };
            let gate = gates.get(&gate_name(config)).map(Arc::clone)?;
            Some(job_type(config, Some(Arc::new(GatedTarget::new(gate, target)))))
        };
        Ok(self.0.iter().filter_map(connect).collect())
    }

    /// One gate for each host and each function. The concurrency of a host is the lowest `hostConcurrency` of its job
    /// types. All gates together admit at most [`CALLS_MAX`] calls.
    fn gates(&self, clock: &Arc<dyn Clock>) -> HashMap<String, Arc<Gate>> {
        let mut concurrency: HashMap<String, usize> = HashMap::new();
        for config in &self.0 {
            let own = match config.kind {
                TargetKind::Function(_) => FUNCTION_CONCURRENCY,
                TargetKind::Webhook { host_concurrency, .. } => host_concurrency,
                TargetKind::Workers | TargetKind::Table { .. } => continue,
            };
            concurrency.entry(gate_name(config)).and_modify(|lowest| *lowest = own.min(*lowest)).or_insert(own);
        }
        let process = ProcessPermits::default();
        let gate = |(name, limit)| (name, Arc::new(Gate::new(Arc::clone(clock), limit, process.clone())));
        concurrency.into_iter().map(gate).collect()
    }
}

fn gate_name(config: &TargetConfig) -> String {
    match &config.kind {
        TargetKind::Function(arn) => arn.clone(),
        TargetKind::Webhook { endpoint, .. } => endpoint.host(),
        TargetKind::Workers | TargetKind::Table { .. } => String::new(),
    }
}

fn table_type(config: &TargetConfig, key: &TableKey, table: Option<Arc<dyn ItemTable>>) -> Arc<dyn JobType> {
    Arc::new(TableType { name: config.name.clone(), key: key.clone(), table })
}

fn job_type(config: &TargetConfig, target: Option<Arc<dyn Target>>) -> Arc<dyn JobType> {
    if let TargetKind::Table { key, .. } = &config.kind {
        return table_type(config, key, None);
    }
    let job_type = TargetType::new(&config.name, config.calls, target).with_input(config.input);
    match config.tasks {
        Some(terms) => Arc::new(job_type.with_tasks(terms)),
        None => Arc::new(job_type),
    }
}

#[cfg(test)]
mod tests {
    use rowmill_core::ports::processor::InputKind;
    use rowmill_core::ports::{TargetError, TargetRequest};
    use rowmill_testing::in_memory::{InMemoryItemTable, ManualClock};
    use serde_json::json;

    use super::*;

    struct NeverAnswers;

    #[async_trait::async_trait]
    impl Target for NeverAnswers {
        async fn call(&self, _request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError> {
            Err(TargetError::no_answer("never"))
        }
    }

    fn function(_arn: &str, _timeout: Duration) -> Arc<dyn Target> {
        Arc::new(NeverAnswers)
    }

    fn table(_name: &str) -> Arc<dyn ItemTable> {
        Arc::new(InMemoryItemTable::default())
    }

    fn targets() -> Targets {
        let json = json!({
            "geocode": {"invoke": "arn:aws:lambda:eu-west-1:123456789012:function:geocode", "outputs": true},
            "one": {"webhook": "https://example.com/one", "hostConcurrency": 7},
            "two": {"webhook": "https://example.com/two", "hostConcurrency": 3, "input": "none"},
            "orders": {"table": "shop-orders", "key": ["customer", "order"]},
        });
        Targets::parse(&json.to_string(), &[]).unwrap()
    }

    fn names(types: &[Arc<dyn JobType>]) -> Vec<&str> {
        types.iter().map(|job_type| job_type.name()).collect()
    }

    #[test]
    fn each_target_becomes_a_job_type_with_or_without_a_connection() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let secrets = WebhookSecrets::new("correct horse battery staple", None).unwrap();
        let connected = targets().connected_types(&Connections::new(&function, &table, Some(secrets), clock)).unwrap();
        assert_eq!(names(&connected), ["geocode", "one", "orders", "two"]);
        assert_eq!(names(&targets().types()), names(&connected));
        assert_eq!(connected.iter().map(|of| of.takes_any_params()).collect::<Vec<_>>(), [true, true, false, true]);
        for types in [connected, targets().types()] {
            let inputs = types.iter().map(|job_type| job_type.input()).collect::<Vec<_>>();
            assert_eq!(inputs, [InputKind::File, InputKind::File, InputKind::File, InputKind::None]);
        }
    }

    #[test]
    fn webhooks_need_a_secret_and_functions_do_not() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let refused = targets().connected_types(&Connections::new(&function, &table, None, Arc::clone(&clock)));
        assert!(matches!(refused, Err(ConnectError::NoSecret)));
        let only_functions = Targets(targets().0.into_iter().take(1).collect());
        assert!(only_functions.connected_types(&Connections::new(&function, &table, None, clock)).is_ok());
        assert!(targets().have_webhooks() && !only_functions.have_webhooks());
    }

    #[test]
    fn job_types_of_one_host_share_a_gate_with_the_lowest_concurrency() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let gates = targets().gates(&clock);
        assert_eq!(gates.len(), 2);
        assert_eq!(gates["example.com:443"].free_permits(), 3);
    }
}
