//! A deployed stack that an operator works on: its parameters and outputs, and the clients of its account.

use aws_sdk_cloudformation::types::Stack;

use super::CommandError;
use super::connection::FunctionsArgs;
use crate::aws::{Aws, Target};
use crate::stack::{self, StackOptions};

pub(super) struct DeployedStack {
    pub aws: Aws,
    name: String,
    described: Stack,
}

impl FunctionsArgs {
    /// The stack of this name on AWS or on an emulator; else the running local stack.
    pub(super) async fn deployed(&self) -> Result<DeployedStack, CommandError> {
        let (target, name) = match self.given() {
            Some((target, name)) => (target, name.to_owned()),
            None => (local_target().await?, stack::STACK_NAME.to_owned()),
        };
        let aws = Aws::connect(target).await.map_err(|error| CommandError::Usage(error.to_string()))?;
        let described = aws.stack(&name).await?;
        let described = described.ok_or_else(|| CommandError::Usage(format!("there is no stack {name}")))?;
        Ok(DeployedStack { aws, name, described })
    }
}

/// The emulator of the running local stack.
async fn local_target() -> Result<Target, CommandError> {
    const NO_STACK: &str = "no stack: use --stack-name, or start the local stack with `rowmill up`";
    let none = || CommandError::Usage(NO_STACK.to_owned());
    let options = StackOptions::for_current_workspace().map_err(|_| none())?;
    let (record, _) = stack::running(&options.state_dir).await.map_err(|_| none())?;
    Ok(Target::Emulator { endpoint_url: record.endpoint })
}

impl DeployedStack {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// An output that every stack of Rowmill has.
    pub fn output(&self, key: &str) -> Result<&str, CommandError> {
        let output = self.described.outputs().iter().find(|output| output.output_key() == Some(key));
        let none = || format!("the stack {} has no output {key}: it is not one of Rowmill", self.name);
        output.and_then(|output| output.output_value()).ok_or_else(|| CommandError::Usage(none()))
    }

    pub fn outputs(&self) -> Vec<(String, String)> {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let outputs = self.described.outputs().iter();
        outputs.filter_map(|output| Some((text(output.output_key())?, text(output.output_value())?))).collect()
    }

    /// The value of a parameter; empty if the stack does not have it.
    pub fn parameter(&self, key: &str) -> &str {
        let mut parameters = self.described.parameters().iter();
        let parameter = parameters.find(|parameter| parameter.parameter_key() == Some(key));
        parameter.and_then(|parameter| parameter.parameter_value()).unwrap_or_default()
    }
}
