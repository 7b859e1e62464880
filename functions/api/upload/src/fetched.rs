//! Files that `fetch-file` fetches from servers of others.
//!
//! The upload's row is written before the message. If the process dies in between, nobody has the upload's name: the
//! client asks again, and the row expires.

use std::sync::Arc;

use percent_encoding::percent_decode_str;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::messages::FetchMessage;
use rowmill_core::model::upload::{Origin, Upload};
use rowmill_core::ports::Queue;
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
        let url = request.source.url.as_str();
        let refused = |refused| UploadError::Field { field: "source.url", message: format!("{refused}.") };
        let place = self.hosts.check(url).map_err(refused)?;
        let content_type = request.content_type.as_deref().unwrap_or(UNKNOWN_TYPE);
        check_names(request.file_name.as_deref(), content_type)?;
        let of_url = place.url().path_segments().and_then(|mut segments| segments.next_back());
        let of_url = of_url.map(|name| percent_decode_str(name).decode_utf8_lossy().into_owned());
        let file_name = request.file_name.clone().or(of_url.filter(|name| is_file_name(name)));
        let upload = uploads.new_upload(owner, content_type, file_name.as_deref(), 0);
        let upload = Upload { origin: Some(Origin::at(url)), ..upload };
        uploads.count_in(&upload).await?;
        uploads.uploads.create(&upload).await?;
        let message = FetchMessage { file_guid: upload.file_guid, owner: owner.clone() };
        if let Err(error) = self.fetches.send(&[message]).await {
            // If it was sent all the same, there is nothing to fetch.
            uploads.abort(owner, upload.file_guid).await?;
            return Err(error.into());
        }
        Ok(UploadView::from(&upload))
    }
}
