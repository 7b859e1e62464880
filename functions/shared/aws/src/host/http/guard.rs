//! The guard of a limited route. Before its handler works: its caller is not blocked, if it changes something, and has
//! sent no more requests than allowed.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use lambda_http::{Body, Response};
use rowmill_api::problem::ProblemCode;
use rowmill_api::route_limits::RouteLimits;
use rowmill_api::routes::{self, RATE_LIMIT, RATE_LIMIT_POLICY, Route};
use rowmill_core::callers::blocked::BlockCheck;
use rowmill_core::callers::refused::RefusalMemory;
use rowmill_core::model::blocks::Principal;
use rowmill_core::model::request_limits::{RequestLimits, RequestsCounted, Window};
use rowmill_core::ports::{BoxError, Clock, Counted, Entropy, RequestCounts, RequestToCount};
use rowmill_core::wiring::Ports;
use rowmill_settings::{RouteLimitSettings, SettingsGroup};

use super::{Caller, Problem};

/// Guards the limited routes of a function.
pub struct Guard {
    pub blocked: BlockCheck,
    pub counts: Arc<dyn RequestCounts>,
    pub clock: Arc<dyn Clock>,
    /// Names the requests.
    pub entropy: Arc<dyn Entropy>,
    /// Maximum number of requests of a caller to each route.
    pub limits: RouteLimits,
}

/// The limits and what is left of them, as header fields of an answer (draft-ietf-httpapi-ratelimit-headers).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RateLimitFields {
    policy: String,
    left: String,
}

impl RateLimitFields {
    fn of(limits: RequestLimits, counted: RequestsCounted, at: Timestamp) -> Self {
        let windows = [Window::Minute, Window::Hour];
        let policy = windows.map(|window| {
            let (name, limit, seconds) = (window.name(), limits.of(window), window.seconds());
            format!("\"{name}\";q={limit};w={seconds}")
        });
        let left = windows.map(|window| {
            let (left, ends_in): (u32, Duration) = (limits.left(window, counted), window.ends_in(at));
            format!("\"{}\";r={left};t={}", window.name(), ends_in.as_secs())
        });
        Self { policy: policy.join(", "), left: left.join(", ") }
    }

    pub fn add_to(self, answer: &mut Response<Body>) {
        for (header, value) in [(RATE_LIMIT_POLICY, self.policy), (RATE_LIMIT, self.left)] {
            if let Ok(value) = value.try_into() {
                answer.headers_mut().insert(header.name, value);
            }
        }
    }
}

impl Guard {
    /// The guard of a function's routes, if one of them is limited.
    pub fn of(function: &str, ports: &Ports) -> Result<Option<Self>, BoxError> {
        if !routes::are_limited(function) {
            return Ok(None);
        }
        let (clock, entropy) = (ports.clock.get()?, ports.entropy.get()?);
        let RouteLimitSettings { posts, json } = RouteLimitSettings::from_env()?;
        let limits = RouteLimits::parse(&json, posts)?;
        let blocked = BlockCheck::new(ports.blocks.get()?, clock.clone());
        let counts = Arc::new(RefusalMemory::new(ports.request_counts.get()?));
        Ok(Some(Self { blocked, counts, clock, entropy, limits }))
    }

    /// Counts a request of this caller to this route. Returns whether the request may be carried out, and the fields
    /// that its answer gets; none if the request was not counted.
    pub async fn admit(&self, caller: &Caller, route: &Route) -> (Result<(), Problem>, Option<RateLimitFields>) {
        if caller.is_operator {
            return (Ok(()), None);
        }
        if !route.reads()
            && let Err(problem) = self.check_blocked(caller).await
        {
            return (Err(problem), None);
        }
        let principal = address_of(caller).unwrap_or_else(|| Principal::Owner(caller.owner.clone()));
        let (id, at, limits) = (self.entropy.run_id(), self.clock.now(), self.limits.of(route));
        let request = RequestToCount { principal, operation: route.operation.id(), id, at };
        match self.counts.count(&request, limits).await {
            Ok(Counted::Yes(counted)) => (Ok(()), Some(RateLimitFields::of(limits, counted, at))),
            Ok(Counted::No(counted)) => {
                (Err(too_many(&request, limits, counted)), Some(RateLimitFields::of(limits, counted, at)))
            }
            // Not passed on: a caller that overloads its counter must not get past it.
            Err(error) => (Err(error.into()), None),
        }
    }

