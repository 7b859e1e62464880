//! Jobs that import into a table of the application.

use std::collections::BTreeMap;

use acceptance::local_stack::{LocalStack, refused, until};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType as Scalar,
};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::stack::on_the_stack;

/// The job type, and the table.
const ORDERS: &str = "orders";
const TABLE: &str = "shop-orders";

/// A table that the stack may not write to.
const CLOSED: &str = "closed-orders";

pub fn config() -> [(&'static str, Value); 2] {
    let of = |table: &str| json!({ "table": table, "key": ["customer", "order"], "keyPrefix": "{owner}#" });
    [(ORDERS, of(TABLE)), (CLOSED, of(CLOSED))]
}

pub fn arns() -> String {
    format!("arn:aws:dynamodb:us-east-1:000000000000:table/{TABLE}")
}

async fn create_table(stack: &LocalStack, name: &str) {
    let request = stack.dynamodb.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    let keys = [("customer", KeyType::Hash, Scalar::S), ("order", KeyType::Range, Scalar::N)];
    let request = keys.into_iter().fold(request, |request, (name, role, scalar)| {
        let key = KeySchemaElement::builder().attribute_name(name).key_type(role).build().expect("a key");
        let attribute = AttributeDefinition::builder().attribute_name(name).attribute_type(scalar).build();
        request.key_schema(key).attribute_definitions(attribute.expect("an attribute"))
    });
    request.send().await.expect("a table");
}

#[test]
fn rows_become_items_of_a_table_of_the_application() {
    on_the_stack(async |stack| {
        create_table(stack, TABLE).await;
        let rows = |by: &str, orders: std::ops::Range<u64>| {
            let row = |order| format!("local#{},{order},{order}.50,{by}\n", order % 10);
            format!("customer,order,total,by\n{}", orders.map(row).collect::<String>())
        };
        let number = json!({ "type": "number" });
        let params = json!({ "schema": { "properties": { "order": { "type": "integer" }, "total": number } } });
        let file = stack.upload("text/csv", rows("first", 0..600)).await;
        let first = stack.create(ORDERS, &file, params.clone()).await;
        stack.ended(&first).await;
        let others = "somebody#1,1,1,thief\nlocal#1,x,1,no number\n";
        let file = stack.upload("text/csv", rows("second", 500..700) + others).await;
        let second = stack.create(ORDERS, &file, params.clone()).await;
        let ended = stack.ended(&second).await;
        assert_eq!((&ended["itemsSucceeded"], &ended["itemsFailed"]), (&json!(200), &json!(2)), "{ended}");
        let codes: Vec<&str> =
            ended["causes"].as_array().expect("causes").iter().filter_map(|of| of["code"].as_str()).collect();
        assert_eq!(codes, ["key_not_allowed", "schema_violation"]);

        let scan = stack.dynamodb.scan().table_name(TABLE).consistent_read(true).into_paginator().items().send();
        let items: Vec<_> = scan.collect::<Result<_, _>>().await.expect("the table answers");
        let items: Vec<Value> = serde_dynamo::from_items(items).expect("items");
        let by_order = items.into_iter().map(|item| (item["order"].as_u64().expect("a number"), item));
        let items: BTreeMap<u64, Value> = by_order.collect();
        assert_eq!(items.keys().copied().collect::<Vec<_>>(), (0..700).collect::<Vec<_>>());
        for (order, item) in &items {
            let (by, job) = if *order < 500 { ("first", &first) } else { ("second", &second) };
            assert_eq!((&item["by"], &item["customer"]), (&json!(by), &json!(format!("local#{}", order % 10))));
            assert_eq!(item["total"], json!(*order as f64 + 0.5));
            assert!(item["rowmillVersion"].as_str().expect("a version").contains(job.as_str()));
        }

        let file = stack.upload("text/csv", "customer,total\nlocal#1,2\n").await;
        let body = json!({ "jobType": ORDERS, "fileGuid": file });
        let (problem, _) =
            refused(stack.post("/api/jobs").json(&body), StatusCode::UNPROCESSABLE_ENTITY, "invalid_params").await;
        assert!(problem["detail"].as_str().expect("a text").contains("`order`"), "{problem}");
    });
}

#[test]
fn a_job_waits_while_the_stack_may_not_write_to_its_table() {
    on_the_stack(async |stack| {
        create_table(stack, CLOSED).await;
        let file = stack.upload("text/csv", "customer,order\nlocal#1,1\n").await;
        let schema = json!({ "schema": { "properties": { "order": { "type": "integer" } } } });
        let job = stack.create(CLOSED, &file, schema).await;
        until("a job whose table refuses it", async || {
            let why: Value = stack.get(&format!("/api/jobs/{job}/why")).send().await.json();
            why.to_string().contains("table_unavailable")
        })
        .await;
        stack.act(&job, "cancel").await;
        assert_eq!(stack.ended(&job).await["itemsSucceeded"], 0);
        let items = stack.dynamodb.scan().table_name(CLOSED).send().await.expect("the table answers");
        assert_eq!(items.count, 0);
    });
}
