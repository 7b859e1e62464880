//! The table of routes: for each one its function, what it takes, and everything it can answer.
//!
//! This is the one list. The OpenAPI document is made from it, `template.yaml` is tested against it, and the functions
//! find out with [`Operation::of`] which route a request came by.

#![allow(missing_docs, reason = "only wire types stand in the document")]

mod headers;
mod json;

pub use headers::{AnswerHeader, RATE_LIMIT, RATE_LIMIT_POLICY, RETRY_AFTER};
pub use json::{Body, Json};

use headers::{ETAG, LOCATION, POLL_AFTER};
use percent_encoding::percent_decode_str;
use rowmill_core::model::request_limits::RequestLimits;

use crate::problem::ProblemCode;

/// A route's name.
///
/// Each entry of the table defines its own constant, which works as a pattern: `Operation::CreateJob`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Operation(&'static str);

/// Defines a table of routes: `Name = "METHOD" "/path" by "function" { fields }`. A field that is left out is that of
/// [`Route::OF_OWNER`]. The name becomes a constant of [`Operation`].
macro_rules! routes {
    ($($operation:ident = $method:literal $path:literal by $function:literal { $($field:tt)+ })+) => {
        #[allow(non_upper_case_globals, reason = "a route's name is used like a variant")]
        impl Operation {
            $(
                #[doc = concat!("`", $method, " ", $path, "`")]
                pub const $operation: Self = Self(stringify!($operation));
            )+
        }

        pub(super) static ROUTES: &[Route] = &[
            $(Route {
                operation: Operation::$operation, method: $method, path: $path, function: $function, $($field)+
                ..Route::OF_OWNER
            },)+
        ];
    };
}

mod client;
mod datasets;
mod jobs;
mod live;
mod page;
mod results;
mod tasks;
mod uploads;

/// A part of the API, as its users think of it: a tag of the document.
#[derive(Clone, Copy)]
pub struct Part {
    pub name: &'static str,
    pub description: &'static str,
    pub routes: &'static [Route],
}

/// The parts of the API.
pub fn parts() -> [Part; 7] {
    let part = |name, description, routes| Part { name, description, routes };
    [
        part("uploads", "Store files, and look at their first rows.", uploads::ROUTES),
        part("jobs", "Start jobs over files, follow them, stop them, and run failed rows again.", jobs::ROUTES),
        part(
            "results",
            "Read what has come of a job: failed rows, result files, and the proof of its counts.",
            results::ROUTES,
        ),
        part("datasets", "Look at the records that imports have written.", datasets::ROUTES),
        part("tasks", "Process the items of jobs outside of the stack.", tasks::ROUTES),
        part("live", "Be told of jobs as they change.", live::ROUTES),
        part("api", "Learn what this stack is, and what its API is.", client::ROUTES),
    ]
}

/// All routes of the API.
pub fn all() -> impl Iterator<Item = &'static Route> {
    parts().into_iter().flat_map(|part| part.routes)
}

/// The routes of the API, and those of the page, which the OpenAPI document leaves out.
pub fn all_and_the_page() -> impl Iterator<Item = &'static Route> {
    all().chain(page::ROUTES)
}

/// True if one of the routes of this function is limited.
pub fn are_limited(function: &str) -> bool {
    all().any(|route| route.function == function && route.is_limited())
}

/// A scope of tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scope {
    Read,
    Write,
    /// Workers have it. A deployment without a scope of their own asks for that to write.
    Work,
}

/// A route.
#[derive(Debug)]
pub struct Route {
    pub operation: Operation,
    /// `GET`, `POST`, `PATCH` or `DELETE`.
    pub method: &'static str,
    /// With the names of parameters in braces.
    pub path: &'static str,
    /// The function that answers it.
    pub function: &'static str,
    pub summary: &'static str,
    /// Further text for clients.
    pub description: &'static str,
    /// Those of query and headers; those of the path are in `path`.
    pub parameters: &'static [Parameter],
    /// The body it takes, if any.
    pub body: Option<RequestBody>,
    /// The answers when all is well, and those of API Gateway in its place if no problem is listed.
    pub answers: &'static [Answer],
    /// The problems it answers, beside [`COMMON_PROBLEMS`] if it is `guarded`, [`LIMIT_PROBLEMS`] if it is limited,
    /// [`BLOCK_PROBLEMS`] if it changes something, and [`BODY_PROBLEMS`] if it takes a body.
    pub problems: &'static [(u16, ProblemCode)],
    /// True if it reads anything that belongs to an owner.
    pub guarded: bool,
    /// The default limits of a caller's requests, by what a request costs. A route that changes something has those of
    /// `PostsPerMinute` and `PostsPerHour` without them; one that reads has none.
    pub limits: Option<RequestLimits>,
}

