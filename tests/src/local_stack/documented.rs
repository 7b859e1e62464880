//! Answers of the API against the OpenAPI document.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jsonschema::{Draft, Validator};
use reqwest::Method;
use rowmill_api::openapi::document;
use serde_json::{Map, Value, json};

use super::api::ApiAnswer;

/// The document that `docs/openapi.json` holds, with its schemas compiled.
static DOCUMENTED: LazyLock<Vec<Route>> = LazyLock::new(|| routes(&document()));

/// The route of the document for a method and a path.
struct Route {
    method: Method,
    path: String,
    answers: BTreeMap<u16, Documented>,
}

/// The document's answer of a status.
struct Documented {
    headers: Vec<Header>,
    /// The schema of the body by media type; empty if there is no body.
    content: BTreeMap<String, Validator>,
}

struct Header {
    name: String,
    required: bool,
    schema: Validator,
}

/// Checks that the document lists this answer. `path` has no query.
///
/// # Errors
/// The difference from the document.
pub(super) fn check(method: &Method, path: &str, answer: &ApiAnswer) -> Result<(), String> {
    match DOCUMENTED.iter().find(|route| route.method == *method && matches(&route.path, path)) {
        Some(route) => route.check(answer),
        None => from_the_gateway(answer),
    }
}

/// API Gateway itself answers requests that no route matches.
fn from_the_gateway(answer: &ApiAnswer) -> Result<(), String> {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    if answer.status == 404 && body == json!({ "message": "Not Found" }) {
        return Ok(());
    }
    Err("no route matches the request, and it is not the gateway's 404".to_owned())
}

fn matches(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    template.len() == path.len()
        && template.iter().zip(path).all(|(expected, segment)| expected.starts_with('{') || *expected == segment)
}

impl Route {
    fn check(&self, answer: &ApiAnswer) -> Result<(), String> {
        let documented = self.answers.get(&answer.status.as_u16());
        let documented = documented.ok_or_else(|| {
            let listed: Vec<_> = self.answers.keys().map(u16::to_string).collect();
            format!("{} {} lists only the statuses {}", self.method, self.path, listed.join(", "))
        })?;
        documented.headers.iter().try_for_each(|header| header.check(answer))?;
        documented.check_body(answer)
    }
}

impl Documented {
    fn check_body(&self, answer: &ApiAnswer) -> Result<(), String> {
        if self.content.is_empty() {
            let is_empty = answer.body.is_empty();
            return if is_empty { Ok(()) } else { Err("the answer has a body, and none is listed".to_owned()) };
        }
        let content_type = answer.header("content-type").unwrap_or_default();
        let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let schema = self.content.get(&media_type).ok_or_else(|| {
            let listed: Vec<_> = self.content.keys().map(String::as_str).collect();
            format!("the content type is `{content_type}`, and only {} is listed", listed.join(", "))
        })?;
        let body = serde_json::from_slice(&answer.body).map_err(|error| format!("the body is not JSON: {error}"))?;
        conforms(schema, &body).map_err(|wrong| format!("body: {wrong}"))
    }
}

impl Header {
    fn check(&self, answer: &ApiAnswer) -> Result<(), String> {
        let Some(text) = answer.header(&self.name) else {
            let Self { name, required, .. } = self;
            return if *required { Err(format!("the header `{name}` is missing")) } else { Ok(()) };
        };
        // A header is text. One whose schema is a number must be read as a number first.
        let number = text.parse::<u64>().map(Value::from);
        let as_number = number.is_ok_and(|number| self.schema.is_valid(&number));
        if as_number {
            return Ok(());
        }
        conforms(&self.schema, &Value::from(text)).map_err(|wrong| format!("header `{}`: {wrong}", self.name))
    }
}

fn conforms(schema: &Validator, value: &Value) -> Result<(), String> {
    let errors: Vec<_> =
        schema.iter_errors(value).map(|error| format!("{error} at `{}`", error.instance_path())).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("; ")) }
}

/// The routes of a document.
///
/// # Panics
/// If it is not an OpenAPI document with responses, or if one of its schemas cannot be compiled.
fn routes(document: &Value) -> Vec<Route> {
    let mut routes = Vec::new();
    for (path, methods) in object(&document["paths"]) {
        for (method, operation) in object(methods) {
            let answers = object(&operation["responses"])
                .iter()
                .map(|(status, response)| (status.parse().expect("a status"), documented(document, response)));
            let method = method.to_ascii_uppercase().parse().expect("a method");
            routes.push(Route { method, path: path.clone(), answers: answers.collect() });
        }
    }
    routes
}

fn documented(document: &Value, response: &Value) -> Documented {
    let header = |(name, header): (&String, &Value)| Header {
        name: name.clone(),
        required: header["required"] == true,
        schema: compiled(document, &header["schema"]),
    };
    let content =
        |(media_type, content): (&String, &Value)| (media_type.clone(), compiled(document, &content["schema"]));
    Documented {
        headers: response.get("headers").map(object).into_iter().flatten().map(header).collect(),
        content: response.get("content").map(object).into_iter().flatten().map(content).collect(),
    }
}

