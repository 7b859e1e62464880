//! The logins that this user keeps: one for each API, in a file that only the user can read.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use etcetera::base_strategy::{BaseStrategy, choose_base_strategy};
use jiff::Timestamp;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::provider::{Answered, Provider};
use super::{LoginError, renew};

/// The file below the user's configuration folder.
const FILE: &str = "rowmill/logins.json";

/// Time before its end at which a token is renewed, so that it does not expire on its way.
const RENEWED_BEFORE: Duration = Duration::from_secs(60);

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Login {
    pub issuer: String,
    /// The client that it knows this command as.
    pub client_id: String,
    /// The bearer token for the API.
    pub token: String,
    /// When the token expires, if the provider said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

impl Login {
    /// The login that a provider answered with. A provider that sends no new refresh token lets the last one stand.
    pub(super) fn of(provider: &Provider, client_id: &str, answered: Answered, last_refresh: Option<String>) -> Self {
        Self {
            issuer: provider.issuer.clone(),
            client_id: client_id.to_owned(),
            token: answered.token,
            expires_at: answered.lifetime.map(|lifetime| Timestamp::now() + lifetime),
            refresh_token: answered.refresh_token.or(last_refresh),
        }
    }

    /// True if the token is, or will soon be, of no use.
    fn is_over(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|end| end <= now + RENEWED_BEFORE)
    }
}

#[derive(Debug, Clone)]
pub struct Logins {
    path: PathBuf,
}

impl Logins {
    /// Those of this user, or none on a system that gives users no folder for configuration.
    pub fn of_user() -> Option<Self> {
        let strategy = choose_base_strategy().ok()?;
        Some(Self { path: strategy.config_dir().join(FILE) })
    }

    /// The token for an API, renewed if necessary. `None` if the user is not logged in there.
    pub async fn token(&self, api: &str) -> Result<Option<String>, LoginError> {
        let key = key_of(api);
        let Some(login) = self.read()?.remove(&key) else { return Ok(None) };
        if !login.is_over(Timestamp::now()) {
            return Ok(Some(login.token));
        }
        let renewed = renew(api, &login).await?;
        self.keep(api, renewed.clone())?;
        Ok(Some(renewed.token))
    }

    /// Keeps a login, in the place of an earlier one for the same API.
    pub fn keep(&self, api: &str, login: Login) -> Result<(), LoginError> {
        let mut logins = self.read()?;
        logins.insert(key_of(api), login);
        self.write(&logins)
    }

    /// Forgets the login for an API. Whether there was one.
    pub fn forget(&self, api: &str) -> Result<bool, LoginError> {
        let mut logins = self.read()?;
        let known = logins.remove(&key_of(api)).is_some();
        if known {
            self.write(&logins)?;
        }
        Ok(known)
    }

    fn read(&self) -> Result<BTreeMap<String, Login>, LoginError> {
        match std::fs::read(&self.path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| self.failed(error.into())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeMap::new()),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Replaces the file in one step, so that a command that is killed leaves the old one.
    fn write(&self, logins: &BTreeMap<String, Login>) -> Result<(), LoginError> {
        let write = || {
            let folder = self.path.parent().expect("the file is in a folder");
            private_folder(folder)?;
            // A temporary file belongs to its user alone, and stays so under its new name.
            let mut file = NamedTempFile::new_in(folder)?;
            serde_json::to_writer_pretty(&mut file, logins)?;
            file.write_all(b"\n")?;
            file.persist(&self.path)?;
            Ok(())
        };
        write().map_err(|error| self.failed(error))
    }

    fn failed(&self, source: io::Error) -> LoginError {
        LoginError::Store { path: self.path.clone(), source }
    }
}

/// Creates a folder that only its user can open.
pub(crate) fn private_folder(folder: &std::path::Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// An API by its address, however it is written.
fn key_of(api: &str) -> String {
    let text = api.trim().trim_end_matches('/');
    Url::parse(text).map_or_else(|_| text.to_owned(), |url| url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(expires_at: Option<Timestamp>) -> Login {
        Login {
            issuer: "https://issuer.example".to_owned(),
            client_id: "cli".to_owned(),
            token: "a.b.c".to_owned(),
            expires_at,
            refresh_token: None,
        }
    }

    #[tokio::test]
    async fn a_login_is_kept_for_its_api_until_it_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let logins = Logins { path: folder.path().join("new").join(FILE) };
        assert_eq!(logins.token("https://api.example").await.unwrap(), None);
        logins.keep("https://API.example/", login(None)).unwrap();
        assert_eq!(logins.token("https://api.example").await.unwrap(), Some("a.b.c".to_owned()));
        assert_eq!(logins.token("https://other.example").await.unwrap(), None);
        assert!(logins.forget("https://api.example").unwrap());
        assert!(!logins.forget("https://api.example").unwrap());
        assert_eq!(logins.token("https://api.example").await.unwrap(), None);
    }

    #[cfg(unix)]
    #[test]
    fn only_the_user_can_read_the_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let logins = Logins { path: folder.path().join("new").join(FILE) };
        logins.keep("https://api.example", login(None)).unwrap();
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&logins.path), 0o600);
        assert_eq!(mode(logins.path.parent().unwrap()), 0o700);
    }

    #[tokio::test]
    async fn a_token_that_is_over_and_cannot_be_renewed_says_how_to_log_in() {
        let folder = tempfile::tempdir().unwrap();
        let logins = Logins { path: folder.path().join(FILE) };
        logins.keep("https://api.example", login(Some(Timestamp::now()))).unwrap();
        let error = logins.token("https://api.example").await.unwrap_err().to_string();
        assert!(error.contains("rowmill login --url https://api.example"), "{error}");
    }

    #[tokio::test]
    async fn a_damaged_file_is_an_error_and_not_no_login() {
        let folder = tempfile::tempdir().unwrap();
        let logins = Logins { path: folder.path().join("logins.json") };
        std::fs::write(&logins.path, "{").unwrap();
        let error = logins.token("https://api.example").await.unwrap_err().to_string();
        assert!(error.contains("logins.json"), "{error}");
    }
}
