//! Enables the time to live of table rows, which an emulator's CloudFormation ignores.

use aws_sdk_cloudformation::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::{TimeToLiveSpecification, TimeToLiveStatus};

use crate::aws::{Aws, CallFailed, failed};
use crate::template::Template;

/// Enables time to live on the tables as the template defines it. The embedded emulator's CloudFormation accepts the
/// setting but does not apply it.
pub(super) async fn enable(aws: &Aws, stack_name: &str, template: &Template) -> Result<(), CallFailed> {
    for (logical_id, table) in template.resources_of("AWS::DynamoDB::Table") {
        let Some(attribute) = table["Properties"]["TimeToLiveSpecification"]["AttributeName"].as_str() else {
            continue;
        };
        let resource = aws.cloudformation.describe_stack_resource();
        let resource = match resource.stack_name(stack_name).logical_resource_id(logical_id).send().await {
            Ok(resource) => resource,
            // The stack has attached tables, and did not make this one.
            Err(error) if table["Condition"].is_string() && error.code() == Some("ValidationError") => continue,
            Err(error) => return Err(failed(format!("find the table {logical_id}"))(error)),
        };
        let name = resource.stack_resource_detail().and_then(|detail| detail.physical_resource_id());
        enable_on(aws, name.unwrap_or_default(), attribute).await?;
    }
    Ok(())
}

async fn enable_on(aws: &Aws, table: &str, attribute: &str) -> Result<(), CallFailed> {
    let now = aws.dynamodb.describe_time_to_live().table_name(table).send().await;
    let now = now.map_err(failed(format!("read the time to live of {table}")))?;
    // Enabling it twice is an error.
    let status = now.time_to_live_description().and_then(|description| description.time_to_live_status());
    if matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)) {
        return Ok(());
    }
    let expiry = TimeToLiveSpecification::builder().attribute_name(attribute).enabled(true).build();
    let expiry = expiry.expect("attribute and switch are given");
    let request = aws.dynamodb.update_time_to_live().table_name(table).time_to_live_specification(expiry);
    request.send().await.map_err(failed(format!("enable the time to live of {table}")))?;
    Ok(())
}
