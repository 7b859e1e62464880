//! Files that `fetch-file` fetches from external servers and buckets.
//!
//! The upload's row is written before the message. If the process dies in between, nobody has the upload's name: the
//! client asks again, and the row expires.

use std::sync::Arc;

use percent_encoding::percent_decode_str;
use rowmill_api::request::{FetchObject, FetchSource};
use rowmill_core::model::ids::Owner;
use rowmill_core::model::keys;
use rowmill_core::model::messages::FetchMessage;
use rowmill_core::model::upload::{Origin, Upload};
use rowmill_core::ports::Queue;
use rowmill_settings::AllowedBuckets;
use rowmill_targets::sources::FetchHosts;

use crate::announced::{check_names, is_file_name};
use crate::error::UploadError;
use crate::request::{FetchRequest, UploadView};
use crate::upload::Uploads;

/// The media type of a file until its server tells another one.
pub const UNKNOWN_TYPE: &str = "application/octet-stream";

/// Asks `fetch-file` for files.
pub struct FetchOrders {
    pub hosts: FetchHosts,
    /// The external buckets that may be read.
    pub inputs: AllowedBuckets,
    pub fetches: Arc<dyn Queue<FetchMessage>>,
}

impl FetchOrders {
    /// Stores an upload whose file is fetched.
    ///
    /// # Errors
    /// See [`UploadError`]; `Field` if the stack does not fetch from this URL.
    pub async fn order(
        &self,
        uploads: &Uploads,
        owner: &Owner,
        request: &FetchRequest,
    ) -> Result<UploadView, UploadError> {
        let (origin, name) = match &request.source {
            FetchSource { url: Some(url), s3: None } => self.server(url)?,
            FetchSource { url: None, s3: Some(object) } => self.bucket(owner, object)?,
            _ => {
                return Err(UploadError::Field {
                    field: "source",
                    message: "must have either `url` or `s3`.".to_owned(),
                });
            }
        };
        let content_type = request.content_type.as_deref().unwrap_or(UNKNOWN_TYPE);
        check_names(request.file_name.as_deref(), content_type)?;
        let file_name = request.file_name.clone().or(name.filter(|name| is_file_name(name)));
        let upload = uploads.new_upload(owner, content_type, file_name.as_deref(), 0);
        let upload = Upload { origin: Some(origin), ..upload };
        uploads.count_in(&upload).await?;
        uploads.uploads.create(&upload).await?;
        let message = FetchMessage { file_guid: upload.file_guid, owner: owner.clone() };
        if let Err(error) = self.fetches.send(&[message]).await {
            // If it was sent all the same, there is nothing to fetch.
            uploads.delete(owner, upload.file_guid).await?;
            return Err(error.into());
        }
        Ok(UploadView::from(&upload))
    }

    /// The file at this URL, and its name.
    fn server(&self, url: &str) -> Result<(Origin, Option<String>), UploadError> {
        let refused = |refused| UploadError::Field { field: "source.url", message: format!("{refused}.") };
        let place = self.hosts.check(url).map_err(refused)?;
        let name = place.url().path_segments().and_then(|mut segments| segments.next_back());
        Ok((Origin::at(url), name.map(|name| percent_decode_str(name).decode_utf8_lossy().into_owned())))
    }

    /// This object, and its name.
    fn bucket(&self, owner: &Owner, object: &FetchObject) -> Result<(Origin, Option<String>), UploadError> {
        let FetchObject { bucket, key } = object;
        let refused = |field, message| UploadError::Field { field, message };
        self.inputs.check_bucket(bucket).map_err(|why| refused("source.s3.bucket", why.to_owned()))?;
        if !(1..=keys::KEY_MAX_BYTES).contains(&key.len()) {
            return Err(refused("source.s3.key", format!("must have 1 to {} bytes.", keys::KEY_MAX_BYTES)));
        }
        self.inputs.check_key(owner, key).map_err(|why| refused("source.s3.key", why))?;
        let name = key.rsplit('/').next().map(str::to_owned);
        Ok((Origin::of_object(keys::in_bucket(bucket, key)), name))
    }
}
