use std::sync::atomic::{AtomicU32, Ordering};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, LocalSecondaryIndex, Projection,
    ProjectionType, ScalarAttributeType,
};
use dynoxide::Database;
use rowmill_aws::adapters::dynamodb::{DynamoDbJobStore, DynamoDbQuotas, DynamoDbRecordStore, DynamoDbUploadStore};

use crate::{config, https_client};
use rowmill_testing::contract;

/// DynamoDB in memory, on a loopback port.
pub struct Server {
    pub client: Client,
    pub endpoint: String,
    tables: AtomicU32,
}

impl Server {
    pub async fn start() -> Self {
        let database = Database::memory().unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(dynoxide::server::serve_on(listener, database));
        let client = Client::new(&config(&endpoint, https_client()).await);
        Self { client, endpoint, tables: AtomicU32::new(0) }
    }

    /// Creates empty tables for a job store. Returns their names.
    pub async fn job_tables(&self) -> (String, String) {
        create_job_tables(&self.client, self.tables.fetch_add(1, Ordering::Relaxed)).await
    }

    pub async fn job_store(&self) -> DynamoDbJobStore {
        let (jobs, admission) = self.job_tables().await;
        DynamoDbJobStore::new(self.client.clone(), jobs, Some(admission))
    }

    pub async fn upload_store(&self) -> DynamoDbUploadStore {
        let table = format!("uploads-{}", self.tables.fetch_add(1, Ordering::Relaxed));
        create_table(&self.client, &table, &["fileGuid"]).await;
        DynamoDbUploadStore::new(self.client.clone(), table)
    }

    /// Creates an empty admission table. Returns its name.
    pub async fn admission_table(&self) -> String {
        let table = format!("admission-{}", self.tables.fetch_add(1, Ordering::Relaxed));
        create_table(&self.client, &table, &["scope"]).await;
        table
    }

    pub async fn quotas(&self) -> DynamoDbQuotas {
        DynamoDbQuotas::new(self.client.clone(), self.admission_table().await)
    }

    /// Creates an empty connections table. Returns its name.
    pub async fn connections_table(&self) -> String {
        let table = format!("connections-{}", self.tables.fetch_add(1, Ordering::Relaxed));
        create_table(&self.client, &table, &["scope", "entry"]).await;
        table
    }

    /// Creates an empty tasks table. Returns its name.
    pub async fn tasks_table(&self) -> String {
        let table = format!("tasks-{}", self.tables.fetch_add(1, Ordering::Relaxed));
        let due_index = LocalSecondaryIndex::builder()
            .index_name("due-index")
            .key_schema(element("scope", KeyType::Hash))
            .key_schema(element("dueAt", KeyType::Range))
            .projection(Projection::builder().projection_type(ProjectionType::All).build());
        self.client
            .create_table()
            .table_name(&table)
            .billing_mode(BillingMode::PayPerRequest)
            .key_schema(element("scope", KeyType::Hash))
            .key_schema(element("entry", KeyType::Range))
            .attribute_definitions(text("scope"))
            .attribute_definitions(text("entry"))
            .attribute_definitions(number("dueAt"))
            .local_secondary_indexes(due_index.build().unwrap())
            .send()
            .await
            .unwrap();
        table
    }

    /// Creates an empty records table. Returns its name.
    pub async fn records_table(&self) -> String {
        let table = format!("records-{}", self.tables.fetch_add(1, Ordering::Relaxed));
        create_table(&self.client, &table, &["bucket", "key"]).await;
        table
    }

    /// Creates an empty table as an application has it. Returns its name.
    pub async fn application_table(&self) -> String {
        let table = format!("application-{}", self.tables.fetch_add(1, Ordering::Relaxed));
        let request = self.client.create_table().table_name(&table).billing_mode(BillingMode::PayPerRequest);
        let request = request.key_schema(element("id", KeyType::Hash)).attribute_definitions(text("id"));
        let request = request.key_schema(element("n", KeyType::Range)).attribute_definitions(number("n"));
        request.send().await.unwrap();
        table
    }

    pub async fn record_store(&self) -> (DynamoDbRecordStore, String) {
        let table = self.records_table().await;
        (DynamoDbRecordStore::new(self.client.clone(), table.clone(), contract::records_clock()), table)
    }
}

/// Creates empty tables for a job store. Returns their names.
pub async fn create_job_tables(client: &Client, number: u32) -> (String, String) {
    let (jobs, admission) = (format!("jobs-{number}"), format!("admission-{number}"));
    create_jobs_table(client, &jobs).await;
    create_table(client, &admission, &["scope"]).await;
    (jobs, admission)
}

pub async fn create_table(client: &Client, name: &str, keys: &[&str]) {
    let mut request = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    for (key, of) in keys.iter().zip([KeyType::Hash, KeyType::Range]) {
        request = request.key_schema(element(key, of)).attribute_definitions(text(key));
    }
    request.send().await.unwrap();
}

async fn create_jobs_table(client: &Client, name: &str) {
    let owner_index = GlobalSecondaryIndex::builder()
        .index_name("owner-index")
        .key_schema(element("owner", KeyType::Hash))
        .key_schema(element("jobId", KeyType::Range))
        .projection(
            Projection::builder()
                .projection_type(ProjectionType::Include)
                .non_key_attributes("status")
                .non_key_attributes("jobType")
                .build(),
        );
    let wake_index = GlobalSecondaryIndex::builder()
        .index_name("wake-index")
        .key_schema(element("wakeShard", KeyType::Hash))
        .key_schema(element("wakeAt", KeyType::Range))
        .projection(Projection::builder().projection_type(ProjectionType::KeysOnly).build());
    client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .key_schema(element("jobId", KeyType::Hash))
        .key_schema(element("row", KeyType::Range))
        .attribute_definitions(text("jobId"))
        .attribute_definitions(text("row"))
        .attribute_definitions(text("owner"))
        .attribute_definitions(number("wakeShard"))
        .attribute_definitions(number("wakeAt"))
        .global_secondary_indexes(owner_index.build().unwrap())
        .global_secondary_indexes(wake_index.build().unwrap())
        .send()
        .await
        .unwrap();
}

fn element(name: &str, of: KeyType) -> KeySchemaElement {
    KeySchemaElement::builder().attribute_name(name).key_type(of).build().unwrap()
}

fn text(name: &str) -> AttributeDefinition {
    attribute(name, ScalarAttributeType::S)
}

fn number(name: &str) -> AttributeDefinition {
    attribute(name, ScalarAttributeType::N)
}

fn attribute(name: &str, of: ScalarAttributeType) -> AttributeDefinition {
    AttributeDefinition::builder().attribute_name(name).attribute_type(of).build().unwrap()
}
