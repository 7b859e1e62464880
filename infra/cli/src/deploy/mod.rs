//! Deploys `template.yaml`: uploads packages and template to a bucket, executes a change set and waits for its end.
//!
//! The steps are the same for AWS, LocalStack and the embedded local stack. Only the timeouts differ, and the settings
//! that an emulator's CloudFormation ignores.

mod artifacts;
mod attached;
mod change_set;
mod expiry;
mod other_settings;
mod preflight;
mod ready;
mod stack_args;

use std::collections::BTreeMap;
use std::time::Duration;

use rowmill_api::route_limits::{RouteLimits, RouteLimitsError};
use rowmill_core::model::ids::Owner;
use rowmill_core::model::job_type_limits::{JobTypeLimits, JobTypesError};
use rowmill_core::model::owner_priorities::{OwnerPriorities, OwnerPrioritiesError};
use rowmill_core::model::request_limits::RequestLimits;
use rowmill_settings::SettingsGroup;
use rowmill_settings::other_settings::OtherSettingsError;
use rowmill_settings::time_bounds::{self, TooShort};

use crate::api::ApiError;
use crate::aws::{Aws, CallFailed, NoRegion};
use crate::package::Package;
use crate::progress::Progress;
use crate::template::{Template, TemplateError};
pub use preflight::preflight;
pub use ready::first_answer;
pub use stack_args::{StackArgs, TooManyTags};

/// Longest wait for a change set to be created or executed on AWS. The slowest resources take a few minutes.
const AWS_LIMIT: Duration = Duration::from_secs(30 * 60);

/// The same for an emulator. The embedded one needs a second, LocalStack up to some minutes.
const EMULATOR_LIMIT: Duration = Duration::from_secs(10 * 60);

/// Parameters or outputs of a stack, by name.
pub type Values = BTreeMap<String, String>;

#[derive(Debug)]
pub struct Deployment<'a> {
    /// The name of the stack. The names of its functions begin with it.
    pub stack_name: &'a str,
    pub template: Template,
    pub packages: Vec<Package>,
    /// Parameters to set. The others keep the value of the stack or get the template's default.
    pub parameters: Values,
    pub stack_args: StackArgs,
    /// Bucket for packages and template, if not the default one.
    pub artifacts_bucket: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployed {
    pub outputs: Values,
    /// The current values of all parameters.
    pub parameters: Values,
    pub changed: bool,
}

impl Deployed {
    /// True if anybody can call the stack's HTTP API: it has one, and no token issuer.
    pub fn is_open(&self) -> bool {
        self.has_http_api() && self.parameter("JwtIssuer").is_empty()
    }

    /// True if the stack was deployed with an HTTP API.
    fn has_http_api(&self) -> bool {
        self.parameter("WithHttpApi") != "false"
    }

