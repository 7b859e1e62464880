//! Creates or updates a CloudFormation stack by a change set and waits for its end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use aws_sdk_cloudformation::error::ProvideErrorMetadata;
use aws_sdk_cloudformation::types::{
    Capability, ChangeSetStatus, ChangeSetType, Parameter, Stack as StackDescription, StackEvent, StackStatus,
};
use rowmill_settings::time_bounds::{self, TooShort};
use uuid::Uuid;

use super::{DeployError, patience};
use crate::aws::{Aws, failed};
use crate::progress::Progress;
use crate::template::Template;

pub(super) struct Stack<'a> {
    aws: &'a Aws,
    name: &'a str,
    progress: Progress,
    limit: Duration,
    interval: Duration,
}

impl<'a> Stack<'a> {
    pub(super) fn new(aws: &'a Aws, name: &'a str, progress: Progress) -> Self {
        let (limit, interval) = patience(aws);
        Self { aws, name, progress, limit, interval }
    }

    /// Updates the stack to the template. False if nothing had to be changed.
    ///
    /// # Errors
    /// [`DeployError::Times`] and others. The stack is unchanged then.
    pub(super) async fn apply(
        &self,
        template: &Template,
        template_url: &str,
        parameters: &BTreeMap<String, String>,
    ) -> Result<bool, DeployError> {
        let existing = self.existing().await?;
        check_times(template, parameters, existing.as_ref())?;
        let kind = if existing.is_some() { ChangeSetType::Update } else { ChangeSetType::Create };
        let parameters = self.parameters(template, parameters, existing.as_ref());
        let change_set = format!("rowmill-{}", Uuid::now_v7().simple());
        self.progress.line(format_args!("Working out the changes to the stack {}", self.name));

        let request = self.aws.cloudformation.create_change_set().stack_name(self.name).change_set_name(&change_set);
        let request = request.change_set_type(kind.clone()).template_url(template_url);
        let request = request.capabilities(Capability::CapabilityIam).capabilities(Capability::CapabilityAutoExpand);
        let created = request.set_parameters(Some(parameters)).send().await;
        if let Err(error) = created {
            return Err(match error.code() {
                Some("ValidationError" | "InsufficientCapabilitiesException") => {
                    DeployError::Refused { reason: error.message().unwrap_or_default().to_owned() }
                }
                _ => failed("create the change set")(error).into(),
            });
        }
        if let Some(reason) = self.failure_of(&change_set).await? {
            self.discard(&change_set, &kind).await?;
            return if is_no_change(&reason) { Ok(false) } else { Err(DeployError::Refused { reason }) };
        }
        self.execute(&change_set).await?;
        Ok(true)
    }

    /// The existing stack, if it can be updated. A stack whose creation failed is deleted.
    async fn existing(&self) -> Result<Option<StackDescription>, DeployError> {
        let Some(stack) = self.aws.stack(self.name).await? else { return Ok(None) };
        let status = status_of(&stack);
        match status {
            // Only a change set exists that was never executed.
            StackStatus::ReviewInProgress => Ok(None),
            StackStatus::RollbackComplete | StackStatus::RollbackFailed | StackStatus::CreateFailed => {
                self.progress.line(format_args!("Deleting the failed stack {}", self.name));
                self.delete().await?;
                Ok(None)
            }
            status if is_under_way(&status) => {
                Err(DeployError::Busy { stack: self.name.to_owned(), status: status.to_string() })
            }
            _ => Ok(Some(stack)),
        }
    }

    /// The given parameters, then the previous values of the stack. All others get the template's defaults.
    fn parameters(
        &self,
        template: &Template,
        given: &BTreeMap<String, String>,
        existing: Option<&StackDescription>,
    ) -> Vec<Parameter> {
        let set =
            given.iter().map(|(name, value)| Parameter::builder().parameter_key(name).parameter_value(value).build());
        let kept = existing.map(StackDescription::parameters).unwrap_or_default().iter();
        let kept = kept.filter_map(|parameter| parameter.parameter_key());
        let kept = kept.filter(|name| !given.contains_key(*name) && template.has_parameter(name));
        set.chain(kept.map(|name| Parameter::builder().parameter_key(name).use_previous_value(true).build())).collect()
    }

    /// Waits until the change set is ready. Returns the reason if it cannot be executed.
    async fn failure_of(&self, change_set: &str) -> Result<Option<String>, DeployError> {
        let started = Instant::now();
        loop {
            let request = self.aws.cloudformation.describe_change_set().stack_name(self.name);
            let answer = request.change_set_name(change_set).send().await;
            let answer = answer.map_err(failed("read the change set"))?;
            match answer.status() {
                Some(ChangeSetStatus::CreateComplete) => return Ok(None),
                Some(ChangeSetStatus::Failed) => {
                    return Ok(Some(answer.status_reason().unwrap_or("no reason was given").to_owned()));
                }
                status => self.wait(started, status.map_or("unknown", |status| status.as_str())).await?,
            }
        }
    }

