//! The work of every function of the API on a request, before and after its own.

use jiff::Timestamp;
use lambda_http::{Body, Request, RequestExt, Response};
use rowmill_api::routes::{Operation, Route};
use rowmill_core::model::ids::Owner;
use rowmill_core::model::task::TaskId;
use serde::Deserialize;

use super::{Access, Caller, Guard, Problem};
use crate::observe::audit::{Change, DONE};
use crate::observe::metrics;

/// A request to a route.
#[derive(Debug)]
pub struct Call {
    pub operation: Operation,
    pub request: Request,
    caller: Option<Caller>,
}

impl Call {
    /// True if an operator of the stack acts for the owner.
    pub fn is_by_operator(&self) -> bool {
        self.caller.as_ref().is_some_and(|caller| caller.is_operator)
    }

    /// When the caller's token ends; none if that is not known, or without a token.
    pub fn token_until(&self) -> Option<Timestamp> {
        self.caller.as_ref()?.token_until
    }

    /// The owner of what the request creates or reads.
    ///
    /// # Errors
    /// 401 on a route that everyone may call.
    pub fn owner(&self) -> Result<&Owner, Problem> {
        let caller = self.caller.as_ref();
        caller.map(|caller| &caller.owner).ok_or_else(|| Problem::unauthorized("This route knows no caller."))
    }
}

/// The part of the API that one function answers.
pub struct Api {
    /// The function's name in the table of routes.
    pub function: &'static str,
    pub access: Access,
    /// Guard of limited routes. `None` if the function has no such route.
    pub guard: Option<Guard>,
}

impl Api {
    /// Answers a request: finds its route and its caller, checks the caller's limits, has `handler` carry it out, and
    /// logs a change.
    pub async fn answer<F>(&self, request: Request, handler: impl FnOnce(Call) -> F) -> Response<Body>
    where
        F: Future<Output = Result<Response<Body>, Problem>>,
    {
        let operation = Operation::of(self.function, request.method().as_str(), request.raw_http_path());
        let Some(operation) = operation else { return Problem::no_such_route().into_response() };
        let route = operation.route();
        let caller = match route.guarded.then(|| self.access.caller(&request, route)).transpose() {
            Ok(caller) => caller,
            Err(problem) => return problem.into_response(),
        };
        let asked = (!route.reads()).then(|| Asked::of(route, caller.clone(), &request));
        let (admitted, fields) = match (&self.guard, &caller) {
            (Some(guard), Some(caller)) if route.is_limited() => guard.admit(caller, route).await,
            _ => (Ok(()), None),
        };
        let answer = match admitted {
            Ok(()) => handler(Call { operation, request, caller }).await,
            Err(problem) => Err(problem),
        };
        if let Err(problem) = &answer {
            metrics::refused(operation, problem.code());
        }
        if let Some(asked) = asked {
            asked.log(&answer);
        }
        let mut response = answer.unwrap_or_else(Into::into);
        if let Some(fields) = fields {
            fields.add_to(&mut response);
        }
        response
    }
}

/// A change that a caller asks for.
struct Asked {
    route: &'static Route,
    caller: Option<Caller>,
    names: Names,
}

/// The names of jobs and uploads in a path or an answer.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Names {
    job_guid: Option<String>,
    file_guid: Option<String>,
}

impl Asked {
    fn of(route: &'static Route, caller: Option<Caller>, request: &Request) -> Self {
        let parameters = request.path_parameters_ref();
        let name = |name| parameters.and_then(|parameters| parameters.first(name)).map(str::to_owned);
        let of_task = || Some(name("taskId")?.parse::<TaskId>().ok()?.job.to_string());
        let job_guid = name("jobGuid").or_else(of_task);
        Self { route, caller, names: Names { job_guid, file_guid: name("fileGuid") } }
    }

    fn log(&self, answer: &Result<Response<Body>, Problem>) {
        let created: Names = match answer {
            Ok(response) => serde_json::from_slice(response.body().as_ref()).unwrap_or_default(),
            Err(_) => Names::default(),
        };
        Change {
            owner: self.caller.as_ref().map_or("", |caller| caller.owner.0.as_str()),
            by_operator: self.caller.as_ref().is_some_and(|caller| caller.is_operator),
            address: self.caller.as_ref().and_then(|caller| caller.address),
            action: &self.route.operation.id(),
            job: self.names.job_guid.as_deref().or(created.job_guid.as_deref()),
            upload: self.names.file_guid.as_deref().or(created.file_guid.as_deref()),
            outcome: answer.as_ref().map_or_else(Problem::code, |_| DONE),
        }
        .log();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::http::json_response;
    use serde_json::{Value, json};

    fn request(method: &str, path: &str, subject: Option<&str>) -> Request {
        let mut event = json!({
            "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "", "headers": {},
            "isBase64Encoded": false,
            "requestContext": {
                "accountId": "1", "apiId": "a", "domainName": "d", "requestId": "r", "stage": "$default", "timeEpoch": 1,
                "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "::1", "userAgent": ""},
            },
        });
        if let Some(subject) = subject {
            event["requestContext"]["authorizer"] = json!({"jwt": {"claims": {"sub": subject, "exp": "1800000000"}}});
        }
        lambda_http::request::from_str(&event.to_string()).unwrap()
    }

    /// The status of the answer, and what the handler was called for.
    async fn answered(request: Request) -> (u16, Option<(Operation, Option<String>)>) {
        let access = Access { issuer: "https://issuer".to_owned(), ..Access::default() };
        let api = Api { function: "job-status", access, guard: None };
        let mut called = None;
        let answer = api.answer(request, |call| {
            called = Some((call.operation, call.owner().ok().map(|owner| owner.0.clone())));
            async { Ok(json_response(200, &Value::Null)) }
        });
        let status = answer.await.status().as_u16();
        (status, called)
    }

    #[tokio::test]
    async fn the_handler_gets_the_route_and_the_owner() {
        let (status, called) = answered(request("GET", "/api/jobs", Some("user-7"))).await;
        assert_eq!((status, called), (200, Some((Operation::ListJobs, Some("user-7".to_owned())))));
    }

    #[tokio::test]
    async fn nobody_gets_past_without_a_token_except_to_an_unguarded_route() {
        assert_eq!(answered(request("GET", "/api/jobs", None)).await, (401, None));
        let (status, called) = answered(request("GET", "/api/openapi.json", None)).await;
        assert_eq!((status, called), (200, Some((Operation::ShowDocument, None))));
    }

    #[tokio::test]
    async fn a_route_of_another_function_is_none() {
        assert_eq!(answered(request("POST", "/api/jobs", Some("user-7"))).await, (404, None));
    }
}
