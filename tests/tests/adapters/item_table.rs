//! The contract of the tables that jobs import into.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use rowmill_aws::adapters::dynamodb::DynamoDbItemTable;
use rowmill_core::model::records::Upserted;
use rowmill_core::ports::{ItemTable, PortResult, TableItem, VERSION_ATTRIBUTE};
use rowmill_testing::contract::{self, Application};
use serde_json::{Map, Value, json};

use crate::dynamodb_server::Server;

struct Table {
    store: DynamoDbItemTable,
    client: Client,
    name: String,
}

#[async_trait::async_trait]
impl ItemTable for Table {
    async fn put(&self, items: &[TableItem]) -> Vec<PortResult<Upserted>> {
        self.store.put(items).await
    }
}

impl Application for Table {
    async fn store(&self, attributes: Map<String, Value>) {
        let value = |value: Value| match value {
            Value::Number(number) => AttributeValue::N(number.to_string()),
            other => serde_dynamo::to_attribute_value(other).unwrap(),
        };
        let item = attributes.into_iter().map(|(name, of)| (name, value(of))).collect();
        self.client.put_item().table_name(&self.name).set_item(Some(item)).send().await.unwrap();
    }

    async fn items(&self) -> Vec<Map<String, Value>> {
        let scanned = self.client.scan().table_name(&self.name).consistent_read(true).send().await.unwrap();
        let mut items = scanned.items.unwrap_or_default();
        for item in &mut items {
            item.remove(VERSION_ATTRIBUTE);
        }
        let number = |value: &AttributeValue| value.as_n().cloned().unwrap();
        items.sort_by_key(|item| (item["id"].as_s().cloned().unwrap(), number(&item["n"])));
        items.into_iter().map(|item| item.into_iter().map(|(name, value)| (name, json_of(value))).collect()).collect()
    }
}

/// Numbers keep their digits.
fn json_of(value: AttributeValue) -> Value {
    match value {
        AttributeValue::N(digits) => serde_json::from_str(&digits).unwrap(),
        AttributeValue::L(list) => list.into_iter().map(json_of).collect(),
        AttributeValue::M(map) => map.into_iter().map(|(name, value)| (name, json_of(value))).collect(),
        other => serde_dynamo::from_attribute_value(other).unwrap(),
    }
}

#[tokio::test]
async fn the_item_table_keeps_the_contract() {
    let server = Server::start().await;
    let make = async || {
        let name = server.application_table().await;
        Table {
            store: DynamoDbItemTable::new(server.client.clone(), name.clone()),
            client: server.client.clone(),
            name,
        }
    };
    contract::item_table(make).await;
}

#[tokio::test]
async fn what_the_table_cannot_take_is_refused_and_a_missing_table_is_unavailable() {
    use rowmill_core::ports::PortError;
    let server = Server::start().await;
    let of = |more: Value| {
        let mut attributes = json!({ "id": "a", "n": 1 }).as_object().cloned().unwrap();
        attributes.insert("more".into(), more);
        let version = crate::dynamodb::upsert("a", json!({})).version;
        TableItem { version, attributes }
    };
    let table = DynamoDbItemTable::new(server.client.clone(), server.application_table().await);
    let large = of(Value::from("x".repeat(410_000)));
    let digits = of(serde_json::from_str("123456789012345678901234567890123456789").unwrap());
    for result in table.put(&[large, digits]).await {
        assert!(matches!(result, Err(PortError::Invalid { .. })), "{result:?}");
    }
    // What the application has put in the place of the version is none.
    let (item, name) = (of(Value::Null), server.application_table().await);
    for own in [AttributeValue::N("7".into()), AttributeValue::S("zzz".into())] {
        let key =
            [("id", AttributeValue::S("a".into())), ("n", AttributeValue::N("1".into())), (VERSION_ATTRIBUTE, own)];
        let row = key.map(|(name, value)| (name.to_owned(), value)).into();
        server.client.put_item().table_name(&name).set_item(Some(row)).send().await.unwrap();
        let results =
            DynamoDbItemTable::new(server.client.clone(), name.clone()).put(std::slice::from_ref(&item)).await;
        assert!(matches!(results[..], [Err(PortError::Invalid { .. })]), "{results:?}");
    }
    let missing = DynamoDbItemTable::new(server.client.clone(), "no-such-table".into());
    let results = missing.put(&vec![item; 20]).await;
    let is_unavailable = |result: &PortResult<Upserted>| matches!(result, Err(PortError::Unavailable { .. }));
    assert!(results.len() == 20 && results.iter().all(is_unavailable), "{results:?}");
}