    /// Deletes a change set that will not be executed, and the empty stack if it was to be created.
    async fn discard(&self, change_set: &str, kind: &ChangeSetType) -> Result<(), DeployError> {
        let request = self.aws.cloudformation.delete_change_set().stack_name(self.name).change_set_name(change_set);
        request.send().await.map_err(failed("delete the change set"))?;
        if *kind == ChangeSetType::Create {
            self.delete().await?;
        }
        Ok(())
    }

    async fn delete(&self) -> Result<(), DeployError> {
        let request = self.aws.cloudformation.delete_stack().stack_name(self.name);
        request.send().await.map_err(failed(format!("delete the stack {}", self.name)))?;
        let started = Instant::now();
        while let Some(stack) = self.aws.stack(self.name).await? {
            let status = status_of(&stack);
            if status == StackStatus::DeleteFailed {
                let reason = stack.stack_status_reason().unwrap_or("no reason was given").to_owned();
                return Err(DeployError::StackFailed { stack: self.name.into(), status: status.to_string(), reason });
            }
            self.wait(started, status.as_str()).await?;
        }
        Ok(())
    }

    async fn execute(&self, change_set: &str) -> Result<(), DeployError> {
        let mut last_seen = self.events_after(None).await?.pop().and_then(|event| event.event_id);
        let request = self.aws.cloudformation.execute_change_set().stack_name(self.name).change_set_name(change_set);
        request.send().await.map_err(failed("execute the change set"))?;

        let started = Instant::now();
        let mut first_failure = None;
        loop {
            // The status is read before the events, so that no event is missed at the end.
            let stack = self.aws.stack(self.name).await?;
            for event in self.events_after(last_seen.as_deref()).await? {
                self.print_event(&event);
                last_seen = event.event_id.clone();
                if first_failure.is_none() && is_cause(&event) {
                    first_failure = Some(event);
                }
            }
            let status = stack.as_ref().map_or(StackStatus::DeleteComplete, status_of);
            match status {
                StackStatus::CreateComplete | StackStatus::UpdateComplete => return Ok(()),
                // Not started yet.
                StackStatus::ReviewInProgress => {}
                ref status if is_under_way(status) => {}
                status => return Err(self.failure(status, first_failure, stack)),
            }
            self.wait(started, status.as_str()).await?;
        }
    }

    /// Events after the given one, oldest first. Without one, only the newest event.
    async fn events_after(&self, last_seen: Option<&str>) -> Result<Vec<StackEvent>, DeployError> {
        let mut events: Vec<StackEvent> = Vec::new();
        let mut pages = self.aws.cloudformation.describe_stack_events().stack_name(self.name).into_paginator().send();
        'pages: while let Some(page) = pages.next().await {
            let page = page.map_err(failed("read the stack's events"))?;
            for event in page.stack_events.unwrap_or_default() {
                if last_seen.is_some() && event.event_id() == last_seen {
                    break 'pages;
                }
                events.push(event);
                if last_seen.is_none() {
                    break 'pages;
                }
            }
        }
        events.reverse();
        Ok(events)
    }

    fn print_event(&self, event: &StackEvent) {
        let Some(status) = event.resource_status() else { return };
        if event.resource_type() == Some("AWS::CloudFormation::Stack") {
            return;
        }
        let status = status.as_str();
        // An emulator creates everything in a second, so only failures are printed.
        if status.ends_with("_FAILED") || (!self.aws.is_emulator() && status.ends_with("_COMPLETE")) {
            let name = event.logical_resource_id().unwrap_or_default();
            let kind = event.resource_type().unwrap_or_default();
            self.progress.line(format_args!("  {status:<22} {name} ({kind})"));
        }
    }

    fn failure(&self, status: StackStatus, cause: Option<StackEvent>, stack: Option<StackDescription>) -> DeployError {
        let (name, status) = (self.name.to_owned(), status.to_string());
        match cause {
            Some(event) => DeployError::ResourceFailed {
                stack: name,
                resource: event.logical_resource_id.unwrap_or_default(),
                kind: event.resource_type.unwrap_or_default(),
                reason: event.resource_status_reason.unwrap_or_else(|| "no reason was given".into()),
                status,
            },
            None => {
                let reason = stack.and_then(|stack| stack.stack_status_reason);
                DeployError::StackFailed {
                    stack: name,
                    status,
                    reason: reason.unwrap_or_else(|| "no reason was given".into()),
                }
            }
        }
    }

    async fn wait(&self, started: Instant, status: &str) -> Result<(), DeployError> {
        let after = started.elapsed();
        if after > self.limit {
            return Err(DeployError::TooSlow { stack: self.name.into(), status: status.into(), after });
        }
        tokio::time::sleep(self.interval).await;
        Ok(())
    }

    /// The outputs and the parameters of the stack.
    pub(super) async fn outputs_and_parameters(
        &self,
    ) -> Result<(BTreeMap<String, String>, BTreeMap<String, String>), DeployError> {
        let Some(stack) = self.aws.stack(self.name).await? else { return Ok(Default::default()) };
        let outputs = stack.outputs.unwrap_or_default().into_iter();
        let parameters = stack.parameters.unwrap_or_default().into_iter();
        Ok((
            outputs.filter_map(|output| Some((output.output_key?, output.output_value?))).collect(),
            parameters.filter_map(|parameter| Some((parameter.parameter_key?, parameter.parameter_value?))).collect(),
        ))
    }
}

