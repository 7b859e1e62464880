//! For how long a refused request is repeated while an invocation processes messages.
//!
//! A message that is given back has lost one of its deliveries, and a throttled table or queue refuses all workers for
//! as long as they ask for too much. So a function that processes messages repeats a throttled request until its time
//! is nearly over: the workers wait, and ask for less meanwhile. Where a client waits for an answer, the usual attempts
//! must do.

use std::time::Duration;

use aws_sdk_dynamodb::config::retry::TokenBucket;
use aws_smithy_runtime_api::box_error::BoxError;
use aws_smithy_runtime_api::client::interceptors::context::FinalizerInterceptorContextRef;
use aws_smithy_runtime_api::client::interceptors::{Intercept, dyn_dispatch_hint};
use aws_smithy_runtime_api::client::retries::classifiers::{ClassifyRetry, RetryAction, RetryReason};
use aws_smithy_runtime_api::client::retries::{ErrorKind, RequestAttempts};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::config_bag::{ConfigBag, Storable, StoreReplace};
use aws_smithy_types::retry::RetryConfig;
use jiff::Timestamp;
use rowmill_core::ports::patience::{current, of};
use tokio::task::futures::TaskLocalFuture;
use tokio::time::Instant;

/// Time left of an invocation when its last backoff begins: for that backoff, and to answer what it gives back.
const TO_ANSWER: Duration = Duration::from_millis(2500);

const LONGEST_BACKOFF: Duration = Duration::from_secs(1);

/// Works with patience until shortly before this deadline.
pub fn until<F: Future>(deadline: Timestamp, work: F) -> TaskLocalFuture<Option<Instant>, F> {
    let left = Duration::try_from(deadline.duration_since(Timestamp::now())).unwrap_or_default();
    of(Instant::now().checked_add(left.saturating_sub(TO_ANSWER)), work)
}

/// True if a refused request may be repeated beyond the usual attempts.
pub fn is_left() -> bool {
    current().is_some_and(|until| Instant::now() < until)
}

/// Has the SDK repeat throttled requests as long as there is patience, with the usual backoff between them.
#[derive(Debug)]
pub struct Patience;

/// Retries of the SDK if nothing is throttled.
#[derive(Clone, Debug)]
struct Usual(RetryConfig);

impl Storable for Usual {
    type Storer = StoreReplace<Self>;
}

#[dyn_dispatch_hint]
impl Intercept for Patience {
    fn name(&self) -> &'static str {
        "Patience"
    }

    /// Before the SDK decides about the next attempt.
    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        components: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if is_throttled(context, components) && is_left() {
            let usual = config.load::<Usual>().map(|usual| &usual.0).or_else(|| config.load::<RetryConfig>()).cloned();
            if let Some(usual) = usual {
                // One more, and no more: the SDK adds up how long all attempts could take.
                let more = config.load::<RequestAttempts>().map_or(0, RequestAttempts::attempts).saturating_add(1);
                let state = config.interceptor_state();
                let attempts = usual.max_attempts().max(more);
                let longest = usual.max_backoff().min(LONGEST_BACKOFF);
                state.store_put(usual.clone().with_max_attempts(attempts).with_max_backoff(longest));
                // The usual one is empty after a hundred retries of the whole process.
                state.store_put(TokenBucket::unlimited());
                state.store_put(Usual(usual));
            }
        } else if let Some(Usual(usual)) = config.load::<Usual>().cloned() {
            config.interceptor_state().store_put(usual);
        }
        Ok(())
    }
}

fn is_throttled(context: &FinalizerInterceptorContextRef<'_>, components: &RuntimeComponents) -> bool {
    components.retry_classifiers().any(|classifier| {
        let action = classifier.classify_retry(context.inner());
        matches!(
            action,
            RetryAction::RetryIndicated(RetryReason::RetryableError { kind: ErrorKind::ThrottlingError, .. })
        )
    })
}
