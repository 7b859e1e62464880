//! The bucket with packages and templates. Each object is uploaded once, under a key derived from its content.

use aws_sdk_s3::operation::create_bucket::CreateBucketError;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{BucketLocationConstraint, CreateBucketConfiguration};
use futures::{StreamExt, TryStreamExt, stream};
use rowmill_core::model::sha256::sha256_hex;

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
        Err(error) => Err(failed(format!("use the bucket {}", bucket.name))(error)),
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

/// Uploads the packages that are not in the bucket yet.
pub(super) async fn upload_packages(
    aws: &Aws,
    bucket: &Bucket,
    packages: &[Package],
    progress: Progress,
) -> Result<(), CallFailed> {
    let uploads = packages.iter().map(|package| async move {
        if exists(aws, bucket, &package.key).await? {
            return Ok(());
        }
        let zip = package.zip(!aws.is_emulator());
        if !aws.is_emulator() {
            progress.line(format_args!("Uploading {} ({})", package.name, terminal::bytes(zip.len() as u64)));
        }
        put(aws, bucket, &package.key, zip).await
    });
    stream::iter(uploads).buffer_unordered(PARALLEL_UPLOADS).try_collect().await
}

/// Uploads the template and returns its URL. CloudFormation accepts 1 MB in a bucket, but only 51,200 bytes in a
/// request.
pub(super) async fn upload_template(aws: &Aws, bucket: &Bucket, template: &Template) -> Result<String, CallFailed> {
    let text = template.to_json();
    let key = format!("templates/{}.json", sha256_hex(&text));
    put(aws, bucket, &key, text.into_bytes()).await?;
    Ok(aws.object_url(&bucket.name, &key))
}

async fn exists(aws: &Aws, bucket: &Bucket, key: &str) -> Result<bool, CallFailed> {
    let request = aws.s3.head_object().bucket(&bucket.name).key(key).expected_bucket_owner(&bucket.owner);
    match request.send().await {
        Ok(_) => Ok(true),
        Err(error) if error.as_service_error().is_some_and(|error| error.is_not_found()) => Ok(false),
        Err(error) => Err(failed(format!("look for {key}"))(error)),
    }
}

async fn put(aws: &Aws, bucket: &Bucket, key: &str, body: Vec<u8>) -> Result<(), CallFailed> {
    let request = aws.s3.put_object().bucket(&bucket.name).key(key).expected_bucket_owner(&bucket.owner);
    request.body(ByteStream::from(body)).send().await.map_err(failed(format!("upload {key}")))?;
    Ok(())
}
