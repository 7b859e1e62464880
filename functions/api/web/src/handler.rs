//! From the HTTP request to the files of the page and back.

use lambda_http::http::HeaderValue;
use lambda_http::{Body, Request, Response};
use rowmill_api::client_config::ClientConfig;
use rowmill_api::routes::Operation;
use rowmill_aws::host::http::{Call, Problem, etag_of, header, json_response, path_parameter, response, with_etag};

use crate::files::File;

/// A browser keeps an asset for a year. Its path changes with its content.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// A browser asks each time whether it still has the current page.
const ASK_AGAIN: &str = "no-cache";

/// The page and what it must know.
#[derive(Debug)]
pub struct Web {
    /// The stack as the page must know it.
    pub config: ClientConfig,
    /// The Content Security Policy of the page.
    pub policy: String,
}

pub async fn handle(web: &Web, call: Call) -> Result<Response<Body>, Problem> {
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
    let gzip = accepts_gzip(accepted);
    let bytes = if gzip { file.gzip } else { file.plain };
    let mut headers = vec![
        ("content-type", file.content_type().to_owned()),
        ("cache-control", cache_control.to_owned()),
        ("vary", "accept-encoding".to_owned()),
        // Scripts and styles of this page are for this page only.
        ("cross-origin-resource-policy", "same-origin".to_owned()),
    ];
    if gzip {
        headers.push(("content-encoding", "gzip".to_owned()));
    }
    with_etag(request, response(200, headers, bytes), &etag_of(bytes))
}

/// True if an `Accept-Encoding` names gzip, and not with the weight 0.
fn accepts_gzip(accepted: &str) -> bool {
    accepted.split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let is_gzip = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(Ok(1.0), str::parse::<f32>);
        is_gzip && weight.is_ok_and(|weight| weight > 0.0)
    })
}

fn config(web: &Web, request: &Request) -> Response<Body> {
    let mut answer = json_response(200, &web.config);
    answer.headers_mut().insert("cache-control", HeaderValue::from_static(ASK_AGAIN));
    let etag = etag_of(answer.body());
    with_etag(request, answer, &etag)
}

#[cfg(test)]
mod tests {
    use rowmill_api::client_config::ClientLimits;
    use rowmill_aws::host::http::{Access, Api};

    use super::*;
    use crate::files::VERSION;
    use crate::policy::Origins;

    /// The answer of a stack that has an issuer, to a request without a token.
    async fn answered(path: &str, headers: &[(&str, &str)]) -> Response<Body> {
        let config = ClientConfig {
            live: false,
            sign_in: None,
            bucket_origin: "https://bucket.example".to_owned(),
            limits: ClientLimits { direct_max_bytes: 1, upload_max_bytes: 2 },
            job_types: vec!["import".to_owned()],
            job_types_without_file: Vec::new(),
        };
        let web = Web { policy: Origins::of(["https://bucket.example/x"]).policy(), config };
        let access = Access { issuer: "https://issuer.example".to_owned(), ..Access::default() };
        let api = Api { function: crate::declaration::FUNCTION.name, access, guard: None };
        let proxy = path.strip_prefix("/assets/").map(|proxy| serde_json::json!({ "proxy": proxy }));
        let headers: serde_json::Map<_, _> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
        let event = serde_json::json!({
            "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "", "headers": headers,
            "isBase64Encoded": false, "pathParameters": proxy,
            "requestContext": {
                "accountId": "1", "apiId": "a", "domainName": "d", "requestId": "r", "stage": "$default", "timeEpoch": 1,
                "http": {"method": "GET", "path": path, "protocol": "HTTP/1.1", "sourceIp": "::1", "userAgent": ""},
            },
        });
        let request = lambda_http::request::from_str(&event.to_string()).unwrap();
        api.answer(request, |call| async move { handle(&web, call).await }).await
    }

    fn text<'a>(answer: &'a Response<Body>, name: &str) -> &'a str {
        answer.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    #[tokio::test]
    async fn the_page_needs_no_token_and_says_what_it_may_do() {
        let answer = answered("/", &[]).await;
        assert_eq!((answer.status().as_u16(), text(&answer, "content-type")), (200, "text/html; charset=utf-8"));
        assert!(text(&answer, "content-security-policy").contains("connect-src 'self' https://bucket.example;"));
        assert_eq!((text(&answer, "referrer-policy"), text(&answer, "cache-control")), ("no-referrer", "no-cache"));
        assert_eq!(answer.body().as_ref(), File::page().plain);
        let again = answered("/", &[("if-none-match", text(&answer, "etag"))]).await;
        assert_eq!((again.status().as_u16(), again.body().as_ref().len()), (304, 0));
        assert_eq!((text(&again, "cache-control"), text(&again, "vary")), ("no-cache", "accept-encoding"));
        assert_eq!(text(&again, "etag"), text(&answer, "etag"));
        assert_eq!(answered("/", &[("if-none-match", "*")]).await.status().as_u16(), 304);
    }

    #[tokio::test]
    async fn an_asset_is_kept_for_ever_and_compressed_for_who_accepts_that() {
        let path = format!("/assets/{VERSION}/app.js");
        let plain = answered(&path, &[("accept-encoding", "br")]).await;
        let packed = answered(&path, &[("accept-encoding", "br;q=1.0, gzip;q=0.8")]).await;
        assert_eq!((text(&plain, "content-encoding"), text(&packed, "content-encoding")), ("", "gzip"));
        assert_ne!(text(&plain, "etag"), text(&packed, "etag"));
        assert!(packed.body().as_ref().len() < plain.body().as_ref().len() / 2);
        assert_eq!((text(&plain, "cache-control"), text(&plain, "x-content-type-options")), (FOR_EVER, "nosniff"));
        assert_eq!(text(&plain, "content-type"), "text/javascript; charset=utf-8");
        for declined in ["gzip;q=0", "br, gzip; q=0.0", "identity"] {
            let answer = answered(&path, &[("accept-encoding", declined)]).await;
            assert_eq!(text(&answer, "content-encoding"), "", "{declined}");
        }
        for unknown in ["/assets/0000000000000000/app.js".to_owned(), format!("/assets/{VERSION}/index.html")] {
            assert_eq!(answered(&unknown, &[]).await.status().as_u16(), 404, "{unknown}");
        }
    }

    #[tokio::test]
    async fn the_configuration_needs_no_token() {
        let answer = answered("/api/client-config", &[]).await;
        let config: serde_json::Value = serde_json::from_slice(answer.body()).unwrap();
        assert_eq!((answer.status().as_u16(), &config["bucketOrigin"]), (200, &"https://bucket.example".into()));
    }
}
