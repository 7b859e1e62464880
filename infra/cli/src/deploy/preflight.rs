//! Checks before a build: what would roll the stack back after minutes, and what may surprise.

use serde_json::Value;

use super::change_set::{check_times, kept, values};
use super::{DeployError, Values, attached};
use crate::aws::{Aws, failed, sdk_config};
use crate::progress::Progress;
use crate::template::Template;

/// Longest name of a Lambda function.
const FUNCTION_NAME_MAX: usize = 64;

/// Most executions of a poller in provisioned mode.
const POLLER_EXECUTIONS: i64 = 10;

/// The bounds of a suggested reservation: fewer executions would throttle good callers, and no API needs more.
const SUGGESTED_MIN: i64 = 10;
const SUGGESTED_MAX: i64 = 100;

/// Checks that a stack fits its account. Returns the parameters that a running stack keeps. Rights are not checked:
/// docs/deploying.md says why.
///
/// # Errors
///
/// See [`DeployError`]. Nothing was changed.
pub async fn preflight(
    aws: &Aws,
    stack_name: &str,
    template: &Template,
    given: &Values,
    progress: Progress,
) -> Result<Values, DeployError> {
    check_name(stack_name, template)?;
    attached::add_stream(aws, &mut given.clone()).await?;
    let kept = kept(aws.stack(stack_name).await?.as_ref());
    check_times(template, given, &kept)?;
    // An account of an emulator has no limits.
    if aws.is_emulator() {
        return Ok(kept);
    }
    let config = sdk_config(aws.target()).await;
    let values = values(template, given, &kept)?;
    if ["LiveAccessLog", "WithHttpApi"].iter().all(|name| values.get(*name).is_some_and(|value| value == "true")) {
        // To look for the role takes a client of API Gateway, which each first build would compile.
        progress.line(
            "LiveAccessLog=true: without a CloudWatch role of the account for API Gateway in this region the stack is \
             rolled back. docs/operating.md says how to set one.",
        );
    }
    let settings = aws_sdk_lambda::Client::new(&config).get_account_settings().send().await;
    let settings = settings.map_err(failed("read the account's limits of Lambda"))?;
    let unreserved = settings.account_limit().and_then(|limit| limit.unreserved_concurrent_executions());
    let available = unreserved.map_or(i64::MAX, |unreserved| i64::from(unreserved) + reserved(template, &kept));
    let (workers, reserved) = (workers(template, &values), reserved(template, &values));
    // Lambda lets nobody reserve the last 100.
    let needed = if reserved > 0 { workers.max(100) + reserved } else { workers };
    if available < needed {
        progress.line(format_args!(
            "warning: Lambda runs {available} executions of this stack at once at most, and its queues and \
             reservations need {needed}. A reservation that does not fit is refused. Messages whose deliveries are \
             throttled end as dead letters. Raise the quota `Concurrent executions` of Lambda in this region, or lower \
             the parameters named …MaximumConcurrency."
        ));
    }
    if let Some(each) = suggested(available, workers, reserving(template)).filter(|_| reserved == 0) {
        progress.line(format_args!(
            "ApiReservedConcurrency is empty, so a flood of requests can take the executions that the queues need. \
             --parameter ApiReservedConcurrency={each} bounds it, and leaves half of the account's other executions free."
        ));
    }
    if !kept.is_empty() {
        let summary = aws.cloudformation.get_template_summary().stack_name(stack_name).send().await;
        let summary = summary.map_err(failed("read the template of the stack"))?.parameters.unwrap_or_default();
        let before = summary.into_iter().filter_map(|of| Some((of.parameter_key?, of.default_value?))).collect();
        new_defaults(template, given, &kept, &before).iter().for_each(|line| progress.line(line));
    }
    Ok(kept)
}

/// The functions are named after the stack.
fn check_name(name: &str, template: &Template) -> Result<(), DeployError> {
    let longest = template.functions()?.iter().map(|function| function.package.len()).max().unwrap_or(0);
    let limit = FUNCTION_NAME_MAX - "-".len() - longest;
    if name.len() > limit { Err(DeployError::LongName { name: name.to_owned(), limit }) } else { Ok(()) }
}

/// Executions that the event source mappings may use at once.
fn workers(template: &Template, values: &Values) -> i64 {
    let figure = |of: &Value| of.as_i64().or_else(|| values.get(of["Ref"].as_str()?)?.parse().ok());
    let most_pollers = values.get("ItemsPollers").and_then(|pollers| pollers.split_once('-')?.1.parse::<i64>().ok());
    let bound = |mapping: &Value| {
        let scaling = &mapping["ScalingConfig"];
        match (scaling.get("Fn::If"), most_pollers) {
            (Some(_), Some(pollers)) => Some(pollers * POLLER_EXECUTIONS),
            (Some(branches), None) => figure(&branches[2]["MaximumConcurrency"]),
            (None, _) => figure(&scaling["MaximumConcurrency"]),
        }
    };
    let mappings = template.resources_of("AWS::Lambda::EventSourceMapping");
    mappings.filter_map(|(_, mapping)| bound(&mapping["Properties"])).sum()
}

