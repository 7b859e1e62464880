//! The bucket with packages and templates. Each object is uploaded once, under a key that contains its SHA-256.

use std::collections::BTreeMap;

use aws_sdk_s3::operation::create_bucket::CreateBucketError;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{BucketLocationConstraint, ChecksumMode, CreateBucketConfiguration};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use rowmill_core::model::sha256::hex;
use sha2::{Digest, Sha256};

use crate::aws::{Aws, CallFailed, failed};
use crate::package::Package;
use crate::progress::Progress;
use crate::template::Template;
use crate::terminal;

const PARALLEL_UPLOADS: usize = 3;

/// The bucket of a deployment's artifacts.
pub(super) struct Bucket {
    pub(super) name: String,
    /// The account that must own it. Bucket names are global, so another account may own this name.
    owner: String,
}

/// An object of the bucket.
struct Artifact {
    key: String,
    content: Bytes,
    /// Its SHA-256 as S3 writes it.
    checksum: String,
}

impl Artifact {
    fn new(folder: &str, content: Bytes, extension: &str) -> Self {
        let digest = Sha256::digest(&content);
        Self {
            key: format!("{folder}/{}.{extension}", hex(&digest)),
            content,
            checksum: BASE64_STANDARD.encode(digest),
        }
    }
}

/// The given bucket, by default one per account and region. A missing bucket is created.
pub(super) async fn bucket(aws: &Aws, name: Option<String>) -> Result<Bucket, CallFailed> {
    let identity = aws.sts.get_caller_identity().send().await.map_err(failed("read the account number"))?;
    let owner = identity.account().unwrap_or_default().to_owned();
    let usual = || format!("rowmill-artifacts-{owner}-{}", aws.region);
    let bucket = Bucket { name: name.unwrap_or_else(usual), owner: owner.clone() };

    let head = aws.s3.head_bucket().bucket(&bucket.name).expected_bucket_owner(&bucket.owner).send().await;
    match head {
        Ok(_) => Ok(bucket),
        Err(error) if error.as_service_error().is_some_and(|error| error.is_not_found()) => {
            create(aws, &bucket.name).await?;
            Ok(bucket)
        }
        // An answer to HEAD has no text that names the missing right.
        Err(error) => Err(failed(format!("use the bucket {} (needs s3:ListBucket)", bucket.name))(error)),
    }
}

async fn create(aws: &Aws, name: &str) -> Result<(), CallFailed> {
    // S3 refuses us-east-1 as a location constraint.
    let elsewhere = (aws.region != "us-east-1").then(|| {
        let constraint = BucketLocationConstraint::from(aws.region.as_str());
        CreateBucketConfiguration::builder().location_constraint(constraint).build()
    });
    let request = aws.s3.create_bucket().bucket(name).set_create_bucket_configuration(elsewhere);
    match request.send().await {
        Ok(_) => Ok(()),
        // Another deployment has just created it.
        Err(error) if matches!(error.as_service_error(), Some(CreateBucketError::BucketAlreadyOwnedByYou(_))) => Ok(()),
        Err(error) => Err(failed(format!("create the bucket {name}"))(error)),
    }
}

/// Uploads the packages that the bucket does not have. Returns their keys by name.
pub(super) async fn upload_packages(
    aws: &Aws,
    bucket: &Bucket,
    packages: Vec<Package>,
    progress: Progress,
) -> Result<BTreeMap<String, String>, CallFailed> {
    let uploads = packages.into_iter().map(|Package { name, zip }| async move {
        let artifact = Artifact::new(&format!("functions/{name}"), zip, "zip");
        if !is_stored(aws, bucket, &artifact).await? {
            if !aws.is_emulator() {
                progress.line(format_args!("Uploading {name} ({})", terminal::bytes(artifact.content.len() as u64)));
            }
            put(aws, bucket, &artifact).await?;
        }
        Ok((name, artifact.key))
    });
    stream::iter(uploads).buffer_unordered(PARALLEL_UPLOADS).try_collect().await
}

/// Uploads the template and returns its URL. CloudFormation accepts 1 MB in a bucket, but only 51,200 bytes in a
/// request.
pub(super) async fn upload_template(aws: &Aws, bucket: &Bucket, template: &Template) -> Result<String, CallFailed> {
    let artifact = Artifact::new("templates", template.to_json().into(), "json");
    put(aws, bucket, &artifact).await?;
    Ok(aws.object_url(&bucket.name, &artifact.key))
}

