//! The counters of active jobs.

use aws_sdk_dynamodb::types::{AttributeValue, Get, TransactGetItem};

use super::{LocalStack, Row};

impl LocalStack {
    /// A row of the admission table, if it is there.
    pub async fn admission_row(&self, scope: &str) -> Option<Row> {
        let request = self.dynamodb.get_item().table_name(self.output("AdmissionTable")).consistent_read(true);
        let answer = request.key("scope", AttributeValue::S(scope.to_owned())).send().await;
        answer.expect("the table answers").item.map(Row)
    }

    /// Number of taken slots in a scope: `system`, `owner#local`, `type#import`.
    pub async fn active(&self, scope: &str) -> i64 {
        // A counter may be spread over rows: `system`, `system#1`, … Read at one moment, because jobs begin and end
        // meanwhile.
        let scopes = std::iter::once(scope.to_owned()).chain((1..16).map(|shard| format!("{scope}#{shard}")));
        let gets = scopes.map(|scope| {
            let get = Get::builder().table_name(self.output("AdmissionTable")).key("scope", AttributeValue::S(scope));
            TransactGetItem::builder().get(get.build().expect("a table and a key")).build()
        });
        let request = self.dynamodb.transact_get_items().set_transact_items(Some(gets.collect()));
        let rows = request.send().await.expect("the table answers").responses.unwrap_or_default();
        let rows = rows.iter().filter_map(|row| row.item.as_ref()?.get("active"));
        rows.map(|active| active.as_n().expect("a number").parse::<i64>().expect("a whole number")).sum()
    }
}
