use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use jiff::Timestamp;
use rowmill_core::model::ids::{FileGuid, Owner};
use rowmill_core::model::upload::{FetchBegun, FetchFailure, Multipart, Origin, Upload, UploadState};
use rowmill_core::ports::{BoxError, PortError, UploadStore};
use serde::{Deserialize, Serialize};

use super::attributes::{expiry_seconds, from_item, from_millis, from_seconds, number, text, to_item};
use super::errors::{past_conflicts, port_error};
use super::write::{Update, Written, put_if_absent};

#[derive(Clone, Debug)]
pub struct DynamoDbUploadStore {
    client: Client,
    table: String,
}

impl DynamoDbUploadStore {
    pub const fn new(client: Client, table: String) -> Self {
        Self { client, table }
    }

    fn update(&self, file_guid: FileGuid) -> UpdateItemFluentBuilder {
        self.client.update_item().table_name(&self.table).key("fileGuid", text(file_guid))
    }
}

fn won(written: Written) -> Result<(), PortError> {
    match written {
        Written::Applied(_) => Ok(()),
        Written::Refused(_) => Err(PortError::Changed),
    }
}

/// The attributes of an upload. An upload with an `etag` is ready, one with a `failure` has failed.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct UploadRow {
    file_guid: FileGuid,
    owner: Owner,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_name: Option<String>,
    content_type: String,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<String>,
    key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    multipart: Option<String>,
    /// Beside `multipart`.
    #[serde(skip_serializing_if = "Option::is_none")]
    part_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
    /// Beside `failure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure_detail: Option<String>,
    /// The URL of the origin without its query.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validator: Option<String>,
    created_at: i64,
    expires_at: i64,
}

impl From<&Upload> for UploadRow {
    fn from(upload: &Upload) -> Self {
        let (multipart, etag, failure) = match upload.state.clone() {
            UploadState::Pending { multipart } => (multipart, None, None),
            UploadState::Ready { etag } => (None, Some(etag), None),
            UploadState::Failed(failure) => (None, None, Some(failure)),
        };
        let (failure, failure_detail) = failure.map(|FetchFailure { code, detail }| (code, detail)).unzip();
        let origin = upload.origin.clone();
        let (multipart, part_size) = multipart.map(|Multipart { id, part_size }| (id, part_size)).unzip();
        Self {
            file_guid: upload.file_guid,
            owner: upload.owner.clone(),
            file_name: upload.file_name.clone(),
            content_type: upload.content_type.clone(),
            size: upload.size,
            sha256: upload.sha256.clone(),
            key: upload.key.clone(),
            multipart,
            part_size,
            etag,
            failure,
            failure_detail,
            origin: origin.as_ref().map(|origin| origin.shown.clone()),
            origin_url: origin.as_ref().and_then(|origin| origin.url.clone()),
            validator: origin.and_then(|origin| origin.validator),
            created_at: upload.created_at.as_millisecond(),
            expires_at: expiry_seconds(upload.expires_at),
        }
    }
}

impl TryFrom<UploadRow> for Upload {
    type Error = BoxError;

    fn try_from(row: UploadRow) -> Result<Self, BoxError> {
        let state = match (row.etag, row.failure) {
            (Some(etag), _) => UploadState::Ready { etag },
            (None, Some(code)) => {
                UploadState::Failed(FetchFailure { code, detail: row.failure_detail.unwrap_or_default() })
            }
            (None, None) => {
                let multipart = row.multipart.zip(row.part_size);
                UploadState::Pending { multipart: multipart.map(|(id, part_size)| Multipart { id, part_size }) }
            }
        };
        let (url, validator) = (row.origin_url, row.validator);
        Ok(Self {
            file_guid: row.file_guid,
            owner: row.owner,
            file_name: row.file_name,
            content_type: row.content_type,
            size: row.size,
            sha256: row.sha256,
            key: row.key,
            state,
            origin: row.origin.map(|shown| Origin { shown, url, validator }),
            created_at: from_millis(row.created_at)?,
            expires_at: from_seconds(row.expires_at)?,
        })
    }
}

