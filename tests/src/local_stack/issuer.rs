//! An OpenID provider for a stack's tokens.

use std::path::Path;
use std::process::Stdio;

use reqwest::Client;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::{alone, http_client, python_environment};

/// The audience of good tokens, and the client of everyone who logs in.
pub const AUDIENCE: &str = "rowmill-tests";

/// The scope that a token needs to change anything.
pub const WRITE_SCOPE: &str = "rowmill/write";

/// An OpenID provider: see `tests/oidc/issuer.py`. It ends when this value is dropped.
pub struct Issuer {
    /// Its URL.
    pub url: String,
    /// A client that follows no redirect.
    pub http: Client,
    _process: Child,
}

impl Issuer {
    /// Starts it. Its virtual environment is in this folder.
    ///
    /// # Panics
    /// If it cannot be started.
    pub async fn start(folder: &Path) -> Self {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("oidc");
        let programs = python_environment(&folder.join("venv"), &source.join("requirements.txt")).await;
        let mut command = Command::new(programs.join("python"));
        alone(&mut command);
        command.arg(source.join("issuer.py")).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().expect("it runs");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let url = lines.next_line().await.expect("text").expect("its URL");
        Self { url, http: http_client(), _process: process }
    }

    /// A token with these claims beside good ones. A claim that is null is left out.
    pub async fn token(&self, claims: Value) -> String {
        self.signed(claims, "own", json!({})).await
    }

    /// The same, signed with another key, or under another header.
    ///
    /// # Panics
    /// If the issuer does not answer.
    pub async fn signed(&self, claims: Value, key: &str, header: Value) -> String {
        let now = jiff::Timestamp::now().as_second();
        let mut all = json!({
            "iss": self.url, "aud": AUDIENCE, "sub": "alice", "scope": WRITE_SCOPE, "iat": now, "exp": now + 600,
        });
        for (name, value) in claims.as_object().expect("claims") {
            all[name] = value.clone();
        }
        all.as_object_mut().expect("claims").retain(|_, value| !value.is_null());
        let request = self.http.post(format!("{}/sign", self.url));
        let answer = request.json(&json!({ "claims": all, "key": key, "header": header })).send().await;
        answer.expect("the issuer answers").error_for_status().expect("a token").text().await.expect("text")
    }
}