/// Checks the times that the stack will have: the given ones, those that it keeps, and the template's defaults.
fn check_times(
    template: &Template,
    given: &BTreeMap<String, String>,
    existing: Option<&StackDescription>,
) -> Result<(), TooShort> {
    let kept = |name: &str| {
        let parameter = existing?.parameters().iter().find(|parameter| parameter.parameter_key() == Some(name))?;
        parameter.parameter_value().map(str::to_owned)
    };
    let value = |name: &str| given.get(name).cloned().or_else(|| kept(name)).or_else(|| template.default_of(name));
    time_bounds::check(|name| value(name)?.trim().parse().ok())
}

fn status_of(stack: &StackDescription) -> StackStatus {
    stack.stack_status().cloned().unwrap_or_else(|| StackStatus::from("UNKNOWN"))
}

fn is_under_way(status: &StackStatus) -> bool {
    status.as_str().ends_with("_IN_PROGRESS")
}

/// True if an event is a cause of failure, and not a resource that was cancelled because another one failed.
fn is_cause(event: &StackEvent) -> bool {
    let failed = event.resource_status().is_some_and(|status| status.as_str().ends_with("_FAILED"));
    failed && !event.resource_status_reason().is_some_and(|reason| reason.contains("cancelled"))
}

/// True if the reason means an empty change set. CloudFormation and the SAM transform use different texts.
fn is_no_change(reason: &str) -> bool {
    reason.contains("didn't contain changes") || reason.contains("No updates are to be performed")
}

#[cfg(test)]
mod tests {
    use aws_sdk_cloudformation::types::ResourceStatus;

    use super::*;

    fn event(status: ResourceStatus, reason: &str) -> StackEvent {
        StackEvent::builder().resource_status(status).resource_status_reason(reason).build()
    }

    #[test]
    fn the_cause_is_a_failed_resource_and_not_a_cancelled_one() {
        assert!(is_cause(&event(ResourceStatus::CreateFailed, "Bucket name is taken")));
        assert!(!is_cause(&event(ResourceStatus::CreateFailed, "Resource creation cancelled")));
        assert!(!is_cause(&event(ResourceStatus::CreateComplete, "")));
    }

    #[test]
    fn times_are_checked_as_the_stack_will_have_them() {
        let template = "Parameters: {StopGraceSeconds: {Default: 150}, ProcessTimeoutSeconds: {Default: \"90\"}}";
        let template = Template::parse(template).unwrap();
        let kept = Parameter::builder().parameter_key("ProcessTimeoutSeconds").parameter_value("60").build();
        let existing = StackDescription::builder().parameters(kept).build();
        let with_grace = |seconds: &str, existing: Option<&StackDescription>| {
            let given = BTreeMap::from([("StopGraceSeconds".to_owned(), seconds.to_owned())]);
            check_times(&template, &given, existing)
        };
        assert!(check_times(&template, &BTreeMap::new(), None).is_ok());
        assert!(with_grace("110", None).is_err() && with_grace("111", None).is_ok());
        assert!(with_grace("80", Some(&existing)).is_err() && with_grace("81", Some(&existing)).is_ok());
    }

    #[test]
    fn an_empty_change_set_is_not_an_error() {
        let plain =
            "The submitted information didn't contain changes. Submit different information to create a change set.";
        assert!(is_no_change(plain) && is_no_change("No updates are to be performed."));
        assert!(!is_no_change("Template error: unresolved resource dependency"));
    }
}
