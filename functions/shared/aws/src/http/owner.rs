use lambda_http::request::RequestContext;
use lambda_http::{Request, RequestExt};
use rowmill_core::model::ids::Owner;

use super::Problem;

/// Whose request it is: the `sub` claim that the HTTP API's JWT authorizer verified, or [`Owner::LOCAL`] where the API has
/// no authorizer.
///
/// # Errors
/// 401 if there is an authorizer, but its token has no valid subject.
pub fn owner_of(request: &Request) -> Result<Owner, Problem> {
    let authorizer = match request.request_context_ref() {
        Some(RequestContext::ApiGatewayV2(context)) => context.authorizer.as_ref(),
        _ => None,
    };
    let Some(authorizer) = authorizer else { return Ok(Owner(Owner::LOCAL.to_owned())) };
    let claims = authorizer.jwt.as_ref().map(|jwt| &jwt.claims);
    let sub = claims.and_then(|claims| claims.get("sub"));
    let owner = sub.and_then(|sub| Owner::of_name(sub));
    owner.ok_or_else(|| {
        Problem::unauthorized("The token has no usable `sub` claim. Send a token that names its subject.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn request(authorizer: Option<Value>) -> Request {
        let mut event = json!({
            "version": "2.0", "routeKey": "GET /api/jobs", "rawPath": "/api/jobs", "rawQueryString": "", "headers": {},
            "isBase64Encoded": false,
            "requestContext": {
                "accountId": "1", "apiId": "a", "domainName": "d", "requestId": "r", "stage": "$default", "timeEpoch": 1,
                "http": {"method": "GET", "path": "/api/jobs", "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": ""},
            },
        });
        if let Some(authorizer) = authorizer {
            event["requestContext"]["authorizer"] = authorizer;
        }
        lambda_http::request::from_str(&event.to_string()).unwrap()
    }

    #[test]
    fn the_owner_is_the_subject_of_the_token() {
        let authorizer = json!({"jwt": {"claims": {"sub": "user-7", "iss": "https://issuer"}, "scopes": null}});
        assert_eq!(owner_of(&request(Some(authorizer))).unwrap(), Owner("user-7".into()));
    }

    #[test]
    fn without_an_authorizer_the_owner_is_local() {
        assert_eq!(owner_of(&request(None)).unwrap(), Owner("local".into()));
    }

    #[test]
    fn a_token_without_a_valid_subject_is_rejected() {
        for authorizer in [
            json!({}),
            json!({"jwt": {"claims": {}}}),
            json!({"jwt": {"claims": {"sub": " "}}}),
            json!({"jwt": {"claims": {"sub": "a#b"}}}),
            json!({"lambda": {"sub": "x"}}),
        ] {
            assert_eq!(owner_of(&request(Some(authorizer))).unwrap_err().status(), 401);
        }
    }
}
