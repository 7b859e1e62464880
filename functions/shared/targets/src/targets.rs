//! From the setting to job types.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rowmill_core::job_types::TargetType;
use rowmill_core::ports::processor::JobType;
use rowmill_core::ports::{Clock, Target};

use crate::config::{self, ConfigError, Reach, TargetConfig};
use crate::gate::{CALLS_MAX, Gate, GatedTarget, ProcessTurns};
use crate::lookup::{Lookup, SystemLookup};
use crate::signature::{SECRET_MIN_CHARS, WebhookSecret};
use crate::webhook::{WebhookClient, WebhookTarget};

/// How many calls of one function go out at once, from one process: as many as of all there are. The function's own limits
/// are Lambda's to keep.
const FUNCTION_CONCURRENCY: usize = CALLS_MAX;

/// The targets there are.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Targets(Vec<TargetConfig>);

/// What targets are connected with.
pub struct Connections<'a> {
    /// Makes a target of a function's ARN, with the time that a call may take.
    pub function: &'a dyn Fn(&str, Duration) -> Arc<dyn Target>,
    /// What `ROWMILL_WEBHOOK_SECRET` holds.
    pub webhook_secret: &'a str,
    /// Where the addresses of hosts come from.
    pub lookup: Arc<dyn Lookup>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

impl<'a> Connections<'a> {
    /// Connections by way of the system's resolver.
    pub fn new(
        function: &'a dyn Fn(&str, Duration) -> Arc<dyn Target>,
        webhook_secret: &'a str,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { function, webhook_secret, lookup: Arc::new(SystemLookup), clock }
    }
}

/// Why targets cannot be connected.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// There is a webhook, and no secret to sign its calls with.
    #[error(
        "ROWMILL_JOB_TARGETS has webhooks, whose calls are signed: ROWMILL_WEBHOOK_SECRET must be a secret of at least \
         {SECRET_MIN_CHARS} characters (set the template's WebhookSecret)"
    )]
    NoSecret,
    /// TLS cannot be set up.
    #[error("the client for webhooks cannot be made")]
    Client(#[source] reqwest::Error),
}

impl Targets {
    /// Reads the setting; of an empty one there are none. `built_in` are the names of job types that are taken.
    ///
    /// # Errors
    /// See [`ConfigError`].
    pub fn parse(json: &str, built_in: &[&str]) -> Result<Self, ConfigError> {
        config::parse(json, built_in).map(Self)
    }

    /// Their job types, for a function that checks params and never processes.
    pub fn types(&self) -> Vec<Arc<dyn JobType>> {
        self.0.iter().map(|config| job_type(config, None)).collect()
    }

    /// Their job types, connected.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connected_types(&self, connections: &Connections<'_>) -> Result<Vec<Arc<dyn JobType>>, ConnectError> {
        let Connections { function, webhook_secret, lookup, clock } = connections;
        let mut webhooks = None;
        if self.0.iter().any(|config| matches!(config.reach, Reach::Webhook { .. })) {
            let secret = WebhookSecret::new(*webhook_secret).ok_or(ConnectError::NoSecret)?;
            let client = WebhookClient::new(secret, Arc::clone(lookup), Arc::clone(clock));
            webhooks = Some(Arc::new(client.map_err(ConnectError::Client)?));
        }
        let gates = self.gates(clock);
        let connect = |config: &TargetConfig| {
            let target: Arc<dyn Target> = match (&config.reach, &webhooks) {
                (Reach::Function(arn), _) => function(arn, config.timeout),
                (Reach::Webhook { endpoint, .. }, Some(client)) => {
                    Arc::new(WebhookTarget::new(Arc::clone(client), endpoint.clone(), config.timeout))
                }
                (Reach::Webhook { .. }, None) => return None,
            };
            let gate = gates.get(&gate_name(config)).map(Arc::clone)?;
            Some(job_type(config, Some(Arc::new(GatedTarget::new(gate, target)))))
        };
        Ok(self.0.iter().filter_map(connect).collect())
    }

    /// A gate for every host and every function. What a host bears is the least that any of its types says; all gates
    /// together let [`CALLS_MAX`] calls through.
    fn gates(&self, clock: &Arc<dyn Clock>) -> HashMap<String, Arc<Gate>> {
        let mut at_once: HashMap<String, usize> = HashMap::new();
        for config in &self.0 {
            let own = match config.reach {
                Reach::Function(_) => FUNCTION_CONCURRENCY,
                Reach::Webhook { host_concurrency, .. } => host_concurrency,
            };
            at_once.entry(gate_name(config)).and_modify(|least| *least = own.min(*least)).or_insert(own);
        }
        let process = ProcessTurns::default();
        let gate = |(name, at_once)| (name, Arc::new(Gate::new(Arc::clone(clock), at_once, process.clone())));
        at_once.into_iter().map(gate).collect()
    }
}

fn gate_name(config: &TargetConfig) -> String {
    match &config.reach {
        Reach::Function(arn) => arn.clone(),
        Reach::Webhook { endpoint, .. } => endpoint.host(),
    }
}

fn job_type(config: &TargetConfig, target: Option<Arc<dyn Target>>) -> Arc<dyn JobType> {
    Arc::new(TargetType::new(&config.name, config.calls, target))
}

#[cfg(test)]
mod tests {
    use rowmill_core::in_memory::ManualClock;
    use rowmill_core::ports::{TargetError, TargetRequest};
    use serde_json::json;

    use super::*;

    struct Never;

    #[async_trait::async_trait]
    impl Target for Never {
        async fn call(&self, _request: &TargetRequest<'_>) -> Result<Vec<u8>, TargetError> {
            Err(TargetError::silent("never"))
        }
    }

    fn function(_arn: &str, _timeout: Duration) -> Arc<dyn Target> {
        Arc::new(Never)
    }

    fn targets() -> Targets {
        let json = json!({
            "geocode": {"invoke": "arn:aws:lambda:eu-west-1:123456789012:function:geocode", "outputs": true},
            "one": {"webhook": "https://example.com/one", "hostConcurrency": 7},
            "two": {"webhook": "https://example.com/two", "hostConcurrency": 3},
        });
        Targets::parse(&json.to_string(), &[]).unwrap()
    }

    fn names(types: &[Arc<dyn JobType>]) -> Vec<&str> {
        types.iter().map(|job_type| job_type.name()).collect()
    }

    #[test]
    fn each_target_is_a_job_type_connected_or_not() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let secret = "correct horse battery staple";
        let connected = targets().connected_types(&Connections::new(&function, secret, clock)).unwrap();
        assert_eq!(names(&connected), ["geocode", "one", "two"]);
        assert_eq!(names(&targets().types()), names(&connected));
        assert!(connected.iter().all(|job_type| job_type.takes_any_params()));
    }

    #[test]
    fn webhooks_want_a_secret_and_functions_do_not() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        for secret in ["", "too short"] {
            let refused = targets().connected_types(&Connections::new(&function, secret, Arc::clone(&clock)));
            assert!(matches!(refused, Err(ConnectError::NoSecret)));
        }
        let only_functions = Targets(targets().0.into_iter().take(1).collect());
        assert!(only_functions.connected_types(&Connections::new(&function, "", clock)).is_ok());
    }

    #[test]
    fn types_at_one_host_share_a_gate_of_the_least_that_either_says() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
        let gates = targets().gates(&clock);
        assert_eq!(gates.len(), 2);
        assert_eq!(gates["example.com:443"].free_turns(), 3);
    }
}
