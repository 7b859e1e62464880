//! Creates or updates a CloudFormation stack by a change set and waits for its end.

use std::time::{Duration, Instant};

use aws_sdk_cloudformation::error::ProvideErrorMetadata;
use aws_sdk_cloudformation::types::{
    Capability, ChangeSetStatus, ChangeSetType, Parameter, Stack as StackDescription, StackEvent, StackStatus,
};
use rowmill_settings::time_bounds;
use uuid::Uuid;

use super::{DeployError, StackArgs, Values, other_settings, patience};
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
        parameters: &Values,
        stack_args: &StackArgs,
    ) -> Result<bool, DeployError> {
        let existing = self.existing().await?;
        let kept = kept(existing.as_ref());
        let parameters = &other_settings::folded(template, parameters, &kept)?;
        check_times(template, parameters, &kept)?;
        let kind = if existing.is_some() { ChangeSetType::Update } else { ChangeSetType::Create };
        let parameters = sent(template, parameters, &kept);
        let change_set = format!("rowmill-{}", Uuid::now_v7().simple());
        self.progress.line(format_args!("Working out the changes to the stack {}", self.name));

        let request = self.aws.cloudformation.create_change_set().stack_name(self.name).change_set_name(&change_set);
        let request = request.change_set_type(kind.clone()).template_url(template_url);
        let request = request.capabilities(Capability::CapabilityIam).capabilities(Capability::CapabilityAutoExpand);
        let request = request.set_tags(stack_args.tags(existing.as_ref())).set_role_arn(stack_args.role_arn.clone());
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
            status if creation_failed(&status) => {
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
                return Err(self.failure(&status, stack.stack_status_reason));
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
                    let kind = event.resource_type().unwrap_or_default();
                    let reason = event.resource_status_reason().unwrap_or("no reason was given");
                    let resource = event.logical_resource_id().unwrap_or_default();
                    first_failure = Some(format!("{resource} ({kind}) failed: {reason}"));
                }
            }
            let status = stack.as_ref().map_or(StackStatus::DeleteComplete, status_of);
            match status {
                StackStatus::CreateComplete | StackStatus::UpdateComplete => return Ok(()),
                // Not started yet.
                StackStatus::ReviewInProgress => {}
                ref status if is_under_way(status) => {}
                status => {
                    let of_stack = stack.and_then(|stack| stack.stack_status_reason);
                    return Err(self.failure(&status, first_failure.or(of_stack)));
                }
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

    fn failure(&self, status: &StackStatus, reason: Option<String>) -> DeployError {
        let reason = reason.unwrap_or_else(|| "no reason was given".to_owned());
        DeployError::Failed { stack: self.name.to_owned(), status: status.to_string(), reason }
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
    pub(super) async fn outputs_and_parameters(&self) -> Result<(Values, Values), DeployError> {
        let Some(stack) = self.aws.stack(self.name).await? else { return Ok(Default::default()) };
        let parameters = kept(Some(&stack));
        let outputs = stack.outputs.unwrap_or_default().into_iter();
        Ok((outputs.filter_map(|output| Some((output.output_key?, output.output_value?))).collect(), parameters))
    }
}

/// The values of a stack's parameters, which an update keeps. None if its creation failed: it is deleted first.
pub(super) fn kept(stack: Option<&StackDescription>) -> Values {
    let stack = stack.filter(|stack| !creation_failed(&status_of(stack)));
    let parameters = stack.map(StackDescription::parameters).unwrap_or_default().iter().cloned();
    parameters.filter_map(|parameter| Some((parameter.parameter_key?, parameter.parameter_value?))).collect()
}

/// The values that all parameters and settings will have: the given ones, those that the stack keeps, or the template's
/// defaults.
pub(super) fn values(template: &Template, given: &Values, kept: &Values) -> Result<Values, DeployError> {
    let given = other_settings::expanded(template, &other_settings::folded(template, given, kept)?)?;
    // What the stack keeps of other settings is in `OtherSettings` already.
    let kept = |name: &String| kept.get(name).filter(|_| template.other_setting(name).is_none());
    let value = |name: &String| given.get(name).or_else(|| kept(name)).cloned().or_else(|| template.default_of(name));
    Ok(template.settings().filter_map(|name| Some((name.clone(), value(name)?))).collect())
}

/// The given parameters, then those that the stack keeps. All others get the template's defaults.
fn sent(template: &Template, given: &Values, kept: &Values) -> Vec<Parameter> {
    let set = given.iter().map(|(name, value)| Parameter::builder().parameter_key(name).parameter_value(value).build());
    let kept = kept.keys().filter(|name| !given.contains_key(*name) && template.has_parameter(name));
    set.chain(kept.map(|name| Parameter::builder().parameter_key(name).use_previous_value(true).build())).collect()
}

pub(super) fn check_times(template: &Template, given: &Values, kept: &Values) -> Result<(), DeployError> {
    let values = values(template, given, kept)?;
    Ok(time_bounds::check(|name| values.get(name)?.trim().parse().ok())?)
}

fn creation_failed(status: &StackStatus) -> bool {
    matches!(status, StackStatus::RollbackComplete | StackStatus::RollbackFailed | StackStatus::CreateFailed)
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
    use crate::aws::Target;
    use crate::command::explain;
    use crate::fake_api::{FakeApi, Reply};

    const STACK: &str = "<DescribeStacksResponse><DescribeStacksResult><Stacks><member><StackName>s</StackName>\
        <CreationTime>2026-01-01T00:00:00Z</CreationTime><StackStatus>UPDATE_COMPLETE</StackStatus>\
        <Tags><member><Key>team</Key><Value>a</Value></member></Tags>\
        </member></Stacks></DescribeStacksResult></DescribeStacksResponse>";

    const DENIED: &str = "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>User: me is not \
        authorized to perform: cloudformation:CreateChangeSet on resource: s</Message></Error></ErrorResponse>";

    /// The request for a change set of a stack with the tag `team=a`, and the error if the right for it is missing.
    async fn asked(stack_args: StackArgs) -> (String, String) {
        let api = FakeApi::serve(|request, _| {
            let is_read = request.body.starts_with(b"Action=DescribeStacks");
            if is_read { Reply::text(200, STACK) } else { Reply::text(403, DENIED) }
        })
        .await;
        let aws = Aws::connect(Target::Emulator { endpoint_url: api.url.clone() }).await.unwrap();
        let (stack, template) = (Stack::new(&aws, "s", Progress::Hidden), Template::parse("Resources: {}").unwrap());
        let error = stack.apply(&template, "http://t", &Values::new(), &stack_args).await.unwrap_err();
        (String::from_utf8(api.seen().pop().unwrap().body).unwrap(), explain(&error))
    }

    #[tokio::test]
    async fn a_change_set_has_tags_and_role_of_the_command_or_the_tags_of_the_stack() {
        let (request, _) = asked(StackArgs::default()).await;
        assert!(request.contains("Tags.member.1.Key=team&Tags.member.1.Value=a"), "{request}");
        assert!(!request.contains("RoleARN"), "the stack keeps its role: {request}");

        let role_arn = Some("arn:aws:iam::123456789012:role/deploy".to_owned());
        let (request, _) = asked(StackArgs { tags: vec![("cost".into(), "1".into())], role_arn }).await;
        assert!(request.contains("Tags.member.1.Key=cost&Tags.member.1.Value=1"), "{request}");
        assert!(
            !request.contains("team") && request.contains("RoleARN=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fdeploy")
        );
    }

    #[tokio::test]
    async fn a_missing_right_is_named() {
        let (_, error) = asked(StackArgs::default()).await;
        assert!(error.contains("cannot create the change set"), "{error}");
        assert!(error.contains("not authorized to perform: cloudformation:CreateChangeSet"), "{error}");
    }

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
        let stack = |status| {
            let parameter = Parameter::builder().parameter_key("ProcessTimeoutSeconds").parameter_value("60").build();
            StackDescription::builder().parameters(parameter).stack_status(status).build()
        };
        let with_grace = |seconds: &str, existing: Option<StackDescription>| {
            let given = Values::from([("StopGraceSeconds".to_owned(), seconds.to_owned())]);
            check_times(&template, &given, &kept(existing.as_ref()))
        };
        let running = || Some(stack(StackStatus::UpdateComplete));
        assert!(check_times(&template, &Values::new(), &Values::new()).is_ok());
        assert!(with_grace("139", None).is_err() && with_grace("140", None).is_ok());
        assert!(with_grace("109", running()).is_err() && with_grace("110", running()).is_ok());
        assert!(with_grace("110", Some(stack(StackStatus::RollbackComplete))).is_err(), "it is deleted first");

        // In a version that has the grace among its other settings.
        let template = "{Parameters: {OtherSettings: {Default: \"\"}, ProcessTimeoutSeconds: {Default: \"90\"}}, Metadata: \
            {OtherSettings: {StopGraceSeconds: {Type: Number, Default: 150, MinValue: 5, MaxValue: 3600}}}}";
        let template = Template::parse(template).unwrap();
        let value = |text: &str| text.to_owned();
        let before = Values::from([(value("StopGraceSeconds"), value("100"))]);
        let is_fine = |given: Values| check_times(&template, &given, &before).is_ok();
        assert!(!is_fine(Values::new()), "the stack keeps it");
        assert!(is_fine(Values::from([(value("StopGraceSeconds"), value("150"))])), "it is reset");
        assert!(is_fine(Values::from([(value("OtherSettings"), String::new())])));
    }

    #[test]
    fn an_empty_change_set_is_not_an_error() {
        let plain =
            "The submitted information didn't contain changes. Submit different information to create a change set.";
        assert!(is_no_change(plain) && is_no_change("No updates are to be performed."));
        assert!(!is_no_change("Template error: unresolved resource dependency"));
    }
}
