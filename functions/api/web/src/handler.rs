//! From the HTTP request to the files of the page and back.

use lambda_http::http::HeaderValue;
use lambda_http::{Body, Request, Response};
use rowmill_api::client_config::ClientConfig;
use rowmill_api::routes::Operation;
use rowmill_aws::http::{Call, Problem, etag_of, header, json_response, path_parameter, response, with_etag};

use crate::files::File;

/// How long a browser keeps an asset. Its path changes with its content.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// A browser asks each time whether it still has the current page.
const ASK_AGAIN: &str = "no-cache";

/// The page and what it must know.
#[derive(Debug)]
pub struct Web {
    /// What the page must know of the stack.
    pub config: ClientConfig,
    /// The Content Security Policy of the page.
    pub policy: String,
}

/// Answers the requests for the page.
///
/// # Errors
/// The problem to answer.
pub async fn handle(web: &Web, call: &Call) -> Result<Response<Body>, Problem> {
    let request = &call.request;
    match call.operation {
        Operation::ShowPage => Ok(page(web, request)),
        Operation::ShowAsset => asset(request),
        Operation::ShowClientConfig => Ok(config(web, request)),
        _ => Err(Problem::no_such_route()),
    }
}

fn page(web: &Web, request: &Request) -> Response<Body> {
    let mut answer = file(File::page(), ASK_AGAIN, request);
    for (name, value) in [
        ("content-security-policy", web.policy.as_str()),
        ("cross-origin-opener-policy", "same-origin"),
        ("referrer-policy", "no-referrer"),
        ("strict-transport-security", "max-age=31536000"),
    ] {
        if let Ok(value) = HeaderValue::try_from(value) {
            answer.headers_mut().insert(name, value);
        }
    }
    answer
}

fn asset(request: &Request) -> Result<Response<Body>, Problem> {
    let path: String = path_parameter(request, "proxy")?;
    let found = File::asset(&path);
    let found =
        found.ok_or_else(|| Problem::not_found("This version of the page has no such asset. Load the page again."))?;
    Ok(file(found, FOR_EVER, request))
}

/// The file in the encoding that the client accepts, or 304 if the client has it.
fn file(file: &File, cache_control: &str, request: &Request) -> Response<Body> {
    let accepted = header(request, "accept-encoding").unwrap_or_default();
    let gzip = accepted.split(',').any(|coding| coding.trim().split(';').next() == Some("gzip"));
    let bytes = if gzip { file.gzip } else { file.plain };
    let mut headers = vec![
        ("content-type", file.content_type().to_owned()),
        ("cache-control", cache_control.to_owned()),
        ("vary", "accept-encoding".to_owned()),
        ("x-content-type-options", "nosniff".to_owned()),
        // Scripts and styles of this page are for this page only.
        ("cross-origin-resource-policy", "same-origin".to_owned()),
    ];
    if gzip {
        headers.push(("content-encoding", "gzip".to_owned()));
    }
    with_etag(request, response(200, headers, bytes), &etag_of(bytes))
}

fn config(web: &Web, request: &Request) -> Response<Body> {
    let mut answer = json_response(200, &web.config);
    answer.headers_mut().insert("cache-control", HeaderValue::from_static(ASK_AGAIN));
    let etag = etag_of(answer.body());
    with_etag(request, answer, &etag)
}