/// Problems of every route that reads something of an owner.
pub const COMMON_PROBLEMS: [(u16, ProblemCode); 4] = [
    (401, ProblemCode::Unauthorized),
    (403, ProblemCode::Forbidden),
    (500, ProblemCode::InternalError),
    (503, ProblemCode::Unavailable),
];

/// Further ones of every limited route.
pub const LIMIT_PROBLEMS: [(u16, ProblemCode); 1] = [(429, ProblemCode::TooManyRequests)];

/// Further ones of every route of an owner that changes something: every one but `GET`.
pub const BLOCK_PROBLEMS: [(u16, ProblemCode); 1] = [(403, ProblemCode::OwnerBlocked)];

/// Problems of every route with a body: it cannot be read, or nobody understands it.
pub const BODY_PROBLEMS: [(u16, ProblemCode); 5] = [
    (400, ProblemCode::InvalidJson),
    (400, ProblemCode::InvalidBody),
    (413, ProblemCode::BodyTooLarge),
    (415, ProblemCode::UnsupportedMediaType),
    (422, ProblemCode::InvalidRequest),
];

/// A parameter of a query or a header.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    /// `query` or `header`.
    pub place: &'static str,
    pub required: bool,
    pub description: &'static str,
    /// JSON Schema, as JSON text.
    pub schema: &'static str,
}

/// A request's body.
#[derive(Clone, Copy, Debug)]
pub struct RequestBody {
    /// True if there must be one.
    pub required: bool,
    pub json: Json,
    /// True if it also takes a file as it is, of any other media type.
    pub or_file: bool,
}

/// An answer to a request that was carried out.
#[derive(Clone, Copy, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    pub description: &'static str,
    /// The JSON that it may have; empty if it has no body.
    pub json: &'static [Json],
    pub headers: &'static [AnswerHeader],
}

const IF_NONE_MATCH: Parameter = Parameter {
    name: "If-None-Match",
    place: "header",
    required: false,
    description: "Entity tags of earlier answers. If one of them is current, the answer is 304 without a body.",
    schema: r#"{"type": "string"}"#,
};

const NOT_MODIFIED: Answer =
    Answer::empty(304, "Nothing has changed since the answer with this entity tag.").with(&[ETAG]);

/// A parameter of the query that may be left out.
const fn query(name: &'static str, description: &'static str, schema: &'static str) -> Parameter {
    Parameter { name, place: "query", required: false, description, schema }
}

impl Answer {
    const fn of<T: Body>(status: u16, description: &'static str) -> Self {
        Self { json: const { &[Json::of::<T>()] }, ..Self::empty(status, description) }
    }

    const fn empty(status: u16, description: &'static str) -> Self {
        Self { status, description, json: &[], headers: &[] }
    }

    const fn with(self, headers: &'static [AnswerHeader]) -> Self {
        Self { headers, ..self }
    }
}

impl Operation {
    /// The `operationId` in the OpenAPI document: `CreateJob` is `createJob`.
    pub fn id(self) -> String {
        self.0[..1].to_ascii_lowercase() + &self.0[1..]
    }
    ///
    /// # Panics
    /// Never: an entry defines it.
    pub fn route(self) -> &'static Route {
        all_and_the_page().find(|route| route.operation == self).expect("an operation is the name of a route")
    }

    /// The route by which this function got a request of this method and path.
    ///
    /// Only the end of the path counts, so that an address with a path of its own does not matter.
    pub fn of(function: &str, method: &str, path: &str) -> Option<Self> {
        let path: Vec<&str> = path.trim_end_matches('/').split('/').collect();
        let leads_to = |route: &&Route| {
            let template: Vec<&str> = route.path.trim_start_matches('/').split('/').collect();
            let fits = |path: &[&str]| {
                let mut segments = path.iter().zip(&template);
                segments.all(|(segment, expected)| expected.starts_with('{') || segment == expected)
            };
            route.function == function
                && route.method == method
                && template.len() <= path.len()
                && match route.is_greedy() {
                    false => fits(&path[path.len() - template.len()..]),
                    true => path.windows(template.len()).any(fits),
                }
        };
        all_and_the_page().find(leads_to).map(|route| route.operation)
    }
}

/// The route of a request, with the decoded parameters of its path. `None` if no route has this method and path.
pub fn find(method: &str, path: &str) -> Option<(&'static Route, Vec<(&'static str, String)>)> {
    all_and_the_page()
        .filter(|route| route.method == method)
        .find_map(|route| Some((route, route.parameters_in(path)?)))
}

/// Limits of a caller's requests to a route.
const fn at_most(per_minute: u32, per_hour: u32) -> Option<RequestLimits> {
    Some(RequestLimits { per_minute, per_hour })
}

