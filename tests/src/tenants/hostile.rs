//! The work of the hostile tenant.

use futures::stream::{self, StreamExt};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::Tenant;
use crate::local_stack::{ApiAnswer, ApiRequest};

/// Number of open requests of a flood: as many as the smallest machine has cores. The emulator serves all requests
/// on one core, so more at once would show how it shares that core, not how the functions keep owners apart.
const AT_ONCE: usize = 2;

/// An input that is meant to harm the stack or other owners.
pub(super) struct HostileInput {
    /// Its kind, as the report shows it.
    pub name: String,
    pub attack: Attack,
}

/// The way in which it is sent.
pub(super) enum Attack {
    /// A file of this type, and a job over it that is followed to its end.
    Job { content_type: &'static str, bytes: Vec<u8>, job_type: &'static str, params: Value },
    /// Requests, one after the other.
    Requests(Vec<HostileRequest>),
    /// The same request this many times, several at once.
    Flood { request: HostileRequest, times: usize },
}

/// A request with a body of this type.
pub(super) struct HostileRequest {
    pub method: Method,
    pub path: String,
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

impl Tenant<'_> {
    /// Sends an input and waits until the stack is done with it. Returns what came of it: a status and a code of each
    /// request, or how its job ended.
    ///
    /// # Panics
    /// If the answer is an error of the server.
    pub(super) async fn send(&self, input: &HostileInput) -> Vec<String> {
        let name = &input.name;
        match &input.attack {
            Attack::Job { content_type, bytes, job_type, params } => {
                let upload = self.upload(content_type, bytes).send().await;
                if upload.status != StatusCode::CREATED {
                    return vec![format!("upload: {}", outcome(name, &upload))];
                }
                let body =
                    json!({ "jobType": job_type, "fileGuid": upload.json::<Value>()["fileGuid"], "params": params });
                let created = self.call(Method::POST, "/api/jobs").json(&body).send().await;
                if created.status != StatusCode::ACCEPTED {
                    return vec![outcome(name, &created)];
                }
                let ended = self.ended(&created.json()).await;
                let how = ["status", "outcome"].map(|field| ended[field].as_str().unwrap_or("-").to_owned()).join(" ");
                vec![format!("202, then {how} {}", ended["error"]["code"].as_str().unwrap_or_default())]
            }
            Attack::Requests(requests) => {
                let mut outcomes = Vec::new();
                for request in requests {
                    outcomes.push(outcome(name, &self.hostile(request).send().await));
                }
                outcomes
            }
            Attack::Flood { request, times } => {
                let answers = stream::iter(0..*times).map(|_| self.hostile(request).send()).buffer_unordered(AT_ONCE);
                answers.map(|answer| outcome(name, &answer)).collect().await
            }
        }
    }

    fn hostile(&self, request: &HostileRequest) -> ApiRequest {
        let HostileRequest { method, path, content_type, body } = request;
        self.call(method.clone(), path).header("content-type", content_type).body(body.clone())
    }
}

fn outcome(name: &str, answer: &ApiAnswer) -> String {
    let status = answer.status.as_u16();
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    assert!(status < 500, "{name} is answered {status}: {body}");
    format!("{status} {}", body["code"].as_str().unwrap_or_default())
}
