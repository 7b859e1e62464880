//! An OpenID provider on this machine, which signs any token.

use std::path::Path;
use std::process::Stdio;

use reqwest::Client;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::{alone, http_client, python_environment};

/// The audience of good tokens.
pub const AUDIENCE: &str = "rowmill-tests";

/// The scope that a token needs to work on tasks, where that is not the one to change anything.
pub const WORK_SCOPE: &str = "rowmill/work";

/// The scope that a token needs to change anything.
pub const WRITE_SCOPE: &str = "rowmill/write";

/// An OpenID provider: see `tests/oidc/issuer.py`. It ends with this value.
pub struct Issuer {
    url: String,
    http: Client,
    _process: Child,
}

impl Issuer {
    /// Starts one. Its programs are installed into this folder.
    ///
    /// # Panics
    /// If it does not start.
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

    /// Its URL, as tokens name it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// A token with these claims beside good ones. A claim that is null is left out.
    pub async fn token(&self, claims: Value) -> String {
        self.signed(claims, "own", json!({})).await
    }

    /// The same, signed with this key (`own`, `another`, `secret`, `none`) and under these fields of its header.
    pub async fn signed(&self, claims: Value, key: &str, header: Value) -> String {
        let now = jiff::Timestamp::now().as_second();
        let mut all = json!({
            "iss": self.url, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 600,
            "scope": format!("{WRITE_SCOPE} {WORK_SCOPE}"),
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