const MARK_READY: Update = Update {
    doing: "marking the upload as ready",
    change: "SET #etag = :etag REMOVE #multipart, #partSize, #originUrl, #validator",
    condition: "attribute_exists(#fileGuid)",
};

const BEGIN_FETCH: Update = Update {
    doing: "beginning to fetch the upload",
    change: "SET #size = :size, #contentType = :contentType, #multipart = :multipart, #partSize = :partSize",
    condition: "attribute_exists(#origin) AND attribute_not_exists(#multipart) AND attribute_not_exists(#etag) AND \
                attribute_not_exists(#failure)",
};

const FAIL: Update = Update {
    doing: "noting that the upload cannot be fetched",
    change: "SET #failure = if_not_exists(#failure, :failure), \
             #failureDetail = if_not_exists(#failureDetail, :failureDetail) \
             REMOVE #multipart, #partSize, #originUrl, #validator",
    condition: "attribute_exists(#fileGuid) AND attribute_not_exists(#etag)",
};

#[async_trait]
impl UploadStore for DynamoDbUploadStore {
    async fn create(&self, upload: &Upload) -> Result<(), PortError> {
        const DOING: &str = "creating the upload";
        let item = to_item(DOING, &UploadRow::from(upload))?;
        let request = self.client.put_item().table_name(&self.table).set_item(Some(item));
        // Identifiers are unique, so an existing row is this upload: the first reply was lost.
        put_if_absent(DOING, request, "fileGuid").await?;
        Ok(())
    }

    async fn upload(&self, file_guid: FileGuid, now: Timestamp) -> Result<Upload, PortError> {
        const DOING: &str = "reading the upload";
        let request = self.client.get_item().table_name(&self.table).consistent_read(true);
        let output = request.key("fileGuid", text(file_guid)).send().await;
        let item = output.map_err(|error| port_error(DOING, error))?.item.ok_or(PortError::NotFound)?;
        let row: UploadRow = from_item(DOING, item)?;
        let upload = Upload::try_from(row).map_err(|error| PortError::invalid(DOING, error))?;
        // DynamoDB deletes expired rows up to days late.
        if upload.expires_at > now { Ok(upload) } else { Err(PortError::NotFound) }
    }

    async fn mark_ready(&self, file_guid: FileGuid, etag: &str) -> Result<(), PortError> {
        MARK_READY.apply(self.update(file_guid), [(":etag", text(etag))]).await?;
        Ok(())
    }

    async fn begin_fetch(&self, file_guid: FileGuid, begun: &FetchBegun) -> Result<(), PortError> {
        let FetchBegun { size, content_type, validator, multipart } = begun;
        let mut values = vec![
            (":size", number(*size)),
            (":contentType", text(content_type)),
            (":multipart", text(&multipart.id)),
            (":partSize", number(multipart.part_size)),
        ];
        let change = format!("{}, #validator = :validator", BEGIN_FETCH.change);
        let with_validator = Update { change: &change, ..BEGIN_FETCH };
        let update = match validator {
            Some(validator) => {
                values.push((":validator", text(validator)));
                with_validator
            }
            None => BEGIN_FETCH,
        };
        match update.apply(self.update(file_guid), values).await? {
            // The first reply was lost.
            Written::Refused(row) if row.get("multipart") == Some(&text(&multipart.id)) => Ok(()),
            written => won(written),
        }
    }

    async fn fail(&self, file_guid: FileGuid, failure: &FetchFailure) -> Result<(), PortError> {
        let values = [(":failure", text(&failure.code)), (":failureDetail", text(&failure.detail))];
        won(FAIL.apply(self.update(file_guid), values).await?)
    }

    async fn remove(&self, file_guid: FileGuid) -> Result<(), PortError> {
        const DOING: &str = "removing the upload";
        let request = self.client.delete_item().table_name(&self.table).key("fileGuid", text(file_guid));
        past_conflicts(|| request.clone().send()).await.map_err(|error| port_error(DOING, error))?;
        Ok(())
    }
}
