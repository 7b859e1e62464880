//! The objects in buckets of others that callers may read, and their list.

use rowmill_api::request::ObjectSource;
use rowmill_core::model::files::ListedFile;
use rowmill_core::model::ids::Owner;
use rowmill_core::model::keys;
use rowmill_core::model::spec::{AwaitedFile, SourceFile};
use rowmill_core::ports::{ListedObject, ObjectLists, PortError};
use rowmill_settings::InputSettings;

use crate::error::CreateJobError;
use crate::request::InvalidField;
use crate::source::ListText;

/// The most objects below the prefix of a job.
pub const OBJECTS_MAX: u64 = 1_000_000;

/// The longest list of the objects of a job, in bytes. It is held in memory while it is made.
const LIST_MAX_BYTES: usize = 128 * 1024 * 1024;

/// The longest ending of keys, in bytes.
const SUFFIX_MAX_BYTES: usize = 255;

const NOT_ALLOWED: &str = "is not a bucket that this stack may read, see its parameter `InputBuckets`.";

const SLASH: &str = "cannot be allowed: the name of the caller has a `/`.";

/// The buckets of others that jobs may read.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    buckets: Vec<String>,
    prefix: String,
}

impl Inputs {
    /// The buckets of these settings. The bucket of the stack is none of them: it holds the files of all callers.
    pub fn of(settings: InputSettings, own_bucket: &str) -> Self {
        // `arn:aws:s3:::data`
        let names = settings.buckets.split(',').filter_map(|arn| arn.rsplit(':').next());
        let buckets = names.filter(|name| !name.is_empty() && *name != own_bucket);
        Self { buckets: buckets.map(str::to_owned).collect(), prefix: settings.prefix }
    }

    /// Checks that objects may be read at all.
    pub fn check_any(&self) -> Result<(), InvalidField> {
        match self.buckets.is_empty() {
            true => {
                let message =
                    "names objects in buckets of others, but this stack reads none, see its parameter `InputBuckets`.";
                Err(InvalidField::new("source", message))
            }
            false => Ok(()),
        }
    }

    /// Checks that this caller may read an object.
    ///
    /// # Errors
    /// Why it may not, as the rest of a sentence.
    pub fn check(&self, owner: &Owner, bucket: &str, key: &str) -> Result<(), String> {
        if !self.buckets.iter().any(|allowed| allowed == bucket) {
            return Err(format!("names the bucket `{bucket}`, which {NOT_ALLOWED}"));
        }
        match self.prefix_of(owner) {
            Some(allowed) if key.starts_with(&allowed) => Ok(()),
            Some(allowed) => Err(format!(
                "names the key `{key}`, which must begin with `{allowed}`, see the parameter `InputPrefix` of the stack."
            )),
            None => Err(SLASH.to_owned()),
        }
    }

    /// The objects that a request names, to be listed.
    ///
    /// # Errors
    /// The stack, or this caller, may not read them.
    pub fn objects(&self, owner: &Owner, objects: &ObjectSource) -> Result<AwaitedFile, InvalidField> {
        let ObjectSource { bucket, prefix, suffix } = objects;
        let refused = |field: &str, message: String| Err(InvalidField::new(format!("source.s3.{field}"), message));
        self.check_any()?;
        if !self.buckets.contains(bucket) {
            return refused("bucket", NOT_ALLOWED.to_owned());
        }
        if prefix.len() > keys::KEY_MAX_BYTES {
            return refused("prefix", format!("has more than the maximum of {} bytes.", keys::KEY_MAX_BYTES));
        }
        let suffix = suffix.clone().unwrap_or_default();
        if suffix.len() > SUFFIX_MAX_BYTES {
            return refused("suffix", format!("has more than the maximum of {SUFFIX_MAX_BYTES} bytes."));
        }
        let Some(allowed) = self.prefix_of(owner) else {
            return refused("prefix", SLASH.to_owned());
        };
        if !prefix.starts_with(&allowed) {
            return refused(
                "prefix",
                format!("must begin with `{allowed}`, see the parameter `InputPrefix` of the stack."),
            );
        }
        Ok(AwaitedFile::Objects { bucket: bucket.clone(), prefix: prefix.clone(), suffix })
    }

    /// What the keys that this caller may read begin with. A caller whose name has a slash could reach into the keys of
    /// another one.
    fn prefix_of(&self, owner: &Owner) -> Option<String> {
        const OWNER: &str = "{owner}";
        if !self.prefix.contains(OWNER) {
            return Some(self.prefix.clone());
        }
        let end = if self.prefix.ends_with('/') { "" } else { "/" };
        (!owner.0.contains('/')).then(|| self.prefix.replace(OWNER, &owner.0) + end)
    }
}

/// Lists these objects.
///
/// # Errors
/// There are none of them, or too many; or the bucket cannot be read.
pub async fn list(lists: &dyn ObjectLists, objects: &ObjectSource) -> Result<ListText, CreateJobError> {
    let ObjectSource { bucket, prefix, suffix } = objects;
    let suffix = suffix.as_deref().unwrap_or_default();
    let refused = |field: &str, message: String| Err(InvalidField::new(format!("source.s3.{field}"), message).into());
    let (mut list, mut seen, mut after) = (ListText::default(), 0, None);
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
        if seen > OBJECTS_MAX || list.text.len() > LIST_MAX_BYTES {
            let message = format!(
                "begins the keys of more than the maximum of {OBJECTS_MAX} objects, or of {LIST_MAX_BYTES} bytes of their \
                 list. Create a job for each part of them."
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

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(buckets: &str, prefix: &str) -> Inputs {
        Inputs::of(InputSettings { buckets: buckets.to_owned(), prefix: prefix.to_owned() }, "own")
    }

    fn refused(inputs: &Inputs, owner: &str, bucket: &str, prefix: &str) -> Option<String> {
        let objects = ObjectSource { bucket: bucket.to_owned(), prefix: prefix.to_owned(), suffix: None };
        inputs.objects(&Owner(owner.to_owned()), &objects).err().map(|error| error.field)
    }

    #[test]
    fn a_caller_reads_what_its_prefix_allows_in_the_buckets_of_the_stack() {
        let none = inputs("", "");
        assert_eq!(refused(&none, "a", "data", "x/").as_deref(), Some("source.s3.bucket"));
        let all = inputs("arn:aws:s3:::data,arn:aws-cn:s3:::more,arn:aws:s3:::own", "");
        assert_eq!(refused(&all, "a", "own", "").as_deref(), Some("source.s3.bucket"));
        assert_eq!(refused(&all, "a", "more", ""), None);
        assert_eq!(refused(&all, "a", "mor", "").as_deref(), Some("source.s3.bucket"));
        assert_eq!(refused(&all, "a", "data", &"x".repeat(1025)).as_deref(), Some("source.s3.prefix"));
        for template in ["tenants/{owner}/", "tenants/{owner}"] {
            let own = inputs("arn:aws:s3:::data", template);
            assert_eq!(refused(&own, "a", "data", "tenants/a/2026/"), None);
            for prefix in ["", "tenants/", "tenants/a", "tenants/ab/", "tenants/b/"] {
                assert_eq!(refused(&own, "a", "data", prefix).as_deref(), Some("source.s3.prefix"), "{prefix}");
            }
            assert_eq!(refused(&own, "a/b", "data", "tenants/a/b/").as_deref(), Some("source.s3.prefix"));
        }
    }
}