/// True if the bucket has the object with this content. A key alone proves nothing: anyone who may write to the bucket
/// can put other code under it.
async fn is_stored(aws: &Aws, bucket: &Bucket, artifact: &Artifact) -> Result<bool, CallFailed> {
    let request = aws.s3.head_object().bucket(&bucket.name).key(&artifact.key).expected_bucket_owner(&bucket.owner);
    match request.checksum_mode(ChecksumMode::Enabled).send().await {
        Ok(stored) => Ok(stored.checksum_sha256() == Some(&artifact.checksum)),
        Err(error) if error.as_service_error().is_some_and(|error| error.is_not_found()) => Ok(false),
        // An answer to HEAD has no text that names the missing right.
        Err(error) => Err(failed(format!("look for {} (needs s3:GetObject and s3:ListBucket)", artifact.key))(error)),
    }
}

async fn put(aws: &Aws, bucket: &Bucket, artifact: &Artifact) -> Result<(), CallFailed> {
    let request = aws.s3.put_object().bucket(&bucket.name).key(&artifact.key).expected_bucket_owner(&bucket.owner);
    let request = request.checksum_sha256(&artifact.checksum).body(ByteStream::from(artifact.content.clone()));
    request.send().await.map_err(failed(format!("upload {}", artifact.key)))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use super::*;
    use crate::aws::Target;
    use crate::fake_api::{FakeApi, Reply, Request};

    const CHECKSUM: &str = "x-amz-checksum-sha256";

    /// A bucket that keeps the checksum of each object, and answers HEAD with it if that is asked for.
    fn store(kept: &Mutex<HashMap<String, String>>, request: &Request) -> Reply {
        let path = request.target.split('?').next().unwrap().to_owned();
        let mut kept = kept.lock().unwrap();
        if request.method == "PUT" {
            kept.insert(path, request.headers.get(CHECKSUM).cloned().unwrap_or_default());
            return Reply::text(200, "");
        }
        let asked = request.headers.get("x-amz-checksum-mode").is_some_and(|mode| mode == "ENABLED");
        match kept.get(&path) {
            Some(checksum) if asked && !checksum.is_empty() => Reply::text(200, "").header(CHECKSUM, checksum),
            Some(_) => Reply::text(200, ""),
            None => Reply::text(404, ""),
        }
    }

    #[tokio::test]
    async fn a_package_under_its_key_is_uploaded_again_if_its_content_is_another_or_unknown() {
        let api = FakeApi::serve({
            let kept = Mutex::default();
            move |request, _| store(&kept, request)
        })
        .await;
        let aws = Aws::connect(Target::Emulator { endpoint_url: api.url.clone() }).await.unwrap();
        let bucket = Bucket { name: "b".into(), owner: "000000000000".into() };
        let uploads = || api.seen().iter().filter(|request| request.method == "PUT").count();
        let upload = async || {
            let package = Package { name: "web".into(), zip: Bytes::from_static(b"abc") };
            upload_packages(&aws, &bucket, vec![package], Progress::Hidden).await.unwrap()
        };

        let keys = upload().await;
        // `printf abc | sha256sum`
        let key = "functions/web/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad.zip";
        assert_eq!(keys, BTreeMap::from([("web".to_owned(), key.to_owned())]));
        assert_eq!((upload().await, uploads()), (keys.clone(), 1), "the second time it is there");

        for checksum in ["", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="] {
            let before = uploads();
            let request = aws.s3.put_object().bucket("b").key(key).body(ByteStream::from_static(b""));
            let checksum = (!checksum.is_empty()).then(|| checksum.to_owned());
            request.set_checksum_sha256(checksum).send().await.unwrap();
            upload().await;
            upload().await;
            assert_eq!(uploads(), before + 2, "the other object and the package, once");
        }
    }

    #[tokio::test]
    async fn an_answer_without_text_does_not_hide_which_right_is_missing() {
        let api = FakeApi::serve(|_, _| Reply::text(403, "")).await;
        let aws = Aws::connect(Target::Emulator { endpoint_url: api.url.clone() }).await.unwrap();
        let bucket = Bucket { name: "b".into(), owner: "000000000000".into() };
        let error = is_stored(&aws, &bucket, &Artifact::new("f", Bytes::new(), "zip")).await.unwrap_err();
        assert!(error.to_string().contains("s3:GetObject"), "{error}");
    }
}
