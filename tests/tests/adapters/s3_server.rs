//! `s3s-fs` with features of S3 that it lacks: conditional reads by entity tag, writes of new objects only, rejection
//! of wrong checksums, and the state of multipart uploads.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput, CompleteMultipartUploadOutput,
    CreateBucketInput, CreateBucketOutput, CreateMultipartUploadInput, CreateMultipartUploadOutput, DeleteObjectInput,
    DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput, ETag, ETagCondition, GetObjectInput, GetObjectOutput,
    HeadObjectInput, HeadObjectOutput, ListObjectsV2Input, ListObjectsV2Output, ListPartsInput, ListPartsOutput,
    PutObjectInput, PutObjectOutput, UploadPartInput, UploadPartOutput,
};
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};
use s3s_fs::FileSystem;

pub struct ConditionalFileSystem {
    files: FileSystem,
    /// The entity tags of the parts of each unfinished multipart upload.
    uploads: Mutex<HashMap<String, BTreeMap<i32, Option<ETag>>>>,
}

impl ConditionalFileSystem {
    pub fn new(files: FileSystem) -> Self {
        Self { files, uploads: Mutex::default() }
    }
}

fn check(wanted: Option<&ETagCondition>, etag: Option<&ETag>) -> S3Result<()> {
    match wanted {
        Some(ETagCondition::ETag(wanted)) if etag != Some(wanted) => Err(s3_error!(PreconditionFailed)),
        _ => Ok(()),
    }
}

/// A copy of this request for another operation.
fn alike<T, U>(request: &S3Request<T>, input: U) -> S3Request<U> {
    S3Request {
        input,
        method: request.method.clone(),
        uri: request.uri.clone(),
        headers: request.headers.clone(),
        extensions: request.extensions.clone(),
        credentials: request.credentials.clone(),
        region: request.region.clone(),
        service: request.service.clone(),
        trailing_headers: None,
    }
}

#[async_trait::async_trait]
impl S3 for ConditionalFileSystem {
    async fn create_bucket(&self, request: S3Request<CreateBucketInput>) -> S3Result<S3Response<CreateBucketOutput>> {
        self.files.create_bucket(request).await
    }

    async fn delete_object(&self, request: S3Request<DeleteObjectInput>) -> S3Result<S3Response<DeleteObjectOutput>> {
        self.files.delete_object(request).await
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        self.files.delete_objects(request).await
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        self.files.list_objects_v2(request).await
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        let delete = DeleteObjectInput {
            bucket: request.input.bucket.clone(),
            key: request.input.key.clone(),
            ..DeleteObjectInput::default()
        };
        let delete = alike(&request, delete);
        if request.input.if_none_match == Some(ETagCondition::Any) {
            let head = HeadObjectInput {
                bucket: request.input.bucket.clone(),
                key: request.input.key.clone(),
                ..HeadObjectInput::default()
            };
            if self.files.head_object(alike(&request, head)).await.is_ok() {
                return Err(s3_error!(PreconditionFailed));
            }
        }
        let stored = self.files.put_object(request).await;
        if stored.is_err() {
            // `s3s-fs` detects a wrong checksum only after it has stored the file.
            self.files.delete_object(delete).await?;
        }
        stored
    }

    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let wanted = request.input.if_match.clone();
        let head = HeadObjectInput {
            bucket: request.input.bucket.clone(),
            key: request.input.key.clone(),
            if_match: wanted,
            ..HeadObjectInput::default()
        };
        let head = alike(&request, head);
        // Checked before the range: a range beyond the end of a replaced object must not be the answer.
        match self.head_object(head).await {
            Err(error) if error.status_code().is_some_and(|status| status.as_u16() == 404) => Err(s3_error!(NoSuchKey)),
            Err(error) => Err(error),
            Ok(_) => self.files.get_object(request).await,
        }
    }

    async fn head_object(&self, request: S3Request<HeadObjectInput>) -> S3Result<S3Response<HeadObjectOutput>> {
        let wanted = request.input.if_match.clone();
        let response = self.files.head_object(request).await?;
        check(wanted.as_ref(), response.output.e_tag.as_ref())?;
        Ok(response)
    }

    async fn create_multipart_upload(
        &self,
        request: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let response = self.files.create_multipart_upload(request).await?;
        let name = response.output.upload_id.clone().unwrap_or_default();
        self.uploads.lock().unwrap().insert(name, BTreeMap::new());
        Ok(response)
    }

    async fn upload_part(&self, request: S3Request<UploadPartInput>) -> S3Result<S3Response<UploadPartOutput>> {
        let (name, number) = (request.input.upload_id.clone(), request.input.part_number);
        if !self.uploads.lock().unwrap().contains_key(&name) {
            return Err(s3_error!(NoSuchUpload));
        }
        let response = self.files.upload_part(request).await?;
        let etag = response.output.e_tag.clone();
        self.uploads.lock().unwrap().entry(name).or_default().insert(number, etag);
        Ok(response)
    }

    async fn list_parts(&self, request: S3Request<ListPartsInput>) -> S3Result<S3Response<ListPartsOutput>> {
        let name = request.input.upload_id.clone();
        let known = self.uploads.lock().unwrap().get(&name).cloned().ok_or_else(|| s3_error!(NoSuchUpload))?;
        let mut response = self.files.list_parts(request).await?;
        for part in response.output.parts.iter_mut().flatten() {
            part.e_tag = known.get(&part.part_number.unwrap_or_default()).cloned().flatten();
        }
        Ok(response)
    }

    async fn complete_multipart_upload(
        &self,
        request: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let name = request.input.upload_id.clone();
        let response = self.files.complete_multipart_upload(request).await?;
        self.uploads.lock().unwrap().remove(&name);
        Ok(response)
    }

    async fn abort_multipart_upload(
        &self,
        request: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        if self.uploads.lock().unwrap().remove(&request.input.upload_id).is_none() {
            return Err(s3_error!(NoSuchUpload));
        }
        self.files.abort_multipart_upload(request).await
    }
}
