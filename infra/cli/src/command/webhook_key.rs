//! `rowmill webhook-key`: the key that the service of a webhook gets.

use std::process::ExitCode;

use rowmill_core::model::webhook_key::{standard_secret, webhook_key};
use serde_json::Value;

use super::connection::FunctionsArgs;
use super::{CommandError, print};
use crate::aws::failed;

/// The output of the stack with the ARN of the secret. A stack without job targets does not have it.
const SECRET_OUTPUT: &str = "WebhookSecretArn";

/// Prints the key by which the service of a webhook recognises Rowmill
///
/// Give it to the service, and to nobody else. Each webhook has its own key. It changes when the secret is rotated.
#[derive(Debug, clap::Args)]
pub struct WebhookKeyArgs {
    /// The job type of the webhook
    #[arg(value_name = "TYPE")]
    pub job_type: String,
    /// Print it as a secret for a library of Standard Webhooks: `whsec_…`
    #[arg(long)]
    pub standard: bool,
    #[command(flatten)]
    pub stack: FunctionsArgs,
}

pub async fn execute(args: WebhookKeyArgs) -> Result<ExitCode, CommandError> {
    let stack = args.stack.deployed().await?;
    let webhooks = webhooks(stack.parameter("JobTargets"));
    if !webhooks.contains(&args.job_type) {
        return Err(CommandError::Usage(no_webhook(stack.name(), &webhooks)));
    }
    let request = stack.aws.secrets_manager.get_secret_value().secret_id(stack.output(SECRET_OUTPUT)?);
    let secret = request.send().await.map_err(failed("read the secret of the webhooks"))?;
    let secret = secret.secret_string().unwrap_or_default().trim_end_matches('\n');
    let key = webhook_key(secret, &args.job_type);
    print(&format!("{}\n", if args.standard { standard_secret(&key) } else { key }))?;
    Ok(ExitCode::SUCCESS)
}

/// The names of the webhooks in the parameter `JobTargets`.
fn webhooks(job_targets: &str) -> Vec<String> {
    let targets: serde_json::Map<String, Value> = serde_json::from_str(job_targets).unwrap_or_default();
    targets.into_iter().filter(|(_, target)| target.get("webhook").is_some()).map(|(name, _)| name).collect()
}

fn no_webhook(stack_name: &str, webhooks: &[String]) -> String {
    match webhooks {
        [] => format!("the stack {stack_name} has no webhooks: see JobTargets"),
        webhooks => format!("the stack {stack_name} has no such webhook; it has: {}", webhooks.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_webhooks_are_the_targets_with_a_url() {
        let targets = r#"{"geocode": {"invoke": "arn"}, "notify": {"webhook": "https://example.com/"}, "odd": 1}"#;
        assert_eq!(webhooks(targets), ["notify"]);
        assert_eq!(webhooks(""), Vec::<String>::new());
        assert!(no_webhook("rowmill", &webhooks(targets)).ends_with("it has: notify"));
        assert!(no_webhook("rowmill", &[]).contains("no webhooks"));
    }
}
