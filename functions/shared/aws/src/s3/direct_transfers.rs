use std::time::Duration;

use async_trait::async_trait;
use aws_sdk_s3::config::{Builder, RequestChecksumCalculation};
use aws_sdk_s3::presigning::{PresignedRequest as SignedRequest, PresigningConfig};
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use rowmill_core::ports::{DirectTransfers, PortError, PresignedRequest, UploadedPart};

use super::errors::port_error;
use super::objects::{S3Objects, checksum};

const PRESIGNING: &str = "signing a request";
const LISTING: &str = "listing the parts of an upload";

/// The SDK's own checksum would be one of the body it does not have.
fn no_checksum() -> Builder {
    Builder::new().request_checksum_calculation(RequestChecksumCalculation::WhenRequired)
}

fn expiring(after: Duration) -> Result<PresigningConfig, PortError> {
    PresigningConfig::expires_in(after).map_err(|error| PortError::invalid(PRESIGNING, error))
}

fn length(size: u64) -> Result<i64, PortError> {
    i64::try_from(size).map_err(|error| PortError::invalid(PRESIGNING, error))
}

/// The request with the headers that its signature covers.
fn presigned(signed: &SignedRequest) -> PresignedRequest {
    // The SDK adds headers of its own (Lambda's trace) that no signature covers and no client should send.
    let query = signed.uri().split('?').nth(1).unwrap_or_default();
    let covered = query.split('&').find_map(|pair| pair.strip_prefix("X-Amz-SignedHeaders=")).unwrap_or_default();
    let is_covered = |name: &str| covered.split("%3B").any(|covered| covered.eq_ignore_ascii_case(name));
    let headers = signed.headers().filter(|(name, _)| is_covered(name));
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    PresignedRequest { method: signed.method().to_owned(), url: signed.uri().to_owned(), headers: headers.collect() }
}

#[async_trait]
impl DirectTransfers for S3Objects {
    async fn presign_put(
        &self,
        key: &str,
        content_type: &str,
        size: u64,
        sha256: Option<[u8; 32]>,
        expires_in: Duration,
    ) -> Result<PresignedRequest, PortError> {
        let request = self
            .client
            .put_object()
            .bucket(&self.bucket)
            .key(key)
            .content_type(content_type)
            .content_length(length(size)?)
            .set_checksum_sha256(sha256.map(checksum))
            .customize()
            .config_override(no_checksum());
        let signed = request.presigned(expiring(expires_in)?).await;
        let signed = signed.map_err(|error| PortError::unavailable(PRESIGNING, error))?;
        Ok(presigned(&signed))
    }

    async fn begin_multipart(&self, key: &str, content_type: &str) -> Result<String, PortError> {
        const DOING: &str = "beginning an upload in parts";
        let request = self.client.create_multipart_upload().bucket(&self.bucket).key(key).content_type(content_type);
        let output = request.send().await.map_err(|error| port_error(DOING, error))?;
        output.upload_id.ok_or_else(|| PortError::invalid(DOING, "S3 gave the upload no name"))
    }

    async fn presign_part(
        &self,
        key: &str,
        multipart: &str,
        part: u32,
        size: u64,
        expires_in: Duration,
    ) -> Result<PresignedRequest, PortError> {
        let request = self
            .client
            .upload_part()
            .bucket(&self.bucket)
            .key(key)
            .upload_id(multipart)
            .part_number(i32::try_from(part).map_err(|error| PortError::invalid(PRESIGNING, error))?)
            .content_length(length(size)?)
            .customize()
            .config_override(no_checksum());
        let signed = request.presigned(expiring(expires_in)?).await;
        let signed = signed.map_err(|error| PortError::unavailable(PRESIGNING, error))?;
        Ok(presigned(&signed))
    }

    async fn parts(&self, key: &str, multipart: &str) -> Result<Vec<UploadedPart>, PortError> {
        let request = self.client.list_parts().bucket(&self.bucket).key(key).upload_id(multipart);
        let parts = request.into_paginator().items().send().collect::<Result<Vec<_>, _>>().await;
        let parts = parts.map_err(|error| port_error(LISTING, error))?;
        let read = |part: aws_sdk_s3::types::Part| {
            let number = part.part_number().and_then(|number| u32::try_from(number).ok())?;
            let size = part.size().and_then(|size| u64::try_from(size).ok())?;
            Some(UploadedPart { number, etag: part.e_tag?, size })
        };
        let read: Option<Vec<UploadedPart>> = parts.into_iter().map(read).collect();
        let mut read = read.ok_or_else(|| PortError::invalid(LISTING, "S3 told too little of a part"))?;
        read.sort_by_key(|part| part.number);
        Ok(read)
    }

    async fn complete_multipart(&self, key: &str, multipart: &str, parts: &[UploadedPart]) -> Result<(), PortError> {
        const DOING: &str = "completing an upload in parts";
        let completed = |part: &UploadedPart| {
            let number = i32::try_from(part.number).unwrap_or(i32::MAX);
            CompletedPart::builder().part_number(number).e_tag(&part.etag).build()
        };
        let completed = CompletedMultipartUpload::builder().set_parts(Some(parts.iter().map(completed).collect()));
        let request = self.client.complete_multipart_upload().bucket(&self.bucket).key(key).upload_id(multipart);
        let output = request.multipart_upload(completed.build()).send().await;
        output.map_err(|error| port_error(DOING, error))?;
        Ok(())
    }
}
