//! The routes of the HTTP API, from the table of `rowmill-api`, and those of the WebSocket API.

use std::collections::BTreeMap;

use rowmill_api::routes::{self, Operation, Scope};
use rowmill_settings::declaration::Trigger;
use serde::Serialize;

use crate::functions::{self, stem};

/// A route of the HTTP API.
#[derive(Serialize)]
pub struct Route {
    id: String,
    key: String,
    function: String,
    /// The routes that invoke the function, as the end of an ARN.
    source: String,
    guarded: bool,
    /// The scope that a token needs: `Read`, `Write` or `Work`.
    scope: &'static str,
    /// Requests a second of all callers, if the route has a throttle of its own.
    throttle: Option<u32>,
}

/// What the metrics of all routes cost a month, in dollars: six for each at $0.30.
pub fn route_metrics_dollars() -> usize {
    routes().len() * 6 * 30 / 100
}

pub fn routes() -> Vec<Route> {
    routes::all_and_the_page().map(described).collect()
}

fn described(route: &'static routes::Route) -> Route {
    let segment = |segment: &'static str| if segment.starts_with('{') { "*" } else { segment };
    let path: Vec<&str> = route.path.split('/').map(segment).collect();
    let id = route.operation.id();
    Route {
        id: id[..1].to_ascii_uppercase() + &id[1..],
        key: format!("{} {}", route.method, route.path),
        function: stem(route.function),
        source: format!("{}{}", route.method, path.join("/")),
        guarded: route.function != "web",
        scope: match route.scope() {
            Scope::Read => "Read",
            Scope::Write => "Write",
            Scope::Work => "Work",
        },
        throttle: throttle(route),
    }
}

/// Every route has a throttle of its own but those that clients poll: a flood on one leaves room on the others. A page
/// of an audit takes up to 10 seconds, so 10 of them a second take 100 executions. 10,000 workers that come back within
/// ten seconds send 1,000 requests a second to each of two routes, of some 50 ms.
fn throttle(route: &routes::Route) -> Option<u32> {
    let rate = match (route.operation, route.scope()) {
        (Operation::AuditJob, _) => 10,
        (_, Scope::Work) => 2500,
        _ => 100,
    };
    (route.is_limited() || !route.guarded).then_some(rate)
}

/// The functions behind the HTTP API, each with its routes.
#[derive(Serialize)]
pub struct OfFunction {
    stem: String,
    routes: Vec<Route>,
}

pub fn functions() -> Vec<OfFunction> {
    let mut of_function: BTreeMap<String, Vec<Route>> = BTreeMap::new();
    for route in routes() {
        of_function.entry(route.function.clone()).or_default().push(route);
    }
    let in_order = functions::all().into_iter().map(|function| stem(function.name));
    in_order.filter_map(|stem| of_function.remove(&stem).map(|routes| OfFunction { stem, routes })).collect()
}

/// A function behind the WebSocket API: its stem, and the name, key and reason of each of its routes.
type LiveFunction = (String, &'static [(&'static str, &'static str, &'static str)]);

pub fn live_routes() -> Vec<LiveFunction> {
    let of = |trigger: &Trigger| match trigger {
        Trigger::WebSocket(routes) => Some(*routes),
        _ => None,
    };
    let functions = functions::all().into_iter();
    functions.filter_map(|function| Some((stem(function.name), function.triggers.iter().find_map(of)?))).collect()
}
