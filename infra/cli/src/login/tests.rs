use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine as _};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::*;
use crate::fake_api::{FakeApi, Reply, Request};

/// A provider that issues a token for the code `the-code`, and only to who knows the verifier of the challenge.
async fn provider(challenge: Arc<Mutex<String>>, access_token: &'static str) -> FakeApi {
    let base = Arc::new(Mutex::new(String::new()));
    let known = Arc::clone(&base);
    let api = FakeApi::serve(move |request: &Request, _| {
        let base = known.lock().unwrap().clone();
        let form: HashMap<String, String> =
            Url::parse(&format!("http://x/?{}", String::from_utf8_lossy(&request.body)))
                .map(|url| url.query_pairs().into_owned().collect())
                .unwrap_or_default();
        let is = |name: &str, value: &str| form.get(name).is_some_and(|given| given == value);
        match request.target.as_str() {
            "/.well-known/openid-configuration" => Reply::json(
                200,
                json!({
                    "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                    "token_endpoint": format!("{base}/token"),
                }),
            ),
            "/token" => {
                let verifier = form.get("code_verifier").map(Sha256::digest);
                let proved =
                    verifier.is_some_and(|digest| BASE64_URL_SAFE_NO_PAD.encode(digest) == *challenge.lock().unwrap());
                let granted = (is("grant_type", "authorization_code") && is("code", "the-code") && proved)
                    || (is("grant_type", "refresh_token") && is("refresh_token", "r1"));
                match granted && is("client_id", "cli") {
                    true => Reply::json(
                        200,
                        json!({
                            "access_token": access_token, "token_type": "Bearer", "expires_in": 300,
                            "refresh_token": "r1", "id_token": "i.d.t",
                        }),
                    ),
                    false => Reply::json(400, json!({ "error": "invalid_grant" })),
                }
            }
            _ => Reply::text(404, ""),
        }
    })
    .await;
    *base.lock().unwrap() = api.url.clone();
    api
}

fn request(issuer: String) -> LoginRequest {
    LoginRequest {
        issuer,
        client_id: "cli".to_owned(),
        scopes: vec!["rowmill/read".to_owned()],
        audience: None,
        port: 0,
    }
}

/// Plays the browser: takes the challenge to the provider, and the code back.
fn browser(page: &Url, challenge: &Mutex<String>, code: &'static str) {
    let query: HashMap<String, String> = page.query_pairs().into_owned().collect();
    assert_eq!((query["response_type"].as_str(), query["code_challenge_method"].as_str()), ("code", "S256"));
    assert_eq!(query["scope"], "openid rowmill/read");
    challenge.lock().unwrap().clone_from(&query["code_challenge"]);
    let redirect = format!("{}?code={code}&state={}", query["redirect_uri"], query["state"]);
    tokio::spawn(async move { reqwest::get(redirect).await.unwrap() });
}

async fn logged_in(access_token: &'static str, code: &'static str) -> Result<Login, LoginError> {
    let challenge = Arc::new(Mutex::new(String::new()));
    let provider = provider(Arc::clone(&challenge), access_token).await;
    log_in(&request(provider.url.clone()), |page| browser(page, &challenge, code)).await
}

#[tokio::test]
async fn a_login_proves_with_its_verifier_that_it_asked_for_the_code() {
    let login = logged_in("a.b.c", "the-code").await.unwrap();
    assert_eq!((login.token.as_str(), login.refresh_token.as_deref()), ("a.b.c", Some("r1")));
    assert!(login.expires_at.is_some());
    let refused = logged_in("a.b.c", "another-code").await.unwrap_err().to_string();
    assert!(refused.contains("invalid_grant"), "{refused}");
}

#[tokio::test]
async fn an_opaque_access_token_is_replaced_by_the_id_token() {
    assert_eq!(logged_in("opaque", "the-code").await.unwrap().token, "i.d.t");
}

#[tokio::test]
async fn a_login_is_renewed_with_its_refresh_token() {
    let provider = provider(Arc::default(), "n.e.w").await;
    let mut login = Login {
        issuer: provider.url.clone(),
        client_id: "cli".to_owned(),
        token: "o.l.d".to_owned(),
        expires_at: None,
        refresh_token: Some("r1".to_owned()),
    };
    assert_eq!(renew("https://api.example", &login).await.unwrap().token, "n.e.w");
    login.refresh_token = Some("revoked".to_owned());
    assert!(matches!(renew("https://api.example", &login).await, Err(LoginError::Expired { .. })));
}

#[tokio::test]
async fn a_provider_without_encryption_or_with_another_name_is_refused() {
    let error = Provider::discover("http://issuer.example").await.unwrap_err().to_string();
    assert!(error.contains("https://"), "{error}");
    let provider = provider(Arc::default(), "a.b.c").await;
    let other_name = provider.url.replace("127.0.0.1", "localhost");
    let error = Provider::discover(&other_name).await.unwrap_err().to_string();
    assert!(error.contains("its document is that of"), "{error}");
}
