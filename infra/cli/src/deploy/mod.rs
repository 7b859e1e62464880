//! Deploying `template.yaml`: packages and template into a bucket, a change set, and the wait for its end.
//!
//! The same steps serve AWS, LocalStack and the embedded local stack; they differ in how long a step may take and in
//! what an emulator's CloudFormation leaves out.

mod artifacts;
mod change_set;
mod expiry;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::aws::{Aws, CallFailed, NoRegion};
use crate::package::Package;
use crate::progress::Progress;
use crate::template::{Template, TemplateError};

/// Longest wait for a change to be worked out or made on AWS. The slowest resources take a few minutes.
const AWS_LIMIT: Duration = Duration::from_secs(30 * 60);

/// The same for an emulator, which takes a second and otherwise never finishes.
const EMULATOR_LIMIT: Duration = Duration::from_secs(120);

/// What to deploy under which name.
#[derive(Debug)]
pub struct Deployment<'a> {
    /// The stack's name, also the start of its functions' names.
    pub stack_name: &'a str,
    /// The template as it stands in the repository.
    pub template: Template,
    /// The functions' packages.
    pub packages: Vec<Package>,
    /// Parameters to set. The others keep what the stack has, or the template's default.
    pub parameters: BTreeMap<String, String>,
    /// Bucket for packages and template, where not the usual one.
    pub artifacts_bucket: Option<String>,
}

/// A deployed stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployed {
    /// The template's outputs.
    pub outputs: BTreeMap<String, String>,
    /// The template's parameters as they are now, those among them that were not set included.
    pub parameters: BTreeMap<String, String>,
    /// Whether anything had to be changed.
    pub changed: bool,
}

impl Deployed {
    /// Whether the stack's HTTP API answers anybody at all: it has one, and no issuer of tokens.
    pub fn is_open(&self) -> bool {
        let value = |name: &str| self.parameters.get(name).map_or("", String::as_str);
        value("WithHttpApi") != "false" && value("JwtIssuer").is_empty()
    }
}

/// Why a deployment did not come about.
#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    /// The template cannot be used.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A parameter the template does not have.
    #[error("the template has no parameter {0}")]
    UnknownParameter(String),
    /// AWS has no region to go to.
    #[error(transparent)]
    NoRegion(#[from] NoRegion),
    /// A call failed for good.
    #[error(transparent)]
    Call(#[from] CallFailed),
    /// CloudFormation refused the template or the parameters before it touched anything.
    #[error("CloudFormation refuses the template: {reason}")]
    Refused {
        /// In CloudFormation's words.
        reason: String,
    },
    /// A resource could not be made or changed, and everything was rolled back.
    #[error("{resource} ({kind}) failed: {reason}; the stack {stack} is now {status}")]
    ResourceFailed {
        /// The stack.
        stack: String,
        /// The resource's name in the template.
        resource: String,
        /// Its type.
        kind: String,
        /// In CloudFormation's words.
        reason: String,
        /// Where the stack ended.
        status: String,
    },
    /// The stack ended badly, and no resource's event says why.
    #[error("the stack {stack} ended as {status}: {reason}")]
    StackFailed {
        /// The stack.
        stack: String,
        /// Where it ended.
        status: String,
        /// In CloudFormation's words.
        reason: String,
    },
    /// Somebody else's change is under way.
    #[error("the stack {stack} is being changed ({status}); try again when that is done")]
    Busy {
        /// The stack.
        stack: String,
        /// What it is doing.
        status: String,
    },
    /// It takes longer than it ever should. It may still end; the stack's events show it.
    #[error("the stack {stack} is still {status} after {} s", .after.as_secs())]
    TooSlow {
        /// The stack.
        stack: String,
        /// What it is doing.
        status: String,
        /// How long was waited.
        after: Duration,
    },
}

/// Brings a stack into being or up to date, and answers with its outputs.
///
/// # Errors
///
/// See [`DeployError`]. After `ResourceFailed` everything is rolled back; after `TooSlow` the change goes on.
pub async fn deploy(aws: &Aws, deployment: Deployment<'_>, progress: Progress) -> Result<Deployed, DeployError> {
    let Deployment { stack_name, mut template, packages, parameters, artifacts_bucket } = deployment;
    if let Some(name) = parameters.keys().find(|name| !template.has_parameter(name)) {
        return Err(DeployError::UnknownParameter(name.clone()));
    }
    let bucket = artifacts::bucket(aws, artifacts_bucket).await?;
    artifacts::upload_packages(aws, &bucket, &packages, progress).await?;
    for function in template.functions()? {
        let package = packages.iter().find(|package| package.name == function.package);
        let package = package.ok_or_else(|| TemplateError::NoBinary(function.logical_id.clone()))?;
        template.set_code(&function.logical_id, &bucket.name, &package.key);
    }
    let template_url = artifacts::upload_template(aws, &bucket, &template).await?;

    let stack = change_set::Stack::new(aws, stack_name, progress);
    let changed = stack.apply(&template, &template_url, &parameters).await?;
    if aws.is_emulator() {
        expiry::enable(aws, stack_name, &template).await?;
    }
    let (outputs, parameters) = stack.outputs_and_parameters().await?;
    Ok(Deployed { outputs, parameters, changed })
}

/// How long a change may take on this target, and how often to look.
fn patience(aws: &Aws) -> (Duration, Duration) {
    if aws.is_emulator() { (EMULATOR_LIMIT, Duration::from_millis(100)) } else { (AWS_LIMIT, Duration::from_secs(2)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_without_an_issuer_of_tokens_is_open() {
        let is_open = |parameters: &[(&str, &str)]| {
            let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            Deployed { outputs: BTreeMap::new(), parameters, changed: true }.is_open()
        };
        assert!(is_open(&[]));
        assert!(is_open(&[("WithHttpApi", "true"), ("JwtIssuer", "")]));
        assert!(!is_open(&[("WithHttpApi", "true"), ("JwtIssuer", "https://issuer.example")]));
        assert!(!is_open(&[("WithHttpApi", "false"), ("JwtIssuer", "")]));
    }
}