    fn parameter(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum DeployError {
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("the template has no parameter {0}")]
    UnknownParameter(String),
    #[error(
        "the stack name {name} is too long: functions are named after it, so it may have at most {limit} characters"
    )]
    LongName { name: String, limit: usize },
    #[error(transparent)]
    JobTypes(#[from] JobTypesError),
    #[error(transparent)]
    OwnerPriorities(#[from] OwnerPrioritiesError),
    #[error(transparent)]
    RouteLimits(#[from] RouteLimitsError),
    #[error(transparent)]
    OtherSettings(#[from] OtherSettingsError),
    #[error(
        "the stack keeps a value that this version refuses: {source}. Give another one by --parameter, or take the \
         default by --reset {name}"
    )]
    Kept { name: String, source: OtherSettingsError },
    /// A setting that its function would refuse at its start.
    #[error("{name} is `{value}`; it must be {expected}")]
    Setting { name: &'static str, value: String, expected: &'static str },
    #[error(transparent)]
    Times(#[from] TooShort),
    /// An attached table cannot serve the stack. Nothing was changed.
    #[error("the table {table} cannot be attached: {reason}")]
    Attached { table: String, reason: &'static str },
    #[error(transparent)]
    TooManyTags(#[from] TooManyTags),
    #[error(transparent)]
    NoRegion(#[from] NoRegion),
    /// A call failed after all retries.
    #[error(transparent)]
    Call(#[from] CallFailed),
    /// CloudFormation refused the template or the parameters. Nothing was changed.
    #[error("CloudFormation refuses the template: {reason}")]
    Refused { reason: String },
    /// A resource could not be created or changed, and everything was rolled back; or the stack itself failed.
    #[error("the stack {stack} ended as {status}: {reason}")]
    Failed { stack: String, status: String, reason: String },
    /// The stack is deployed, but the HTTP API of the template is not there.
    #[error(
        "everything is deployed, but there is no HTTP API (ApiUrl is `{0}`): this emulator has none. Deploy again with \
         --parameter WithHttpApi=false; then call the functions with `rowmill run|job|… --stack-name NAME --endpoint-url URL`, or serve the \
         API with `rowmill gateway --stack-name NAME --endpoint-url URL`"
    )]
    NoHttpApi(String),
    /// Everything is deployed, but the API does not work.
    #[error("everything is deployed, but the API does not work: {0}; the functions' logs have the cause")]
    Unhealthy(#[source] ApiError),
    /// Another change of the stack is in progress.
    #[error("the stack {stack} is being changed ({status}); try again when that is done")]
    Busy { stack: String, status: String },
    /// The timeout has passed. The change may still finish; the stack's events show it.
    #[error("the stack {stack} is still {status} after {} s", .after.as_secs())]
    TooSlow { stack: String, status: String, after: Duration },
}

/// Creates or updates a stack.
///
/// # Errors
///
/// See [`DeployError`]. After `Failed` everything is rolled back; after `TooSlow` the change goes on.
pub async fn deploy(aws: &Aws, deployment: Deployment<'_>, progress: Progress) -> Result<Deployed, DeployError> {
    let Deployment { stack_name, mut template, packages, mut parameters, stack_args, artifacts_bucket } = deployment;
    check_parameters(&template, &parameters)?;
    attached::add_stream(aws, &mut parameters).await?;
    let bucket = artifacts::bucket(aws, artifacts_bucket).await?;
    let keys = artifacts::upload_packages(aws, &bucket, packages, progress).await?;
    for function in template.functions()? {
        let key = keys.get(&function.package).ok_or_else(|| TemplateError::NoBinary(function.logical_id.clone()))?;
        template.set_code(&function.logical_id, &bucket.name, key);
    }
    let template_url = artifacts::upload_template(aws, &bucket, &template).await?;

    let stack = change_set::Stack::new(aws, stack_name, progress);
    let changed = stack.apply(&template, &template_url, &parameters, &stack_args).await?;
    if aws.is_emulator() {
        expiry::enable(aws, stack_name, &template).await?;
    }
    let (outputs, parameters) = stack.outputs_and_parameters().await?;
    Ok(Deployed { outputs, parameters, changed })
}

/// Checks what can be known of the parameters without AWS. Call it before a build, which takes minutes.
pub fn check_parameters(template: &Template, parameters: &Values) -> Result<(), DeployError> {
    let is_unknown = |name: &&String| !template.has_parameter(name) && template.other_setting(name).is_none();
    if let Some(name) = parameters.keys().find(is_unknown) {
        return Err(DeployError::UnknownParameter(name.clone()));
    }
    let folded = other_settings::folded(template, parameters, &Values::new())?;
    let parameters = other_settings::expanded(template, &folded)?;
    let given = |name| parameters.get(name).map_or("", String::as_str);
    let owner = given("InboxOwner");
    if !owner.is_empty() && Owner::of_name(owner).is_none() {
        let (value, expected) = (owner.to_owned(), "an owner: not blank, without # and control characters");
        return Err(DeployError::Setting { name: "InboxOwner", value, expected });
    }
    JobTypeLimits::parse(given("JobTypes"))?;
    OwnerPriorities::parse(given("OwnerPriorities"))?;
    RouteLimits::parse(given("RouteLimits"), RequestLimits::defaults())?;
    time_bounds::check(|name| parameters.get(name)?.trim().parse().ok())?;
    Ok(())
}

/// The timeout of a change on this target, and the polling interval.
fn patience(aws: &Aws) -> (Duration, Duration) {
    if aws.is_emulator() { (EMULATOR_LIMIT, Duration::from_millis(100)) } else { (AWS_LIMIT, Duration::from_secs(2)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_without_a_token_issuer_is_open() {
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