impl Route {
    /// A route that reads or changes what belongs to an owner, and takes nothing but its path.
    const OF_OWNER: Self = Self {
        operation: Operation(""),
        method: "",
        path: "",
        function: "",
        summary: "",
        description: "",
        parameters: &[],
        body: None,
        answers: &[],
        problems: &[],
        guarded: true,
        limits: None,
    };

    /// The parameters of a path that this route answers, decoded. `None` if it does not answer this path.
    fn parameters_in(&self, path: &str) -> Option<Vec<(&'static str, String)>> {
        // A greedy parameter takes the rest of the path.
        let parts = if self.is_greedy() { self.path.split('/').count() } else { usize::MAX };
        let (mut segments, mut parameters) = (path.splitn(parts, '/'), Vec::new());
        for expected in self.path.split('/') {
            let segment = segments.next()?;
            match expected.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                Some(name) if !segment.is_empty() => {
                    let name = name.strip_suffix('+').unwrap_or(name);
                    parameters.push((name, percent_decode_str(segment).decode_utf8_lossy().into_owned()));
                }
                None if segment == expected => {}
                _ => return None,
            }
        }
        segments.next().is_none().then_some(parameters)
    }

    /// The names of the parameters of its path.
    pub fn path_parameters(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'))
    }

    /// True if its last parameter takes the rest of the path.
    fn is_greedy(&self) -> bool {
        self.path.ends_with("+}")
    }

    /// Every problem it can answer.
    pub fn all_problems(&self) -> Vec<(u16, ProblemCode)> {
        let common: &[_] = if self.guarded { &COMMON_PROBLEMS } else { &[] };
        let of_block: &[_] = if self.guarded && !self.reads() { &BLOCK_PROBLEMS } else { &[] };
        let of_limit: &[_] = if self.is_limited() { &LIMIT_PROBLEMS } else { &[] };
        let of_body: &[_] = if self.body.is_some() { &BODY_PROBLEMS } else { &[] };
        self.problems.iter().chain(of_body).chain(of_block).chain(of_limit).chain(common).copied().collect()
    }

    /// True if it only reads.
    pub fn reads(&self) -> bool {
        self.method == "GET"
    }

    /// The scope that a token needs for it.
    pub fn scope(&self) -> Scope {
        match self.operation {
            // It opens what only reads.
            Operation::CreateLiveTicket => Scope::Read,
            _ if self.reads() => Scope::Read,
            _ if self.function == "work-task" => Scope::Work,
            _ => Scope::Write,
        }
    }

    /// True if a caller may send only so many requests to it: it changes something, or is expensive to answer. Polling
    /// is free, so that no look costs a write.
    pub fn is_limited(&self) -> bool {
        self.guarded && (!self.reads() || self.limits.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_finds_its_route() {
        for route in all_and_the_page() {
            let path = route.path.replace("{jobGuid}", "x").replace("{fileGuid}", "y").replace("{proxy+}", "1f/app.js");
            if path == "/" {
                assert_eq!(Operation::of(route.function, "GET", "/"), Some(route.operation));
                continue;
            }
            for path in [path.clone(), format!("{path}/"), format!("/stage{path}")] {
                let found = Operation::of(route.function, route.method, &path);
                assert_eq!(found, Some(route.operation), "{path}");
            }
        }
        assert_eq!(Operation::of("job-status", "GET", "/api/jobs/x/cancel"), None);
        assert_eq!(Operation::of("job-status", "POST", "/api/jobs"), None);
    }

    #[test]
    fn a_path_leads_to_its_route_and_its_parameters() {
        let found = |method, path| find(method, path).map(|(route, parameters)| (route.operation, parameters));
        assert_eq!(found("GET", "/api/jobs"), Some((Operation::ListJobs, vec![])));
        assert_eq!(found("GET", "/"), Some((Operation::ShowPage, vec![])));
        let asset = vec![("proxy", "1f/app.js".to_owned())];
        assert_eq!(found("GET", "/assets/1f/app.js"), Some((Operation::ShowAsset, asset)));
        assert_eq!(found("GET", "/assets/"), None);
        let job = vec![("jobGuid", "a/b".to_owned())];
        assert_eq!(found("POST", "/api/jobs/a%2fb/cancel"), Some((Operation::CancelJob, job)));
        for (method, path) in [
            ("DELETE", "/api/jobs"),
            ("GET", "/api/jobs/"),
            ("GET", "/x/api/jobs"),
            ("GET", "/api/jobs/a/b/c"),
            ("GET", ""),
        ] {
            assert_eq!(found(method, path), None, "{method} {path}");
        }
    }

    #[test]
    fn every_problem_has_a_status_that_its_code_allows() {
        for route in all() {
            for (status, code) in route.all_problems() {
                assert!(code.statuses().contains(&status), "{} {}", route.path, code.as_str());
            }
        }
    }
}
