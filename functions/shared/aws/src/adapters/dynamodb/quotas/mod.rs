//! The rows of the admission table that bound what a caller may ask for: one file per port.

mod blocks;
mod outstanding_uploads;
mod request_counts;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;

use super::attributes::text;

/// Request counts, blocks and outstanding uploads in DynamoDB.
#[derive(Clone, Debug)]
pub struct DynamoDbQuotas {
    client: Client,
    admission_table: String,
}

impl DynamoDbQuotas {
    pub const fn new(client: Client, admission_table: String) -> Self {
        Self { client, admission_table }
    }

    fn update(&self, scope: &str) -> UpdateItemFluentBuilder {
        self.client.update_item().table_name(&self.admission_table).key("scope", text(scope))
    }
}

/// The condition that a counter is below its limit. Without the attribute nothing is counted, so there is room unless
/// the limit is 0.
fn below(counter: &str, limit: &str, is_zero: bool) -> String {
    match is_zero {
        true => format!("{counter} < {limit}"),
        false => format!("(attribute_not_exists({counter}) OR {counter} < {limit})"),
    }
}
