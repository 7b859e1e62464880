//! Forgetting an owner: erases what a stack stores of one owner, found by reading its tables.
//!
//! What leads to something else goes last: objects before the rows that name them, a job's rows before its spec and its
//! job row. So a forgetting that is interrupted finds the rest when it is repeated.

mod rows;

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::operation::scan::builders::ScanFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::types::{Delete, ObjectIdentifier};
use futures::{StreamExt, TryStreamExt, stream};
use rowmill_core::model::ids::{FileGuid, JobGuid, Owner};
use rowmill_core::model::job::states::Status;
use rowmill_core::model::keys;
use serde::Serialize;

use crate::aws::{Aws, CallFailed, failed};
use rows::{Row, Table, text};

/// Number of rows that are deleted at once.
const AT_ONCE: usize = 16;

/// What is stored of one owner, and where.
pub struct Forgetting<'a> {
    pub aws: &'a Aws,
    /// The names of the tables, by the outputs of the stack.
    pub tables: BTreeMap<&'static str, String>,
    pub bucket: String,
    pub owner: Owner,
    /// False only counts.
    pub erases: bool,
}

/// What was found of an owner.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// Jobs, also expired ones of which rows are left.
    pub jobs: u64,
    pub uploads: u64,
    pub records: u64,
    /// Rows of all tables, those of jobs, uploads and records included.
    pub rows: u64,
    pub objects: u64,
    /// Jobs that have not ended. They are left, since their slots would be lost.
    pub active: u64,
}

impl std::ops::AddAssign for Found {
    fn add_assign(&mut self, other: Self) {
        self.jobs += other.jobs;
        self.uploads += other.uploads;
        self.records += other.records;
        self.rows += other.rows;
        self.objects += other.objects;
        self.active += other.active;
    }
}

