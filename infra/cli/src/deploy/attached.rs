//! Tables that a stack attaches instead of making its own.

use aws_sdk_dynamodb::types::{StreamViewType, TableDescription, TimeToLiveStatus};
use rowmill_settings::{ATTACHED_TABLES, JOBS_TABLE};

use super::{DeployError, Values};
use crate::aws::{Aws, CallFailed, failed};

const TABLES: &str = "AttachedTables";
const STREAM: &str = "AttachedStreamArn";

/// Sets the parameter with the stream of the jobs table, if tables are given to attach: only DynamoDB knows the end of its
/// name. Checks what a restored table does not have by itself.
///
/// # Errors
/// [`DeployError::Attached`] if a table lacks its stream or its time to live; others if there is no such table.
pub(super) async fn add_stream(aws: &Aws, parameters: &mut Values) -> Result<(), DeployError> {
    let Some(start) = parameters.get(TABLES).filter(|start| !start.is_empty()).cloned() else { return Ok(()) };
    for resource in ATTACHED_TABLES {
        let Some(end) = resource.attached_end() else { continue };
        let table = format!("{start}-{end}");
        let refused = |reason| DeployError::Attached { table: table.clone(), reason };
        if !has_expiry(aws, &table).await? {
            return Err(refused("its time to live is off; enable it on the attribute expiresAt"));
        }
        // Functions read its stream.
        if resource == JOBS_TABLE {
            let described = aws.dynamodb.describe_table().table_name(&table).send().await;
            let described = described.map_err(failed(format!("describe the table {table}")))?;
            let stream = described.table.and_then(stream_of);
            let stream = stream.ok_or_else(|| refused("it has no stream with new and old images; enable one"))?;
            parameters.entry(STREAM.to_owned()).or_insert(stream);
        }
    }
    Ok(())
}

fn stream_of(table: TableDescription) -> Option<String> {
    let has_images = table.stream_specification?.stream_view_type == Some(StreamViewType::NewAndOldImages);
    table.latest_stream_arn.filter(|_| has_images)
}

async fn has_expiry(aws: &Aws, table: &str) -> Result<bool, CallFailed> {
    let answer = aws.dynamodb.describe_time_to_live().table_name(table).send().await;
    let answer = answer.map_err(failed(format!("read the time to live of {table}")))?;
    let expiry = answer.time_to_live_description;
    let status = expiry.as_ref().and_then(|expiry| expiry.time_to_live_status());
    let is_on = matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling));
    Ok(is_on && expiry.and_then(|expiry| expiry.attribute_name).as_deref() == Some("expiresAt"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::aws::Target;
    use crate::fake_api::{FakeApi, Reply};

    /// What comes of attaching tables with these descriptions.
    async fn attached(expiry: Value, table: Value) -> Result<Values, String> {
        let api = FakeApi::serve(move |request, _| {
            let asks_for_table = request.headers["x-amz-target"].ends_with("DescribeTable");
            let answer =
                if asks_for_table { json!({ "Table": table }) } else { json!({ "TimeToLiveDescription": expiry }) };
            Reply::json(200, answer)
        })
        .await;
        let aws = Aws::connect(Target::Emulator { endpoint_url: api.url.clone() }).await.unwrap();
        let mut parameters = Values::from([(TABLES.to_owned(), "restored".to_owned())]);
        add_stream(&aws, &mut parameters).await.map_err(|error| error.to_string())?;
        Ok(parameters)
    }

    #[tokio::test]
    async fn a_table_without_what_a_restoration_loses_is_refused_and_its_stream_is_found() {
        let expiry = |status: &str| json!({ "TimeToLiveStatus": status, "AttributeName": "expiresAt" });
        let table = |images: &str| {
            let specification = json!({ "StreamEnabled": true, "StreamViewType": images });
            json!({ "LatestStreamArn": "arn:stream", "StreamSpecification": specification })
        };
        let attached_to = attached(expiry("ENABLED"), table("NEW_AND_OLD_IMAGES")).await.unwrap();
        assert_eq!(attached_to[STREAM], "arn:stream");
        for (expiry, table, lacks) in [
            (expiry("DISABLED"), table("NEW_AND_OLD_IMAGES"), "time to live"),
            (expiry("ENABLED"), table("KEYS_ONLY"), "stream"),
            (expiry("ENABLED"), json!({}), "stream"),
        ] {
            let refusal = attached(expiry, table).await.unwrap_err();
            assert!(
                refusal.starts_with("the table restored-jobs cannot be attached") && refusal.contains(lacks),
                "{refusal}"
            );
        }
    }
}
