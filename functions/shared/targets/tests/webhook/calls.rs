//! The requests that a service receives.

use std::collections::HashSet;
use std::process::Command;
use std::sync::Arc;

use rowmill_core::ports::processor::Item;
use rowmill_core::ports::{Target, TargetCancel, TargetItem, TargetRequest};
use rowmill_core::text::Record;
use rowmill_targets::lookup::SystemLookup;
use rowmill_targets::signature::WebhookSecrets;
use rowmill_targets::webhook::{Endpoint, WebhookTarget};
use serde_json::{Map, Value, json};

use crate::server::{Reply, Server};
use crate::{LONG, SECRET, call, client, expected_signature, expected_standard_signature, items, job_guid, webhook};

#[tokio::test]
async fn a_call_is_json_with_a_signature_that_the_service_can_check() {
    let server = Server::start(|_, _| Reply::ok()).await;
    let answer = call(&webhook(&server.url("/hook?a=b"), LONG)).await.unwrap();
    assert_eq!(answer, br#"{"batchItemFailures": []}"#);
    let [seen] = &server.seen()[..] else { panic!("one call") };
    assert_eq!((seen.path.as_str(), seen.headers["content-type"].as_str()), ("/hook?a=b", "application/json"));
    let body: Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!((&body["jobGuid"], &body["items"][1]["record"]), (&json!(job_guid()), &json!({ "name": "n2" })));

    assert_eq!(seen.headers["host"], format!("127.0.0.1:{}", server.port));
    assert_eq!(seen.headers["rowmill-signature"], expected_signature(seen));
    assert_eq!(seen.headers["rowmill-timestamp"], "1700000000", "the time of the clock");
    assert_eq!(seen.headers["webhook-timestamp"], "1700000000");
    assert_eq!(seen.headers["webhook-signature"], expected_standard_signature(seen));
    assert!(!format!("{seen:?}").contains(SECRET));
}

#[tokio::test]
async fn during_a_rotation_one_of_two_signatures_is_that_of_the_old_secret() {
    let server = Server::start(|_, _| Reply::ok()).await;
    let keys = WebhookSecrets::new("another secret of many characters", Some(SECRET)).unwrap().keys_of("notify");
    let endpoint = Endpoint::new(&server.url("/hook"), true).unwrap();
    call(&WebhookTarget::new(client(Arc::new(SystemLookup)), endpoint, keys, LONG)).await.unwrap();
    let [seen] = &server.seen()[..] else { panic!("one call") };
    let (new, old) = seen.headers["rowmill-signature"].split_once(',').unwrap();
    assert_eq!(old, expected_signature(seen));
    assert!(new.starts_with("v2=") && new != old, "{new}");
    let (new, old) = seen.headers["webhook-signature"].split_once(' ').unwrap();
    assert_eq!(old, expected_standard_signature(seen));
    assert!(new.starts_with("v1,") && new != old, "{new}");
}

#[tokio::test]
async fn a_repeated_call_has_the_same_idempotency_key_and_webhook_id_and_sends_no_cookie() {
    let ok = || Reply::http(200, &[("set-cookie", "a=b; Path=/")], r#"{"batchItemFailures": []}"#);
    let server = Server::start(move |_, _| ok()).await;
    let target = webhook(&server.url("/"), LONG);
    for _ in 0..3 {
        call(&target).await.unwrap();
    }
    let seen = server.seen();
    for header in ["idempotency-key", "webhook-id"] {
        assert_eq!(seen.iter().map(|seen| &seen.headers[header]).collect::<HashSet<_>>().len(), 1, "{header}");
    }
    assert!(seen.iter().all(|seen| !seen.headers.contains_key("cookie")));
    assert!(seen[0].headers["user-agent"].starts_with("rowmill/"));
}

#[tokio::test]
async fn a_cancel_is_a_signed_call_with_a_key_of_its_own() {
    let server = Server::start(|_, _| Reply::ok()).await;
    let target = webhook(&server.url("/hook"), LONG);
    let params = Map::new();
    let items = items(2);
    let request = TargetRequest::of(job_guid(), "notify", &params, items.iter().map(TargetItem::from).collect());
    target.call(&request).await.unwrap();
    let of_items: Vec<String> = request.items.iter().map(|item| item.item_identifier.clone()).collect();
    for attempt in [1, 2] {
        let cancel = Some(TargetCancel { attempt, item_identifiers: &of_items });
        target.call(&TargetRequest { items: Vec::new(), cancel, ..request.clone() }).await.unwrap();
    }
    let [called, cancelled, again] = &server.seen()[..] else { panic!("three calls") };
    let body: Value = serde_json::from_slice(&cancelled.body).unwrap();
    let expected = json!({ "jobGuid": job_guid(), "jobType": "notify", "params": {}, "items": [],
        "cancel": { "attempt": 1, "itemIdentifiers": of_items } });
    assert_eq!(body, expected);
    assert_eq!(cancelled.headers["rowmill-signature"], expected_signature(cancelled));
    let keys = [called, cancelled, again].map(|seen| &seen.headers["idempotency-key"]);
    assert!(keys[0] != keys[1] && keys[1] != keys[2], "each attempt is cancelled by itself: {keys:?}");
    let body: Value = serde_json::from_slice(&called.body).unwrap();
    assert_eq!(body.get("cancel"), None, "a target that takes no cancel sees no such field");
}

#[tokio::test]
async fn a_row_that_was_corrected_has_the_same_idempotency_key_and_another_webhook_id() {
    let server = Server::start(|_, _| Reply::ok()).await;
    let target = webhook(&server.url("/"), LONG);
    for name in ["Ada", "Ada Lovelace"] {
        let item = Item { job_guid: job_guid(), row: 7, record: Record::Json(json!({ "name": name })) };
        let items = vec![TargetItem::from(&item)];
        let params = Map::new();
        let request = TargetRequest::of(job_guid(), "notify", &params, items);
        target.call(&request).await.unwrap();
    }
    let [before, after] = &server.seen()[..] else { panic!("two calls") };
    assert_eq!(before.headers["idempotency-key"], after.headers["idempotency-key"]);
    assert_ne!(before.headers["webhook-id"], after.headers["webhook-id"]);
}

/// The environment variable with the URL that the child process of the next test calls.
const CHILD_URL: &str = "ROWMILL_TEST_URL";

#[tokio::test]
async fn proxy_settings_of_the_environment_are_ignored() {
    let (service, proxy) = tokio::join!(Server::start(|_, _| Reply::ok()), Server::start(|_, _| Reply::ok()));
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", "calls::child_process_with_proxy_settings", "--include-ignored"])
        .env(CHILD_URL, service.url("/"));
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy"] {
        child.env(name, proxy.url(""));
    }
    child.env_remove("NO_PROXY").env_remove("no_proxy").env_remove("REQUEST_METHOD");
    let output = tokio::task::spawn_blocking(move || child.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert_eq!((service.seen().len(), proxy.seen().len()), (1, 0));
}

#[tokio::test]
#[ignore = "run by the test above, in an environment with proxy settings"]
async fn child_process_with_proxy_settings() {
    let Ok(url) = std::env::var(CHILD_URL) else { return };
    let target = webhook(&url, LONG);
    call(&target).await.unwrap();
}
