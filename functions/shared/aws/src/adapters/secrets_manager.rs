//! Secrets of the deployment, in AWS Secrets Manager.

use std::fmt;

use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::SdkError;
use aws_sdk_secretsmanager::operation::get_secret_value::GetSecretValueError;

/// The version stage of the value in use.
const CURRENT: &str = "AWSCURRENT";

/// The version stage of the value that was in use before it. Secrets Manager moves it with each new value.
const PREVIOUS: &str = "AWSPREVIOUS";

/// A text that is not shown in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// The values of a secret: one, or two during a rotation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecretValues {
    /// The value in use.
    pub current: Secret,
    /// The value before it, until an operator removes its stage.
    pub previous: Option<Secret>,
}

#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// The request failed: the secret is missing, or the function has no permission.
    #[error(
        "the secret {arn} cannot be read: it must exist in this region, and the role of the function must have the \
         permission secretsmanager:GetSecretValue on it"
    )]
    Read {
        arn: String,
        #[source]
        source: Box<GetSecretValueError>,
    },
    #[error("the secret {arn} is binary; it must be a text")]
    Binary { arn: String },
}

/// A secret, to be read at start.
#[derive(Clone, Debug)]
pub struct StoredSecret {
    client: Client,
    arn: String,
}

impl StoredSecret {
    pub const fn new(client: Client, arn: String) -> Self {
        Self { client, arn }
    }

    /// Reads both values. A line feed at the end of a value is left out: it comes from the file that the operator sent.
    pub async fn read(&self) -> Result<SecretValues, SecretError> {
        let (current, previous) = tokio::join!(self.value(CURRENT), self.value(PREVIOUS));
        let previous = match previous {
            // There was no rotation yet, or it is complete.
            Err(SecretError::Read { source, .. }) if source.is_resource_not_found_exception() => None,
            previous => Some(previous?),
        };
        Ok(SecretValues { current: current?, previous })
    }

    async fn value(&self, stage: &str) -> Result<Secret, SecretError> {
        let request = self.client.get_secret_value().secret_id(&self.arn).version_stage(stage).send();
        let arn = || self.arn.clone();
        let read = |error: SdkError<GetSecretValueError>| SecretError::Read {
            arn: arn(),
            source: Box::new(error.into_service_error()),
        };
        let output = request.await.map_err(read)?;
        let text = output.secret_string().ok_or_else(|| SecretError::Binary { arn: arn() })?;
        Ok(Secret(text.trim_end_matches('\n').to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown_in_logs() {
        let secret = Secret("abc".to_owned());
        let values = SecretValues { current: secret.clone(), previous: Some(secret) };
        assert!(!format!("{values:?}").contains("abc"), "{values:?}");
    }
}
