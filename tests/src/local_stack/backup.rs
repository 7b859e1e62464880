//! The tables and the bucket of a stack, read and restored under other names. This stands in for point-in-time recovery and a
//! copy of the bucket, neither of which the emulator has.

use std::collections::{BTreeMap, HashMap};

use aws_sdk_dynamodb::types::{
    AttributeValue, BillingMode, GlobalSecondaryIndex, PutRequest, StreamSpecification, StreamViewType,
    TableDescription, TimeToLiveSpecification, WriteRequest,
};
use aws_sdk_s3::operation::get_object::GetObjectOutput;
use aws_sdk_s3::types::{
    Event, FilterRule, FilterRuleName, NotificationConfiguration, NotificationConfigurationFilter, QueueConfiguration,
    S3KeyFilter,
};
use aws_sdk_sqs::types::QueueAttributeName;
use rowmill::aws::{Target, sdk_config};
use rowmill::stack::STACK_NAME;

use super::{LocalStack, until};

/// The tables, by their outputs and by the ends of their names when they are attached.
const TABLES: [(&str, &str); 4] =
    [("JobsTable", "jobs"), ("UploadsTable", "uploads"), ("AdmissionTable", "admission"), ("RecordsTable", "records")];

/// Rows that `BatchWriteItem` takes.
const ROWS_AT_ONCE: usize = 25;

type Rows = Vec<HashMap<String, AttributeValue>>;

/// All rows and objects of a stack.
#[derive(Debug)]
pub struct Backup {
    /// By the ends of their names.
    tables: BTreeMap<&'static str, (TableDescription, Rows)>,
    objects: BTreeMap<String, Object>,
}

#[derive(Debug, PartialEq)]
struct Object {
    content_type: Option<String>,
    metadata: Option<HashMap<String, String>>,
    bytes: Vec<u8>,
}

impl Backup {
    /// True if both are of the same rows and objects.
    fn is_same(&self, other: &Self) -> bool {
        let mut tables = self.tables.iter().zip(&other.tables);
        let same_rows =
            |one: &Rows, other: &Rows| one.len() == other.len() && one.iter().all(|row| other.contains(row));
        tables.all(|((_, (_, one)), (_, (_, other)))| same_rows(one, other)) && self.objects == other.objects
    }
}

impl LocalStack {
    /// Reads all that is stored, when nothing changes any more.
    pub async fn back_up(&self) -> Backup {
        let mut backup = self.read_all().await;
        until("the stack still writes", async || {
            let before = std::mem::replace(&mut backup, self.read_all().await);
            before.is_same(&backup)
        })
        .await;
        backup
    }

    async fn read_all(&self) -> Backup {
        let (mut tables, mut objects) = (BTreeMap::new(), BTreeMap::new());
        for (output, end) in TABLES {
            let name = self.output(output);
            let described = self.dynamodb.describe_table().table_name(name).send().await.expect("the table is there");
            let rows = self.all_rows(output).await;
            tables.insert(end, (described.table.expect("a description"), rows));
        }
        for key in self.keys_below("").await {
            let answer = self.s3.get_object().bucket(self.output("Bucket")).key(&key).send().await;
            let GetObjectOutput { content_type, metadata, body, .. } = answer.expect("the object is there");
            let bytes = body.collect().await.expect("its bytes").to_vec();
            objects.insert(key, Object { content_type, metadata, bytes });
        }
        Backup { tables, objects }
    }

    /// Deletes the stack, and the tables and the bucket, which it leaves behind. Its messages are gone too.
    pub async fn lose(&self) {
        let config = sdk_config(&Target::Emulator { endpoint_url: self.endpoint().to_owned() }).await;
        let cloudformation = aws_sdk_cloudformation::Client::new(&config);
        cloudformation.delete_stack().stack_name(STACK_NAME).send().await.expect("the stack is there");
        until("the stack is still there", async || {
            cloudformation.describe_stacks().stack_name(STACK_NAME).send().await.is_err()
        })
        .await;
        for (output, _) in TABLES {
            self.dynamodb.delete_table().table_name(self.output(output)).send().await.expect("the table was kept");
        }
        let bucket = self.output("Bucket");
        for key in self.keys_below("").await {
            self.s3.delete_object().bucket(bucket).key(key).send().await.expect("the object was kept");
        }
        self.s3.delete_bucket().bucket(bucket).send().await.expect("the bucket was kept");
    }

