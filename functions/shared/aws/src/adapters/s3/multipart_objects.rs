use async_trait::async_trait;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use bytes::Bytes;
use rowmill_core::ports::{MultipartObjects, PortError, UploadedPart};

use super::errors::error_at;
use super::objects::S3Objects;

const LISTING: &str = "listing the parts of an upload";

#[async_trait]
impl MultipartObjects for S3Objects {
    async fn begin_multipart(&self, key: &str, content_type: &str) -> Result<String, PortError> {
        const DOING: &str = "beginning an upload in parts";
        let (bucket, name) = self.place(key);
        let request = self.client.create_multipart_upload().bucket(bucket).key(name).content_type(content_type);
        let output = request.send().await.map_err(|error| error_at(key, DOING, error))?;
        output.upload_id.ok_or_else(|| PortError::invalid(DOING, "the answer has no upload id"))
    }

    async fn put_part(&self, key: &str, multipart: &str, number: u32, bytes: Bytes) -> Result<UploadedPart, PortError> {
        const DOING: &str = "storing a part of an object";
        let size = bytes.len() as u64;
        let part = i32::try_from(number).map_err(|error| PortError::invalid(DOING, error))?;
        let (bucket, name) = self.place(key);
        let request = self.client.upload_part().bucket(bucket).key(name).upload_id(multipart).part_number(part);
        let output = request.body(ByteStream::from(bytes)).send().await.map_err(|error| error_at(key, DOING, error))?;
        let etag = output.e_tag.ok_or_else(|| PortError::invalid(DOING, "the answer has no entity tag"))?;
        Ok(UploadedPart { number, etag, size })
    }

    async fn parts(&self, key: &str, multipart: &str) -> Result<Vec<UploadedPart>, PortError> {
        let (bucket, name) = self.place(key);
        let request = self.client.list_parts().bucket(bucket).key(name).upload_id(multipart);
        let parts = request.into_paginator().items().send().collect::<Result<Vec<_>, _>>().await;
        let parts = parts.map_err(|error| error_at(key, LISTING, error))?;
        let read = |part: aws_sdk_s3::types::Part| {
            let number = part.part_number().and_then(|number| u32::try_from(number).ok())?;
            let size = part.size().and_then(|size| u64::try_from(size).ok())?;
            Some(UploadedPart { number, etag: part.e_tag?, size })
        };
        let read: Option<Vec<UploadedPart>> = parts.into_iter().map(read).collect();
        let mut read = read.ok_or_else(|| PortError::invalid(LISTING, "the answer lacks a field of a part"))?;
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
        let (bucket, name) = self.place(key);
        let request = self.client.complete_multipart_upload().bucket(bucket).key(name).upload_id(multipart);
        let output = request.multipart_upload(completed.build()).send().await;
        output.map_err(|error| error_at(key, DOING, error))?;
        Ok(())
    }

    async fn abort_multipart(&self, key: &str, multipart: &str) -> Result<(), PortError> {
        let (bucket, name) = self.place(key);
        let request = self.client.abort_multipart_upload().bucket(bucket).key(name).upload_id(multipart);
        request.send().await.map_err(|error| error_at(key, "aborting an upload in parts", error))?;
        Ok(())
    }
}