/// Executions that the functions behind the HTTP API reserve together.
fn reserved(template: &Template, values: &Values) -> i64 {
    let each = values.get("ApiReservedConcurrency").and_then(|each| each.parse::<i64>().ok()).unwrap_or(0);
    each * reserving(template)
}

/// Number of functions that `ApiReservedConcurrency` reserves executions for.
fn reserving(template: &Template) -> i64 {
    let functions = template.resources_of("AWS::Serverless::Function");
    functions.map(|(_, f)| i64::from(!f["Properties"]["ReservedConcurrentExecutions"].is_null())).sum()
}

/// A value of `ApiReservedConcurrency` that fits the account: half of what the workers and the last 100 leave. None if
/// that is too little for a function.
fn suggested(available: i64, workers: i64, functions: i64) -> Option<i64> {
    let each = available.saturating_sub(workers.max(100)) / 2 / functions.max(1);
    (each >= SUGGESTED_MIN).then_some(each.min(SUGGESTED_MAX))
}

/// A line for each parameter whose default has changed since the running template, and that keeps another value; and for
/// each value that is lost with its parameter.
fn new_defaults(template: &Template, given: &Values, kept: &Values, before: &Values) -> Vec<String> {
    let kept = kept.iter().filter(|(name, _)| !given.contains_key(*name));
    let line = |(name, value): (&String, &String)| {
        let was_default = before.get(name) == Some(value);
        if !template.settings().any(|setting| setting == name) {
            return (!was_default)
                .then(|| format!("This version has no parameter {name}: its value `{value}` is lost."));
        }
        let new = template.default_of(name).filter(|new| new != value && before.get(name) != Some(new))?;
        Some(format!("The stack keeps {name}={value}. The new default is `{new}`: --reset {name} takes it."))
    };
    kept.filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map<const N: usize>(pairs: [(&str, &str); N]) -> Values {
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    fn template() -> Template {
        Template::parse(
            "Parameters: {Items: {Default: 50}, ItemsPollers: {Default: \"\"}, ApiReservedConcurrency: {Default: \"\"}, Chunk: {Default: 500}}\n\
             Resources:\n  \
             F: {Type: AWS::Serverless::Function, Metadata: {BuildProperties: {Binary: split-job}}, \
             Properties: {ReservedConcurrentExecutions: 1}}\n  \
             G: {Type: AWS::Serverless::Function, Metadata: {BuildProperties: {Binary: web}}, Properties: {}}\n  \
             M: {Type: AWS::Lambda::EventSourceMapping, \
             Properties: {ScalingConfig: {MaximumConcurrency: !Ref Items}}}\n  \
             N: {Type: AWS::Lambda::EventSourceMapping, Properties: {ScalingConfig: {MaximumConcurrency: 2}}}\n  \
             P: {Type: AWS::Lambda::EventSourceMapping, Properties: {\
             ScalingConfig: !If [HasItemsPollers, {}, {MaximumConcurrency: !Ref Items}]}}\n  \
             S: {Type: AWS::Lambda::EventSourceMapping, Properties: {}}\n",
        )
        .unwrap()
    }

    #[test]
    fn the_name_of_a_stack_leaves_room_for_those_of_its_functions() {
        assert!(check_name(&"s".repeat(54), &template()).is_ok());
        let error = check_name(&"s".repeat(55), &template()).unwrap_err().to_string();
        assert!(error.contains("at most 54 characters"), "{error}");
    }

    #[test]
    fn the_workers_and_reservations_are_those_that_the_stack_will_have() {
        let (template, nothing) = (template(), Values::new());
        let new = values(&template, &nothing, &nothing).unwrap();
        assert_eq!((workers(&template, &new), reserved(&template, &new)), (102, 0));
        let with_pollers = values(&template, &map([("ItemsPollers", "2-4")]), &nothing).unwrap();
        assert_eq!(workers(&template, &with_pollers), 92, "ten for each poller");
        let (given, kept) = (map([("Items", "7")]), map([("Items", "9"), ("ApiReservedConcurrency", "20")]));
        let updated = values(&template, &given, &kept).unwrap();
        assert_eq!((workers(&template, &updated), reserved(&template, &updated)), (16, 20));
    }

    #[test]
    fn a_reservation_is_suggested_that_leaves_room_for_workers_and_others() {
        assert_eq!(suggested(1000, 202, 11), Some(36), "the usual account");
        assert_eq!(suggested(10_000, 202, 9), Some(100));
        for small in [10, 100, 300, 380] {
            assert_eq!(suggested(small, 202, 9), None, "{small} executions");
        }
    }

    #[test]
    fn a_parameter_that_keeps_another_value_than_a_new_default_is_listed() {
        let (template, kept) = (template(), map([("Items", "9"), ("Chunk", "100"), ("Gone", "1")]));
        let before = map([("Items", "50"), ("Chunk", "100"), ("Gone", "1")]);
        let listed = new_defaults(&template, &Values::new(), &kept, &before);
        assert!(
            listed.len() == 1 && listed[0].contains("keeps Chunk=100") && listed[0].contains("`500`"),
            "{listed:?}"
        );
        assert_eq!(new_defaults(&template, &map([("Chunk", "200")]), &kept, &before), Vec::<String>::new());
    }
}