impl Forgetting<'_> {
    /// The outputs of the stack that name its tables.
    pub fn outputs() -> impl Iterator<Item = &'static str> {
        Table::ALL.into_iter().map(Table::output)
    }

    /// Reads all tables once, and erases what is found.
    pub async fn pass(&self) -> Result<Found, CallFailed> {
        let mut found = Found::default();
        for table in Table::ALL {
            let mut jobs = BTreeSet::new();
            let mut pages = self.scan(table).into_paginator().send();
            while let Some(page) = pages.next().await {
                let page = page.map_err(failed(format!("read the table {}", self.name(table))))?;
                let rows = page.items.unwrap_or_default().into_iter();
                let rows: Vec<Row> = rows.filter(|row| table.is_of(&self.owner, row)).collect();
                found += match table {
                    Table::Jobs => self.jobs(&rows, &mut jobs).await?,
                    Table::Uploads => self.uploads(rows).await?,
                    _ => self.others(table, rows).await?,
                };
            }
        }
        Ok(found)
    }

    /// True if the bucket keeps what is erased, as earlier versions.
    pub async fn keeps_versions(&self) -> Result<bool, CallFailed> {
        let versioning = self.aws.s3.get_bucket_versioning().bucket(&self.bucket).send().await;
        let versioning = versioning.map_err(failed("look whether the bucket keeps versions"))?;
        // Suspended, it keeps those from before.
        Ok(versioning.status().is_some())
    }

    /// The jobs of these rows, but those that are `done`.
    async fn jobs(&self, rows: &[Row], done: &mut BTreeSet<String>) -> Result<Found, CallFailed> {
        let mut found = Found::default();
        for row in rows {
            let Some(job) = text(row, "jobId").filter(|job| done.insert((*job).to_owned())) else { continue };
            let rows = self.rows_of_job(job).await?;
            if self.erases && rows.iter().any(is_active) {
                found.active += 1;
                continue;
            }
            found.jobs += 1;
            found.rows += rows.len() as u64;
            if let Ok(job) = job.parse::<JobGuid>() {
                found.objects += self.objects_below(&keys::of_job(job)).await?;
            }
            // The row of an upload may have expired before its object. Those that are there are counted with it.
            if let Some(file) =
                text(row, "fileGuid").and_then(|file| file.parse::<FileGuid>().ok()).filter(|_| self.erases)
            {
                found.objects += self.objects_below(&keys::upload(file)).await?;
                // Which jobs have waited for it.
                self.delete(Table::Jobs, self.rows_of_job(&file.to_string()).await?).await?;
            }
            let tells_owner = |row: &Row| text(row, "row").is_some_and(|row| row == "job" || row == "spec");
            let (last, first): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(tells_owner);
            self.delete(Table::Jobs, first).await?;
            self.delete(Table::Jobs, last).await?;
        }
        Ok(found)
    }

    async fn uploads(&self, rows: Vec<Row>) -> Result<Found, CallFailed> {
        let mut found = Found { uploads: rows.len() as u64, rows: rows.len() as u64, ..Found::default() };
        for row in &rows {
            let Some(key) = text(row, "key").filter(|key| keys::of_other_bucket(key).is_none()) else { continue };
            if let Some(multipart) = text(row, "multipart").filter(|_| self.erases) {
                self.abort(key, multipart).await?;
            }
            found.objects += match text(row, "fileGuid").and_then(|file| file.parse::<FileGuid>().ok()) {
                Some(file) if keys::upload(file) == key => self.objects_below(key).await?,
                _ => self.dropped(key, text(row, "etag")).await?,
            };
        }
        self.delete(Table::Uploads, rows).await?;
        Ok(found)
    }

    async fn abort(&self, key: &str, multipart: &str) -> Result<(), CallFailed> {
        let request = self.aws.s3.abort_multipart_upload().bucket(&self.bucket).key(key).upload_id(multipart);
        match request.send().await {
            Ok(_) => Ok(()),
            // It is complete, or was aborted.
            Err(error) if error.code() == Some("NoSuchUpload") => Ok(()),
            Err(error) => Err(failed("abort an upload")(error)),
        }
    }

    /// Erases a file that was dropped under this key, unless another one lies there by now.
    async fn dropped(&self, key: &str, etag: Option<&str>) -> Result<u64, CallFailed> {
        let object = match self.aws.s3.head_object().bucket(&self.bucket).key(key).send().await {
            Ok(object) => object,
            Err(error) if error.raw_response().is_some_and(|response| response.status().as_u16() == 404) => {
                return Ok(0);
            }
            Err(error) => return Err(failed("look at a file of the inbox")(error)),
        };
        if object.e_tag() != etag {
            return Ok(0);
        }
        self.erase_objects(vec![key.to_owned()]).await?;
        Ok(1)
    }

    async fn others(&self, table: Table, rows: Vec<Row>) -> Result<Found, CallFailed> {
        let is_record = |row: &&Row| text(row, "bucket").is_some_and(is_partition);
        let records = rows.iter().filter(is_record).count() as u64;
        let found = Found { records, rows: rows.len() as u64, ..Found::default() };
        self.delete(table, rows).await?;
        Ok(found)
    }

    fn name(&self, table: Table) -> &str {
        self.tables.get(table.output()).map(String::as_str).unwrap_or_default()
    }

    /// Reads the attributes of a table that tell whose its rows are.
    fn scan(&self, table: Table) -> ScanFluentBuilder {
        let names = table.keys().iter().chain(table.others());
        let mut request = self.aws.dynamodb.scan().table_name(self.name(table)).consistent_read(true);
        let mut projection = Vec::new();
        for name in names {
            projection.push(format!("#{name}"));
            request = request.expression_attribute_names(format!("#{name}"), *name);
        }
        request.projection_expression(projection.join(", "))
    }

    async fn rows_of_job(&self, job: &str) -> Result<Vec<Row>, CallFailed> {
        let request = self.aws.dynamodb.query().table_name(self.name(Table::Jobs)).consistent_read(true);
        let request = request.key_condition_expression("#job = :job").projection_expression("#job, #row, #status");
        let request = request.expression_attribute_names("#job", "jobId").expression_attribute_names("#row", "row");
        let request = request.expression_attribute_names("#status", "status");
        let request = request.expression_attribute_values(":job", AttributeValue::S(job.to_owned()));
        let rows = request.into_paginator().items().send().try_collect().await;
        rows.map_err(failed(format!("read the rows of the job {job}")))
    }

    async fn delete(&self, table: Table, rows: Vec<Row>) -> Result<(), CallFailed> {
        if !self.erases {
            return Ok(());
        }
        let deletions = rows.into_iter().map(|mut row| {
            row.retain(|name, _| table.keys().contains(&name.as_str()));
            let request = self.aws.dynamodb.delete_item().table_name(self.name(table)).set_key(Some(row));
            async move { request.send().await.map_err(failed(format!("erase a row of {}", self.name(table)))) }
        });
        stream::iter(deletions).buffer_unordered(AT_ONCE).try_for_each(async |_| Ok(())).await
    }

    /// Erases the objects whose keys begin like this. Returns how many there were.
    async fn objects_below(&self, prefix: &str) -> Result<u64, CallFailed> {
        let request = self.aws.s3.list_objects_v2().bucket(&self.bucket).prefix(prefix);
        let mut pages = request.into_paginator().send();
        let mut found = 0;
        while let Some(page) = pages.next().await {
            let page = page.map_err(failed("list the objects of a job"))?;
            let keys: Vec<String> =
                page.contents.unwrap_or_default().into_iter().filter_map(|object| object.key).collect();
            found += keys.len() as u64;
            self.erase_objects(keys).await?;
        }
        Ok(found)
    }

    async fn erase_objects(&self, keys: Vec<String>) -> Result<(), CallFailed> {
        let keys = keys.into_iter().filter_map(|key| ObjectIdentifier::builder().key(key).build().ok());
        let keys: Vec<ObjectIdentifier> = keys.collect();
        if keys.is_empty() || !self.erases {
            return Ok(());
        }
        let doing = "erase objects";
        let keys = Delete::builder().set_objects(Some(keys)).quiet(true).build().map_err(failed(doing))?;
        let erased = self.aws.s3.delete_objects().bucket(&self.bucket).delete(keys).send().await;
        let erased = erased.map_err(failed(doing))?;
        match erased.errors().first() {
            Some(error) => {
                let why = error.message().or(error.code()).unwrap_or("no reason given").to_owned();
                Err(CallFailed { action: doing.to_owned(), source: why.into() })
            }
            None => Ok(()),
        }
    }
}

/// True if it is the row of a job that has not ended.
fn is_active(row: &Row) -> bool {
    text(row, "status").and_then(Status::parse).is_some_and(|status| !status.is_terminal())
}

/// True if records are stored under this partition key: a dataset has rows of other kinds too.
fn is_partition(bucket: &str) -> bool {
    bucket.rsplit_once('#').is_some_and(|(_, number)| number.parse::<u32>().is_ok())
}
