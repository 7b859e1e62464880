//! Who calls: the identity that API Gateway verified, and what it may do.

use std::net::IpAddr;

use jiff::Timestamp;
use lambda_http::request::RequestContext;
use lambda_http::{Request, RequestExt};
use rowmill_api::problem::ProblemCode;
use rowmill_api::routes::{Route, Scope};
use rowmill_core::model::blocks::OPERATOR_FOR;
use rowmill_core::model::ids::Owner;
use serde_json::Value;

use super::Problem;

rowmill_settings::settings! {
    /// Who may call the API.
    #[derive(Clone, PartialEq, Eq, Debug)]
    pub struct Access {
        /// The issuer of accepted tokens, which API Gateway verifies. Empty: the API is open, with the one owner
        /// [`Owner::LOCAL`].
        pub issuer: String = String::new(), "JwtIssuer";
        /// The scope that a token needs to read. Empty: none.
        pub read_scope: String = String::new(), "ReadScope";
        /// The scope that a token needs to change anything. Empty: none.
        pub write_scope: String = String::new(), "WriteScope";
        /// The scope that a token needs to work on tasks. Empty: that to change anything.
        pub work_scope: String = String::new(), "WorkScope";
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The owner of what the request creates or reads: the `sub` claim of the token, or [`Owner::LOCAL`].
    pub owner: Owner,
    /// True if the caller has shown no token, because the API is open. Then all callers have the same owner.
    pub anonymous: bool,
    /// When the token ends; none if that is not known, or without a token.
    pub token_until: Option<Timestamp>,
    /// The address that the request came from, if the gateway told it.
    pub address: Option<IpAddr>,
    /// True if an operator of the stack acts for the owner: limits and blocks of the owner do not hold.
    pub is_operator: bool,
}

impl Access {
    /// The caller of a request.
    ///
    /// HTTP APIs send the claims of a token in payload 2.0. REST APIs, and HTTP APIs in payload 1.0, send them in
    /// another place. API Gateway checks tokens and scopes before it calls a function. The checks here hold for anyone
    /// else who may invoke the function.
    ///
    /// # Errors
    /// 401 if the API has an issuer and the event names no subject, a subject that is no owner, or no end of the token;
    /// if the event is of another format. 403 if the token lacks the scope of the route.
    pub fn caller(&self, request: &Request, route: &Route) -> Result<Caller, Problem> {
        let identity = Identity::of(request)?;
        let address = identity.address;
        let caller = |owner| Caller { owner, anonymous: false, token_until: None, address, is_operator: false };
        if let Some(owner) = identity.operator_for {
            let owner = Owner::of_name(&owner).ok_or_else(|| Problem::unauthorized("The operator names no owner."))?;
            return Ok(Caller { is_operator: true, ..caller(owner) });
        }
        let Some(claims) = identity.claims else {
            if !self.issuer.is_empty() {
                return Err(Problem::unauthorized("The request has no token. Send one in the header `Authorization`."));
            }
            let owner = Owner(Owner::LOCAL.to_owned());
            return Ok(Caller { anonymous: true, ..caller(owner) });
        };
        if !self.issuer.is_empty() && !claims.ends {
            return Err(Problem::unauthorized("The token never expires. Send a token with an `exp` claim."));
        }
        // An open API has used this name for everyone, so no token may claim it.
        let subject = claims.subject.filter(|subject| self.issuer.is_empty() || subject != Owner::LOCAL);
        let owner = subject.as_deref().and_then(Owner::of_name).ok_or_else(|| {
            Problem::unauthorized("The token has no usable `sub` claim. Send a token that names its subject.")
        })?;
        let needed = match route.scope() {
            Scope::Read => &self.read_scope,
            Scope::Work if !self.work_scope.is_empty() => &self.work_scope,
            Scope::Write | Scope::Work => &self.write_scope,
        };
        if !needed.is_empty() && !claims.scopes.iter().any(|scope| scope == needed) {
            let detail = format!("The token does not have the scope `{needed}`. Ask its issuer for one that has it.");
            return Err(Problem::new(ProblemCode::Forbidden, detail));
        }
        Ok(Caller { token_until: claims.until, ..caller(owner) })
    }
}

/// A caller, as the gateway names it.
struct Identity {
    /// `None` if the API has no authorizer.
    claims: Option<Claims>,
    /// The owner that an operator acts for. Only one who invokes the function can set it: API Gateway fills this place
    /// from a Lambda authorizer, which the stack does not have.
    operator_for: Option<String>,
    address: Option<IpAddr>,
}

/// The claims of a token that matter here.
#[derive(Default)]
struct Claims {
    subject: Option<String>,
    /// True if the token expires.
    ends: bool,
    /// When it expires. The authorizer of a REST API may write a date, which is not read here.
    until: Option<Timestamp>,
    scopes: Vec<String>,
}

impl Claims {
    /// `claim` finds a claim by its name.
    fn of(claim: impl Fn(&str) -> Option<String>) -> Self {
        // Issuers write `scope` as one text and `scp` as a text or a list. API Gateway sends a list as `[a b]`.
        let scopes = ["scope", "scp"].into_iter().filter_map(&claim);
        let scopes = scopes.flat_map(|text| {
            let words = text.split([' ', ',', '[', ']', '"']).filter(|word| !word.is_empty());
            words.map(str::to_owned).collect::<Vec<_>>()
        });
        let end = claim("exp");
        // A gateway may write a number as `1.8E9`.
        let seconds = end.as_ref().and_then(|seconds| seconds.parse::<f64>().ok());
        let until = seconds.and_then(|seconds| Timestamp::from_second(seconds as i64).ok());
        Self { subject: claim("sub"), ends: end.is_some(), until, scopes: scopes.collect() }
    }
}

impl Identity {
    fn of(request: &Request) -> Result<Self, Problem> {
        let mut operator_for = None;
        let (claims, address) = match request.request_context_ref() {
            Some(RequestContext::ApiGatewayV2(context)) => {
                let fields = context.authorizer.as_ref().map(|authorizer| &authorizer.fields);
                let owner = fields.and_then(|fields| fields.get(OPERATOR_FOR)?.as_str());
                operator_for = owner.map(str::to_owned);
                let claims = context.authorizer.as_ref().map(|authorizer| {
                    let jwt = authorizer.jwt.as_ref();
                    Claims::of(|name| jwt.and_then(|jwt| jwt.claims.get(name)).cloned())
                });
                (claims, context.http.source_ip.as_deref())
            }
            Some(RequestContext::ApiGatewayV1(context)) => {
                let fields = &context.authorizer.fields;
                // Without an authorizer, payload 1.0 has none of these fields, or nulls.
                let claims = (!fields.values().all(Value::is_null)).then(|| {
                    let claims = fields.get("claims").unwrap_or(&Value::Null);
                    Claims::of(|name| match &claims[name] {
                        Value::String(text) => Some(text.clone()),
                        other if matches!(name, "scp" | "exp") && !other.is_null() => Some(other.to_string()),
                        _ => None,
                    })
                });
                (claims, context.identity.source_ip.as_deref())
            }
            _ => return Err(Problem::unauthorized("The request did not come through an HTTP API or a REST API.")),
        };
        Ok(Self { claims, operator_for, address: address.and_then(|address| address.parse().ok()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lambda_http::Request;
    use rowmill_api::routes::Operation;
    use serde_json::json;

    /// The owner of a request that reads, on a stack without an issuer.
    fn owner_in(request: &Request) -> Result<Owner, Problem> {
        Access::default().caller(request, Operation::ListJobs.route()).map(|caller| caller.owner)
    }

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
        assert_eq!(owner_in(&request(Some(authorizer))).unwrap(), Owner("user-7".into()));
    }

    #[test]
    fn an_operator_acts_for_any_owner_without_a_token() {
        let authorizer = json!({"lambda": {"operatorFor": "user-7"}});
        let access = Access { issuer: "https://issuer".into(), write_scope: "write".into(), ..Access::default() };
        let caller = access.caller(&request(Some(authorizer)), Operation::CancelJob.route()).unwrap();
        assert_eq!((caller.owner, caller.is_operator, caller.anonymous), (Owner("user-7".into()), true, false));
        // A claim of a token is not enough.
        let authorizer = json!({"jwt": {"claims": {"sub": "user-8", "operatorFor": "user-7"}, "scopes": null}});
        let caller = Access::default().caller(&request(Some(authorizer)), Operation::CancelJob.route()).unwrap();
        assert_eq!((caller.owner, caller.is_operator), (Owner("user-8".into()), false));
    }

    #[test]
    fn without_an_authorizer_the_owner_is_local() {
        assert_eq!(owner_in(&request(None)).unwrap(), Owner("local".into()));
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
            assert_eq!(owner_in(&request(Some(authorizer))).unwrap_err().status(), 401);
        }
    }

    #[test]
    fn with_an_issuer_nobody_is_local() {
        let access = Access { issuer: "https://issuer".to_owned(), ..Access::default() };
        let owner = |request: &Request| access.caller(request, Operation::ListJobs.route()).map(|caller| caller.owner);
        let token_of = |subject: &str| request(Some(json!({"jwt": {"claims": {"sub": subject, "exp": "1800000000"}}})));
        let until = |exp: &str| {
            let claims = json!({"sub": "user-7", "exp": exp});
            let caller = access.caller(&request(Some(json!({"jwt": {"claims": claims}}))), Operation::ListJobs.route());
            caller.unwrap().token_until.map(Timestamp::as_second)
        };
        let end = Some(1_800_000_000);
        assert_eq!(["1800000000", "1.8E9", "Fri Jan 15 08:00:00 UTC 2027"].map(until), [end, end, None]);
        let endless = request(Some(json!({"jwt": {"claims": {"sub": "user-7"}}})));
        assert_eq!(owner(&endless).unwrap_err().status(), 401, "it never expires");
        assert_eq!(owner(&token_of("user-7")).unwrap(), Owner("user-7".into()));
        assert_eq!(owner(&request(None)).unwrap_err().status(), 401, "no claims");
        assert_eq!(owner(&request_of_payload_1(Value::Null)).unwrap_err().status(), 401, "no claims in payload 1.0");
        assert_eq!(owner(&token_of("local")).unwrap_err().status(), 401);
    }

    #[test]
    fn a_token_needs_the_scope_of_the_route() {
        let access = Access {
            issuer: "https://issuer".to_owned(),
            read_scope: "rowmill/read".to_owned(),
            write_scope: "rowmill/write".to_owned(),
            ..Access::default()
        };
        let status = |mut claims: Value, operation: Operation| {
            claims["exp"] = json!("1800000000");
            let request = request(Some(json!({"jwt": {"claims": claims}})));
            access.caller(&request, operation.route()).map_or_else(|problem| problem.status(), |_| 200)
        };
        let (read, write) = (Operation::ListJobs, Operation::CreateJob);
        let reader = json!({"sub": "a", "scope": "openid rowmill/read"});
        assert_eq!(status(reader.clone(), Operation::CreateLiveTicket), 200, "to watch is to read");
        assert_eq!((status(reader.clone(), read), status(reader, write)), (200, 403));
        let writer = json!({"sub": "a", "scp": "[rowmill/write]"});
        assert_eq!((status(writer.clone(), read), status(writer, write)), (403, 200));
        assert_eq!(status(json!({"sub": "a"}), read), 403);
        assert_eq!(status(json!({"sub": "a", "scope": "rowmill/reader"}), read), 403);
        let in_payload_1 =
            request_of_payload_1(json!({"claims": {"sub": "a", "scp": ["rowmill/read"], "exp": 1_800_000_000}}));
        assert!(access.caller(&in_payload_1, read.route()).is_ok());
    }

    #[test]
    fn workers_need_a_scope_of_their_own_if_there_is_one() {
        let status = |work_scope: &str, scope: &str, operation: Operation| {
            let access = Access {
                issuer: "https://issuer".to_owned(),
                write_scope: "write".to_owned(),
                work_scope: work_scope.to_owned(),
                ..Access::default()
            };
            let claims = json!({"sub": "a", "exp": "1800000000", "scope": scope});
            let request = request(Some(json!({"jwt": {"claims": claims}})));
            access.caller(&request, operation.route()).map_or_else(|problem| problem.status(), |_| 200)
        };
        let (lease, create) = (Operation::LeaseTask, Operation::CreateJob);
        assert_eq!([status("work", "work", lease), status("work", "write", lease)], [200, 403]);
        assert_eq!([status("work", "work", create), status("work", "write", create)], [403, 200]);
        assert_eq!([status("", "work", lease), status("", "write", lease)], [403, 200], "as any change");
    }

    #[test]
    fn an_open_api_knows_a_caller_by_address() {
        let caller = Access::default().caller(&request(None), Operation::CreateJob.route()).unwrap();
        assert_eq!((caller.anonymous, caller.address), (true, Some([127, 0, 0, 1].into())));
        let authorizer = json!({"jwt": {"claims": {"sub": "user-7"}}});
        let caller = Access::default().caller(&request(Some(authorizer)), Operation::CreateJob.route()).unwrap();
        assert!(!caller.anonymous);
    }

    fn request_of_payload_1(authorizer: Value) -> Request {
        let event = json!({
            "version": "1.0", "resource": "/api/jobs", "path": "/api/jobs", "httpMethod": "GET", "headers": {},
            "multiValueHeaders": {}, "isBase64Encoded": false,
            "requestContext": {
                "accountId": "1", "apiId": "a", "httpMethod": "GET", "path": "/api/jobs", "protocol": "HTTP/1.1",
                "requestId": "r", "stage": "$default", "requestTimeEpoch": 1, "identity": {"sourceIp": "127.0.0.1"},
                "authorizer": authorizer,
            },
        });
        lambda_http::request::from_str(&event.to_string()).unwrap()
    }

    #[test]
    fn payload_1_has_the_same_owners() {
        let claims = json!({"claims": {"sub": "user-7"}, "scopes": null});
        assert_eq!(owner_in(&request_of_payload_1(claims)).unwrap(), Owner("user-7".into()));
        for none in [Value::Null, json!({}), json!({"claims": null, "scopes": null})] {
            assert_eq!(owner_in(&request_of_payload_1(none)).unwrap(), Owner("local".into()));
        }
        for nobody in [
            json!({"claims": {}}),
            json!({"claims": {"sub": "a#b"}}),
            json!({"claims": {"sub": 7}}),
            json!({"claims": "sub"}),
            json!({"principalId": "user-7"}),
        ] {
            assert_eq!(owner_in(&request_of_payload_1(nobody)).unwrap_err().status(), 401);
        }
    }

    #[test]
    fn another_format_is_never_taken_for_local() {
        let mut request = Request::default();
        assert_eq!(owner_in(&request).unwrap_err().status(), 401);
        // An event of a load balancer has no method in its context.
        let event = json!({"httpMethod": "GET", "path": "/api/jobs", "headers": {}, "requestContext": {"elb": {}}});
        if let Ok(parsed) = lambda_http::request::from_str(&event.to_string()) {
            request = parsed;
        }
        assert_eq!(owner_in(&request).unwrap_err().status(), 401);
    }
}