/// Compiles a schema of the document, whose `$ref`s lead to the document's components.
fn compiled(document: &Value, schema: &Value) -> Validator {
    let schema = json!({ "allOf": [schema], "components": document["components"] });
    let options = jsonschema::options().with_draft(Draft::Draft202012).offline().should_validate_formats(true);
    options.build(&schema).unwrap_or_else(|error| panic!("{schema}: {error}"))
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().unwrap_or_else(|| panic!("an object: {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
    use rowmill_api::openapi::examples;
    use rowmill_api::problem::ProblemCode;

    const JOB: &str = "/api/jobs/01a1f997-c087-7785-ba44-fdac1155c2bf";
    const ETAG: (&str, &str) = ("etag", "\"0123456789abcdef0123456789abcdef\"");
    const JSON: (&str, &str) = ("content-type", "application/json");
    const PROBLEM: (&str, &str) = ("content-type", "application/problem+json");

    fn answer(status: u16, headers: &[(&'static str, &'static str)], body: impl ToString) -> ApiAnswer {
        let header = |&(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        let status = status.try_into().expect("a status");
        let headers: HeaderMap = headers.iter().map(header).collect();
        ApiAnswer { status, headers, body: body.to_string().into_bytes() }
    }

    fn job() -> Value {
        serde_json::to_value(examples::job()).expect("JSON")
    }

    fn problem(code: ProblemCode) -> Value {
        serde_json::to_value(code.problem("What is wrong.")).expect("JSON")
    }

    fn wrong(method: Method, path: &str, answer: &ApiAnswer) -> String {
        check(&method, path, answer).expect_err("the document does not list it")
    }

    #[test]
    fn what_the_document_lists_is_accepted() {
        let accepted = |method: &Method, path: &str, answer: ApiAnswer| {
            assert_eq!(check(method, path, &answer), Ok(()), "{method} {path} {}", answer.status);
        };
        let (get, post) = (&Method::GET, &Method::POST);
        accepted(get, JOB, answer(200, &[JSON, ETAG], job()));
        accepted(get, JOB, answer(200, &[("content-type", "application/json; charset=utf-8"), ETAG], job()));
        accepted(get, JOB, answer(304, &[ETAG], ""));
        accepted(get, JOB, answer(404, &[PROBLEM], problem(ProblemCode::NotFound)));
        let unavailable = problem(ProblemCode::Unavailable);
        accepted(get, "/api/jobs", answer(503, &[PROBLEM, ("retry-after", "5")], unavailable));
        accepted(post, "/api/nowhere", answer(404, &[JSON], json!({ "message": "Not Found" })));
        let mut newer = job();
        newer["aFieldOfALaterVersion"] = json!(1);
        accepted(get, JOB, answer(200, &[JSON, ETAG, ("retry-after", "1")], newer));
    }

    #[test]
    fn an_unlisted_status_is_rejected_with_the_listed_ones() {
        let teapot = wrong(Method::GET, JOB, &answer(418, &[PROBLEM], problem(ProblemCode::NotFound)));
        assert!(teapot.contains("GET /api/jobs/{jobGuid}") && teapot.contains("200, 304"), "{teapot}");
        wrong(Method::GET, "/api/nowhere", &answer(200, &[JSON], "{}"));
        wrong(Method::GET, "/api/nowhere", &answer(404, &[PROBLEM], problem(ProblemCode::NotFound)));
        // The gateway answers like this if no route of the template matches, so the template would lack this one.
        wrong(Method::GET, JOB, &answer(404, &[JSON], json!({ "message": "Not Found" })));
    }

    #[test]
    fn missing_and_wrong_headers_are_rejected() {
        assert!(wrong(Method::GET, JOB, &answer(200, &[JSON], job())).contains("`ETag` is missing"));
        wrong(Method::GET, JOB, &answer(200, &[JSON, ("etag", "W/\"1\"")], job()));
        wrong(Method::GET, JOB, &answer(200, &[JSON, ETAG, ("retry-after", "soon")], job()));
        wrong(Method::GET, JOB, &answer(200, &[JSON, ETAG, ("retry-after", "0")], job()));
        wrong(Method::GET, "/api/jobs", &answer(503, &[PROBLEM], problem(ProblemCode::Unavailable)));
        wrong(Method::GET, JOB, &answer(404, &[JSON], problem(ProblemCode::NotFound)));
        wrong(Method::GET, JOB, &answer(404, &[], problem(ProblemCode::NotFound)));
    }

    #[test]
    fn wrong_bodies_are_rejected_with_the_place() {
        let with = |field: &str, value: Value| {
            let mut job = job();
            job[field] = value;
            wrong(Method::GET, JOB, &answer(200, &[JSON, ETAG], job))
        };
        assert!(with("percent", json!(101)).contains("/percent"));
        with("status", json!("done"));
        with("createdAt", json!("yesterday"));
        with("jobGuid", json!("7"));
        with("links", json!({}));
        with("error", json!({ "code": "because" }));
        let mut incomplete = job();
        incomplete.as_object_mut().expect("an object").remove("itemCount");
        wrong(Method::GET, JOB, &answer(200, &[JSON, ETAG], incomplete));
        wrong(Method::GET, JOB, &answer(200, &[JSON, ETAG], "{"));
        wrong(Method::GET, JOB, &answer(304, &[ETAG], "{}"));
        // A code that the document does not list for this route and status, and one of another status.
        wrong(Method::GET, JOB, &answer(404, &[PROBLEM], problem(ProblemCode::NoResults)));
        wrong(Method::GET, JOB, &answer(404, &[PROBLEM], problem(ProblemCode::JobActive)));
    }
}
