//! Waits until a deployed stack can be used: its API has an address, and it answers.

use std::time::{Duration, Instant};

use reqwest::Url;

use super::{DeployError, Deployed};
use crate::address::is_http;
use crate::api::{ApiClient, ApiError, JobFilter, RetryPolicy};

/// Longest wait for the first answer after a deployment: enough for a cold start on a busy machine.
const FIRST_ANSWER: Duration = Duration::from_secs(30);

/// The interval between two tries.
const INTERVAL: Duration = Duration::from_millis(200);

/// Waits until the API answers. A refusal is an answer: the stack may demand a token.
///
/// # Errors
///
/// The API's other answer, or the reason why there was none.
pub async fn first_answer(api: ApiClient) -> Result<(), ApiError> {
    let api = api.with_patience(RetryPolicy::once(), FIRST_ANSWER);
    let started = Instant::now();
    loop {
        let error = match api.jobs(&JobFilter::default(), 1, None).await {
            Ok(_) => return Ok(()),
            Err(ApiError::Refused(refusal)) if refusal.status.is_client_error() => return Ok(()),
            Err(error) => error,
        };
        if started.elapsed() > FIRST_ANSWER {
            return Err(error);
        }
        tokio::time::sleep(INTERVAL).await;
    }
}

impl Deployed {
    /// The URL of the stack's HTTP API. `None` if the stack was deployed without one.
    ///
    /// # Errors
    ///
    /// [`DeployError::NoHttpApi`] if the stack should have one and has not. Emulators without HTTP APIs report success.
    pub fn http_api(&self) -> Result<Option<&str>, DeployError> {
        if !self.has_http_api() {
            return Ok(None);
        }
        let given = self.outputs.get("ApiUrl").map_or("", String::as_str);
        match Url::parse(given) {
            Ok(url) if is_http(&url) => Ok(Some(given)),
            _ => Err(DeployError::NoHttpApi(given.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::fake_api::{FakeApi, Reply};

    fn deployed(api_url: Option<&str>, with_http_api: &str) -> Deployed {
        Deployed {
            outputs: api_url.map(|url| ("ApiUrl".to_owned(), url.to_owned())).into_iter().collect(),
            parameters: BTreeMap::from([("WithHttpApi".to_owned(), with_http_api.to_owned())]),
            changed: true,
        }
    }

    #[test]
    fn a_stack_without_its_http_api_is_an_error_that_says_what_to_do() {
        let url = "https://a.execute-api.eu-central-1.amazonaws.com";
        assert_eq!(deployed(Some(url), "true").http_api().unwrap(), Some(url));
        assert_eq!(deployed(None, "false").http_api().unwrap(), None);
        for unusable in [None, Some("unknown"), Some(""), Some("mailto:a@b")] {
            let error = deployed(unusable, "true").http_api().unwrap_err().to_string();
            assert!(error.contains("WithHttpApi=false") && error.contains("--stack-name"), "{error}");
        }
    }

    #[tokio::test]
    async fn the_first_answer_is_waited_for() {
        let api = FakeApi::serve(|_, n| match n {
            0 => Reply::hang_up(),
            1 => Reply::text(500, ""),
            _ => Reply::text(401, ""),
        })
        .await;
        first_answer(ApiClient::new(&api.url, None).unwrap()).await.unwrap();
        assert_eq!(api.seen().len(), 3);
    }
}
