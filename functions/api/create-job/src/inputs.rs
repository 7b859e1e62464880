//! The objects below a prefix of an external bucket, and their list.

use rowmill_api::request::ObjectSource;
use rowmill_core::model::files::ListedFile;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::keys;
use rowmill_core::model::spec::{AwaitedFile, SourceFile};
use rowmill_core::ports::{ListedObject, ObjectLists, PortError};
use rowmill_settings::AllowedBuckets;

use crate::error::CreateJobError;
use crate::list_text::ListText;
use crate::request::InvalidField;

/// The most objects below the prefix of a job.
pub const OBJECTS_MAX: u64 = 1_000_000;

/// The longest ending of keys, in bytes.
const SUFFIX_MAX_BYTES: usize = 255;

/// The objects that a request names, to be listed.
///
/// # Errors
/// The stack, or this caller, may not read them.
pub fn to_list(inputs: &AllowedBuckets, owner: &Owner, objects: &ObjectSource) -> Result<AwaitedFile, InvalidField> {
    let ObjectSource { bucket, prefix, suffix } = objects;
    let refused = |field: &str, message: String| InvalidField::new(format!("source.s3.{field}"), message);
    inputs.check_bucket(bucket).map_err(|why| refused("bucket", why.to_owned()))?;
    if prefix.len() > keys::KEY_MAX_BYTES {
        return Err(refused("prefix", format!("has more than the maximum of {} bytes.", keys::KEY_MAX_BYTES)));
    }
    let suffix = suffix.clone().unwrap_or_default();
    if suffix.len() > SUFFIX_MAX_BYTES {
        return Err(refused("suffix", format!("has more than the maximum of {SUFFIX_MAX_BYTES} bytes.")));
    }
    inputs.check_key(owner, prefix).map_err(|why| refused("prefix", why))?;
    Ok(AwaitedFile::Objects { bucket: bucket.clone(), prefix: prefix.clone(), suffix })
}

/// Adds the objects of a bucket whose keys begin and end like this to a list.
///
/// # Errors
/// There are none of them, or too many; or the bucket cannot be read.
pub async fn list(
    lists: &dyn ObjectLists,
    (bucket, prefix, suffix): (&str, &str, &str),
    mut list: ListText,
) -> Result<ListText, CreateJobError> {
    let refused = |field: &str, message: String| Err(InvalidField::new(format!("source.s3.{field}"), message).into());
    let (mut seen, mut after) = (0, None);
    loop {
        let page = match lists.list(bucket, prefix, after.as_deref()).await {
            Err(PortError::NotFound) => return refused("bucket", format!("names no bucket: there is no `{bucket}`.")),
            Err(PortError::Denied { .. }) => {
                let message = format!("cannot be read: the policy of the bucket `{bucket}` denies it.");
                return refused("bucket", message);
            }
            page => page?,
        };
        after = page.objects.last().map(|object| object.key.clone());
        seen += page.objects.len() as u64;
        // A key that ends like this stands for a folder.
        let is_listed = |key: &str| key.ends_with(suffix) && !key.ends_with('/');
        for object in page.objects.into_iter().filter(|object| is_listed(&object.key)) {
            let ListedObject { key: name, etag, size } = object;
            let file = SourceFile { file_guid: None, key: keys::in_bucket(bucket, &name), etag, size };
            list.add(&ListedFile::of(name, file))?;
        }
        if seen > OBJECTS_MAX {
            let message = format!(
                "begins the keys of more than the maximum of {OBJECTS_MAX} objects. Create a job for each part of them."
            );
            return refused("prefix", message);
        }
        if !page.has_more || after.is_none() {
            break;
        }
    }
    match list.files == 0 {
        true => {
            refused("prefix", format!("names no object: none lies below `{prefix}` whose key ends with `{suffix}`."))
        }
        false => Ok(list),
    }
}