    /// An owner is blocked by name; where callers show no token, so is an address.
    async fn check_blocked(&self, caller: &Caller) -> Result<(), Problem> {
        let owner = Principal::Owner(caller.owner.clone());
        for principal in [Some(owner), address_of(caller)].into_iter().flatten() {
            if let Some(block) = self.blocked.block(&principal).await? {
                tracing::warn!(caller = %principal, since = %block.at, "request refused: the caller is blocked");
                return Err(Problem::blocked(block.at));
            }
        }
        Ok(())
    }
}

fn too_many(request: &RequestToCount, limits: RequestLimits, counted: RequestsCounted) -> Problem {
    let window = limits.reached(counted).unwrap_or(Window::Minute);
    let (caller, route, limit) = (&request.principal, &request.operation, limits.of(window));
    tracing::warn!(%caller, route, window = window.name(), limit, "request refused: too many requests");
    let detail = format!(
        "The limit of this route is {limit} requests in a{} {}, and it is reached. Try again after the time in \
         `Retry-After`.",
        if window == Window::Hour { "n" } else { "" },
        window.name()
    );
    Problem::new(ProblemCode::TooManyRequests, detail).retry_after(window.ends_in(request.at))
}

/// The address that stands for the caller. Callers without a token have the same owner: the address tells them apart.
fn address_of(caller: &Caller) -> Option<Principal> {
    caller.address.filter(|_| caller.anonymous).map(Principal::of_address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::system::SystemEntropy;
    use rowmill_api::routes::Operation;
    use rowmill_core::model::ids::Owner;
    use rowmill_core::ports::Block;
    use rowmill_testing::in_memory::{InMemoryQuotas, ManualClock};

    struct World {
        quotas: Arc<InMemoryQuotas>,
        clock: Arc<ManualClock>,
        guard: Guard,
    }

    /// A guard that lets two requests a minute and three an hour pass, 20 seconds before an hour ends.
    fn world() -> World {
        let quotas = Arc::new(InMemoryQuotas::default());
        let clock = Arc::new(ManualClock::at("2025-06-15T15:57:40Z".parse().unwrap()));
        let guard = Guard {
            blocked: BlockCheck::new(quotas.clone(), clock.clone()),
            counts: quotas.clone(),
            clock: clock.clone(),
            entropy: Arc::new(SystemEntropy),
            limits: RouteLimits::parse(
                r#"{"auditJob": {"minute": 1, "hour": 3}}"#,
                RequestLimits { per_minute: 2, per_hour: 3 },
            )
            .unwrap(),
        };
        World { quotas, clock, guard }
    }

    fn caller(owner: &str) -> Caller {
        Caller {
            owner: Owner(owner.into()),
            anonymous: false,
            token_until: None,
            address: Some([192, 0, 2, 1].into()),
            is_operator: false,
        }
    }

    fn anonymous(last: u8) -> Caller {
        Caller {
            owner: Owner(Owner::LOCAL.into()),
            anonymous: true,
            token_until: None,
            address: Some([192, 0, 2, last].into()),
            is_operator: false,
        }
    }

    #[tokio::test]
    async fn an_operator_acts_for_a_blocked_owner_whose_limit_is_reached() {
        let world = world();
        let block = Block { at: world.clock.now(), reason: None };
        world.quotas.set_block(Principal::Owner(Owner("me".into())), Some(block));
        assert_eq!(admitted(&world, &caller("me")).await.0, Some(("owner_blocked", 403)));
        let operator = Caller { is_operator: true, ..caller("me") };
        for _ in 0..9 {
            assert_eq!(admitted(&world, &operator).await, (None, None), "nothing is counted");
        }
    }

    async fn admitted(world: &World, caller: &Caller) -> (Option<(&'static str, u16)>, Option<RateLimitFields>) {
        let (admitted, fields) = world.guard.admit(caller, Operation::CreateJob.route()).await;
        (admitted.err().map(|problem| (problem.code(), problem.status())), fields)
    }

    #[tokio::test]
    async fn a_request_over_the_limit_is_told_when_to_come_back() {
        let world = world();
        for left in [1, 0] {
            let (refused, fields) = admitted(&world, &caller("me")).await;
            let expected = format!("\"minute\";r={left};t=20, \"hour\";r={};t=140", left + 1);
            assert_eq!((refused, fields.map(|fields| fields.left)), (None, Some(expected)));
        }
        let (admitted_now, fields) = world.guard.admit(&caller("me"), Operation::CreateJob.route()).await;
        let mut answer = admitted_now.unwrap_err().into_response();
        fields.unwrap().add_to(&mut answer);
        let header = |name: &str| answer.headers()[name].to_str().unwrap().to_owned();
        assert_eq!((answer.status().as_u16(), header("retry-after").as_str()), (429, "20"));
        assert_eq!(header("ratelimit-policy"), r#""minute";q=2;w=60, "hour";q=3;w=3600"#);
        assert_eq!(header("ratelimit"), r#""minute";r=0;t=20, "hour";r=1;t=140"#);
        world.clock.advance(Duration::from_secs(20));
        assert_eq!(admitted(&world, &caller("me")).await.0, None);
        let (refused, fields) = admitted(&world, &caller("me")).await;
        assert_eq!(refused, Some(("too_many_requests", 429)), "now by the hour");
        assert_eq!(fields.unwrap().left, r#""minute";r=1;t=60, "hour";r=0;t=120"#);
    }

    #[tokio::test]
    async fn other_owners_and_routes_are_not_affected() {
        let world = world();
        for _ in 0..2 {
            assert_eq!(admitted(&world, &caller("me")).await.0, None);
        }
        assert!(admitted(&world, &caller("me")).await.0.is_some());
        assert_eq!(admitted(&world, &caller("you")).await.0, None, "from the same address");
        assert!(world.guard.admit(&caller("me"), Operation::CancelJob.route()).await.0.is_ok());
    }

    #[tokio::test]
    async fn each_route_has_its_own_limits_and_a_blocked_caller_may_read_within_them() {
        let world = world();
        let block = Some(Block { at: world.clock.now(), reason: None });
        world.quotas.set_block(Principal::Owner(Owner("me".into())), block);
        let (refused, fields) = world.guard.admit(&caller("me"), Operation::AuditJob.route()).await;
        assert!(refused.is_ok());
        assert_eq!(fields.unwrap().policy, r#""minute";q=1;w=60, "hour";q=3;w=3600"#);
        let refused = world.guard.admit(&caller("me"), Operation::AuditJob.route()).await.0.unwrap_err();
        assert_eq!((refused.code(), refused.status()), ("too_many_requests", 429));
        assert_eq!(admitted(&world, &caller("me")).await.0, Some(("owner_blocked", 403)));
    }

    #[tokio::test]
    async fn callers_without_a_token_are_counted_by_address() {
        let world = world();
        for _ in 0..2 {
            assert_eq!(admitted(&world, &anonymous(1)).await.0, None);
        }
        assert!(admitted(&world, &anonymous(1)).await.0.is_some());
        assert_eq!(admitted(&world, &anonymous(2)).await.0, None);
    }

    #[tokio::test]
    async fn a_blocked_caller_is_refused_and_not_counted() {
        let world = world();
        let block = Some(Block { at: world.clock.now(), reason: Some("bombs".into()) });
        world.quotas.set_block(Principal::Owner(Owner("me".into())), block.clone());
        world.quotas.set_block(Principal::of_address([192, 0, 2, 1].into()), block);
        assert_eq!(admitted(&world, &caller("me")).await, (Some(("owner_blocked", 403)), None));
        assert_eq!(admitted(&world, &anonymous(1)).await, (Some(("owner_blocked", 403)), None));
        assert_eq!(admitted(&world, &caller("you")).await.0, None, "a token counts, not the address");
        assert_eq!(admitted(&world, &anonymous(2)).await.0, None);
    }
}