    /// Restores a backup into tables whose names begin with this, and into a bucket of this name.
    pub async fn restore(&self, backup: &Backup, name: &str) {
        for (end, (described, rows)) in &backup.tables {
            let table = format!("{name}-{end}");
            self.create_table(&table, described).await;
            for rows in rows.chunks(ROWS_AT_ONCE) {
                let put =
                    |row: &HashMap<_, _>| PutRequest::builder().set_item(Some(row.clone())).build().expect("a row");
                let writes = rows.iter().map(|row| WriteRequest::builder().put_request(put(row)).build()).collect();
                let request = self.dynamodb.batch_write_item().request_items(&table, writes);
                request.send().await.expect("the table takes them");
            }
        }
        self.s3.create_bucket().bucket(name).send().await.expect("a new bucket");
        for (key, object) in &backup.objects {
            let request = self.s3.put_object().bucket(name).key(key).set_content_type(object.content_type.clone());
            let request = request.set_metadata(object.metadata.clone()).body(object.bytes.clone().into());
            request.send().await.expect("the bucket takes it");
        }
    }

    /// A table like another one, with a stream and a time to live.
    async fn create_table(&self, name: &str, like: &TableDescription) {
        let index = |index: &aws_sdk_dynamodb::types::GlobalSecondaryIndexDescription| {
            let of = GlobalSecondaryIndex::builder().set_index_name(index.index_name.clone());
            of.set_key_schema(index.key_schema.clone())
                .set_projection(index.projection.clone())
                .build()
                .expect("an index")
        };
        let indexes = like.global_secondary_indexes.as_ref().map(|indexes| indexes.iter().map(index).collect());
        let images =
            StreamSpecification::builder().stream_enabled(true).stream_view_type(StreamViewType::NewAndOldImages);
        let request = self.dynamodb.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
        let request = request.set_key_schema(like.key_schema.clone()).set_global_secondary_indexes(indexes);
        let request = request.set_attribute_definitions(like.attribute_definitions.clone());
        let request = request.stream_specification(images.build().expect("a specification"));
        request.send().await.expect("a new table");
        let expiry = TimeToLiveSpecification::builder().attribute_name("expiresAt").enabled(true).build();
        let request = self.dynamodb.update_time_to_live().table_name(name);
        let request = request.time_to_live_specification(expiry.expect("a specification"));
        request.send().await.expect("the table takes it");
    }

    /// Has the bucket tell the inbox queue of dropped files, which is in nobody's template if the bucket is attached.
    pub async fn notify_inbox(&self) {
        let url = self.output("InboxQueueUrl");
        let request = self.sqs.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::QueueArn);
        let attributes = request.send().await.expect("the queue answers").attributes.unwrap_or_default();
        let prefix = FilterRule::builder().name(FilterRuleName::Prefix).value("inbox/").build();
        let filter =
            NotificationConfigurationFilter::builder().key(S3KeyFilter::builder().filter_rules(prefix).build());
        let queue = QueueConfiguration::builder().queue_arn(&attributes[&QueueAttributeName::QueueArn]);
        let queue = queue.events(Event::from("s3:ObjectCreated:*")).filter(filter.build()).build().expect("a queue");
        let notifications = NotificationConfiguration::builder().queue_configurations(queue).build();
        let request = self.s3.put_bucket_notification_configuration().bucket(self.output("Bucket"));
        request.notification_configuration(notifications).send().await.expect("the bucket takes it");
    }
}
